//! respiral under each host, with each engine. Replies are read in place (`Blob`).

use super::{Client, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use respiral_monoio::{Blob, Client as Respiral, ConnectOptions, EngineKind, EngineOptions, Runtime};
use std::collections::HashMap;

pub fn monoio(engine: EngineKind, job: &Job) -> Sample {
    let mut runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().build().expect("monoio starts");
    runtime.block_on(load(respiral_monoio::Monoio, engine, job))
}

pub fn monoio_legacy(engine: EngineKind, job: &Job) -> Sample {
    let mut runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().build().expect("monoio starts");
    runtime.block_on(load(respiral_monoio::Monoio, engine, job))
}

pub fn tokio(engine: EngineKind, job: &Job) -> Sample {
    on_tokio(load(respiral_tokio::Tokio, engine, job))
}

pub fn tokio_uring(engine: EngineKind, job: &Job) -> Sample {
    tokio_uring::start(load(respiral_tokio_uring::Tokio, engine, job))
}

async fn load<R: Runtime + Copy>(runtime: R, engine: EngineKind, job: &Job) -> Sample {
    let connect = async {
        let options = ConnectOptions::try_from(job.url.as_str()).expect("a valid URL");
        let options = options.connections(job.connections).engine(EngineOptions::new().kind(engine));
        Respiral::connect_on(runtime, options).await.expect("connects")
    };
    drive(&runtime, connect, job).await
}

impl Client for Respiral {
    async fn get(&self, key: &str) -> usize {
        let value: Blob = self.get(key).await.expect("a reply");
        value.len()
    }

    async fn get_owned(&self, key: &str) -> Vec<u8> {
        self.get(key).await.expect("a reply")
    }

    async fn set(&self, key: &str, value: &Bytes) {
        self.set(key, value).await.expect("a reply");
    }

    async fn incr(&self, key: &str) -> i64 {
        self.incr(key).await.expect("a reply")
    }

    async fn mget(&self, keys: &[&str]) -> usize {
        let values: Vec<Blob> = self.mget(keys).await.expect("a reply");
        values.iter().map(Blob::len).sum()
    }

    async fn hgetall(&self, key: &str) -> HashMap<String, String> {
        self.hgetall(key).await.expect("a reply")
    }

    async fn close(&self) {
        self.close().await;
    }
}
