//! Faults on the way of the bytes.
//!
//! **Problem.** Networks split, delay, stall and cut; a client's handling of that must be tested without a real bad
//! network, and without guessing how long to sleep.
//!
//! **Idea.** Each connection carries its [`Faults`] (one of a proxy: a set per direction); the connection's read and write
//! paths ask them how much they may do now. [`Connections`] names which connections are meant and changes their faults from
//! the test's thread.
//!
//! **Invariant.** A change is in force when the method returns. Faults change when and how bytes move; only a proxy's change
//! the bytes.

use crate::{Proxy, Server};
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::fmt;
use std::time::{Duration, Instant};

/// A limited rate is spread over pieces of this many per second.
const PIECES_PER_SECOND: u64 = 100;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// A clean end of stream: the peer reads what was sent, then end of file.
    Fin,
    /// A reset: the peer's next call fails with "connection reset", and unread bytes may be lost. On a Unix socket,
    /// which knows no reset, the peer sees an end of file unless it had bytes in flight.
    Reset,
}

impl Hangup {
    /// Closes the socket this way.
    pub(crate) fn apply(self, socket: OwnedFd) {
        if self == Self::Reset {
            // A linger time of zero makes the kernel send a reset when the descriptor is closed.
            let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
        }
        drop(socket);
    }
}

/// What is wrong with one connection, or one direction of a proxy's.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub(crate) stalled: bool,
    pub(crate) split: Option<Split>,
    pub(crate) delay: Option<Duration>,
    pub(crate) bytes_per_second: Option<u64>,
    pub(crate) cut: Option<Cut>,
    pub(crate) slow_reader: Option<SlowReader>,
    pub(crate) reads_only_when_written: bool,
    pub(crate) socket_buffer_bytes: Option<usize>,
    pub(crate) corruption: Option<Corruption>,
    pub(crate) black_hole: bool,
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
pub(crate) struct Corruption {
    pub(crate) bytes_left: usize,
    pub(crate) corrupt: Corrupt,
}

/// What happens to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// The bits that are set here are flipped.
    Flip(u8),
    /// It becomes this byte.
    Replace(u8),
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
        let rate =
            self.bytes_per_second.map_or(usize::MAX, |rate| (rate / PIECES_PER_SECOND).max(1) as usize);
        let cut = self.cut.map_or(usize::MAX, |cut| cut.bytes_left);
        available.min(split).min(rate).min(cut)
    }

    /// Changes the byte whose turn it is, if it is among these, which are the next to be written.
    pub(crate) fn corrupt(&mut self, unsent: &mut [u8]) {
        let Some(corruption) = self.corruption else { return };
        let Some(byte) = unsent.get_mut(corruption.bytes_left) else { return };
        match corruption.corrupt {
            Corrupt::Flip(bits) => *byte ^= bits,
            Corrupt::Replace(other) => *byte = other,
        }
        self.corruption = None;
    }

    /// So many bytes were written; says how the connection must end, if it must.
    pub(crate) fn on_written(&mut self, bytes: usize) -> Option<Hangup> {
        if let Some(corruption) = &mut self.corruption {
            corruption.bytes_left -= bytes;
        }
        let cut = self.cut.as_mut()?;
        cut.bytes_left -= bytes;
        (cut.bytes_left == 0).then_some(cut.how)
    }

    /// When the next write may follow one of so many bytes.
    pub(crate) fn next_write(&self, now: Instant, bytes: usize) -> Option<Instant> {
        let pause = self.split.map(|split| split.pause);
        let rate = self.bytes_per_second;
        let slow = rate.map(|rate| Duration::from_nanos(1_000_000_000 * bytes as u64 / rate));
        pause.max(slow).filter(|wait| !wait.is_zero()).map(|wait| now + wait)
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

/// Which way bytes go through a proxy; the number of the side that they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer = 0,
    ToClient = 1,
}

/// Which connections, and which direction of a proxy's; none is both.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub(crate) selection: Selection,
    pub(crate) direction: Option<Direction>,
}

/// Who has connections: a [`Server`] or a [`Proxy`].
pub trait Owner {
    #[doc(hidden)]
    fn change_faults(&self, target: Target, change: &dyn Fn(&mut Faults));
    #[doc(hidden)]
    fn hang_up(&self, target: Target, how: Hangup);
}

/// Some of the connections of a [`Server`] or a [`Proxy`], and what can be done to them.
///
/// Made by [`Server::connection`], [`Server::open_connections`], [`Server::new_connections`] and
/// [`Server::all_connections`], and their like of the proxy, where [`to_server`](Connections::to_server) and
/// [`to_client`](Connections::to_client) narrow it to one direction. The methods return the selection, so that faults can be
/// combined:
///
/// ```
/// # use respiral_testkit::{Hangup, Server};
/// # let server = Server::start().unwrap();
/// // Every connection from now on: one byte per segment, and gone after the tenth.
/// server.new_connections().split(1).cut_after(10, Hangup::Reset);
/// ```
///
/// Ending a connection, releasing and pushing concern connections that are open; for those to come they do nothing.
pub struct Connections<'a, O = Server> {
    pub(crate) owner: &'a O,
    pub(crate) target: Target,
}

