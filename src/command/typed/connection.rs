//! Commands that ask whether the server is there.

use super::{fixed, write};
use crate::command::Command;
use crate::error::CommandName;
use crate::resp::{Encoder, ToArgs};

fixed! {
    /// [ECHO](https://redis.io/docs/latest/commands/echo/)
    Echo<M>, "ECHO", b"*2\r\n$4\r\nECHO\r\n", message: M
}

/// [PING](https://redis.io/docs/latest/commands/ping/)
#[derive(Clone, Debug)]
pub struct Ping<M = ()> {
    pub(crate) message: M,
}

impl<M: ToArgs> Command for Ping<M> {
    fn name(&self) -> CommandName {
        "PING".into()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "PING", &self.message);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_frame;
    use super::*;

    #[test]
    fn frames() {
        assert_frame(&Echo { message: "hello" }, &["ECHO", "hello"]);
        assert_frame(&Ping { message: () }, &["PING"]);
        assert_frame(&Ping { message: "hello" }, &["PING", "hello"]);
    }
}
