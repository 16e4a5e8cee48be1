//! rustis: one multiplexed `Client`, cloned into every caller; it batches by itself.

use super::pool::Pool;
use super::{Client, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use rustis::client::Client as Rustis;
use rustis::commands::{HashCommands, StringCommands};
use rustis::resp::BulkString;
use std::collections::HashMap;

pub fn run(job: &Job) -> Sample {
    let connect = || async { Rustis::connect(job.url.as_str()).await.expect("connects") };
    on_tokio(drive(&respiral_tokio::Tokio, Pool::connect(job.connections, connect), job))
}

impl Client for Pool<Rustis> {
    async fn get(&self, key: &str) -> usize {
        let value: BulkString = self.next().get(key).await.expect("a reply");
        value.len()
    }

    async fn get_owned(&self, key: &str) -> Vec<u8> {
        let value: BulkString = self.next().get(key).await.expect("a reply");
        value.into()
    }

    async fn set(&self, key: &str, value: &Bytes) {
        self.next().set(key, value).await.expect("a reply");
    }

    async fn incr(&self, key: &str) -> i64 {
        self.next().incr(key).await.expect("a reply")
    }

    async fn mget(&self, keys: &[&str]) -> usize {
        let values: Vec<BulkString> = self.next().mget(keys).await.expect("a reply");
        values.iter().map(|value| value.len()).sum()
    }

    async fn hgetall(&self, key: &str) -> HashMap<String, String> {
        self.next().hgetall(key).await.expect("a reply")
    }
}
