//! respiral
#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(clippy::unwrap_used)]
// What only the driver calls.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

// Layers, lowest first. A file imports only from layers above it in this list (tests/tidy.rs).
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
