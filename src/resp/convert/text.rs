//! Strings.

use super::{FromReply, mismatch, refused};
use crate::buf::{Parts, Payload};
use crate::error::Error;
use crate::resp::decoder::{Decoder, Head};
use crate::resp::number;
use crate::resp::token::Str;

/// The text of a string, or of a number as it stands on the wire: RESP2 sends the same text in a bulk string.
#[inline]
pub(super) fn string<'a>(decoder: &mut Decoder<'a>, wanted: &'static str) -> Result<Str<'a>, Error> {
    match decoder.plain_string() {
        Some(text) => Ok(Str::Borrowed(text)),
        None => any_string(decoder, wanted),
    }
}

#[inline(never)]
fn any_string<'a>(decoder: &mut Decoder<'a>, wanted: &'static str) -> Result<Str<'a>, Error> {
    match decoder.head()? {
        Head::String(b'$', len) => Ok(decoder.string(len)?),
        Head::String(b'=', len) => Ok(decoder.verbatim(len)?.1),
        Head::Line(b'+' | b',' | b'(', line) => Ok(line),
        Head::Integer(value) => Ok(Str::Owned(itoa::Buffer::new().format(value).into())),
        Head::Boolean(value) => Ok(Str::Borrowed(if value { b"1" } else { b"0" })),
        Head::Chunks => {
            let mut joined = Vec::new();
            decoder.join_chunks(&mut joined)?;
            Ok(Str::Owned(joined))
        }
        head => Err(refused(decoder, head, wanted)),
    }
}

/// The bytes of a long bulk string, when it was received into memory of its own and nobody else refers to that: the reply is
/// then its head and that block. After a `None` the payload is as it was.
#[inline]
pub(super) fn take_block(payload: &mut Payload) -> Option<Vec<u8>> {
    let Parts::Segments([head, block]) = payload.parts() else { return None };
    let (len, used) = number::length_line(head.strip_prefix(b"$")?)?;
    if (1 + used, len + 2) != (head.len(), block.len()) {
        return None;
    }
    let mut bytes = payload.take_last()?;
    bytes.truncate(len);
    Some(bytes)
}

/// UTF-8 only; other bytes are a conversion error, so read them as `Vec<u8>`.
impl FromReply for String {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        // Copied, then checked: the check is faster over aligned memory.
        checked(string(decoder, "String")?.into_owned())
    }

    #[inline]
    fn from_payload(mut payload: Payload) -> Result<Self, Error> {
        match take_block(&mut payload) {
            Some(text) => checked(text),
            None => Self::from_reply(&mut Decoder::from(&payload)),
        }
    }
}

fn checked(text: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(text).map_err(|_| mismatch("a string that is not UTF-8", "String"))
}

impl FromReply for Box<str> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let text = string(decoder, "Box<str>")?;
        match std::str::from_utf8(&text) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(mismatch("a string that is not UTF-8", "Box<str>")),
        }
    }
}

/// Never in place, since it may leave the thread and live long: a copy, or the memory that a long one was received into.
impl FromReply for bytes::Bytes {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(match string(decoder, "Bytes")? {
            Str::Borrowed(text) => bytes::Bytes::copy_from_slice(text),
            Str::Owned(text) => text.into(),
        })
    }

    #[inline]
    fn from_payload(mut payload: Payload) -> Result<Self, Error> {
        match take_block(&mut payload) {
            Some(bytes) => Ok(bytes.into()),
            None => Self::from_reply(&mut Decoder::from(&payload)),
        }
    }
}
