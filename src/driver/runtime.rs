//! What a host runtime has to give: two tasks, two descriptors.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;

/// A host runtime, as the driver sees it. An adapter is a few lines: see `runtime-adapters/`.
///
/// Everything happens on the calling thread. The driver never asks for timers or sockets, so runtimes built without
/// them will do.
pub trait Runtime: 'static {
    /// How this runtime waits for a descriptor.
    type Watch: Watch;

    /// Starts a task on this thread. Called twice per client: for the driver, and for the bell through which it
    /// yields.
    fn spawn_local(&self, task: impl Future<Output = ()> + 'static);

    /// Called twice per client: for the engine's descriptor, and for one through which the driver lets the host park, as
    /// some fire their timers only then. Registers it once; the value waits for it as often as it is asked, and closes it when dropped.
    ///
    /// # Errors
    /// What the system said.
    fn watch(&self, descriptor: OwnedFd) -> io::Result<Self::Watch>;
}

/// A registered descriptor.
pub trait Watch: 'static {
    /// Waits until the descriptor is readable. It may also return early.
    fn ready(&self) -> impl Future<Output = io::Result<()>>;
}
