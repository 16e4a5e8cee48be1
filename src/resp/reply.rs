//! Replies kept where they arrived: [`Reply`] for any, [`Blob`] for a string, [`Verbatim`] for a text with a format.

use super::convert::{FromReply, refused, server_error};
use super::decoder::{Decoder, Head};
use super::value::Value;
use crate::buf::{Glance, HOLD_FROM, Parts, Payload, Segment, Spares};
use crate::error::{ConversionError, Error};
use std::fmt;

/// The next `len` bytes of a decoder, for a part of a larger reply: held in place or, below [`HOLD_FROM`], copied. It goes
/// into a spare node where the whole reply has one.
fn keep(decoder: &mut Decoder<'_>, len: usize, glance: Glance) -> Result<Payload, ConversionError> {
    let home = decoder.home();
    if len >= HOLD_FROM
        && let Some(mut chain) = decoder.hold(len)
    {
        return Ok(match home {
            Some(spares) => spares.held(&mut chain, glance),
            None => Payload::part(chain, glance),
        });
    }
    let bytes = decoder.take(len)?;
    Ok(copy(home, &bytes, glance))
}

fn copy(home: Option<&Spares>, bytes: &[u8], glance: Glance) -> Payload {
    match home {
        Some(spares) => spares.copy_of(bytes, glance),
        None => Payload::part(Segment::copy_of(bytes).into(), glance),
    }
}

/// The pieces in which a string lies, in order. See [`Blob::chunks`].
#[derive(Clone)]
pub struct Chunks<'a> {
    first: Option<&'a [u8]>,
    segments: std::slice::Iter<'a, Segment>,
    skip: usize,
    left: usize,
}

impl<'a> Chunks<'a> {
    fn of_slice(bytes: &'a [u8]) -> Self {
        Self { first: Some(bytes), segments: [].iter(), skip: 0, left: bytes.len() }
    }

    fn of_segments(segments: &'a [Segment], skip: usize, left: usize) -> Self {
        Self { first: None, segments: segments.iter(), skip, left }
    }

    fn of_parts(parts: Parts<'a>, start: usize, len: usize) -> Self {
        match parts {
            Parts::Whole(bytes) => {
                Chunks::of_slice(bytes.get(start..start.saturating_add(len)).unwrap_or_default())
            }
            Parts::Segments(segments) => Chunks::of_segments(segments, start, len),
        }
    }
}

impl fmt::Debug for Chunks<'_> {
    /// The length only: the content is the user's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunks({} bytes)", self.left)
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while self.left > 0 {
            let piece = match self.first.take() {
                Some(first) => first,
                None => self.segments.next()?,
            };
            let Some(piece) = piece.get(self.skip..).filter(|piece| !piece.is_empty()) else {
                self.skip -= piece.len();
                continue;
            };
            self.skip = 0;
            let piece = &piece[..piece.len().min(self.left)];
            self.left -= piece.len();
            return Some(piece);
        }
        None
    }
}

/// A string reply in place: no copy and no allocation when it is the whole reply.
///
/// It keeps the memory that it arrived in, so use it and drop it; what must live long or cross threads is copied with
/// [`to_vec`](Self::to_vec) or [`to_bytes`](Self::to_bytes).
pub struct Blob(Payload);

impl Blob {
    fn of_text(text: Segment) -> Self {
        Blob(Payload::part(text.into(), Glance::Bare))
    }

    /// Where the string lies in the payload.
    fn extent(&self) -> (usize, usize) {
        let all = self.0.len();
        match self.0.glance() {
            Glance::Text(start) => (start as usize, all.saturating_sub(start as usize + 2)),
            _ => (0, all),
        }
    }

    /// Bytes of the string.
    pub fn len(&self) -> usize {
        self.extent().1
    }

    /// True without any byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes when they lie in one piece; a string longer than a receive buffer does not.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        if let Parts::Whole(bytes) = self.0.parts() {
            let (start, len) = self.extent();
            return bytes.get(start..start + len);
        }
        let mut chunks = self.chunks();
        let first = chunks.next().unwrap_or_default();
        (first.len() == self.len()).then_some(first)
    }

    /// The pieces in order; none is empty.
    pub fn chunks(&self) -> Chunks<'_> {
        let (start, len) = self.extent();
        Chunks::of_parts(self.0.parts(), start, len)
    }

    /// A copy.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.len());
        self.chunks().for_each(|chunk| copy.extend_from_slice(chunk));
        copy
    }

    /// A copy that can be shared and sent.
    pub fn to_bytes(&self) -> bytes::Bytes {
        self.to_vec().into()
    }
}

impl PartialEq<[u8]> for Blob {
    fn eq(&self, other: &[u8]) -> bool {
        let mut rest = other;
        self.len() == other.len()
            && self.chunks().all(|chunk| match rest.split_at_checked(chunk.len()) {
                Some((now, later)) => {
                    rest = later;
                    now == chunk
                }
                None => false,
            })
    }
}

impl fmt::Debug for Blob {
    /// The length only: the content is the user's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.len())
    }
}

/// The string in front: the length of a body at which the decoder stands then, or a text that had to be made.
fn string_extent(decoder: &mut Decoder<'_>) -> Result<Result<usize, Vec<u8>>, Error> {
    Ok(match decoder.head()? {
        Head::String(b'$', len) => Ok(len),
        Head::String(b'=', len) if len >= 4 => {
            decoder.pass(4)?;
            Ok(len - 4)
        }
        Head::Line(b'+' | b',' | b'(', line) => Err(line.into_owned()),
        Head::Integer(value) => Err(itoa::Buffer::new().format(value).into()),
        Head::Boolean(value) => Err(vec![b'0' + u8::from(value)]),
        Head::Chunks => {
            let mut joined = Vec::new();
            decoder.join_chunks(&mut joined)?;
            Err(joined)
        }
        head => return Err(refused(decoder, head, "Blob")),
    })
}

