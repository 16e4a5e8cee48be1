//! The words between the core and whatever moves its bytes: io_uring, epoll, or a simulator.
//!
//! The core emits [`Op`]s and takes [`Completion`]s. For each connection the order is fixed: `Connect`, then at most
//! one `Send` at a time, then `Close` (always, also after a failure). The player answers `Connect` with
//! `Connected` or `Failed`; each `Send` with exactly one `Sent`, if need be after `Close`; and `Close` with `Closed`,
//! the last word about that [`ConnectionId`]. After `Closed` the peer cannot receive any further byte, so the counts
//! in `Sent` are final.

mod options;
mod resolve;

pub use options::{EngineKind, EngineOptions};
pub use resolve::{Answer, Resolver};

use crate::buf::{Block, Segment, Transmit};
pub use crate::error::ConnectionFailure;
pub use crate::id::ConnectionId;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Where to connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(Rc<Path>),
}

/// Options of a new socket. `TCP_NODELAY` is always on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketOptions {
    /// TCP keepalive: idle time, interval, probes.
    pub keepalive: Option<(Duration, Option<Duration>, Option<u32>)>,
}

/// What the core wants done.
#[derive(Debug)]
pub enum Op {
    /// Look a name up. Served by the driver; answered by `Resolved` or `Failed`.
    Resolve {
        /// For whom.
        id: ConnectionId,
        /// Host name.
        host: Rc<str>,
        /// Port.
        port: u16,
    },
    /// Make a socket and connect it; receive from it as soon as it is connected.
    Connect {
        /// The new connection.
        id: ConnectionId,
        /// Its peer.
        address: Address,
        /// Socket options.
        options: SocketOptions,
    },
    /// Send these bytes, whole, in order. At most one is outstanding per connection.
    Send {
        /// Over which connection.
        id: ConnectionId,
        /// At most 1 MiB, except for one chunk that is larger.
        data: Transmit,
    },
    /// Receive what comes next into this block: all that was told before has been looked at. At most one is
    /// outstanding per connection (another is dropped); it is answered by `Filled`, or never when the connection fails or is closed.
    Fill {
        /// Over which connection.
        id: ConnectionId,
        /// At least one byte is missing.
        block: Block,
    },
    /// Cancel what is outstanding, report what became of it, close the socket.
    Close {
        /// Which connection.
        id: ConnectionId,
    },
}

/// What happened.
#[derive(Debug)]
pub enum Completion {
    /// The addresses of a name, in the order in which to try them. Never empty.
    Resolved {
        /// For whom.
        id: ConnectionId,
        /// What the resolver returned.
        addresses: Vec<SocketAddr>,
    },
    /// The socket is connected and receiving.
    Connected {
        /// Which connection.
        id: ConnectionId,
    },
    /// Bytes arrived, in order; never empty.
    Received {
        /// On which connection.
        id: ConnectionId,
        /// The bytes.
        segment: Segment,
    },
    /// The block that was given has grown, by at least one byte; nothing was received meanwhile.
    Filled {
        /// On which connection.
        id: ConnectionId,
        /// More may be missing.
        block: Block,
    },
    /// The end of the outstanding send: the kernel has taken this many bytes of it, and will take no more.
    Sent {
        /// Which connection.
        id: ConnectionId,
        /// Less than what was given only when the connection failed or is being closed.
        bytes: usize,
    },
    /// The connection is of no use any more (not resolved, not connected, end of stream, reset). Told once; `Close`
    /// is still owed.
    Failed {
        /// Which connection.
        id: ConnectionId,
        /// Why.
        failure: ConnectionFailure,
    },
    /// The answer to `Close`: the socket is gone and nothing more will be said about this connection.
    Closed {
        /// Which connection.
        id: ConnectionId,
    },
}

impl Completion {
    /// Which connection it is about.
    pub fn id(&self) -> ConnectionId {
        match self {
            Completion::Resolved { id, .. }
            | Completion::Connected { id }
            | Completion::Received { id, .. }
            | Completion::Filled { id, .. }
            | Completion::Sent { id, .. }
            | Completion::Failed { id, .. }
            | Completion::Closed { id } => *id,
        }
    }
}
