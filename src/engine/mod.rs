//! Engines: what moves the bytes. Both speak [`Op`] and [`Completion`] and know nothing of RESP.
//!
//! An engine belongs to the thread that made it. It never blocks (except for a bounded time in `close`), and its
//! [`wake_fd`](Engine::wake_fd) becomes readable when `poll` would yield something: that descriptor is all that a host
//! runtime has to wait for.
#![allow(unsafe_code)]

use crate::buf::BufferPool;
use crate::io::{Completion, Op};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The contract of an engine; one suite of tests holds every implementation to it.
pub trait Engine {
    /// Takes an operation. Nothing reaches the kernel before [`flush`](Self::flush) (an engine may go earlier when
    /// its queue is full). The answers come out of [`poll`](Self::poll), in later calls.
    fn submit(&mut self, op: Op);

    /// Hands everything queued to the kernel, in one system call where the engine can. No call when nothing is queued.
    fn flush(&mut self) -> io::Result<()>;

    /// Collects what has happened, up to about `budget` completions, without blocking. True when more is left.
    fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool>;

    /// To be called right before waiting for [`wake_fd`](Self::wake_fd): clears the descriptor, then looks once more.
    /// False when there is something to poll or to flush; waiting then could last for ever.
    fn may_park(&mut self) -> io::Result<bool>;

    /// Makes the descriptor readable at about this time. Spurious wake-ups are legal; `None` or a later time may
    /// leave an earlier alarm in place.
    fn wake_at(&mut self, now: Instant, at: Option<Instant>);

    /// A new descriptor for the host to wait for, readable when there is something to poll. Level triggered.
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
