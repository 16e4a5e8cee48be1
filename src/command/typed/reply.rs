//! What commands answer, where no type of the language says it well: a cursor, a time to live, a type, a clock.
//!
//! The server's own numbers for "none", "over" and "for ever" end here: no caller can take one for a value.

use crate::error::{ConversionError, Error};
use crate::resp::{Decoder, Encoder, FromReply, ToArgs};
use std::time::{Duration, SystemTime};

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

    /// The cursor that the server calls so.
    pub(super) fn at(number: u64) -> Self {
        Self(if number == 0 { Position::Done } else { Position::At(number) })
    }

    /// What it is called on the wire.
    pub(super) fn number(self) -> u64 {
        match self.0 {
            Position::Start | Position::Done => 0,
            Position::At(number) => number,
        }
    }
}

impl FromReply for Cursor {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        u64::from_reply(decoder).map(Self::at)
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
    use super::*;

    fn read<T: FromReply>(wire: &str) -> Result<T, Error> {
        T::from_reply(&mut Decoder::new(wire.as_bytes()))
    }

    #[test]
    fn a_cursor_says_when_it_is_done() {
        assert_eq!(Cursor::default(), Cursor::START);
        assert!(!Cursor::START.is_done());
        let (cursor, keys): (Cursor, Vec<String>) =
            read("*2\r\n$20\r\n18446744073709551615\r\n*1\r\n$1\r\na\r\n").unwrap();
        assert_eq!((cursor, keys.as_slice()), (Cursor::at(u64::MAX), &["a".to_owned()][..]));
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

    #[test]
    fn the_clock_is_read_whole() {
        let time = read::<ServerTime>("*2\r\n$10\r\n1700000000\r\n$6\r\n000042\r\n").unwrap();
        assert_eq!(time, ServerTime { seconds: 1_700_000_000, microseconds: 42 });
        assert_eq!(
            SystemTime::from(time),
            SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_042)
        );
        read::<ServerTime>("*2\r\n$1\r\n1\r\n$7\r\n1000000\r\n").unwrap_err();
        read::<ServerTime>("*2\r\n$20\r\n18446744073709551615\r\n$1\r\n0\r\n").unwrap_err();
        read::<ServerTime>("*1\r\n$1\r\n1\r\n").unwrap_err();
    }
}
