//! What can go wrong, as plain values.
//!
//! The kinds separate *who is at fault* and the one thing a caller must know before it repeats a command: whether
//! the server may have run it ([`Error::delivery`]). Errors are `Clone + PartialEq`, hold no foreign types, are the
//! same in every build, and never hold an argument, a key, a value or a credential.

mod kinds;
mod server;

pub use kinds::{
    ApiMisuse, AuthError, ConnectionError, ConnectionFailure, ConversionError, InvalidError, ProtocolError,
    Stage, TimeoutError,
};
pub use server::{ServerError, code};

use std::borrow::Cow;
use std::fmt;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The name of a command: static for typed commands, owned for raw ones.
pub type CommandName = Cow<'static, str>;

/// Whether a failed command may have run on the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Delivery {
    /// The server has not run it: the kernel never took the last byte of its frame, or the server refused it
    /// unrun. It is safe to send it again.
    NotExecuted,
    /// Its frame was handed to the kernel whole and no complete reply came: it may have run, or may run yet. (A reply that was
    /// cut off counts as none.)
    MaybeExecuted,
    /// The server answered; the error is the answer, or the answer did not fit the type asked for.
    Answered,
}

/// Everything a call, a connect or an option can fail with.
///
/// ```
/// use respiral::{Delivery, Error};
/// fn may_repeat(error: &Error) -> bool {
///     error.delivery() == Delivery::NotExecuted
/// }
/// assert!(may_repeat(&Error::Closed(Delivery::NotExecuted)));
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection could not be made, or ended while the command was on it.
    Connection(Box<ConnectionError>),
    /// A deadline passed.
    Timeout(Box<TimeoutError>),
    /// The server answered with an error.
    Server(Box<ServerError>),
    /// The server refused the credentials, or wants some.
    Auth(Box<AuthError>),
    /// The peer sent bytes that are not RESP, or exceeded a limit. The connection is closed.
    Protocol(Box<ProtocolError>),
    /// An option has no valid value, options contradict each other, or the server lacks what they demand.
    Config(Box<InvalidError>),
    /// An argument of a call, or a part of a connection string, is refused. Nothing was sent.
    InvalidArgument(Box<InvalidError>),
    /// The reply does not fit the Rust type that was asked for.
    Conversion(Box<ConversionError>),
    /// The client was closed, or its driver or runtime is gone.
    Closed(Delivery),
    /// The client is used in a way in which it cannot work.
    ApiMisuse(ApiMisuse),
}

impl Error {
    /// Whether the command may have run.
    pub fn delivery(&self) -> Delivery {
        match self {
            Error::Connection(e) => e.delivery,
            Error::Timeout(e) => e.delivery,
            Error::Protocol(e) => e.delivery,
            Error::Closed(delivery) | Error::ApiMisuse(ApiMisuse::Forked(delivery)) => *delivery,
            Error::Server(e) => e.delivery(),
            Error::Conversion(_) => Delivery::Answered,
            Error::Auth(_) | Error::Config(_) | Error::InvalidArgument(_) => Delivery::NotExecuted,
        }
    }

    /// True for failures of the connection itself.
    pub fn is_connection(&self) -> bool {
        matches!(self, Error::Connection(_))
    }

