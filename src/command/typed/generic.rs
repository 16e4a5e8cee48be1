//! Keys, whatever they hold.

use super::sorted_set::Comparison;
use super::string::Condition;
use super::{fixed, variadic, write};
use crate::command::Command;
use crate::error::{CommandName, ConversionError, Error, InvalidError};
use crate::resp::{Decoder, Encoder, FromReply, ToArg, ToArgs};
use std::time::Duration;

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

/// Where a scan goes on. It begins with [`Cursor::START`], each reply gives the next, and one of them
/// [is done](Self::is_done).
///
/// The server calls both the beginning and the end 0; here they differ, so a loop may test before it asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Cursor(Position);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
enum Position {
    #[default]
    Start,
    /// Never 0.
    At(u64),
    Done,
}

impl Cursor {
    /// The beginning of a scan.
    pub const START: Self = Self(Position::Start);

    /// True when the scan has come to its end: the keys of this reply were the last.
    pub fn is_done(self) -> bool {
        self.0 == Position::Done
    }

    fn number(self) -> u64 {
        match self.0 {
            Position::Start | Position::Done => 0,
            Position::At(number) => number,
        }
    }
}

impl FromReply for Cursor {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(Self(match u64::from_reply(decoder)? {
            0 => Position::Done,
            number => Position::At(number),
        }))
    }
}

/// How long a key has to live: in [`Seconds`] as `TTL` says it, in [`Milliseconds`] as `PTTL` does.
///
/// On the wire, -2 and -1 stand for the first two; here no number can be mistaken for them, nor one unit for the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimeToLive<U> {
    /// There is no such key.
    NoKey,
    /// The key stays until it is removed.
    NoExpiry,
    /// The key goes after this time.
    Left(U),
}

impl<U: Into<Duration>> TimeToLive<U> {
    /// The time that is left, when the key exists and has a limit.
    pub fn left(self) -> Option<Duration> {
        match self {
            TimeToLive::NoKey | TimeToLive::NoExpiry => None,
            TimeToLive::Left(time) => Some(time.into()),
        }
    }
}

/// A number of seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Seconds(pub u64);

/// A number of milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Milliseconds(pub u64);

impl From<u64> for Seconds {
    fn from(seconds: u64) -> Self {
        Self(seconds)
    }
}

impl From<u64> for Milliseconds {
    fn from(milliseconds: u64) -> Self {
        Self(milliseconds)
    }
}

impl From<Seconds> for Duration {
    fn from(seconds: Seconds) -> Self {
        Duration::from_secs(seconds.0)
    }
}

impl From<Milliseconds> for Duration {
    fn from(milliseconds: Milliseconds) -> Self {
        Duration::from_millis(milliseconds.0)
    }
}

impl<U: From<u64>> FromReply for TimeToLive<U> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        match i64::from_reply(decoder)? {
            -2 => Ok(TimeToLive::NoKey),
            -1 => Ok(TimeToLive::NoExpiry),
            time => u64::try_from(time)
                .map(|time| TimeToLive::Left(time.into()))
                .map_err(|_| ConversionError::new("an integer below -2", "TimeToLive").into()),
        }
    }
}

/// What a key holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KeyType {
    /// There is no such key.
    NoKey,
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A hash.
    Hash,
    /// A stream.
    Stream,
    /// A type of a module, by the name the server gives it.
    Other(Box<str>),
}

impl KeyType {
    /// The server's name of it.
    pub fn name(&self) -> &str {
        match self {
            KeyType::NoKey => "none",
            KeyType::String => "string",
            KeyType::List => "list",
            KeyType::Set => "set",
            KeyType::SortedSet => "zset",
            KeyType::Hash => "hash",
            KeyType::Stream => "stream",
            KeyType::Other(name) => name,
        }
    }
}

impl From<&str> for KeyType {
    fn from(name: &str) -> Self {
        match name {
            "none" => KeyType::NoKey,
            "string" => KeyType::String,
            "list" => KeyType::List,
            "set" => KeyType::Set,
            "zset" => KeyType::SortedSet,
            "hash" => KeyType::Hash,
            "stream" => KeyType::Stream,
            name => KeyType::Other(name.into()),
        }
    }
}

impl FromReply for KeyType {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(String::from_reply(decoder)?.as_str().into())
    }
}

impl ToArgs for KeyType {
    fn count(&self) -> usize {
        1
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        encoder.arg(self.name().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;

    fn read<T: FromReply>(wire: &str) -> Result<T, Error> {
        T::from_reply(&mut Decoder::new(wire.as_bytes()))
    }

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
        let at = Cursor(Position::At(17));
        assert_frame(&Scan::new(Cursor::START), &["SCAN", "0"]);
        assert_frame(
            &Scan { pattern: Some("a*"), count: None, key_type: None, cursor: at },
            &["SCAN", "17", "MATCH", "a*"],
        );
        assert_frame(&Scan { count: Some(100), ..Scan::new(at) }, &["SCAN", "17", "COUNT", "100"]);
        let all =
            Scan { cursor: at, pattern: Some("a*"), count: Some(100), key_type: Some(KeyType::SortedSet) };
        assert_frame(&all, &["SCAN", "17", "MATCH", "a*", "COUNT", "100", "TYPE", "zset"]);
        assert_refused(&Scan::new(Cursor(Position::Done)), "cursor");
    }

    #[test]
    fn a_cursor_says_when_it_is_done() {
        assert_eq!(Cursor::default(), Cursor::START);
        assert!(!Cursor::START.is_done());
        let (cursor, keys): (Cursor, Vec<String>) =
            read("*2\r\n$20\r\n18446744073709551615\r\n*1\r\n$1\r\na\r\n").unwrap();
        assert_eq!((cursor, keys.as_slice()), (Cursor(Position::At(u64::MAX)), &["a".to_owned()][..]));
        assert!(!cursor.is_done());
        assert!(read::<Cursor>("$1\r\n0\r\n").unwrap().is_done());
        read::<Cursor>("$1\r\nx\r\n").unwrap_err();
    }

    #[test]
    fn times_to_live_are_no_numbers() {
        assert_eq!(read::<TimeToLive<Seconds>>(":-2\r\n").unwrap(), TimeToLive::NoKey);
        assert_eq!(read::<TimeToLive<Seconds>>(":-1\r\n").unwrap(), TimeToLive::NoExpiry);
        assert_eq!(read::<TimeToLive<Seconds>>(":0\r\n").unwrap(), TimeToLive::Left(Seconds(0)));
        let seconds = read::<TimeToLive<Seconds>>(":7\r\n").unwrap();
        assert_eq!(seconds.left(), Some(Duration::from_secs(7)));
        let milliseconds = read::<TimeToLive<Milliseconds>>(":7\r\n").unwrap();
        assert_eq!(milliseconds, TimeToLive::Left(Milliseconds(7)));
        assert_eq!(milliseconds.left(), Some(Duration::from_millis(7)));
        assert_eq!(TimeToLive::<Seconds>::NoKey.left(), None);
        assert_eq!(TimeToLive::<Seconds>::NoExpiry.left(), None);
        read::<TimeToLive<Seconds>>(":-3\r\n").unwrap_err();
    }

    #[test]
    fn types_of_keys_have_the_names_of_the_server() {
        for name in ["none", "string", "list", "set", "zset", "hash", "stream", "ReJSON-RL"] {
            let key_type = read::<KeyType>(&format!("+{name}\r\n")).unwrap();
            assert_eq!(key_type.name(), name);
            assert_eq!(matches!(key_type, KeyType::Other(_)), name == "ReJSON-RL");
        }
    }
}
