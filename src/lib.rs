//! respiral
#![deny(unsafe_code)]

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

pub use error::{Delivery, Error, Result};
