//! A cursor over one validated frame.
//!
//! The frame was validated by the [`Scanner`](super::Scanner) and may lie in several segments. The decoder hands out
//! one token at a time, borrowed where a string lies in one piece, and keeps no stack: whoever reads knows how deep it
//! is. Skipping a value needs an explicit stack. Bytes that were never validated give errors, not panics.

mod head;
mod skip;

use super::number;
use super::token::Str;
use crate::buf::{Chain, Parts, Payload, Segment, Spares};
use crate::error::ConversionError;
pub(super) use head::Head;
use memchr::memchr;
use std::borrow::Cow;

/// Reads one reply. [`FromReply`](super::FromReply) implementations get one, positioned at their value.
///
/// A clone is a saved position; it is cheap, and so is every step that finds its bytes in one piece.
///
/// ```
/// use respiral::resp::{Decoder, Token};
/// let mut decoder = Decoder::new(b"*2\r\n:1\r\n+two\r\n");
/// assert_eq!(decoder.token()?, Token::Array(Some(2)));
/// assert_eq!(decoder.token()?, Token::Integer(1));
/// assert_eq!(decoder.token()?, Token::Simple(b"two"[..].into()));
/// # Ok::<(), respiral::error::ConversionError>(())
/// ```
#[derive(Clone)]
pub struct Decoder<'a> {
    /// What is left of the current piece.
    current: &'a [u8],
    rest: &'a [Segment],
    /// Offset of the current piece's end in the frame.
    end: usize,
    /// Bytes of the frame.
    total: usize,
    /// The current piece, when it is a segment.
    segment: Option<&'a Segment>,
    /// Where there are spare nodes for parts that are kept.
    home: Option<&'a Spares>,
}

fn broken() -> ConversionError {
    ConversionError::new("not a whole reply", "any value")
}

