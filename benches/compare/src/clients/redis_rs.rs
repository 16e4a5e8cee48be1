//! redis-rs: one `MultiplexedConnection`, cloned into every caller, as its documentation recommends.

use super::pool::Pool;
use super::{Client, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncCommands, AsyncConnectionConfig, IntoConnectionInfo};
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

impl Client for Pool<MultiplexedConnection> {
    async fn get(&self, key: &str) -> usize {
        let value: Vec<u8> = self.next().clone().get(key).await.expect("a reply");
        value.len()
    }

    async fn get_owned(&self, key: &str) -> Vec<u8> {
        self.next().clone().get(key).await.expect("a reply")
    }

    async fn set(&self, key: &str, value: &Bytes) {
        self.next().clone().set::<_, _, ()>(key, &value[..]).await.expect("a reply");
    }

    async fn incr(&self, key: &str) -> i64 {
        self.next().clone().incr(key, 1).await.expect("a reply")
    }

    async fn mget(&self, keys: &[&str]) -> usize {
        let values: Vec<Vec<u8>> = self.next().clone().mget(keys).await.expect("a reply");
        values.iter().map(Vec::len).sum()
    }

    async fn hgetall(&self, key: &str) -> HashMap<String, String> {
        self.next().clone().hgetall(key).await.expect("a reply")
    }
}
