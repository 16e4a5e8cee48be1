//! respiral under [tokio](https://docs.rs/tokio), on one of its local runtimes.
//!
//! ```no_run
//! #[tokio::main(flavor = "local")]
//! async fn main() -> respiral_tokio::Result<()> {
//!     let client = respiral_tokio::connect("redis://127.0.0.1").await?;
//!     client.set("greeting", "hello").ex(60).await?;
//!     let greeting: Option<String> = client.get("greeting").await?;
//!     assert_eq!(greeting.as_deref(), Some("hello"));
//!     client.close().await;
//!     Ok(())
//! }
//! ```
//!
//! Commands, replies, errors, lost servers: see the page of the crate [`respiral`].
//!
//! A client lives on one thread, so it needs a runtime whose tasks do: `flavor = "local"` as above, or a `LocalSet`
//! inside a current-thread runtime; a test, `#[tokio::test(flavor = "local")]` (tokio 1.54 with `macros` and `rt`). It needs
//! tokio's I/O driver (`enable_io`), and no timers. Elsewhere tokio itself
//! panics when the client is made. A service with a thread per core runs one such runtime and one client on each.

pub use respiral::*;

use std::future::Future;
use std::io as sys;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::Receiver;

/// tokio, as the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

/// A descriptor that tokio waits for. It is no pipe, but a pipe's end is what tokio registers for reading alone: an eventfd
/// becomes writable whenever it is read, and each time the thread would wake for nothing.
#[derive(Debug)]
pub struct Watched(Receiver);

impl Runtime for Tokio {
    type Watch = Watched;

    fn spawn_local(&self, task: impl Future<Output = ()> + 'static) {
        drop(tokio::task::spawn_local(task));
    }

    fn watch(&self, descriptor: OwnedFd) -> sys::Result<Watched> {
        Receiver::from_owned_fd_unchecked(descriptor).map(Watched)
    }
}

impl Watch for Watched {
    async fn ready(&self) -> sys::Result<()> {
        self.0.readable().await?;
        // tokio is told of edges and remembers them. Forgetting this one is safe *here*, before the driver looks at the
        // engine: whatever comes later is a new edge (H14).
        let _ = self.0.try_io(|| Err::<(), _>(sys::ErrorKind::WouldBlock.into()));
        Ok(())
    }
}

/// [`Client::connect_on`] this runtime.
///
/// # Errors
/// As there.
///
/// # Panics
/// Outside a local runtime or `LocalSet`, or without `enable_io`; tokio says so.
pub async fn connect<O: TryInto<ConnectOptions, Error: Into<Error>>>(options: O) -> Result<Client> {
    Client::connect_on(Tokio, options).await
}

/// [`Client::lazy_on`] this runtime; to be called inside it.
///
/// # Errors
/// As there.
///
/// # Panics
/// As [`connect`].
pub fn lazy<O: TryInto<ConnectOptions, Error: Into<Error>>>(options: O) -> Result<Client> {
    Client::lazy_on(Tokio, options)
}
