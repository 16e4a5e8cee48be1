//! The handle that applications hold.

use super::call::Call;
use super::runtime::Runtime;
use super::shared::Shared;
use super::task::Driver;
use crate::client::{ConnectOptions, PushListener};
use crate::command::{Command, Raw};
use crate::engine::EngineInfo;
use crate::error::{ApiMisuse, Delivery, Error, Result};
use std::fmt;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// A client of one server, for one thread. Cheap to clone; `!Send`.
///
/// All clones share one I/O engine, one set of connections and one pipeline: commands that tasks issue at the same time
/// travel together. Make one per thread, and after a `fork`: in the child, calls of a client that the parent has made fail
/// at once with [`Error::ApiMisuse`], and dropping it only closes the child's descriptors; the parent goes on undisturbed.
///
/// Adapters offer `connect` and `lazy` for their runtime; see `respiral-monoio`, `respiral-tokio` and
/// `respiral-tokio-uring`. Call [`close`](Self::close) before the runtime ends: monoio never drops the tasks that wait
/// when it goes, and what they hold stays open. [`close_on_drop`](Self::close_on_drop) does it where an early return
/// could skip it. Use it only inside the runtime that made it: that one's driver task moves its bytes and keeps its
/// deadlines, and while it does not run, calls stay pending. So never block the thread on a call: another executor's
/// `block_on` inside a task waits for ever, since the driver needs the thread. A thread that is merely late fails no call
/// whose reply has arrived.
///
/// ```compile_fail
/// fn to_another_thread(_: impl Send) {}
/// fn no(client: respiral::Client) {
///     to_another_thread(client); // SYS-007: nothing of a client crosses threads
/// }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Rc<Shared>,
}

impl Client {
    /// Connects every connection, or fails with the first error.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::InvalidArgument`] before any I/O; then whatever ended the first attempt.
    pub async fn connect_on<R: Runtime, O>(runtime: R, options: O) -> Result<Self>
    where
        O: TryInto<ConnectOptions, Error: Into<Error>>,
    {
        let client = Self::lazy_on(runtime, options)?;
        let guard = client.close_on_drop();
        client.connected().await?;
        guard.disarm();
        Ok(client)
    }

    /// A client that connects with its first command.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::InvalidArgument`].
    pub fn lazy_on<R: Runtime, O>(runtime: R, options: O) -> Result<Self>
    where
        O: TryInto<ConnectOptions, Error: Into<Error>>,
    {
        let (client, driver) = Self::with_driver(&runtime, options)?;
        runtime.spawn_local(driver);
        Ok(client)
    }

    /// A lazy client and its driver, for those who place the task themselves. The driver's bell is still spawned on
    /// `runtime`.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::InvalidArgument`].
    pub fn with_driver<R: Runtime, O>(runtime: &R, options: O) -> Result<(Self, Driver)>
    where
        O: TryInto<ConnectOptions, Error: Into<Error>>,
    {
        let options = options.try_into().map_err(Into::into)?;
        let shared = Shared::new(runtime, &options)?;
        let (driver, bell) = Driver::new(&shared);
        runtime.spawn_local(bell);
        Ok((Self { shared }, driver))
    }

    /// Waits until every connection is up; connects them if need be.
    ///
    /// # Errors
    /// What the first attempt that failed met.
    pub async fn connected(&self) -> Result<()> {
        let forked = Error::ApiMisuse(ApiMisuse::Forked(Delivery::NotExecuted));
        if self.shared.is_forked() {
            return Err(forked);
        }
        let since = self.shared.with(|machine| machine.connect());
        poll_fn(|cx| match self.shared.is_forked() {
            true => Poll::Ready(Err(forked.clone())),
            false => self.shared.look(|machine| machine.poll_connected(since, cx.waker())),
        })
        .await
    }

    /// Any command, by name. The words of a subcommand may stand in the name: `client.cmd("CONFIG GET").arg("*")`.
    ///
    /// Commands that block or change the connection are refused with [`Error::InvalidArgument`], administration
    /// commands too unless `allow_admin` is set.
    pub fn cmd<T>(&self, name: &str) -> Call<Raw, T> {
        self.call(Raw::new(name))
    }

    /// Sends a command of a type of your own.
    pub fn call<C: Command, T>(&self, command: C) -> Call<C, T> {
        Call::new(self.shared.clone(), command)
    }

    /// True when a command could go out now. No I/O.
    pub fn is_connected(&self) -> bool {
        !self.shared.is_forked() && self.shared.look(|machine| machine.is_connected())
    }

    /// Which engine moves the bytes, and why that one.
    pub fn engine(&self) -> &EngineInfo {
        self.shared.info()
    }

    /// Receives the push messages (RESP3) of all connections, with room for `capacity` of them; the oldest gives way.
    /// This version refuses SUBSCRIBE and CLIENT TRACKING, so only what a server pushes unasked arrives.
    pub fn listen(&self, capacity: usize) -> PushListener {
        self.shared.listen(capacity)
    }

    /// Push messages that have arrived, with or without a listener.
    pub fn pushes_seen(&self) -> u64 {
        self.shared.look(|machine| machine.pushes_seen())
    }

    /// Closes all clones: pending calls end with [`Error::Closed`] and their delivery, sockets and descriptors are
    /// closed, and the driver task has ended when this returns. Idempotent.
    pub async fn close(&self) {
        self.shared.tear_down();
        self.shared.join().await;
    }

    /// A guard that closes the client when it is dropped, to be owned by the main future: bind it
    /// (`let _guard = …`), since `let _ = …` drops it at once.
    pub fn close_on_drop(&self) -> CloseGuard {
        CloseGuard { shared: Rc::downgrade(&self.shared) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("engine", self.engine()).finish_non_exhaustive()
    }
}

/// Closes its client when dropped, without waiting for the driver task. See [`Client::close_on_drop`].
#[must_use = "it closes the client when it is dropped"]
#[derive(Debug)]
pub struct CloseGuard {
    shared: Weak<Shared>,
}

impl CloseGuard {
    /// Lets the client live on.
    pub fn disarm(mut self) {
        self.shared = Weak::new();
    }
}

impl Drop for CloseGuard {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.tear_down();
        }
    }
}
