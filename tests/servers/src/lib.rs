//! Real Redis and Valkey servers for live tests.
//!
//! A live test needs a server of a known version, on a port nobody else uses, that is gone when the test
//! is, however the test ends. [`LiveServer`] is that server; the script `gather` beside this crate's
//! manifest brings the binaries; [`find`] says where they are.
//!
//! ```no_run
//! use servers::{Kind, LiveServer};
//!
//! let mut server = LiveServer::start(Kind::Valkey81)?;
//! assert_eq!(server.cli(&["SET", "k", "v"]), "OK");
//! server.kill()?;
//! server.restart()?;
//! assert_eq!(server.cli(&["GET", "k"]), "(nil)");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What holds for every server started here:
//!
//! - Its port is reserved among all processes that use this crate for as long as the [`LiveServer`] lives,
//!   also while the server is down, so [`LiveServer::restart`] finds it free.
//! - It dies when the [`LiveServer`] is dropped, when the test process exits, and, where `setpriv` exists,
//!   when the test process is killed.
//! - What answers on its port is it, and not a stranger: its process id is compared before it is handed out.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests against real servers live in real time, and wait for real processes"
)]

mod builder;
mod certificates;
mod child;
mod kind;
mod launch;
mod live_server;
mod port;
mod resp;

pub use builder::LiveServerBuilder;
pub use kind::{Kind, find};
pub use live_server::LiveServer;
