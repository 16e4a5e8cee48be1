//! respiral
#![deny(unsafe_code)]

// Layers, lowest first. A file imports only from layers above it in this list (tests/tidy.rs).
pub mod error;
mod id;
pub mod buf;
pub mod io;
pub mod resp;
pub mod command;
pub mod connection;
pub mod client;
#[cfg(feature = "engine")]
pub mod engine;
#[cfg(feature = "engine")]
pub mod driver;

pub use error::{Delivery, Error, Result};
