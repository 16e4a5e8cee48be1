//! rustis: one multiplexed `Client`, cloned into every caller; it batches by itself.

use super::pool::Pool;
use super::{Client, Length, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use rustis::client::Client as Rustis;
use rustis::commands::{HashCommands, StringCommands};
use rustis::resp::BulkString;
use rustis::{Error, Result};
use std::collections::HashMap;

pub fn run(job: &Job) -> Sample {
    let connect = || async { Rustis::connect(job.url.as_str()).await.expect("connects") };
    on_tokio(drive(&respiral_tokio::Tokio, Pool::connect(job.connections, connect), job))
}

impl Client for Pool<Rustis> {
    type Value = BulkString;
    type Error = Error;

    fn get(&self, key: &str) -> impl Future<Output = Result<BulkString>> {
        self.next().get(key).into_future()
    }

    async fn get_owned(&self, key: &str) -> Result<Vec<u8>> {
        let value: BulkString = self.next().get(key).await?;
        Ok(value.into())
    }

    fn set(&self, key: &str, value: &Bytes) -> impl Future<Output = Result<()>> {
        self.next().set(key, value).into_future()
    }

    fn incr(&self, key: &str) -> impl Future<Output = Result<i64>> {
        self.next().incr(key).into_future()
    }

    fn mget(&self, keys: &[&str]) -> impl Future<Output = Result<Vec<BulkString>>> {
        self.next().mget(keys).into_future()
    }

    fn hgetall(&self, key: &str) -> impl Future<Output = Result<HashMap<String, String>>> {
        self.next().hgetall(key).into_future()
    }
}

impl Length for BulkString {
    fn length(&self) -> usize {
        self.len()
    }
}
