//! The server itself.

use super::{fixed, write};
use crate::command::{Command, refused};
use crate::error::{CommandName, ConversionError, Error};
use crate::resp::{Decoder, Encoder, FromReply, ToArgs};
use std::time::{Duration, SystemTime};

fixed! {
    /// [DBSIZE](https://redis.io/docs/latest/commands/dbsize/)
    Dbsize, "DBSIZE", b"*1\r\n$6\r\nDBSIZE\r\n"
}

fixed! {
    /// [TIME](https://redis.io/docs/latest/commands/time/)
    Time, "TIME", b"*1\r\n$4\r\nTIME\r\n"
}

/// [FLUSHDB](https://redis.io/docs/latest/commands/flushdb/)
#[derive(Clone, Debug)]
pub struct Flushdb {
    pub(crate) mode: Option<FlushMode>,
}

impl Command for Flushdb {
    fn name(&self) -> CommandName {
        "FLUSHDB".into()
    }

    fn check(&self, allow_admin: bool) -> Result<(), Error> {
        refused::check(&self.name(), std::iter::empty(), allow_admin)
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "FLUSHDB", self.mode);
    }
}

/// [FLUSHALL](https://redis.io/docs/latest/commands/flushall/)
#[derive(Clone, Debug)]
pub struct Flushall {
    pub(crate) mode: Option<FlushMode>,
}

impl Command for Flushall {
    fn name(&self) -> CommandName {
        "FLUSHALL".into()
    }

    fn check(&self, allow_admin: bool) -> Result<(), Error> {
        refused::check(&self.name(), std::iter::empty(), allow_admin)
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "FLUSHALL", self.mode);
    }
}

/// [INFO](https://redis.io/docs/latest/commands/info/)
#[derive(Clone, Debug)]
pub struct Info<S = ()> {
    pub(crate) sections: S,
}

impl<S: ToArgs> Command for Info<S> {
    fn name(&self) -> CommandName {
        "INFO".into()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "INFO", &self.sections);
    }
}

/// Whether the server frees memory before it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushMode {
    /// Afterwards, in another thread.
    Async,
    /// Before it answers.
    Sync,
}

impl ToArgs for FlushMode {
    fn count(&self) -> usize {
        1
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        encoder.arg(match self {
            FlushMode::Async => b"ASYNC",
            FlushMode::Sync => b"SYNC",
        });
    }
}

/// The server's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerTime {
    /// Unix time in seconds.
    pub seconds: u64,
    /// The rest, in microseconds; below a million.
    pub microseconds: u32,
}

impl ServerTime {
    /// Time since 1970-01-01 00:00 UTC.
    pub fn since_epoch(self) -> Duration {
        Duration::new(self.seconds, self.microseconds * 1000)
    }
}

impl From<ServerTime> for SystemTime {
    fn from(time: ServerTime) -> Self {
        SystemTime::UNIX_EPOCH + time.since_epoch()
    }
}

impl FromReply for ServerTime {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        match FromReply::from_reply(decoder)? {
            // More would not fit a `SystemTime`, and is no time of a clock.
            (seconds, microseconds) if seconds <= i64::MAX as u64 && microseconds < 1_000_000 => {
                Ok(Self { seconds, microseconds })
            }
            (_, _) => Err(ConversionError::new("numbers out of range", "ServerTime").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_frame;
    use super::*;

    #[test]
    fn frames() {
        assert_frame(&Dbsize {}, &["DBSIZE"]);
        assert_frame(&Time {}, &["TIME"]);
        assert_frame(&Flushdb { mode: None }, &["FLUSHDB"]);
        assert_frame(&Flushdb { mode: Some(FlushMode::Async) }, &["FLUSHDB", "ASYNC"]);
        assert_frame(&Flushdb { mode: Some(FlushMode::Sync) }, &["FLUSHDB", "SYNC"]);
        assert_frame(&Flushall { mode: None }, &["FLUSHALL"]);
        assert_frame(&Flushall { mode: Some(FlushMode::Async) }, &["FLUSHALL", "ASYNC"]);
        assert_frame(&Flushall { mode: Some(FlushMode::Sync) }, &["FLUSHALL", "SYNC"]);
        assert_frame(&Info { sections: () }, &["INFO"]);
        assert_frame(&Info { sections: ("server", "memory") }, &["INFO", "server", "memory"]);
    }

    // CONN-033
    #[test]
    fn flushing_needs_the_option() {
        for error in [
            Flushdb { mode: None }.check(false).unwrap_err(),
            Flushall { mode: Some(FlushMode::Async) }.check(false).unwrap_err(),
        ] {
            assert!(
                matches!(&error, Error::InvalidArgument(e) if e.message.contains("allow_admin")),
                "{error}"
            );
            assert!(error.command().is_some_and(|name| name.starts_with("FLUSH")));
        }
    }

    #[test]
    fn the_clock_is_read_whole() {
        let read = |wire: &str| ServerTime::from_reply(&mut Decoder::new(wire.as_bytes()));
        let time = read("*2\r\n$10\r\n1700000000\r\n$6\r\n000042\r\n").unwrap();
        assert_eq!(time, ServerTime { seconds: 1_700_000_000, microseconds: 42 });
        assert_eq!(
            SystemTime::from(time),
            SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_042)
        );
        read("*2\r\n$1\r\n1\r\n$7\r\n1000000\r\n").unwrap_err();
        read("*2\r\n$20\r\n18446744073709551615\r\n$1\r\n0\r\n").unwrap_err();
        read("*1\r\n$1\r\n1\r\n").unwrap_err();
    }
}
