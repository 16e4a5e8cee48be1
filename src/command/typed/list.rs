//! Lists.

use super::{fixed, variadic, write};
use crate::command::Command;
use crate::error::CommandName;
use crate::resp::{Encoder, ToArg};

variadic! {
    /// [LPUSH](https://redis.io/docs/latest/commands/lpush/)
    Lpush, "LPUSH", (key: K), values: V, at_least_one
}

variadic! {
    /// [RPUSH](https://redis.io/docs/latest/commands/rpush/)
    Rpush, "RPUSH", (key: K), values: V, at_least_one
}

/// [LPOP](https://redis.io/docs/latest/commands/lpop/)
#[derive(Clone, Debug)]
pub struct Lpop<K> {
    pub(crate) key: K,
    pub(crate) count: Option<u64>,
}

impl<K> Lpop<K> {
    pub(crate) fn new(key: K) -> Self {
        Self { key, count: None }
    }
}

impl<K: ToArg> Command for Lpop<K> {
    fn name(&self) -> CommandName {
        "LPOP".into()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "LPOP", (&self.key, self.count));
    }
}

/// [RPOP](https://redis.io/docs/latest/commands/rpop/)
#[derive(Clone, Debug)]
pub struct Rpop<K> {
    pub(crate) key: K,
    pub(crate) count: Option<u64>,
}

impl<K> Rpop<K> {
    pub(crate) fn new(key: K) -> Self {
        Self { key, count: None }
    }
}

impl<K: ToArg> Command for Rpop<K> {
    fn name(&self) -> CommandName {
        "RPOP".into()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "RPOP", (&self.key, self.count));
    }
}

fixed! {
    /// [LLEN](https://redis.io/docs/latest/commands/llen/)
    Llen<K>, "LLEN", b"*2\r\n$4\r\nLLEN\r\n", key: K
}

fixed! {
    /// [LRANGE](https://redis.io/docs/latest/commands/lrange/)
    Lrange<K>, "LRANGE", b"*4\r\n$6\r\nLRANGE\r\n", key: K, start: i64, stop: i64
}

fixed! {
    /// [LINDEX](https://redis.io/docs/latest/commands/lindex/)
    Lindex<K>, "LINDEX", b"*3\r\n$6\r\nLINDEX\r\n", key: K, index: i64
}

fixed! {
    /// [LREM](https://redis.io/docs/latest/commands/lrem/)
    Lrem<K, V>, "LREM", b"*4\r\n$4\r\nLREM\r\n", key: K, count: i64, value: V
}

fixed! {
    /// [LTRIM](https://redis.io/docs/latest/commands/ltrim/)
    Ltrim<K>, "LTRIM", b"*4\r\n$5\r\nLTRIM\r\n", key: K, start: i64, stop: i64
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;

    #[test]
    fn frames_of_fixed_commands() {
        assert_frame(&Llen { key: "l" }, &["LLEN", "l"]);
        assert_frame(&Lrange { key: "l", start: 0, stop: -1 }, &["LRANGE", "l", "0", "-1"]);
        assert_frame(&Lindex { key: "l", index: -1 }, &["LINDEX", "l", "-1"]);
        assert_frame(&Lrem { key: "l", count: -2, value: "v" }, &["LREM", "l", "-2", "v"]);
        assert_frame(&Ltrim { key: "l", start: 1, stop: 99 }, &["LTRIM", "l", "1", "99"]);
    }

    #[test]
    fn frames_of_lists_and_options() {
        assert_frame(&Lpush { key: "l", values: ["a", "b"] }, &["LPUSH", "l", "a", "b"]);
        assert_refused(&Lpush { key: "l", values: () }, "values");
        assert_frame(&Rpush { key: "l", values: b"bytes".to_vec() }, &["RPUSH", "l", "bytes"]);
        assert_refused(&Rpush { key: "l", values: [""; 0] }, "values");
        assert_frame(&Lpop::new("l"), &["LPOP", "l"]);
        assert_frame(&Lpop { count: Some(2), ..Lpop::new("l") }, &["LPOP", "l", "2"]);
        assert_frame(&Rpop::new("l"), &["RPOP", "l"]);
        assert_frame(&Rpop { count: Some(0), ..Rpop::new("l") }, &["RPOP", "l", "0"]);
    }
}
