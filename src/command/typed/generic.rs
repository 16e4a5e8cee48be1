//! Keys, whatever they hold.

use super::reply::{Cursor, KeyType};
use super::sorted_set::Comparison;
use super::string::Condition;
use super::{fixed, variadic, write};
use crate::command::Command;
use crate::error::{CommandName, Error, InvalidError};
use crate::resp::{Encoder, ToArg, ToArgs};

variadic! {
    /// [DEL](https://redis.io/docs/latest/commands/del/)
    Del, "DEL", (), keys: K, at_least_one
}

variadic! {
    /// [UNLINK](https://redis.io/docs/latest/commands/unlink/)
    Unlink, "UNLINK", (), keys: K, at_least_one
}

variadic! {
    /// [EXISTS](https://redis.io/docs/latest/commands/exists/)
    Exists, "EXISTS", (), keys: K, at_least_one
}

/// Implements [`Command`] for one that gives a key a time to live.
macro_rules! expiring {
    ($(#[$doc:meta])* $type:ident, $name:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $type<K> {
            pub(crate) key: K,
            pub(crate) time: i64,
            pub(crate) condition: Option<Condition>,
            pub(crate) comparison: Option<Comparison>,
        }

        impl<K> $type<K> {
            pub(crate) fn new(key: K, time: i64) -> Self {
                Self { key, time, condition: None, comparison: None }
            }
        }

        impl<K: ToArg> Command for $type<K> {
            fn name(&self) -> CommandName {
                $name.into()
            }

            fn encode(&self, encoder: &mut Encoder<'_>) {
                write(encoder, $name, (&self.key, self.time, self.condition, self.comparison));
            }
        }
    };
}

expiring! {
    /// [EXPIRE](https://redis.io/docs/latest/commands/expire/)
    Expire, "EXPIRE"
}

expiring! {
    /// [PEXPIRE](https://redis.io/docs/latest/commands/pexpire/)
    Pexpire, "PEXPIRE"
}

expiring! {
    /// [EXPIREAT](https://redis.io/docs/latest/commands/expireat/)
    Expireat, "EXPIREAT"
}

expiring! {
    /// [PEXPIREAT](https://redis.io/docs/latest/commands/pexpireat/)
    Pexpireat, "PEXPIREAT"
}

fixed! {
    /// [TTL](https://redis.io/docs/latest/commands/ttl/)
    Ttl<K>, "TTL", b"*2\r\n$3\r\nTTL\r\n", key: K
}

fixed! {
    /// [PTTL](https://redis.io/docs/latest/commands/pttl/)
    Pttl<K>, "PTTL", b"*2\r\n$4\r\nPTTL\r\n", key: K
}

fixed! {
    /// [PERSIST](https://redis.io/docs/latest/commands/persist/)
    Persist<K>, "PERSIST", b"*2\r\n$7\r\nPERSIST\r\n", key: K
}

fixed! {
    /// [TYPE](https://redis.io/docs/latest/commands/type/)
    Type<K>, "TYPE", b"*2\r\n$4\r\nTYPE\r\n", key: K
}

fixed! {
    /// [RENAME](https://redis.io/docs/latest/commands/rename/)
    Rename<K, N>, "RENAME", b"*3\r\n$6\r\nRENAME\r\n", key: K, new_key: N
}

/// [SCAN](https://redis.io/docs/latest/commands/scan/)
#[derive(Clone, Debug)]
pub struct Scan<P = ()> {
    pub(crate) cursor: Cursor,
    pub(crate) pattern: Option<P>,
    pub(crate) count: Option<u64>,
    pub(crate) key_type: Option<KeyType>,
}

impl Scan {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self { cursor, pattern: None, count: None, key_type: None }
    }
}

impl<P: ToArgs> Command for Scan<P> {
    fn name(&self) -> CommandName {
        "SCAN".into()
    }

    fn check(&self, _allow_admin: bool) -> Result<(), Error> {
        if !self.cursor.is_done() {
            return Ok(());
        }
        // It would be sent as 0, which begins again: a loop that forgot to ask would never end.
        Err(Error::InvalidArgument(Box::new(InvalidError {
            what: "cursor".into(),
            message: "SCAN is done with this cursor; `Cursor::START` begins again".into(),
            command: Some("SCAN".into()),
            server: None,
        })))
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        let options = (
            self.pattern.as_ref().map(|pattern| ("MATCH", pattern)),
            self.count.map(|count| ("COUNT", count)),
            self.key_type.as_ref().map(|key_type| ("TYPE", key_type)),
        );
        write(encoder, "SCAN", (self.cursor.number(), options));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;

    #[test]
    fn frames_of_fixed_commands() {
        assert_frame(&Ttl { key: "k" }, &["TTL", "k"]);
        assert_frame(&Pttl { key: "k" }, &["PTTL", "k"]);
        assert_frame(&Persist { key: "k" }, &["PERSIST", "k"]);
        assert_frame(&Type { key: "k" }, &["TYPE", "k"]);
        assert_frame(&Rename { key: "k", new_key: "n" }, &["RENAME", "k", "n"]);
    }

    #[test]
    fn frames_of_lists() {
        assert_frame(&Del { keys: "k" }, &["DEL", "k"]);
        assert_frame(&Del { keys: ["a", "b"] }, &["DEL", "a", "b"]);
        assert_refused(&Del { keys: [""; 0] }, "keys");
        assert_frame(&Unlink { keys: ["a", "b"] }, &["UNLINK", "a", "b"]);
        assert_refused(&Unlink { keys: () }, "keys");
        assert_frame(&Exists { keys: ("a", 7) }, &["EXISTS", "a", "7"]);
        assert_refused(&Exists { keys: Vec::<String>::new() }, "keys");
    }

    #[test]
    fn frames_of_expiring_commands() {
        assert_frame(&Expire::new("k", 10), &["EXPIRE", "k", "10"]);
        let nx = Expire { condition: Some(Condition::Nx), ..Expire::new("k", 10) };
        assert_frame(&nx, &["EXPIRE", "k", "10", "NX"]);
        let xx = Pexpire { condition: Some(Condition::Xx), ..Pexpire::new("k", -1) };
        assert_frame(&xx, &["PEXPIRE", "k", "-1", "XX"]);
        let gt = Expireat { comparison: Some(Comparison::Gt), ..Expireat::new("k", 10) };
        assert_frame(&gt, &["EXPIREAT", "k", "10", "GT"]);
        let lt = Pexpireat { comparison: Some(Comparison::Lt), ..Pexpireat::new("k", 10) };
        assert_frame(&lt, &["PEXPIREAT", "k", "10", "LT"]);
    }

    #[test]
    fn frames_of_scan() {
        let at = Cursor::at(17);
        assert_frame(&Scan::new(Cursor::START), &["SCAN", "0"]);
        assert_frame(
            &Scan { pattern: Some("a*"), count: None, key_type: None, cursor: at },
            &["SCAN", "17", "MATCH", "a*"],
        );
        assert_frame(&Scan { count: Some(100), ..Scan::new(at) }, &["SCAN", "17", "COUNT", "100"]);
        let all =
            Scan { cursor: at, pattern: Some("a*"), count: Some(100), key_type: Some(KeyType::SortedSet) };
        assert_frame(&all, &["SCAN", "17", "MATCH", "a*", "COUNT", "100", "TYPE", "zset"]);
        assert_refused(&Scan::new(Cursor::at(0)), "cursor");
    }
}
