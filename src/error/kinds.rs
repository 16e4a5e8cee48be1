//! The parts of [`Error`](super::Error): one plain struct per kind.

use super::{CommandName, Delivery, ServerError};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Why a connection could not be made or did not last.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectionFailure {
    /// The peer closed the connection.
    ClosedByPeer,
    /// The system reported an error; the number is `errno`, the text is the system's.
    Io {
        /// Which kind of error.
        kind: std::io::ErrorKind,
        /// `errno`, when there was one.
        errno: Option<i32>,
    },
    /// The host name has no address, or could not be looked up.
    Resolve(Box<str>),
    /// The connection owed replies and received nothing for this long.
    Stalled(Duration),
    /// Another command on the connection was answered with bytes that are no reply.
    Protocol(Box<str>),
}

impl ConnectionFailure {
    /// The failure that an `errno` stands for.
    pub fn from_errno(errno: i32) -> Self {
        let error = std::io::Error::from_raw_os_error(errno);
        ConnectionFailure::Io { kind: error.kind(), errno: Some(errno) }
    }
}

impl From<&std::io::Error> for ConnectionFailure {
    fn from(error: &std::io::Error) -> Self {
        ConnectionFailure::Io { kind: error.kind(), errno: error.raw_os_error() }
    }
}

impl fmt::Display for ConnectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionFailure::ClosedByPeer => f.write_str("closed by the server"),
            ConnectionFailure::Io { errno: Some(errno), .. } => {
                write!(f, "{}", std::io::Error::from_raw_os_error(*errno))
            }
            ConnectionFailure::Io { kind, .. } => write!(f, "{kind}"),
            ConnectionFailure::Resolve(text) => write!(f, "name not resolved: {text}"),
            ConnectionFailure::Stalled(after) => {
                write!(f, "replies are owed and nothing arrived for {after:?}")
            }
            ConnectionFailure::Protocol(text) => write!(f, "closed after a protocol error: {text}"),
        }
    }
}

impl std::error::Error for ConnectionFailure {}

/// See [`Error::Connection`](super::Error::Connection).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ConnectionError {
    /// `host:port`, or the path of a Unix socket.
    pub endpoint: Box<str>,
    /// What happened to the connection.
    pub failure: ConnectionFailure,
    /// Whether the command may have run.
    pub delivery: Delivery,
    /// The command that was on it or waited for it; `None` when no call did, as in `connect`.
    pub command: Option<CommandName>,
}

impl ConnectionError {
    /// A failure of the connection to `endpoint` before any command.
    pub fn new(endpoint: impl Into<Box<str>>, failure: ConnectionFailure) -> Self {
        Self { endpoint: endpoint.into(), failure, delivery: Delivery::NotExecuted, command: None }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(f, "{command}: connection to {}: {}", self.endpoint, self.failure)?,
            None => write!(f, "connection to {}: {}", self.endpoint, self.failure)?,
        }
        if self.delivery == Delivery::MaybeExecuted {
            f.write_str(" (the command may have run)")?;
        }
        Ok(())
    }
}

/// How far a command had come when its deadline passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// The connection was being made.
    Connecting,
    /// Not yet queued: no connection was ready, or a limit was reached.
    WaitingForCapacity,
    /// Queued; the kernel has taken none of its bytes.
    Buffered,
    /// The kernel has taken a part of its bytes.
    Writing,
    /// The kernel has taken all of its bytes; the reply is not complete. No proof that the server ran it.
    AwaitingReply,
}

/// See [`Error::Timeout`](super::Error::Timeout).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct TimeoutError {
    /// The command; `CONNECT` when a connection could not be made in time.
    pub command: Option<CommandName>,
    /// The budget that was used up.
    pub budget: Duration,
    /// How far the command had come.
    pub stage: Stage,
    /// `host:port` or the path of a Unix socket; `None` when no connection had been chosen.
    pub endpoint: Option<Box<str>>,
    /// Whether the command may have run.
    pub delivery: Delivery,
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.command.as_deref().unwrap_or("command");
        write!(f, "{command}: no result within {:?}", self.budget)?;
        if let Some(endpoint) = &self.endpoint {
            write!(f, " from {endpoint}")?;
        }
        f.write_str(match (self.stage, self.delivery) {
            (Stage::Connecting, _) => " (connecting)",
            (Stage::WaitingForCapacity, _) => " (waiting for a connection or for room on it)",
            (Stage::Buffered, _) => " (queued, not sent)",
            (Stage::Writing, Delivery::NotExecuted) => " (cut off while it was sent: it has not run)",
            (Stage::Writing, _) => " (partly sent: it may have run)",
            // Set-up timed out, and what waited for the connection is told so (CONN-116).
            (Stage::AwaitingReply, Delivery::NotExecuted) => " (set-up of the connection; no command was sent)",
            (Stage::AwaitingReply, _) => {
                " (sent, awaiting the reply: it may have run; check for blocking work, SLOWLOG, value sizes and the network)"
            }
        })
    }
}