impl<O> Clone for Connections<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Connections<'_, O> {}

impl<O> fmt::Debug for Connections<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.target).finish()
    }
}

impl<'a, O> Connections<'a, O> {
    pub(crate) fn new(owner: &'a O, selection: Selection) -> Self {
        Self { owner, target: Target { selection, direction: None } }
    }
}

/// Of a server's connections these concern what it sends; of a proxy's, the directions that are meant.
impl<O: Owner> Connections<'_, O> {
    pub(crate) fn change(self, change: impl Fn(&mut Faults)) -> Self {
        self.owner.change_faults(self.target, &change);
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

    /// Sends each batch of replies, or what one read of a proxy found, so much later. Order is kept.
    pub fn delay(self, delay: Duration) -> Self {
        self.change(|faults| faults.delay = Some(delay))
    }

    /// Sends at most so many bytes per second, in small pieces: a slow link.
    ///
    /// # Panics
    /// When `bytes_per_second` is 0; that is [`stall`](Self::stall).
    pub fn rate(self, bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "no bytes per second never arrive; use stall");
        self.change(|faults| faults.bytes_per_second = Some(bytes_per_second))
    }

    /// Neither reads nor writes, and keeps the connection open. The peer's bytes pile up in the kernel. For both ends of a
    /// proxy's connection the other one has fallen silent: no bytes, no end of stream, no reset.
    pub fn stall(self) -> Self {
        self.change(|faults| faults.stalled = true)
    }

    /// Ends a [`stall`](Self::stall); nothing was lost.
    pub fn resume(self) -> Self {
        self.change(|faults| faults.stalled = false)
    }

    /// Does not read while replies are unsent, like a server with blocking writes; a proxy, while what goes back is unsent.
    /// A client that also writes before it reads then deadlocks.
    pub fn read_only_when_written(self) -> Self {
        self.change(|faults| faults.reads_only_when_written = true)
    }

    /// Ends each connection once it has sent `bytes` more bytes; 0 ends it at once. A proxy's ends on both sides; each
    /// direction counts for itself.
    pub fn cut_after(self, bytes: usize, how: Hangup) -> Self {
        self.change(|faults| faults.cut = Some(Cut { bytes_left: bytes, how }))
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

    /// Ends the connections with an end of stream. Bytes not yet with the kernel are lost.
    pub fn close(self) -> Self {
        self.hang_up(Hangup::Fin)
    }

    /// Ends the connections with a reset.
    pub fn reset(self) -> Self {
        self.hang_up(Hangup::Reset)
    }

    /// Ends the connections.
    pub fn hang_up(self, how: Hangup) -> Self {
        self.owner.hang_up(self.target, how);
        self
    }
}

impl Connections<'_, Server> {
    /// Reads at most `bytes` of requests per `interval`.
    ///
    /// # Panics
    /// When `bytes` is 0; that is [`stall`](Self::stall).
    pub fn slow_reader(self, bytes: usize, interval: Duration) -> Self {
        assert!(bytes > 0, "a reader of no bytes never reads; use stall");
        self.change(|faults| faults.slow_reader = Some(SlowReader { bytes, interval }))
    }

    /// Lets the withheld replies go; says how many there were.
    pub fn release(self) -> usize {
        self.owner.with_core(|core| core.release(self.target.selection))
    }

    /// Sends bytes that answer no command, such as a RESP3 push. They go out between two replies and pass replies that
    /// are withheld or delayed. Says how many connections there were.
    pub fn push(self, bytes: &[u8]) -> usize {
        self.owner.with_core(|core| core.push(self.target.selection, bytes))
    }
}

impl Connections<'_, Proxy> {
    /// Only what goes to the server; what ends, ends at the server.
    pub fn to_server(mut self) -> Self {
        self.target.direction = Some(Direction::ToServer);
        self
    }

    /// Only what goes to the client; what ends, ends at the client.
    pub fn to_client(mut self) -> Self {
        self.target.direction = Some(Direction::ToClient);
        self
    }

    /// Reads on and throws away what it reads, and what it holds; also an end of stream. What was thrown away stays lost
    /// after a [`heal`](Self::heal).
    pub fn black_hole(self) -> Self {
        self.change(|faults| faults.black_hole = true)
    }

    /// Changes the byte behind the next `bytes`; 0 is the next one. For a connection to come that is an offset in its
    /// stream.
    pub fn corrupt_after(self, bytes: usize, corrupt: Corrupt) -> Self {
        self.change(|faults| faults.corruption = Some(Corruption { bytes_left: bytes, corrupt }))
    }
}
