//! redis-rs: one `MultiplexedConnection`, cloned into every caller, as its documentation recommends.

use super::pool::Pool;
use super::{Client, Length, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncCommands, AsyncConnectionConfig, IntoConnectionInfo, RedisError, RedisResult};
use std::collections::HashMap;

/// Of each command: half a second by default, which costs a timer per command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ResponseTimeout {
    Default,
    None,
}

pub fn run(timeout: ResponseTimeout, job: &Job) -> Sample {
    on_tokio(drive(
        &respiral_tokio::Tokio,
        Pool::connect(job.connections, || connect(timeout, &job.url)),
        job,
    ))
}

async fn connect(timeout: ResponseTimeout, url: &str) -> MultiplexedConnection {
    // Nagle's algorithm is on by default, and off for every other side.
    let info = url.into_connection_info().expect("a valid URL");
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let client = redis::Client::open(info).expect("a valid URL");
    let mut config = AsyncConnectionConfig::new();
    if timeout == ResponseTimeout::None {
        config = config.set_response_timeout(None);
    }
    client.get_multiplexed_async_connection_with_config(&config).await.expect("connects")
}

/// Its methods want the connection by mutable reference; a clone is what its documentation tells callers to hold.
impl Client for Pool<MultiplexedConnection> {
    type Value = Vec<u8>;
    type Error = RedisError;

    async fn get(&self, key: &str) -> RedisResult<Vec<u8>> {
        self.next().clone().get(key).await
    }

    async fn get_owned(&self, key: &str) -> RedisResult<Vec<u8>> {
        self.next().clone().get(key).await
    }

    async fn set(&self, key: &str, value: &Bytes) -> RedisResult<()> {
        self.next().clone().set(key, &value[..]).await
    }

    async fn incr(&self, key: &str) -> RedisResult<i64> {
        self.next().clone().incr(key, 1).await
    }

    async fn mget(&self, keys: &[&str]) -> RedisResult<Vec<Vec<u8>>> {
        self.next().clone().mget(keys).await
    }

    async fn hgetall(&self, key: &str) -> RedisResult<HashMap<String, String>> {
        self.next().clone().hgetall(key).await
    }
}

impl Length for Vec<u8> {
    fn length(&self) -> usize {
        self.len()
    }
}
