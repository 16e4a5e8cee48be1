//! A cursor over one validated frame.
//!
//! The frame was validated by the [`Scanner`](super::Scanner) and may lie in several segments. The decoder hands out
//! one token at a time, borrowed where a string lies in one piece, and keeps no stack: whoever reads knows how deep it
//! is. Skipping a value needs an explicit stack. Bytes that were never validated give errors, not panics.

use super::number;
use super::stack::Level;
use super::token::{Str, Token};
use crate::buf::{Chain, Payload, Segment};
use crate::error::ConversionError;
use memchr::memchr;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Reads one reply. [`FromReply`](super::FromReply) implementations get one, positioned at their value.
///
/// A clone is a saved position.
///
/// ```
/// use respiral::resp::{Decoder, Token};
/// let mut decoder = Decoder::new(b"*2\r\n:1\r\n+two\r\n");
/// assert_eq!(decoder.token()?, Token::Array(Some(2)));
/// assert_eq!(decoder.token()?, Token::Integer(1));
/// assert_eq!(decoder.token()?, Token::Simple(b"two"[..].into()));
/// # Ok::<(), respiral::error::ConversionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    /// What is left of the current piece.
    current: &'a [u8],
    rest: &'a [Segment],
    /// Offset of the current piece's end in the frame.
    end: usize,
    /// The current piece, when it is a segment.
    segment: Option<&'a Segment>,
}

/// The head of a value: its type byte and what its line says. Strings with a length are still unread.
#[derive(Debug)]
pub(super) enum Head<'a> {
    /// `+ - ( ,`: the text of the line.
    Line(u8, Str<'a>),
    /// `:`
    Integer(i64),
    /// `#`
    Boolean(bool),
    Null,
    /// `$ ! =` and the bytes that follow.
    String(u8, usize),
    /// `$?`
    Chunks,
    /// `* % ~ > |` and how many elements (or pairs).
    Aggregate(u8, Option<u64>),
    End,
}

fn broken() -> ConversionError {
    ConversionError::new("not a whole reply", "any value")
}

