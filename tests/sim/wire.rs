//! Commands as they lie on the wire: made by callers, cut out again by the model server and by the checkers.
//!
//! Every command of a caller has its call's number as its first argument, and every reply repeats it. That is how a
//! reply, an execution or a byte is known to belong to a call.

use respiral::buf::Log;
use respiral::resp::Encoder;

/// What a caller asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// `ECHO id size`: a string of at least `size` bytes.
    Echo { size: usize },
    /// `LIST id count`: an array.
    List { count: usize },
    /// `MAP id count`: a map in RESP3, an array in RESP2.
    Map { count: usize },
    /// `GET id key`.
    Get { key: u8 },
    /// `SET id key value`.
    Set { key: u8, size: usize },
    /// `INCR id key`.
    Incr { key: u8 },
    /// `FAIL id`: runs and answers an error.
    Fail,
}

impl Command {
    pub fn encode(&self, id: u64, log: &mut Log) {
        let mut encoder = Encoder::new(log);
        let (name, count): (&[u8], _) = match self {
            Command::Echo { .. } => (b"ECHO", 3),
            Command::List { .. } => (b"LIST", 3),
            Command::Map { .. } => (b"MAP", 3),
            Command::Get { .. } => (b"GET", 3),
            Command::Set { .. } => (b"SET", 4),
            Command::Incr { .. } => (b"INCR", 3),
            Command::Fail => (b"FAIL", 2),
        };
        encoder.begin(count);
        encoder.arg(name);
        encoder.uint(id);
        match self {
            Command::Echo { size: n } | Command::List { count: n } | Command::Map { count: n } => {
                encoder.uint(*n as u64);
            }
            Command::Get { key } | Command::Incr { key } => encoder.arg(&[b'a' + key]),
            Command::Set { key, size } => {
                encoder.arg(&[b'a' + key]);
                encoder.arg(&vec![b'v'; *size]);
            }
            Command::Fail => {}
        }
        assert!(encoder.is_whole());
    }
}

/// The first whole frame in `bytes`: its length and its words.
pub fn parse(bytes: &[u8]) -> Option<(usize, Vec<&[u8]>)> {
    let mut at = 0;
    let count = number(bytes, &mut at, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(bytes, &mut at, b'$')?;
        let word = bytes.get(at..at + length)?;
        let end = bytes.get(at + length..at + length + 2)?;
        assert_eq!(end, b"\r\n", "a frame of the client is broken: {:?}", String::from_utf8_lossy(word));
        at += length + 2;
        words.push(word);
    }
    Some((at, words))
}

/// The call that the words belong to; `None` for set-up.
pub fn call_of(words: &[&[u8]]) -> Option<u64> {
    if is_setup(words) {
        return None;
    }
    std::str::from_utf8(words.get(1)?).ok()?.parse().ok()
}

pub fn is_setup(words: &[&[u8]]) -> bool {
    matches!(words.first(), Some(&(b"HELLO" | b"AUTH" | b"SELECT" | b"CLIENT" | b"PING")))
}

fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Option<usize> {
    let rest = bytes.get(*at..)?;
    let first = *rest.first()?;
    assert_eq!(first as char, kind as char, "the client's stream is out of step");
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    *at += end + 2;
    std::str::from_utf8(&rest[1..end]).ok()?.parse().ok()
}

/// A text of which no two neighbouring pieces look alike.
pub fn filler(size: usize) -> String {
    (0..size).map(|at| char::from(b'a' + (at % 23) as u8)).collect()
}
