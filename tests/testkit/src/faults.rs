//! Faults on the way of the bytes.
//!
//! **Problem.** Networks split, delay, stall and cut; a client's handling of that must be tested without a real bad
//! network, and without guessing how long to sleep.
//!
//! **Idea.** Each connection carries its [`Faults`]; the connection's read and write paths ask them how much they may do
//! now. [`Connections`] names which connections are meant and changes their faults from the test's thread.
//!
//! **Invariant.** A change is in force when the method returns. Faults change when and how bytes move, never the bytes.

use crate::Server;
use std::time::{Duration, Instant};

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// A clean end of stream: the client reads what was sent, then end of file.
    Fin,
    /// A reset: the client's next call fails with "connection reset", and unread bytes may be lost. On a Unix socket,
    /// which knows no reset, the client sees an end of file unless it had bytes in flight.
    Reset,
}

/// What is wrong with one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) stalled: bool,
    pub(crate) split: Option<Split>,
    pub(crate) delay: Option<Duration>,
    pub(crate) cut: Option<Cut>,
    pub(crate) slow_reader: Option<SlowReader>,
    pub(crate) reads_only_when_written: bool,
    pub(crate) socket_buffer_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) bytes: usize,
    pub(crate) pause: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) bytes_left: usize,
    pub(crate) how: Hangup,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowReader {
    pub(crate) bytes: usize,
    pub(crate) interval: Duration,
}

impl Faults {
    /// How many of `available` bytes one write may carry.
    pub(crate) fn write_limit(&self, available: usize) -> usize {
        let split = self.split.map_or(usize::MAX, |split| split.bytes);
        let cut = self.cut.map_or(usize::MAX, |cut| cut.bytes_left);
        available.min(split).min(cut)
    }

    /// So many bytes were written; says how the connection must end, if it must.
    pub(crate) fn on_written(&mut self, bytes: usize) -> Option<Hangup> {
        let cut = self.cut.as_mut()?;
        cut.bytes_left -= bytes;
        (cut.bytes_left == 0).then_some(cut.how)
    }

    /// When the next write may follow.
    pub(crate) fn next_write(&self, now: Instant) -> Option<Instant> {
        self.split.filter(|split| !split.pause.is_zero()).map(|split| now + split.pause)
    }
}

/// Which connections a fault is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    One(u64),
    Open,
    New,
    All,
}

impl Selection {
    pub(crate) fn includes(self, connection: u64) -> bool {
        match self {
            Self::One(number) => number == connection,
            Self::Open | Self::All => true,
            Self::New => false,
        }
    }

    pub(crate) fn includes_new(self) -> bool {
        matches!(self, Self::New | Self::All)
    }
}

/// Some of a server's connections, and what can be done to them.
///
/// Made by [`Server::connection`], [`Server::open_connections`], [`Server::new_connections`] and
/// [`Server::all_connections`]. The methods return the selection, so that faults can be combined:
///
/// ```
/// # use respiral_testkit::{Hangup, Server};
/// # let server = Server::start().unwrap();
/// // Every connection from now on: one byte per segment, and gone after the tenth.
/// server.new_connections().split(1).cut_after(10, Hangup::Reset);
/// ```
///
/// Ending a connection, releasing and pushing concern connections that are open; for [`Server::new_connections`] they do
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct Connections<'a> {
    server: &'a Server,
    selection: Selection,
}

impl<'a> Connections<'a> {
    pub(crate) fn new(server: &'a Server, selection: Selection) -> Self {
        Self { server, selection }
    }

    fn change(self, change: impl Fn(&mut Faults)) -> Self {
        self.server.with_core(|core| core.change_faults(self.selection, &change));
        self
    }

    /// Sends at most `bytes` per write. With `TCP_NODELAY`, which is always set, each write leaves as a segment of its own.
    ///
    /// # Panics
    /// When `bytes` is 0; that is [`stall`](Self::stall).
    pub fn split(self, bytes: usize) -> Self {
        self.split_with_pause(bytes, Duration::ZERO)
    }

    /// Sends at most `bytes` per write, and waits for `pause` before the next one.
    ///
    /// # Panics
    /// When `bytes` is 0; that is [`stall`](Self::stall).
    pub fn split_with_pause(self, bytes: usize, pause: Duration) -> Self {
        assert!(bytes > 0, "pieces of no bytes never arrive; use stall");
        self.change(|faults| faults.split = Some(Split { bytes, pause }))
    }

    /// Sends each batch of replies so much later than it was made. Order is kept.
    pub fn delay(self, delay: Duration) -> Self {
        self.change(|faults| faults.delay = Some(delay))
    }

    /// Neither reads nor writes, and keeps the connection open. The client's bytes pile up in the kernel.
    pub fn stall(self) -> Self {
        self.change(|faults| faults.stalled = true)
    }

    /// Ends a [`stall`](Self::stall); nothing was lost.
    pub fn resume(self) -> Self {
        self.change(|faults| faults.stalled = false)
    }

    /// Ends each connection once it has sent `bytes` more bytes; 0 ends it at once.
    pub fn cut_after(self, bytes: usize, how: Hangup) -> Self {
        self.change(|faults| faults.cut = Some(Cut { bytes_left: bytes, how }))
    }

    /// Reads at most `bytes` of requests per `interval`.
    ///
    /// # Panics
    /// When `bytes` is 0; that is [`stall`](Self::stall).
    pub fn slow_reader(self, bytes: usize, interval: Duration) -> Self {
        assert!(bytes > 0, "a reader of no bytes never reads; use stall");
        self.change(|faults| faults.slow_reader = Some(SlowReader { bytes, interval }))
    }

    /// Does not read while replies are unsent, like a server with blocking writes. A client that also writes before it
    /// reads then deadlocks.
    pub fn read_only_when_written(self) -> Self {
        self.change(|faults| faults.reads_only_when_written = true)
    }

    /// Asks the kernel for small send and receive buffers; it has a minimum of its own. The window that was already
    /// offered to the client stays; [`Builder::socket_buffers`](crate::Builder::socket_buffers) acts before.
    pub fn socket_buffers(self, bytes: usize) -> Self {
        self.change(|faults| faults.socket_buffer_bytes = Some(bytes))
    }

    /// No faults any more. Replies that are delayed or withheld stay so.
    pub fn heal(self) -> Self {
        self.change(|faults| *faults = Faults::default())
    }

    /// Ends the connections with an end of stream. Replies not yet with the kernel are lost.
    pub fn close(self) -> Self {
        self.hang_up(Hangup::Fin)
    }

    /// Ends the connections with a reset.
    pub fn reset(self) -> Self {
        self.hang_up(Hangup::Reset)
    }

    /// Ends the connections.
    pub fn hang_up(self, how: Hangup) -> Self {
        self.server.with_core(|core| core.hang_up(self.selection, how));
        self
    }

    /// Lets the withheld replies go; says how many there were.
    pub fn release(self) -> usize {
        self.server.with_core(|core| core.release(self.selection))
    }

    /// Sends bytes that answer no command, such as a RESP3 push. They go out between two replies and pass replies that
    /// are withheld or delayed. Says how many connections there were.
    pub fn push(self, bytes: &[u8]) -> usize {
        self.server.with_core(|core| core.push(self.selection, bytes))
    }
}
