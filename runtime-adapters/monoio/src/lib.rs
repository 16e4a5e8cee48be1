//! respiral under [monoio](https://docs.rs/monoio), with any of its drivers (io_uring, legacy, fusion).
//!
//! ```no_run
//! let mut runtime = monoio::RuntimeBuilder::<monoio::FusionDriver>::new().build().unwrap();
//! runtime.block_on(async {
//!     let client = respiral_monoio::connect("redis://127.0.0.1").await.unwrap();
//!     client.set("greeting", "hello").ex(60).await.unwrap();
//!     let greeting: Option<String> = client.get("greeting").await.unwrap();
//!     assert_eq!(greeting.as_deref(), Some("hello"));
//!     client.close().await;
//! });
//! ```
//!
//! Commands, replies, errors, lost servers: see the page of the crate [`respiral`].
//!
//! Close the client before the runtime ends, as above: monoio never drops the tasks that wait when it goes, so a client
//! that such a task holds keeps its sockets open, and one that is used later, in another runtime, never answers. [`Client::close_on_drop`] covers early returns. The client needs
//! neither monoio's timers nor its sockets.

pub use respiral::*;

use std::future::Future;
use std::io as sys;
use std::os::fd::OwnedFd;

/// monoio, as the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monoio;

/// A descriptor that monoio waits for. It is no socket, but nothing socket-like is asked of it.
#[derive(Debug)]
pub struct Watched(monoio::net::UnixStream);

impl Runtime for Monoio {
    type Watch = Watched;

    fn spawn_local(&self, task: impl Future<Output = ()> + 'static) {
        drop(monoio::spawn(task));
    }

    fn watch(&self, descriptor: OwnedFd) -> sys::Result<Watched> {
        monoio::net::UnixStream::from_std(descriptor.into()).map(Watched)
    }
}

impl Watch for Watched {
    async fn ready(&self) -> sys::Result<()> {
        self.0.readable(false).await
    }
}

/// [`Client::connect_on`] this runtime.
///
/// # Errors
/// As there.
pub async fn connect<O: TryInto<ConnectOptions, Error: Into<Error>>>(options: O) -> Result<Client> {
    Client::connect_on(Monoio, options).await
}

/// [`Client::lazy_on`] this runtime; to be called inside it.
///
/// # Errors
/// As there.
pub fn lazy<O: TryInto<ConnectOptions, Error: Into<Error>>>(options: O) -> Result<Client> {
    Client::lazy_on(Monoio, options)
}
