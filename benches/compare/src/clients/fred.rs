//! fred: one `Client`, cloned into every caller; it pipelines by itself.

use super::pool::Pool;
use super::{Client, Length, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use fred::clients::Client as Fred;
use fred::error::Error;
use fred::interfaces::{ClientLike, FredResult, HashesInterface, KeysInterface};
use fred::types::Builder;
use fred::types::config::{Config, TcpConfig};
use std::collections::HashMap;

pub fn run(job: &Job) -> Sample {
    on_tokio(drive(&respiral_tokio::Tokio, Pool::connect(job.connections, || connect(&job.url)), job))
}

async fn connect(url: &str) -> Fred {
    let mut builder = Builder::from_config(Config::from_url(url).expect("a valid URL"));
    // As in its first example.
    builder.with_connection_config(|config| {
        config.tcp = TcpConfig { nodelay: Some(true), ..TcpConfig::default() };
    });
    let client = builder.build().expect("valid options");
    client.init().await.expect("connects");
    client
}

impl Client for Pool<Fred> {
    type Value = Bytes;
    type Error = Error;

    fn get(&self, key: &str) -> impl Future<Output = FredResult<Bytes>> {
        self.next().get(key)
    }

    async fn get_owned(&self, key: &str) -> FredResult<Vec<u8>> {
        let value: Bytes = self.next().get(key).await?;
        Ok(value.into())
    }

    fn set(&self, key: &str, value: &Bytes) -> impl Future<Output = FredResult<()>> {
        self.next().set(key, value.clone(), None, None, false)
    }

    fn incr(&self, key: &str) -> impl Future<Output = FredResult<i64>> {
        self.next().incr(key)
    }

    fn mget(&self, keys: &[&str]) -> impl Future<Output = FredResult<Vec<Bytes>>> {
        self.next().mget(keys.to_vec())
    }

    fn hgetall(&self, key: &str) -> impl Future<Output = FredResult<HashMap<String, String>>> {
        self.next().hgetall(key)
    }

    async fn close(&self) {
        for client in self.all() {
            let _ = client.quit().await;
        }
    }
}

impl Length for Bytes {
    fn length(&self) -> usize {
        self.len()
    }
}