impl<'a> Decoder<'a> {
    /// Over a frame in one piece.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { current: bytes, rest: &[], end: bytes.len(), segment: None }
    }

    /// Over a frame in several pieces.
    pub fn over(segments: &'a [Segment]) -> Self {
        let mut decoder = Self { current: &[], rest: segments, end: 0, segment: None };
        decoder.next_segment();
        decoder
    }

    /// Bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.end - self.current.len()
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.current.len() + self.rest.iter().map(|segment| segment.len()).sum::<usize>()
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
        let [b'$', rest @ ..] = self.current else { return None };
        let (len, used) = number::length_line(rest)?;
        let body = &rest[used..];
        if body.len().saturating_sub(2) < len || body.len() < 2 {
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

    /// The number of a line such as `64\r\n`.
    #[inline]
    fn number_line(&mut self) -> Result<Option<u64>, ConversionError> {
        // Short lengths in one piece, without a search first.
        let mut value = 0u64;
        for (at, byte) in self.current.iter().take(10).enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                if *byte != b'\r' || at == 0 {
                    break;
                }
                if let Some(later) = self.current.get(at + 2..) {
                    self.current = later;
                    return Ok(Some(value));
                }
                break;
            }
            value = value * 10 + u64::from(digit);
        }
        let line = self.line()?;
        match &line[..] {
            b"?" | b"-1" => Ok(None),
            digits => number::unsigned(digits).map(Some).ok_or_else(broken),
        }
    }

    fn streams(&self) -> bool {
        self.current.first().or_else(|| self.rest.iter().find_map(|segment| segment.first())) == Some(&b'?')
    }

    /// The next head, attributes included.
    #[inline]
    fn any_head(&mut self) -> Result<Head<'a>, ConversionError> {
        let kind = self.byte()?;
        match kind {
            b'$' | b'*' => {
                let streams = self.streams();
                Ok(match (self.number_line()?, kind) {
                    (None, b'$') if streams => Head::Chunks,
                    (None, _) if streams => Head::Aggregate(kind, None),
                    (None, _) => Head::Null,
                    (Some(len), b'$') => Head::String(kind, usize::try_from(len).map_err(|_| broken())?),
                    (count, _) => Head::Aggregate(kind, count),
                })
            }
            b':' => Ok(Head::Integer(number::signed(&self.line()?).ok_or_else(broken)?)),
            b'+' | b'-' | b',' | b'(' => Ok(Head::Line(kind, self.line()?)),
            b'%' | b'~' | b'>' | b'|' => {
                let streams = self.streams();
                match self.number_line()? {
                    None if !streams || kind == b'|' => Err(broken()),
                    count => Ok(Head::Aggregate(kind, count)),
                }
            }
            b'!' | b'=' => {
                let len = self.number_line()?.and_then(|len| usize::try_from(len).ok()).ok_or_else(broken)?;
                Ok(Head::String(kind, len))
            }
            b'_' => self.line().map(|_| Head::Null),
            b'#' => Ok(Head::Boolean(&self.line()?[..] == b"t")),
            b'.' => self.line().map(|_| Head::End),
            _ => Err(broken()),
        }
    }

    /// The next head after any attributes.
    #[inline]
    pub(super) fn head(&mut self) -> Result<Head<'a>, ConversionError> {
        loop {
            match self.any_head()? {
                Head::Aggregate(b'|', Some(pairs)) => {
                    self.skip_level(Level::attribute(pairs.saturating_mul(2)))?
                }
                head => return Ok(head),
            }
        }
    }

    /// The attributes in front of the next value as a decoder over each: its keys and values follow, `pairs` of them.
    /// Nothing is read when there is none.
    ///
    /// ```
    /// use respiral::resp::{Decoder, Token};
    /// let mut decoder = Decoder::new(b"|1\r\n+ttl\r\n:9\r\n$1\r\na\r\n");
    /// let (pairs, mut attribute) = decoder.attribute()?.expect("there is one");
    /// assert_eq!((pairs, attribute.token()?), (1, Token::Simple(b"ttl"[..].into())));
    /// assert_eq!(decoder.token()?, Token::Bulk(b"a"[..].into()));
    /// # Ok::<(), respiral::error::ConversionError>(())
    /// ```
    pub fn attribute(&mut self) -> Result<Option<(usize, Decoder<'a>)>, ConversionError> {
        let before = self.clone();
        match self.any_head()? {
            Head::Aggregate(b'|', Some(pairs)) => {
                let inside = self.clone();
                self.skip_level(Level::attribute(pairs.saturating_mul(2)))?;
                Ok(Some((usize::try_from(pairs).map_err(|_| broken())?, inside)))
            }
            _ => {
                *self = before;
                Ok(None)
            }
        }
    }

    /// Appends the chunks of a streamed string to `out`.
    pub(super) fn join_chunks(&mut self, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        while let Some(len) = self.chunk()? {
            self.take_into(len, out)?;
            self.end_string()?;
        }
        Ok(())
    }

    /// The length of the next chunk; `None` at the end.
    fn chunk(&mut self) -> Result<Option<usize>, ConversionError> {
        if self.byte()? != b';' {
            return Err(broken());
        }
        match self.number_line()? {
            Some(0) => Ok(None),
            Some(len) => usize::try_from(len).map(Some).map_err(|_| broken()),
            None => Err(broken()),
        }
    }

    /// The text of a string whose head was read.
    pub(super) fn string(&mut self, len: usize) -> Result<Str<'a>, ConversionError> {
        let text = self.take(len)?;
        self.end_string()?;
        Ok(text)
    }

    /// The format and the text of a verbatim string whose head was read.
    pub(super) fn verbatim(&mut self, len: usize) -> Result<([u8; 3], Str<'a>), ConversionError> {
        let text_len = len.checked_sub(4).ok_or_else(broken)?;
        let prefix = self.take(4)?;
        let format = [prefix[0], prefix[1], prefix[2]];
        Ok((format, self.string(text_len)?))
    }

    /// The next token; attributes are passed over ([`attribute`](Self::attribute) reads them).
    ///
    /// # Errors
    /// Only at the end of the frame, or over bytes that were never validated.
    pub fn token(&mut self) -> Result<Token<'a>, ConversionError> {
        let head = self.head()?;
        self.finish_token(head)
    }

    pub(super) fn finish_token(&mut self, head: Head<'a>) -> Result<Token<'a>, ConversionError> {
        Ok(match head {
            Head::Line(b'+', text) => Token::Simple(text),
            Head::Line(b'-', text) => Token::Error(text),
            Head::Line(b',', text) => Token::Double(number::double(&text).ok_or_else(broken)?),
            Head::Line(_, text) => Token::BigNumber(text),
            Head::Integer(value) => Token::Integer(value),
            Head::Boolean(value) => Token::Boolean(value),
            Head::Null => Token::Null,
            Head::String(b'$', len) => Token::Bulk(self.string(len)?),
            Head::String(b'!', len) => Token::BlobError(self.string(len)?),
            Head::String(_, len) => {
                let (format, text) = self.verbatim(len)?;
                Token::Verbatim { format, text }
            }
            Head::Chunks => {
                let mut joined = Vec::new();
                self.join_chunks(&mut joined)?;
                Token::Bulk(Cow::Owned(joined))
            }
            Head::Aggregate(kind, count) => {
                let count = count.map(usize::try_from).transpose().map_err(|_| broken())?;
                match kind {
                    b'*' => Token::Array(count),
                    b'%' => Token::Map(count),
                    b'~' => Token::Set(count),
                    _ => Token::Push(count),
                }
            }
            Head::End => Token::End,
        })
    }

    /// Passes one value with all that is inside of it, and the attributes in front of it.
    ///
    /// # Errors
    /// See [`token`](Self::token).
    pub fn skip_value(&mut self) -> Result<(), ConversionError> {
        self.skip_level(Level::of(1))
    }

    /// Passes values until `level` is complete.
    fn skip_level(&mut self, level: Level) -> Result<(), ConversionError> {
        if level.left == 0 {
            return Ok(());
        }
        let mut stack: SmallVec<[Level; 8]> = SmallVec::new();
        stack.push(level);
        loop {
            // A value without children ends with its head, unless the match says otherwise.
            match self.any_head()? {
                Head::String(_, len) => {
                    self.pass(len)?;
                    self.end_string()?;
                }
                Head::Chunks => {
                    while let Some(len) = self.chunk()? {
                        self.pass(len)?;
                        self.end_string()?;
                    }
                }
                Head::Aggregate(b'|', Some(0)) => continue,
                Head::Aggregate(kind, Some(count)) if count > 0 => {
                    let pairs = matches!(kind, b'%' | b'|');
                    let left = if pairs { count.saturating_mul(2).min(u64::MAX - 1) } else { count };
                    stack.push(if kind == b'|' { Level::attribute(left) } else { Level::of(left) });
                    continue;
                }
                Head::Aggregate(_, None) => {
                    stack.push(Level::stream(false));
                    continue;
                }
                Head::End => match stack.pop() {
                    Some(level) if level.is_stream() => {}
                    _ => return Err(broken()),
                },
                _ => {}
            }
            loop {
                let Some(level) = stack.last_mut() else { return Ok(()) };
                if !level.count_one() {
                    break;
                }
                let attribute = level.attribute;
                stack.pop();
                if attribute {
                    // The value it describes is still to come, or was asked not to be passed.
                    if stack.is_empty() {
                        return Ok(());
                    }
                    break;
                }
            }
        }
    }
}

impl<'a> From<&'a Payload> for Decoder<'a> {
    #[inline]
    fn from(payload: &'a Payload) -> Self {
        match payload {
            Payload::Small(small) => Decoder::new(small.as_slice()),
            Payload::Held(chain) => Decoder::over(chain.segments()),
        }
    }
}
