//! Heads of values, and tokens.

use super::{Decoder, broken};
use crate::error::ConversionError;
use crate::resp::number;
use crate::resp::stack::Level;
use crate::resp::token::{Str, Token};
use std::borrow::Cow;

/// The head of a value: its type byte and what its line says. Strings with a length are still unread.
#[derive(Debug)]
pub(in crate::resp) enum Head<'a> {
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

/// What stands where a length or a count does.
enum Count {
    Number(u64),
    /// `-1`
    Null,
    /// `?`
    Stream,
}

impl<'a> Decoder<'a> {
    /// The number of a line such as `64\r\n`.
    #[inline]
    fn count_line(&mut self) -> Result<Count, ConversionError> {
        if let Some((count, used)) = number::length_line(self.current) {
            self.current = &self.current[used..];
            return Ok(Count::Number(count as u64));
        }
        match &self.line()?[..] {
            b"?" => Ok(Count::Stream),
            b"-1" => Ok(Count::Null),
            digits => number::unsigned(digits).map(Count::Number).ok_or_else(broken),
        }
    }

    fn length(&mut self) -> Result<usize, ConversionError> {
        match self.count_line()? {
            Count::Number(len) => usize::try_from(len).map_err(|_| broken()),
            _ => Err(broken()),
        }
    }

    /// The next head, attributes included.
    #[inline]
    pub(super) fn any_head(&mut self) -> Result<Head<'a>, ConversionError> {
        let kind = self.byte()?;
        match kind {
            b'$' => match self.count_line()? {
                Count::Number(len) => Ok(Head::String(kind, usize::try_from(len).map_err(|_| broken())?)),
                Count::Null => Ok(Head::Null),
                Count::Stream => Ok(Head::Chunks),
            },
            b'*' | b'%' | b'~' | b'>' | b'|' => match self.count_line()? {
                Count::Number(count) => Ok(Head::Aggregate(kind, Some(count))),
                Count::Null if kind == b'*' => Ok(Head::Null),
                Count::Stream if kind != b'|' => Ok(Head::Aggregate(kind, None)),
                _ => Err(broken()),
            },
            b':' => Ok(Head::Integer(number::signed(&self.line()?).ok_or_else(broken)?)),
            b'+' | b'-' | b',' | b'(' => Ok(Head::Line(kind, self.line()?)),
            b'!' | b'=' => Ok(Head::String(kind, self.length()?)),
            b'_' => self.line().map(|_| Head::Null),
            b'#' => Ok(Head::Boolean(&self.line()?[..] == b"t")),
            b'.' => self.line().map(|_| Head::End),
            _ => Err(broken()),
        }
    }

    /// The next head after any attributes.
    #[inline]
    pub(in crate::resp) fn head(&mut self) -> Result<Head<'a>, ConversionError> {
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
    pub(in crate::resp) fn join_chunks(&mut self, out: &mut Vec<u8>) -> Result<(), ConversionError> {
        while let Some(len) = self.chunk()? {
            self.take_into(len, out)?;
            self.end_string()?;
        }
        Ok(())
    }

    /// The length of the next chunk; `None` at the end.
    pub(in crate::resp) fn chunk(&mut self) -> Result<Option<usize>, ConversionError> {
        if self.byte()? != b';' {
            return Err(broken());
        }
        match self.length()? {
            0 => Ok(None),
            len => Ok(Some(len)),
        }
    }

    /// The text of a string whose head was read.
    pub(in crate::resp) fn string(&mut self, len: usize) -> Result<Str<'a>, ConversionError> {
        let text = self.take(len)?;
        self.end_string()?;
        Ok(text)
    }

    /// The format and the text of a verbatim string whose head was read.
    pub(in crate::resp) fn verbatim(&mut self, len: usize) -> Result<([u8; 3], Str<'a>), ConversionError> {
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

    pub(in crate::resp) fn finish_token(&mut self, head: Head<'a>) -> Result<Token<'a>, ConversionError> {
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
}
