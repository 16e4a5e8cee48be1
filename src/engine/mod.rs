//! Engines: what moves the bytes. Both speak [`Op`] and [`Completion`] and know nothing of RESP.
//!
//! An engine belongs to the thread that made it. It never blocks (except for a bounded time in `close`), and its
//! [`wake_fd`](Engine::wake_fd) becomes readable when `poll` would yield something: that descriptor is all that a host
//! runtime has to wait for. [`AnyEngine`] is the one to use: io_uring where it works, epoll where it does not.

mod alarm;
mod choose;
mod epoll;
#[allow(unsafe_code)]
mod process;
mod sending;
mod socket;
mod token;
#[allow(unsafe_code)]
mod uring;
#[allow(unsafe_code)]
mod wake;

pub use crate::io::{EngineKind, EngineOptions};
pub use choose::{AnyEngine, EngineInfo, EngineReason, RunningEngine};
pub use epoll::EpollEngine;
pub(crate) use process::{Process, times_slept};
pub use uring::{UringEngine, UringRefusal, leaked_engines};
pub(crate) use wake::TimerFd;

use crate::buf::BufferPool;
use crate::io::{Completion, Op};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The contract of an engine; one suite of tests holds every implementation to it.
///
/// A turn is: `poll`; feed the core; `submit` what it wants; `wake_at`; `flush`; then, if there is nothing else to do
/// and `may_park` agrees, wait for `wake_fd`.
pub trait Engine {
    /// Takes an operation. Nothing reaches the kernel before [`flush`](Self::flush) (an engine may go earlier when
    /// its queue is full). The answers come out of [`poll`](Self::poll), in later calls.
    ///
    /// A place (`ConnectionId::index`) can be connected again after its `Closed`; before, `Connect` fails with `EBUSY`.
    fn submit(&mut self, op: Op);

    /// Hands everything queued to the kernel, in one system call where the engine can. No call when nothing is queued.
    fn flush(&mut self) -> io::Result<()>;

    /// Collects what has happened, up to about `budget` completions, without blocking. True when more is left.
    fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool>;

    /// To be called right before waiting for [`wake_fd`](Self::wake_fd): clears the descriptor, then looks once more.
    /// False when there is something to poll or to flush; waiting then could last for ever. After a write to a
    /// [`notifier`](Self::notifier) it says false until the next `poll`, so no notification is lost.
    fn may_park(&mut self) -> io::Result<bool>;

    /// Makes the descriptor readable at about this time; takes effect with the next `flush`. Spurious wake-ups are
    /// legal; `None` or a later time may leave an earlier alarm in place.
    fn wake_at(&mut self, now: Instant, at: Option<Instant>);

    /// A new descriptor for the host to wait for, readable when there is something to poll. Level triggered; safe
    /// under edge-triggered hosts that wait only after `may_park` said true.
    fn wake_fd(&self) -> io::Result<OwnedFd>;

    /// A new descriptor that makes `wake_fd` readable when eight bytes (a non-zero u64) are written to it, from any
    /// thread (an eventfd).
    fn notifier(&self) -> io::Result<OwnedFd>;

    /// The buffers that it receives into.
    fn pool(&self) -> &BufferPool;

    /// Ends everything: no byte is sent or written to memory after it returns. Sends that were outstanding are
    /// answered in `out` (`Sent`, then `Closed`). Idempotent; dropping an engine closes it.
    fn close(&mut self, out: &mut Vec<Completion>);
}

/// What an engine has done since it was made. For tests and metrics; they only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// io_uring: calls of `io_uring_enter`. epoll: calls of `epoll_wait`, `epoll_ctl`, `recv`, `sendmsg` and
    /// `timerfd_settime`.
    pub kernel_entries: u64,
    /// io_uring: completions. epoll: events.
    pub completions: u64,
    /// How often a connection began to receive: once each, and once more after it ran out of buffers.
    pub receives_armed: u64,
    /// How often a connection stopped receiving because every buffer was taken.
    pub starvations: u64,
}
