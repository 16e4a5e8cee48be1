//! The sides that are compared. Each puts its client under the same load; everything on the measured path is generic,
//! so no side pays for a dispatch that another does not.

mod floor;
#[cfg(feature = "fred")]
mod fred;
#[cfg(feature = "redis-rs")]
mod redis_rs;
mod respiral;
#[cfg(feature = "rustis")]
mod rustis;

use crate::load::Job;
use crate::meter::Sample;
use ::respiral_monoio::{EngineKind, EngineOptions};
use bytes::Bytes;
use clap::ValueEnum;
use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

/// One client's handle, as its callers hold it. Each method is one command; where the client's own method fits, its
/// future is passed on as it is, so that the harness adds nothing to it.
pub trait Client: Clone + 'static {
    /// The cheapest form of a string that the client offers.
    type Value: Length;
    type Error: Debug;

    fn get(&self, key: &str) -> impl Future<Output = Result<Self::Value, Self::Error>>;
    fn get_owned(&self, key: &str) -> impl Future<Output = Result<Vec<u8>, Self::Error>>;
    fn set(&self, key: &str, value: &Bytes) -> impl Future<Output = Result<(), Self::Error>>;
    fn incr(&self, key: &str) -> impl Future<Output = Result<i64, Self::Error>>;
    fn mget(&self, keys: &[&str]) -> impl Future<Output = Result<Vec<Self::Value>, Self::Error>>;
    fn hgetall(&self, key: &str) -> impl Future<Output = Result<HashMap<String, String>, Self::Error>>;
    /// Before the runtime ends, for clients that ask for it.
    fn close(&self) -> impl Future<Output = ()> {
        std::future::ready(())
    }
}

/// Bytes of a reply.
pub trait Length {
    fn length(&self) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Blocking calls, commands encoded in advance
    Floor,
    Monoio,
    MonoioEpoll,
    /// io_uring that looks for replies for 50 µs before the thread sleeps
    MonoioSpin,
    /// monoio's own driver is epoll
    MonoioLegacy,
    MonoioLegacyEpoll,
    Tokio,
    TokioEpoll,
    /// As `monoio-spin`
    TokioSpin,
    TokioUring,
    TokioUringEpoll,
    #[cfg(feature = "redis-rs")]
    RedisRs,
    #[cfg(feature = "redis-rs")]
    RedisRsNoTimeout,
    #[cfg(feature = "fred")]
    Fred,
    #[cfg(feature = "rustis")]
    Rustis,
}

/// What a side is, for charts and for the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    Floor,
    RespiralUring,
    RespiralEpoll,
    Peer,
}

impl Side {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub fn family(self) -> Family {
        match self {
            Side::Floor => Family::Floor,
            Side::Monoio | Side::MonoioSpin | Side::MonoioLegacy => Family::RespiralUring,
            Side::Tokio | Side::TokioSpin | Side::TokioUring => Family::RespiralUring,
            Side::MonoioEpoll | Side::MonoioLegacyEpoll | Side::TokioEpoll | Side::TokioUringEpoll => {
                Family::RespiralEpoll
            }
            #[cfg(any(feature = "redis-rs", feature = "fred", feature = "rustis"))]
            _ => Family::Peer,
        }
    }

    /// Those that a run without `--sides` and `--full` compares.
    pub fn is_default(self) -> bool {
        !matches!(self, Side::MonoioLegacyEpoll | Side::TokioSpin | Side::TokioUringEpoll)
    }

    pub fn run(self, job: &Job) -> Sample {
        let engine = |kind| EngineOptions::new().kind(kind);
        let (uring, epoll) = (engine(EngineKind::Uring), engine(EngineKind::Epoll));
        let spin = uring.clone().spin(Duration::from_micros(50));
        match self {
            Side::Floor => floor::run(job),
            Side::Monoio => respiral::monoio(uring, job),
            Side::MonoioEpoll => respiral::monoio(epoll, job),
            Side::MonoioSpin => respiral::monoio(spin, job),
            Side::MonoioLegacy => respiral::monoio_legacy(uring, job),
            Side::MonoioLegacyEpoll => respiral::monoio_legacy(epoll, job),
            Side::Tokio => respiral::tokio(uring, job),
            Side::TokioEpoll => respiral::tokio(epoll, job),
            Side::TokioSpin => respiral::tokio(spin, job),
            Side::TokioUring => respiral::tokio_uring(uring, job),
            Side::TokioUringEpoll => respiral::tokio_uring(epoll, job),
            #[cfg(feature = "redis-rs")]
            Side::RedisRs => redis_rs::run(redis_rs::ResponseTimeout::Default, job),
            #[cfg(feature = "redis-rs")]
            Side::RedisRsNoTimeout => redis_rs::run(redis_rs::ResponseTimeout::None, job),
            #[cfg(feature = "fred")]
            Side::Fred => fred::run(job),
            #[cfg(feature = "rustis")]
            Side::Rustis => rustis::run(job),
        }
    }
}

/// tokio as every side under it gets it: one thread, local tasks (they cost what `spawn` costs on one thread).
fn on_tokio<T>(future: impl Future<Output = T>) -> T {
    let mut builder = ::tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build_local(Default::default()).expect("tokio starts").block_on(future)
}

/// Several connections of a client that has no pool for shared use: taken in turn.
#[cfg(any(feature = "redis-rs", feature = "fred", feature = "rustis"))]
mod pool {
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Clone)]
    pub struct Pool<C>(Rc<(Vec<C>, Cell<usize>)>);

    impl<C> Pool<C> {
        pub async fn connect<F: Future<Output = C>>(connections: u32, connect: impl Fn() -> F) -> Self {
            let mut clients = Vec::new();
            for _ in 0..connections {
                clients.push(connect().await);
            }
            Self(Rc::new((clients, Cell::new(0))))
        }

        #[inline]
        pub fn next(&self) -> &C {
            let (clients, turn) = &*self.0;
            let index = turn.get();
            turn.set(if index + 1 == clients.len() { 0 } else { index + 1 });
            &clients[index]
        }

        pub fn all(&self) -> &[C] {
            &self.0.0
        }
    }
}
