//! Strings and counters.

use super::{fixed, variadic, write};
use crate::command::Command;
use crate::error::CommandName;
use crate::resp::{Encoder, ToArg, ToArgs};

fixed! {
    /// [GET](https://redis.io/docs/latest/commands/get/)
    Get<K>, "GET", b"*2\r\n$3\r\nGET\r\n", key: K
}

fixed! {
    /// [GETDEL](https://redis.io/docs/latest/commands/getdel/)
    Getdel<K>, "GETDEL", b"*2\r\n$6\r\nGETDEL\r\n", key: K
}

fixed! {
    /// [GETRANGE](https://redis.io/docs/latest/commands/getrange/)
    Getrange<K>, "GETRANGE", b"*4\r\n$8\r\nGETRANGE\r\n", key: K, start: i64, end: i64
}

fixed! {
    /// [SETRANGE](https://redis.io/docs/latest/commands/setrange/)
    Setrange<K, V>, "SETRANGE", b"*4\r\n$8\r\nSETRANGE\r\n", key: K, offset: u64, value: V
}

fixed! {
    /// [APPEND](https://redis.io/docs/latest/commands/append/)
    Append<K, V>, "APPEND", b"*3\r\n$6\r\nAPPEND\r\n", key: K, value: V
}

fixed! {
    /// [STRLEN](https://redis.io/docs/latest/commands/strlen/)
    Strlen<K>, "STRLEN", b"*2\r\n$6\r\nSTRLEN\r\n", key: K
}

fixed! {
    /// [INCR](https://redis.io/docs/latest/commands/incr/)
    Incr<K>, "INCR", b"*2\r\n$4\r\nINCR\r\n", key: K
}

fixed! {
    /// [INCRBY](https://redis.io/docs/latest/commands/incrby/)
    Incrby<K>, "INCRBY", b"*3\r\n$6\r\nINCRBY\r\n", key: K, increment: i64
}

fixed! {
    /// [INCRBYFLOAT](https://redis.io/docs/latest/commands/incrbyfloat/)
    Incrbyfloat<K>, "INCRBYFLOAT", b"*3\r\n$11\r\nINCRBYFLOAT\r\n", key: K, increment: f64
}

fixed! {
    /// [DECR](https://redis.io/docs/latest/commands/decr/)
    Decr<K>, "DECR", b"*2\r\n$4\r\nDECR\r\n", key: K
}

fixed! {
    /// [DECRBY](https://redis.io/docs/latest/commands/decrby/)
    Decrby<K>, "DECRBY", b"*3\r\n$6\r\nDECRBY\r\n", key: K, decrement: i64
}

variadic! {
    /// [MGET](https://redis.io/docs/latest/commands/mget/)
    Mget, "MGET", (), keys: K, at_least_one
}

variadic! {
    /// [MSET](https://redis.io/docs/latest/commands/mset/)
    Mset, "MSET", (), pairs: P, whole_pairs
}

variadic! {
    /// [MSETNX](https://redis.io/docs/latest/commands/msetnx/)
    Msetnx, "MSETNX", (), pairs: P, whole_pairs
}

/// [SET](https://redis.io/docs/latest/commands/set/)
#[derive(Clone, Debug)]
pub struct Set<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) condition: Option<Condition>,
    pub(crate) get: bool,
    pub(crate) expiry: Option<Expiry>,
}

impl<K, V> Set<K, V> {
    pub(crate) fn new(key: K, value: V) -> Self {
        Self { key, value, condition: None, get: false, expiry: None }
    }
}

impl<K: ToArg, V: ToArg> Command for Set<K, V> {
    fn name(&self) -> CommandName {
        "SET".into()
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) {
        if self.expiry.is_none() && self.condition.is_none() && !self.get {
            encoder.begin_with(b"*3\r\n$3\r\nSET\r\n", 2);
            self.key.write(encoder);
            self.value.write(encoder);
            return;
        }
        let options = (self.condition, self.get.then_some("GET"), self.expiry);
        write(encoder, "SET", (&self.key, &self.value, options));
    }
}

/// [GETEX](https://redis.io/docs/latest/commands/getex/)
#[derive(Clone, Debug)]
pub struct Getex<K> {
    pub(crate) key: K,
    pub(crate) expiry: Option<Expiry>,
}

impl<K> Getex<K> {
    pub(crate) fn new(key: K) -> Self {
        Self { key, expiry: None }
    }
}

impl<K: ToArg> Command for Getex<K> {
    fn name(&self) -> CommandName {
        "GETEX".into()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        write(encoder, "GETEX", (&self.key, self.expiry));
    }
}

/// When a key goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// In seconds from now.
    Ex(u64),
    /// In milliseconds from now.
    Px(u64),
    /// At a Unix time in seconds.
    ExAt(u64),
    /// At a Unix time in milliseconds.
    PxAt(u64),
    /// As it was; of [`Set`] only.
    Keep,
    /// Never; of [`Getex`] only.
    Persist,
}

