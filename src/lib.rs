//! A Redis and Valkey client for Linux services that run a thread per core.
//!
//! It has its own io_uring (or epoll, where io_uring is denied), is awaited from **monoio**, **tokio** or
//! **tokio-uring**, and shares nothing between threads: make one [`Client`] per thread, clone it into that thread's
//! tasks. It opens no thread but for looking up host names. Applications depend on an adapter, which re-exports this
//! crate: `respiral-monoio`, `respiral-tokio` or `respiral-tokio-uring`.
//!
//! # Commands
//!
//! The everyday commands are methods of [`Client`]; options are methods of the [`Call`] that they return; any other
//! command goes by name with [`Client::cmd`]. A call is sent when it is first polled. What a reply becomes is up to you:
//! see the table at [`FromReply`]; [`Blob`] and [`Reply`] read it in place.
//!
//! ```
//! # async fn example(client: respiral::Client) -> respiral::Result<()> {
//! use std::{collections::HashMap, time::Duration};
//! client.set("user:1", "Ada").ex(60).await?;
//! let name: Option<String> = client.get("user:1").await?;
//! client.hset("stock", [("apples", 3), ("pears", 5)]).await?;
//! let stock: HashMap<String, i64> = client.hgetall("stock").timeout(Duration::from_millis(50)).await?;
//! let length = client.cmd::<u64>("STRLEN").arg("user:1").await?;
//! # let _ = (name, stock, length); Ok(()) }
//! ```
//!
//! Methods have a type of the key besides that of the reply: in line it is `client.get::<Option<String>, _>("user:1")`.
//!
//! Arguments are copied once, into the connection's outgoing bytes; a `bytes::Bytes` of 16 KiB or more is sent from where
//! it lies (a `Vec` becomes one without a copy). Commands that tasks issue at the same time leave in one send. Those that block or change the connection are refused,
//! since all tasks share it. One that this crate does not have as a type may be [your own](command::Command).
//!
//! # Errors
//!
//! [`Error::delivery`] says whether the command may have run, which decides whether it may be repeated. respiral itself
//! never repeats a command that a connection had accepted.
//!
//! ```
//! # async fn pause(_: std::time::Duration) {}
//! # async fn example(client: respiral::Client) -> respiral::Result<i64> {
//! use respiral::Delivery;
//! let mut wait = std::time::Duration::from_millis(10);
//! loop {
//!     match client.incr("visits").await {
//!         // Not sent, or turned away unrun: safe to repeat, after a while.
//!         Err(error) if error.delivery() == Delivery::NotExecuted && wait.as_secs() < 5 => {
//!             pause(wait).await; // your runtime's timer
//!             wait *= 2;
//!         }
//!         // MaybeExecuted: it may have counted. Answered: the server said no.
//!         result => return result,
//!     }
//! }
//! # }
//! ```
//!
//! What changes nothing, or the same however often it runs (GET, a SET of a fixed value), may be repeated after `MaybeExecuted` too.
//!
//! # When the server goes away
//!
//! Commands that it had accepted end with [`Error::Connection`] and their delivery; those that it had not seen wait for
//! the replacement connection, which is dialled at once. If that fails, they end too (not executed), and the next command
//! dials again: there is no back-off yet, so pause before you repeat. The same client goes on; nothing has to be made anew.
//!
//! A server or a network that only falls silent is not noticed by default: each call ends with [`Error::Timeout`] and the
//! connection stays. [`ConnectOptions::idle_read_timeout`] has it replaced.
//!
//! # Tests of your own
//!
//! `respiral-testkit` is a server inside your test: real commands, scripted answers, faults. Under tokio a test needs a
//! local runtime too: `#[tokio::test(flavor = "local")]`; a plain one panics with "`spawn_local` called from outside of a
//! `task::LocalSet`".
//!
//! # Inside
//!
//! [`driver`] and [`engine`] move bytes. [`buf`], [`client`], [`connection`] and the words in [`io`] are the core without
//! I/O, public for simulators and other drivers, and not bound by semantic versioning; what an application implements
//! (commands, conversions, resolvers, runtimes) and the errors are. Tests and comments name requirements (CONN-007,
//! SYS-005) and hazards (H26) that the code answers to; their lists are not part of this repository.
#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(clippy::unwrap_used)]
// What only the driver calls.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

// Layers, lowest first. A file imports only from layers above it in this list (tests/tidy.rs).
#[macro_use]
#[doc(hidden)]
pub mod planted;

pub mod buf;
pub mod client;
pub mod command;
pub mod connection;
#[cfg(feature = "engine")]
pub mod driver;
#[cfg(feature = "engine")]
pub mod engine;
pub mod error;
mod id;
pub mod io;
pub mod resp;

pub use client::{ConnectOptions, PushListener};
pub use command::typed::reply::{Cursor, KeyType, Milliseconds, Seconds, ServerTime, TimeToLive};
pub use connection::Protocol;
#[cfg(feature = "engine")]
pub use driver::{Call, Client, CloseGuard, Driver, Runtime, Watch};
pub use error::{Delivery, Error, Result};
pub use io::{EngineKind, EngineOptions};
pub use resp::{Blob, FromReply, Reply, ToArg, ToArgs, Value};