impl FromReply for Blob {
    #[inline]
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        match decoder.plain_string_below(HOLD_FROM) {
            Some(text) => Ok(Blob(copy(decoder.home(), text, Glance::Bare))),
            None => Self::any_part(decoder),
        }
    }

    #[inline]
    fn from_payload(payload: Payload) -> Result<Self, Error> {
        match payload.glance() {
            Glance::Text(_) => Ok(Blob(payload)),
            _ => Self::find(payload),
        }
    }
}

impl Blob {
    /// A part of a larger reply that is long, cut, or no bulk string.
    #[inline(never)]
    fn any_part(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        match string_extent(decoder)? {
            Ok(len) => {
                let part = keep(decoder, len, Glance::Bare)?;
                decoder.end_string()?;
                Ok(Blob(part))
            }
            Err(joined) => Ok(Blob::of_text(Segment::from(joined))),
        }
    }

    /// A string that is cut, or no bulk string.
    #[inline(never)]
    fn find(mut payload: Payload) -> Result<Self, Error> {
        let mut decoder = Decoder::from(&payload);
        match string_extent(&mut decoder)? {
            Ok(len) => {
                let start = decoder.position();
                if start.checked_add(len).and_then(|end| end.checked_add(2)) != Some(payload.len()) {
                    return Err(ConversionError::new("not a whole reply", "Blob").into());
                }
                payload.set_glance(Glance::Text(start as u64));
                Ok(Blob(payload))
            }
            Err(joined) => Ok(Blob::of_text(Segment::from(joined))),
        }
    }
}

/// Any reply, kept as it arrived and converted when it is asked for; no copy and no allocation.
///
/// Like [`Blob`] it keeps the memory that it arrived in.
pub struct Reply(Payload);

impl Reply {
    /// The string, when the reply is one and lies in one piece.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        let mut decoder = self.decoder();
        let text = match decoder.head().ok()? {
            Head::Line(b'+', line) => line,
            Head::String(b'$', len) => decoder.take(len).ok()?,
            Head::String(b'=', len) => decoder.verbatim(len).ok()?.1,
            _ => return None,
        };
        match text {
            std::borrow::Cow::Borrowed(bytes) => Some(bytes),
            std::borrow::Cow::Owned(_) => None,
        }
    }

    /// The pieces of the string in order; nothing when the reply is no string (`$`, `=`) or is a streamed one, which
    /// [`parse`](Self::parse) joins.
    pub fn chunks(&self) -> Chunks<'_> {
        let mut decoder = self.decoder();
        let (start, len) = match decoder.head() {
            Ok(Head::String(b'$', len)) => (decoder.position(), len),
            Ok(Head::String(b'=', len)) if len >= 4 => (decoder.position() + 4, len - 4),
            Ok(Head::Line(b'+', std::borrow::Cow::Borrowed(line))) => return Chunks::of_slice(line),
            _ => (0, 0),
        };
        Chunks::of_parts(self.0.parts(), start, len)
    }

    /// True for the null of either protocol.
    pub fn is_null(&self) -> bool {
        self.decoder().is_null()
    }

    /// Converts; the reply stays.
    ///
    /// # Errors
    /// [`Error::Conversion`] when the reply does not fit.
    pub fn parse<T: FromReply>(&self) -> Result<T, Error> {
        T::from_reply(&mut self.decoder())
    }

    /// As an owned tree.
    ///
    /// # Errors
    /// None for a reply that a client handed out.
    pub fn value(&self) -> Result<Value, Error> {
        Ok(Value::decode(&mut self.decoder())?)
    }

    /// A decoder at its beginning.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::from(&self.0)
    }
}

impl fmt::Debug for Reply {
    /// The length only: the content is the user's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply({} bytes)", self.decoder().remaining())
    }
}

impl FromReply for Reply {
    /// An element of a larger reply: held in place from 1 KiB up, else copied. An error is kept as a reply.
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let mut ahead = decoder.clone();
        ahead.skip_value()?;
        let len = ahead.position() - decoder.position();
        Ok(Reply(keep(decoder, len, Glance::Unknown)?))
    }

    #[inline]
    fn from_payload(payload: Payload) -> Result<Self, Error> {
        let mut decoder = Decoder::from(&payload);
        if decoder.may_be_error()
            && let Some(error) = server_error(&mut decoder)?
        {
            return Err(error);
        }
        Ok(Reply(payload))
    }
}

/// A text and what it is written in; RESP2 has no verbatim strings, so any other string is `txt`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verbatim {
    /// `txt`, `mkd`, or another three letters.
    pub format: [u8; 3],
    /// The text, without its format.
    pub text: String,
}

impl FromReply for Verbatim {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let mut ahead = decoder.clone();
        if let Head::String(b'=', len) = ahead.head()? {
            let (format, text) = ahead.verbatim(len)?;
            *decoder = ahead;
            let text = String::from_utf8(text.into_owned())
                .map_err(|_| ConversionError::new("text that is not UTF-8", "Verbatim"))?;
            return Ok(Verbatim { format, text });
        }
        Ok(Verbatim { format: *b"txt", text: String::from_reply(decoder)? })
    }
}