    /// True for server answers that pass by themselves: `LOADING`, `BUSY`, `CLUSTERDOWN`, `TRYAGAIN`, `MASTERDOWN`.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Server(e) => e.is_transient(),
            _ => false,
        }
    }

    /// The command that failed, when it is known; one of set-up (`HELLO`, `SELECT`) when that failed before the call's
    /// own could be sent.
    pub fn command(&self) -> Option<&str> {
        match self {
            Error::Connection(e) => e.command.as_deref(),
            Error::Timeout(e) => e.command.as_deref(),
            Error::Server(e) => e.command(),
            Error::Protocol(e) => e.command.as_deref(),
            Error::Auth(e) => e.server.as_ref().and_then(|s| s.command()),
            Error::InvalidArgument(e) => e.command.as_deref(),
            Error::Conversion(e) => e.command.as_deref(),
            Error::Config(_) | Error::Closed(_) | Error::ApiMisuse(_) => None,
        }
    }

    pub(crate) fn config(what: impl Into<CommandName>, message: impl Into<Cow<'static, str>>) -> Self {
        Error::Config(Box::new(InvalidError::new(what, message)))
    }

    pub(crate) fn invalid(what: impl Into<CommandName>, message: impl Into<Cow<'static, str>>) -> Self {
        Error::InvalidArgument(Box::new(InvalidError::new(what, message)))
    }

    /// The same failure, told of a command that had come so far.
    pub(crate) fn with_delivery(mut self, delivery: Delivery) -> Self {
        match &mut self {
            Error::Connection(e) => e.delivery = delivery,
            Error::Timeout(e) => e.delivery = delivery,
            Error::Protocol(e) => e.delivery = delivery,
            Error::Server(e) => e.set_delivery(delivery),
            Error::Closed(d) | Error::ApiMisuse(ApiMisuse::Forked(d)) => *d = delivery,
            // These always mean that nothing was sent, or that an answer came.
            Error::Auth(_) | Error::Config(_) | Error::InvalidArgument(_) | Error::Conversion(_) => {}
        }
        self
    }

    /// The same failure without any text of the server that holds `secret`.
    pub(crate) fn without(mut self, secret: &str) -> Self {
        match &mut self {
            Error::Server(e) => **e = e.clone().without(secret),
            Error::Auth(e) => e.server = e.server.take().map(|server| server.without(secret)),
            Error::Config(e) => {
                e.server = e.server.take().map(|server| server.without(secret));
                if !secret.is_empty() && e.message.contains(secret) {
                    e.message =
                        "the server refused set-up (its text is withheld: it repeats the password)".into();
                }
            }
            _ => {}
        }
        self
    }

    /// The same failure, told of the command `name`, if it names none.
    pub(crate) fn with_command(mut self, name: impl FnOnce() -> CommandName) -> Self {
        match &mut self {
            Error::Connection(e) => e.command = Some(name()),
            Error::Timeout(e) => e.command = Some(e.command.take().unwrap_or_else(name)),
            Error::Protocol(e) => e.command = Some(name()),
            Error::Server(e) => e.set_command(name),
            Error::Conversion(e) => e.command = Some(name()),
            Error::Closed(_)
            | Error::ApiMisuse(_)
            | Error::Auth(_)
            | Error::Config(_)
            | Error::InvalidArgument(_) => {}
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connection(e) => e.fmt(f),
            Error::Timeout(e) => e.fmt(f),
            Error::Server(e) => e.fmt(f),
            Error::Auth(e) => e.fmt(f),
            Error::Protocol(e) => e.fmt(f),
            Error::Config(e) => write!(f, "invalid option {e}"),
            Error::InvalidArgument(e) if e.command.as_ref() == Some(&e.what) => {
                write!(f, "{} is refused: {}", e.what, e.message)
            }
            Error::InvalidArgument(e) => write!(f, "invalid argument {e}"),
            Error::Conversion(e) => e.fmt(f),
            Error::Closed(Delivery::MaybeExecuted) => {
                f.write_str("the client is closed (the command may have run)")
            }
            Error::Closed(_) => f.write_str("the client is closed"),
            Error::ApiMisuse(misuse) => misuse.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Auth(e) => e.server.as_ref().map(|s| s as _),
            Error::Config(e) => e.server.as_ref().map(|s| s as _),
            Error::Connection(e) => Some(&e.failure),
            _ => None,
        }
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_small_and_cross_threads() {
        fn check<T: Send + Sync + Clone + PartialEq + 'static>() {}
        check::<Error>();
        assert!(size_of::<Error>() <= 16);
    }

    #[test]
    fn delivery_of_each_kind() {
        let refused =
            Error::Server(Box::new(ServerError::parse("LOADING Redis is loading", Some("GET".into()))));
        assert_eq!(refused.delivery(), Delivery::NotExecuted);
        let answered = Error::Server(Box::new(ServerError::parse("WRONGTYPE no", Some("GET".into()))));
        assert_eq!(answered.delivery(), Delivery::Answered);
        assert_eq!(Error::invalid("SUBSCRIBE", "no").delivery(), Delivery::NotExecuted);
        assert_eq!(Error::Closed(Delivery::MaybeExecuted).delivery(), Delivery::MaybeExecuted);
    }
}
