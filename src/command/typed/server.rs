//! The server itself.

use super::{fixed, write};
use crate::command::{Command, refused};
use crate::error::{CommandName, Error};
use crate::resp::{Encoder, ToArgs};

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
}
