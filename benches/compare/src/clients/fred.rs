//! fred: one `Client`, cloned into every caller; it pipelines by itself.

use super::pool::Pool;
use super::{Client, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use fred::clients::Client as Fred;
use fred::interfaces::{ClientLike, HashesInterface, KeysInterface};
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
    async fn get(&self, key: &str) -> usize {
        let value: Bytes = self.next().get(key).await.expect("a reply");
        value.len()
    }

    async fn get_owned(&self, key: &str) -> Vec<u8> {
        let value: Bytes = self.next().get(key).await.expect("a reply");
        value.into()
    }

    async fn set(&self, key: &str, value: &Bytes) {
        self.next().set::<(), _, _>(key, value.clone(), None, None, false).await.expect("a reply");
    }

    async fn incr(&self, key: &str) -> i64 {
        self.next().incr(key).await.expect("a reply")
    }

    async fn mget(&self, keys: &[&str]) -> usize {
        let values: Vec<Bytes> = self.next().mget(keys.to_vec()).await.expect("a reply");
        values.iter().map(Bytes::len).sum()
    }

    async fn hgetall(&self, key: &str) -> HashMap<String, String> {
        self.next().hgetall(key).await.expect("a reply")
    }

    async fn close(&self) {
        for client in self.all() {
            let _ = client.quit().await;
        }
    }
}
