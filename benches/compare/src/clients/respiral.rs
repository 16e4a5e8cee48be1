//! respiral under each host, with each engine. Replies are read in place (`Blob`).

use super::{Client, Length, on_tokio};
use crate::load::{Job, drive};
use crate::meter::Sample;
use bytes::Bytes;
use respiral_monoio::{Blob, Client as Respiral, ConnectOptions, EngineOptions, Error, Result, Runtime};
use std::collections::HashMap;

pub fn monoio(engine: EngineOptions, job: &Job) -> Sample {
    let mut runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().build().expect("monoio starts");
    runtime.block_on(load(respiral_monoio::Monoio, engine, job))
}

pub fn monoio_legacy(engine: EngineOptions, job: &Job) -> Sample {
    let mut runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().build().expect("monoio starts");
    runtime.block_on(load(respiral_monoio::Monoio, engine, job))
}

pub fn tokio(engine: EngineOptions, job: &Job) -> Sample {
    on_tokio(load(respiral_tokio::Tokio, engine, job))
}

pub fn tokio_uring(engine: EngineOptions, job: &Job) -> Sample {
    tokio_uring::start(load(respiral_tokio_uring::Tokio, engine, job))
}

async fn load<R: Runtime + Copy>(runtime: R, engine: EngineOptions, job: &Job) -> Sample {
    let connect = async {
        let options = ConnectOptions::try_from(job.url.as_str()).expect("a valid URL");
        let options = options.connections(job.connections).engine(engine);
        Respiral::connect_on(runtime, options).await.expect("connects")
    };
    drive(&runtime, connect, job).await
}

impl Client for Respiral {
    type Value = Blob;
    type Error = Error;

    fn get(&self, key: &str) -> impl Future<Output = Result<Blob>> {
        self.get(key)
    }

    fn get_owned(&self, key: &str) -> impl Future<Output = Result<Vec<u8>>> {
        self.get(key)
    }

    fn set(&self, key: &str, value: &Bytes) -> impl Future<Output = Result<()>> {
        self.set(key, value)
    }

    fn incr(&self, key: &str) -> impl Future<Output = Result<i64>> {
        self.incr(key)
    }

    fn mget(&self, keys: &[&str]) -> impl Future<Output = Result<Vec<Blob>>> {
        self.mget(keys)
    }

    fn hgetall(&self, key: &str) -> impl Future<Output = Result<HashMap<String, String>>> {
        self.hgetall(key)
    }

    fn close(&self) -> impl Future<Output = ()> {
        self.close()
    }
}

impl Length for Blob {
    fn length(&self) -> usize {
        self.len()
    }
}
