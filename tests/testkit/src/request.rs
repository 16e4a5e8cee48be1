//! Requests: bytes from a client to commands.
//!
//! **Problem.** A pipelined client sends thousands of commands in one read; a parser that allocates per argument would be
//! slower than the client under test and would hide its cost.
//!
//! **Idea.** A command is a list of spans into the connection's input buffer. The list is reused, so a parsed command
//! owns nothing; [`Args`] pairs the spans with the bytes while the command runs.
//!
//! **Invariant.** Spans lie inside the bytes they were parsed from, and `parse` returns a length only for a complete
//! command. Bad input is an error with the wording of the real server; it never panics.

use std::ops::{Index, Range};

/// The longest bulk string that is accepted, as `proto-max-bulk-len` has it.
pub(crate) const BULK_BYTES_MAX: i64 = 512 * 1024 * 1024;
/// The longest line (inline command or length) that is accepted.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The text behind `-ERR Protocol error: `.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    MultibulkLength,
    MultibulkLine,
    BulkLength,
    BulkLine,
    InlineLine,
    ExpectedDollar(u8),
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MultibulkLength => f.write_str("invalid multibulk length"),
            Self::MultibulkLine => f.write_str("too big mbulk count string"),
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::BulkLine => f.write_str("too big bulk count string"),
            Self::InlineLine => f.write_str("too big inline request"),
            Self::ExpectedDollar(found) => write!(f, "expected '$', got '{}'", printable(*found)),
        }
    }
}

/// One byte as a character that cannot break the line of an error reply.
fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' }
}

/// What one attempt to parse found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A complete command (or an empty one, when there are no spans) of so many bytes.
    Complete(usize),
    /// More bytes are needed; the value is the least total that can be complete, so that the buffer can grow once.
    Incomplete(usize),
}

/// Parses one command from the front of `bytes` into `spans`.
pub(crate) fn parse(bytes: &[u8], spans: &mut Vec<Range<usize>>) -> Result<Parsed, ProtocolError> {
    spans.clear();
    match bytes.first() {
        None => Ok(Parsed::Incomplete(1)),
        Some(b'*') => parse_multibulk(bytes, spans),
        Some(_) => parse_inline(bytes, spans),
    }
}

fn parse_multibulk(bytes: &[u8], spans: &mut Vec<Range<usize>>) -> Result<Parsed, ProtocolError> {
    let (count, mut at) = match number_line(bytes, 1) {
        Line::Value(count, next) => (count, next),
        Line::Incomplete => return Ok(Parsed::Incomplete(bytes.len() + 1)),
        Line::Bad => return Err(ProtocolError::MultibulkLength),
        Line::TooLong => return Err(ProtocolError::MultibulkLine),
    };
    if count > i64::from(i32::MAX) {
        return Err(ProtocolError::MultibulkLength);
    }
    for _ in 0..count {
        match bytes.get(at) {
            None => return Ok(Parsed::Incomplete(at + 1)),
            Some(b'$') => {}
            Some(&found) => return Err(ProtocolError::ExpectedDollar(found)),
        }
        let (length, start) = match number_line(bytes, at + 1) {
            Line::Value(length @ 0..=BULK_BYTES_MAX, next) => (length as usize, next),
            Line::Incomplete => return Ok(Parsed::Incomplete(bytes.len() + 1)),
            Line::TooLong => return Err(ProtocolError::BulkLine),
            Line::Value(..) | Line::Bad => return Err(ProtocolError::BulkLength),
        };
        let end = start + length;
        if bytes.len() < end + 2 {
            return Ok(Parsed::Incomplete(end + 2));
        }
        spans.push(start..end);
        at = end + 2;
    }
    Ok(Parsed::Complete(at))
}

enum Line {
    Value(i64, usize),
    Incomplete,
    Bad,
    TooLong,
}

/// A decimal number that starts at `at` and ends with CRLF; the value and where the next line starts.
fn number_line(bytes: &[u8], at: usize) -> Line {
    let Some(line) = bytes.get(at..) else { return Line::Incomplete };
    let (negative, digits) = match line.first() {
        None => return Line::Incomplete,
        Some(b'-') => (true, &line[1..]),
        Some(_) => (false, line),
    };
    let mut value = 0_i64;
    for (index, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if index < 18 => value = value * 10 + i64::from(byte - b'0'),
            b'\r' if index > 0 => {
                let next = at + usize::from(negative) + index + 2;
                if bytes.len() < next {
                    return Line::Incomplete;
                }
                return Line::Value(if negative { -value } else { value }, next);
            }
            // A bad digit is reported once the line is whole, as the real server does.
            _ => {
                return match memchr::memchr(b'\r', line) {
                    Some(_) => Line::Bad,
                    None if line.len() > LINE_BYTES_MAX => Line::TooLong,
                    None => Line::Incomplete,
                };
            }
        }
    }
    Line::Incomplete
}

