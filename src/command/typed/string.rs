//! Strings and counters.

use super::fixed;
use crate::command::Command;
use crate::error::CommandName;
use crate::resp::{Encoder, ToArg};

fixed! {
    /// [GET](https://redis.io/docs/latest/commands/get/)
    Get<K>, "GET", b"*2\r\n$3\r\nGET\r\n", key
}

fixed! {
    /// [INCR](https://redis.io/docs/latest/commands/incr/)
    Incr<K>, "INCR", b"*2\r\n$4\r\nINCR\r\n", key
}

/// [SET](https://redis.io/docs/latest/commands/set/)
#[derive(Clone, Debug)]
pub struct Set<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) expiry: Option<Expiry>,
    pub(crate) condition: Option<Condition>,
    pub(crate) get: bool,
}

impl<K, V> Set<K, V> {
    pub(crate) fn new(key: K, value: V) -> Self {
        Self { key, value, expiry: None, condition: None, get: false }
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
    /// As it was.
    Keep,
}

/// When a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Only when the key does not exist.
    Nx,
    /// Only when it does.
    Xx,
}

impl<K: ToArg, V: ToArg> Command for Set<K, V> {
    fn name(&self) -> CommandName {
        "SET".into()
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) {
        if self.expiry.is_none() && self.condition.is_none() && !self.get {
            encoder.raw(b"*3\r\n$3\r\nSET\r\n");
            self.key.write(encoder);
            self.value.write(encoder);
            return;
        }
        let expiry = self.expiry.map_or(0, |expiry| if expiry == Expiry::Keep { 1 } else { 2 });
        encoder.begin(3 + expiry + usize::from(self.condition.is_some()) + usize::from(self.get));
        encoder.arg(b"SET");
        self.key.write(encoder);
        self.value.write(encoder);
        if let Some(condition) = self.condition {
            encoder.arg(if condition == Condition::Nx { b"NX" } else { b"XX" });
        }
        if self.get {
            encoder.arg(b"GET");
        }
        if let Some(expiry) = self.expiry {
            let (word, time): (&[u8], _) = match expiry {
                Expiry::Ex(time) => (b"EX", time),
                Expiry::Px(time) => (b"PX", time),
                Expiry::ExAt(time) => (b"EXAT", time),
                Expiry::PxAt(time) => (b"PXAT", time),
                Expiry::Keep => return encoder.arg(b"KEEPTTL"),
            };
            encoder.arg(word);
            encoder.uint(time);
        }
    }
}