/// See [`Error::Auth`](super::Error::Auth).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct AuthError {
    /// `host:port` or the path of a Unix socket.
    pub endpoint: Box<str>,
    /// What the server said.
    pub server: Option<ServerError>,
}

impl AuthError {
    pub(crate) fn new(endpoint: impl Into<Box<str>>, server: ServerError) -> Self {
        Self { endpoint: endpoint.into(), server: Some(server) }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused authentication", self.endpoint)?;
        match &self.server {
            Some(server) if server.code() == super::code::NOAUTH => {
                write!(f, ": it wants a password (redis://[user:]password@…, ConnectOptions::password)")
            }
            Some(server) => write!(f, ": {server}"),
            None => Ok(()),
        }
    }
}

/// See [`Error::ApiMisuse`](super::Error::ApiMisuse).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ApiMisuse {
    /// The client was made before a `fork`, and this is the child: its connections are the parent's. Make clients after
    /// the fork. A call that the parent had begun may run, for the parent.
    Forked(Delivery),
}

impl fmt::Display for ApiMisuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiMisuse::Forked(_) => f.write_str(
                "the client belongs to the process that forked this one; make clients after the fork",
            ),
        }
    }
}

/// See [`Error::Protocol`](super::Error::Protocol).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ProtocolError {
    /// What is wrong with the bytes; names the limit when one was exceeded.
    pub message: Cow<'static, str>,
    /// Whether the command may have run.
    pub delivery: Delivery,
    /// The command whose reply it was, when it is known.
    pub command: Option<CommandName>,
    /// The peer: `host:port` or the path of a Unix socket, when it is known.
    pub endpoint: Option<Box<str>>,
}

impl ProtocolError {
    /// A fault in the bytes that a peer sent.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), delivery: Delivery::MaybeExecuted, command: None, endpoint: None }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(command) = &self.command {
            write!(f, "{command}: ")?;
        }
        f.write_str("protocol error")?;
        if let Some(endpoint) = &self.endpoint {
            write!(f, " from {endpoint}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// See [`Error::Config`](super::Error::Config) and [`Error::InvalidArgument`](super::Error::InvalidArgument).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct InvalidError {
    /// The option, argument or command at fault.
    pub what: CommandName,
    /// Why it is refused, and what would be right.
    pub message: Cow<'static, str>,
    /// The command at fault, when it is one.
    pub command: Option<CommandName>,
    /// The server's refusal, when it decided.
    pub server: Option<ServerError>,
}

impl InvalidError {
    pub(crate) fn new(what: impl Into<CommandName>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), message: message.into(), command: None, server: None }
    }

    pub(crate) fn command(name: impl Into<CommandName>, message: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        Self { what: name.clone(), message: message.into(), command: Some(name), server: None }
    }

    pub(crate) fn with_server(mut self, server: ServerError) -> Self {
        self.server = Some(server);
        self
    }
}

impl fmt::Display for InvalidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.message)
    }
}

/// A reply that does not fit the Rust type asked for. It names types, never the value.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ConversionError {
    /// The RESP type, or what was wrong with its content.
    pub found: Cow<'static, str>,
    /// The Rust type that was asked for.
    pub wanted: &'static str,
    /// The command whose reply it was, when it is known.
    pub command: Option<CommandName>,
}

impl ConversionError {
    /// `found` cannot become a `wanted`.
    pub fn new(found: impl Into<Cow<'static, str>>, wanted: &'static str) -> Self {
        Self { found: found.into(), wanted, command: None }
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(command) = &self.command {
            write!(f, "{command}: ")?;
        }
        write!(f, "the reply is {} and cannot become {}", self.found, self.wanted)
    }
}