impl Expiry {
    fn token(self) -> (&'static str, Option<u64>) {
        match self {
            Expiry::Ex(time) => ("EX", Some(time)),
            Expiry::Px(time) => ("PX", Some(time)),
            Expiry::ExAt(time) => ("EXAT", Some(time)),
            Expiry::PxAt(time) => ("PXAT", Some(time)),
            Expiry::Keep => ("KEEPTTL", None),
            Expiry::Persist => ("PERSIST", None),
        }
    }
}

impl ToArgs for Expiry {
    fn count(&self) -> usize {
        self.token().count()
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        self.token().write(encoder);
    }
}

/// When a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Only when the key does not exist.
    Nx,
    /// Only when it does.
    Xx,
}

impl ToArgs for Condition {
    fn count(&self) -> usize {
        1
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        encoder.arg(match self {
            Condition::Nx => b"NX",
            Condition::Xx => b"XX",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;
    use crate::resp::{Decoder, FromReply};

    #[test]
    fn frames_of_fixed_commands() {
        assert_frame(&Get { key: "k" }, &["GET", "k"]);
        assert_frame(&Getdel { key: "k" }, &["GETDEL", "k"]);
        assert_frame(&Getrange { key: "k", start: 0, end: -1 }, &["GETRANGE", "k", "0", "-1"]);
        assert_frame(&Setrange { key: "k", offset: 7, value: "v" }, &["SETRANGE", "k", "7", "v"]);
        assert_frame(&Append { key: "k", value: "v" }, &["APPEND", "k", "v"]);
        assert_frame(&Strlen { key: "k" }, &["STRLEN", "k"]);
        assert_frame(&Incr { key: "k" }, &["INCR", "k"]);
        assert_frame(&Incrby { key: "k", increment: -5 }, &["INCRBY", "k", "-5"]);
        assert_frame(&Incrbyfloat { key: "k", increment: 0.5 }, &["INCRBYFLOAT", "k", "0.5"]);
        assert_frame(&Decr { key: "k" }, &["DECR", "k"]);
        assert_frame(&Decrby { key: "k", decrement: 5 }, &["DECRBY", "k", "5"]);
    }

    #[test]
    fn frames_of_lists() {
        assert_frame(&Mget { keys: ["a", "b"] }, &["MGET", "a", "b"]);
        assert_frame(&Mget { keys: "a" }, &["MGET", "a"]);
        assert_refused(&Mget { keys: [""; 0] }, "keys");
        assert_frame(&Mset { pairs: [("a", 1), ("b", 2)] }, &["MSET", "a", "1", "b", "2"]);
        assert_refused(&Mset { pairs: [("a", 1); 0] }, "pairs");
        assert_refused(&Mset { pairs: ["a", "1", "b"] }, "pairs");
        assert_frame(&Msetnx { pairs: ("a", 1) }, &["MSETNX", "a", "1"]);
        assert_refused(&Msetnx { pairs: () }, "pairs");
    }

    #[test]
    fn frames_of_set() {
        let set = || Set::new("k", "v");
        let expiring = |expiry| Set { expiry: Some(expiry), ..set() };
        assert_frame(&set(), &["SET", "k", "v"]);
        assert_frame(&expiring(Expiry::Ex(10)), &["SET", "k", "v", "EX", "10"]);
        assert_frame(&expiring(Expiry::Px(10)), &["SET", "k", "v", "PX", "10"]);
        assert_frame(&expiring(Expiry::ExAt(10)), &["SET", "k", "v", "EXAT", "10"]);
        assert_frame(&expiring(Expiry::PxAt(10)), &["SET", "k", "v", "PXAT", "10"]);
        assert_frame(&expiring(Expiry::Keep), &["SET", "k", "v", "KEEPTTL"]);
        assert_frame(&Set { condition: Some(Condition::Nx), ..set() }, &["SET", "k", "v", "NX"]);
        assert_frame(&Set { condition: Some(Condition::Xx), ..set() }, &["SET", "k", "v", "XX"]);
        assert_frame(&Set { get: true, ..set() }, &["SET", "k", "v", "GET"]);
        let all = Set { condition: Some(Condition::Xx), get: true, ..expiring(Expiry::Px(5)) };
        assert_frame(&all, &["SET", "k", "v", "XX", "GET", "PX", "5"]);
    }

    // CONN-023: what SET with NX or XX answers when it did not set.
    #[test]
    fn null_is_false() {
        let read = |wire: &str| bool::from_reply(&mut Decoder::new(wire.as_bytes())).unwrap();
        assert!(!read("$-1\r\n") && !read("_\r\n"));
        assert!(read("+OK\r\n"));
    }

    #[test]
    fn frames_of_getex() {
        let getex = |expiry| Getex { key: "k", expiry: Some(expiry) };
        assert_frame(&Getex::new("k"), &["GETEX", "k"]);
        assert_frame(&getex(Expiry::Ex(10)), &["GETEX", "k", "EX", "10"]);
        assert_frame(&getex(Expiry::Px(10)), &["GETEX", "k", "PX", "10"]);
        assert_frame(&getex(Expiry::ExAt(10)), &["GETEX", "k", "EXAT", "10"]);
        assert_frame(&getex(Expiry::PxAt(10)), &["GETEX", "k", "PXAT", "10"]);
        assert_frame(&getex(Expiry::Persist), &["GETEX", "k", "PERSIST"]);
    }
}