impl<'a> Decoder<'a> {
    /// Over a frame in one piece.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { current: bytes, rest: &[], end: bytes.len(), total: bytes.len(), segment: None, home: None }
    }

    /// Over a frame in several pieces.
    pub fn over(segments: &'a [Segment]) -> Self {
        let total = segments.iter().map(|segment| segment.len()).sum();
        let mut decoder = Self { current: &[], rest: segments, end: 0, total, segment: None, home: None };
        decoder.next_segment();
        decoder
    }

    pub(super) fn home(&self) -> Option<&'a Spares> {
        self.home
    }

    /// Bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.end - self.current.len()
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.total - self.position()
    }

    /// Makes the next non-empty segment the current one.
    #[cold]
    fn next_segment(&mut self) -> bool {
        while let Some((first, rest)) = self.rest.split_first() {
            self.rest = rest;
            if !first.is_empty() {
                self.current = first;
                self.end += first.len();
                self.segment = Some(first);
                return true;
            }
        }
        false
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, ConversionError> {
        loop {
            if let [first, rest @ ..] = self.current {
                self.current = rest;
                return Ok(*first);
            }
            if !self.next_segment() {
                return Err(broken());
            }
        }
    }

    /// The rest of a line; its end is read too.
    #[inline]
    fn line(&mut self) -> Result<Str<'a>, ConversionError> {
        if let Some(end) = memchr(b'\r', self.current)
            && self.current.len() > end + 1
        {
            let line = &self.current[..end];
            self.current = &self.current[end + 2..];
            return Ok(Cow::Borrowed(line));
        }
        self.joined_line()
    }

    #[cold]
    fn joined_line(&mut self) -> Result<Str<'a>, ConversionError> {
        let mut line = Vec::new();
        loop {
            match memchr(b'\r', self.current) {
                Some(end) => {
                    line.extend_from_slice(&self.current[..end]);
                    self.current = &self.current[end + 1..];
                    self.byte()?;
                    return Ok(Cow::Owned(line));
                }
                None => {
                    line.extend_from_slice(self.current);
                    self.current = &[];
                    if !self.next_segment() {
                        return Err(broken());
                    }
                }
            }
        }
    }

    /// The next `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Result<Str<'a>, ConversionError> {
        if let Some((now, later)) = self.current.split_at_checked(len) {
            self.current = later;
            return Ok(Cow::Borrowed(now));
        }
        let mut joined = Vec::new();
        self.take_into(len, &mut joined)?;
        Ok(Cow::Owned(joined))
    }

    /// Appends the next `len` bytes to `out`.
    pub(super) fn take_into(&mut self, mut len: usize, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        if len > self.current.len() && len > self.remaining() {
            return Err(broken());
        }
        out.reserve(len);
        while len > 0 {
            if self.current.is_empty() && !self.next_segment() {
                return Err(broken());
            }
            let (now, later) = self.current.split_at(len.min(self.current.len()));
            out.extend_from_slice(now);
            self.current = later;
            len -= now.len();
        }
        Ok(())
    }

    /// Passes the next `len` bytes.
    pub(super) fn pass(&mut self, mut len: usize) -> Result<(), ConversionError> {
        loop {
            if let Some(later) = self.current.get(len..) {
                self.current = later;
                return Ok(());
            }
            len -= self.current.len();
            self.current = &[];
            if !self.next_segment() {
                return Err(broken());
            }
        }
    }

    /// The bulk string in front, when it lies in one piece; the way of nearly all strings.
    #[inline(always)]
    pub(super) fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.plain_string_below(usize::MAX)
    }

    /// The same, when it is shorter than `limit`.
    #[inline(always)]
    pub(super) fn plain_string_below(&mut self, limit: usize) -> Option<&'a [u8]> {
        let [b'$', rest @ ..] = self.current else { return None };
        let (len, used) = number::length_line(rest)?;
        let body = &rest[used..];
        if body.len().saturating_sub(2) < len || body.len() < 2 || len >= limit {
            return None;
        }
        let (text, later) = body.split_at(len);
        self.current = &later[2..];
        Some(text)
    }

    /// The integer in front, when it lies in one piece.
    #[inline(always)]
    pub(super) fn plain_integer(&mut self) -> Option<i64> {
        let (value, used) = number::integer_line(self.current)?;
        self.current = &self.current[used..];
        Some(value)
    }

    /// Passes an `OK` in front; true when there was one.
    #[inline]
    pub(super) fn plain_ok(&mut self) -> bool {
        match self.current.strip_prefix(b"+OK\r\n") {
            Some(later) => {
                self.current = later;
                true
            }
            None => false,
        }
    }

    /// True when the next value is null; nothing is read.
    #[inline]
    pub(super) fn is_null(&self) -> bool {
        match self.current {
            [b'$' | b'*', second, ..] => *second == b'-',
            [b'_', ..] => true,
            [b'|', ..] | [b'$' | b'*'] | [] => matches!(self.clone().head(), Ok(Head::Null)),
            _ => false,
        }
    }

    /// True when the next value may be an error; nothing is read.
    #[inline]
    pub(super) fn may_be_error(&self) -> bool {
        matches!(self.current.first(), None | Some(b'-' | b'!' | b'|'))
    }

    /// The next `len` bytes without a copy; `None` (and nothing read) when they do not lie in segments.
    pub(super) fn hold(&mut self, mut len: usize) -> Option<Chain> {
        self.segment?;
        let mut ahead = self.clone();
        let mut chain = Chain::default();
        while len > 0 {
            if ahead.current.is_empty() && !ahead.next_segment() {
                return None;
            }
            let segment = ahead.segment?;
            let start = segment.len() - ahead.current.len();
            let now = len.min(ahead.current.len());
            chain.push(segment.slice(start..start + now));
            ahead.current = &ahead.current[now..];
            len -= now;
        }
        *self = ahead;
        Some(chain)
    }

    /// Passes the line end after a string.
    #[inline]
    pub(super) fn end_string(&mut self) -> Result<(), ConversionError> {
        self.pass(2)
    }
}

impl std::fmt::Debug for Decoder<'_> {
    /// The position only: the content is the user's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decoder({} of {} bytes)", self.position(), self.total)
    }
}

impl<'a> From<&'a Payload> for Decoder<'a> {
    #[inline]
    fn from(payload: &'a Payload) -> Self {
        let mut decoder = match payload.parts() {
            Parts::Whole(bytes) => Decoder::new(bytes),
            Parts::Segments(segments) => Decoder::over(segments),
        };
        decoder.home = payload.home();
        decoder
    }
}