/// A command as typed into a terminal: words between blanks, without quoting.
fn parse_inline(bytes: &[u8], spans: &mut Vec<Range<usize>>) -> Result<Parsed, ProtocolError> {
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() > LINE_BYTES_MAX {
            Err(ProtocolError::InlineLine)
        } else {
            Ok(Parsed::Incomplete(bytes.len() + 1))
        };
    };
    let mut start = None;
    for (index, byte) in bytes[..=end].iter().enumerate() {
        match (start, byte.is_ascii_whitespace()) {
            (None, false) => start = Some(index),
            (Some(first), true) => {
                spans.push(first..index);
                start = None;
            }
            _ => {}
        }
    }
    Ok(Parsed::Complete(end + 1))
}

/// The arguments of one command; index 0 is its name.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// `spans` must have been parsed from `bytes`.
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Range<usize>]) -> Self {
        Self { bytes, spans }
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The argument at `index`; like indexing, but the borrow is of the input, not of `self`.
    pub(crate) fn at(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.spans[index].clone()]
    }

    pub(crate) fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| &self.bytes[span.clone()])
    }

    /// All arguments from `index` on; none when there are fewer.
    pub(crate) fn from(&self, index: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        self.spans.get(index..).unwrap_or_default().iter().map(move |span| &bytes[span.clone()])
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];
    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> (Result<Parsed, ProtocolError>, Vec<Vec<u8>>) {
        let mut spans = Vec::new();
        let parsed = parse(bytes, &mut spans);
        let words = Args::new(bytes, &spans).from(0).map(<[u8]>::to_vec).collect();
        (parsed, words)
    }

    #[test]
    fn every_prefix_is_incomplete() {
        let whole = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n";
        for length in 0..whole.len() {
            let (parsed, _) = words(&whole[..length]);
            assert!(
                matches!(parsed, Ok(Parsed::Incomplete(total)) if total > length && total <= whole.len()),
                "{length}"
            );
        }
        let (parsed, words) = words(whole);
        assert_eq!(parsed, Ok(Parsed::Complete(whole.len())));
        assert_eq!(words, [&b"SET"[..], b"k", b""]);
    }

    #[test]
    fn inline_and_empty_commands() {
        assert_eq!(words(b"  PING  hi\r\n").1, [b"PING", &b"hi"[..]]);
        assert_eq!(words(b"\r\n").0, Ok(Parsed::Complete(2)));
        assert_eq!(words(b"*0\r\n").0, Ok(Parsed::Complete(4)));
        assert_eq!(words(b"*-1\r\n").0, Ok(Parsed::Complete(5)));
    }

    #[test]
    fn bad_input_is_named() {
        assert_eq!(words(b"*x\r\n").0, Err(ProtocolError::MultibulkLength));
        assert_eq!(words(b"*99999999999\r\n").0, Err(ProtocolError::MultibulkLength));
        assert_eq!(words(b"*1\r\nx").0, Err(ProtocolError::ExpectedDollar(b'x')));
        assert_eq!(words(b"*1\r\n$-1\r\n").0, Err(ProtocolError::BulkLength));
        assert_eq!(words(b"*1\r\n$9999999999\r\n").0, Err(ProtocolError::BulkLength));
        assert_eq!(words(&[b'a'; LINE_BYTES_MAX + 1]).0, Err(ProtocolError::InlineLine));
        let mut long = b"*".to_vec();
        long.extend([b'1'; LINE_BYTES_MAX + 1]);
        assert_eq!(words(&long).0, Err(ProtocolError::MultibulkLine));
    }

    /// One byte changed at a time: never a panic, never a span outside the input, never a length beyond it.
    #[test]
    fn damaged_input_is_survived() {
        let whole = b"*3\r\n$3\r\nSET\r\n$-1\r\n$12\r\nvalue\r\nvalue\r\n*1\r\n$4\r\nPING\r\n";
        let mut spans = Vec::new();
        for at in 0..whole.len() {
            for byte in b"\r\n*$-019 x\0\xff" {
                let mut damaged = whole.to_vec();
                damaged[at] = *byte;
                let mut rest = &damaged[..];
                while let Ok(Parsed::Complete(length)) = parse(rest, &mut spans) {
                    assert!(length > 0 && spans.iter().all(|span| span.end <= length));
                    rest = &rest[length..];
                }
            }
        }
    }
}
