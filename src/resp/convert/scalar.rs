//! Numbers, truth, and nothing.

use super::{FromReply, mismatch, refused};
use crate::buf::{Glance, Payload};
use crate::error::Error;
use crate::resp::decoder::{Decoder, Head};
use crate::resp::number;

/// Any reply that says that it was done. Null is no such reply: a `SET … NX` that did not set answers null.
impl FromReply for () {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        if decoder.plain_ok() {
            return Ok(());
        }
        let mut ahead = decoder.clone();
        match ahead.head()? {
            head @ (Head::Line(b'-', _) | Head::String(b'!', _) | Head::Null | Head::End) => {
                Err(refused(&mut ahead, head, "()"))
            }
            Head::Line(..) | Head::Integer(_) | Head::Boolean(_) => {
                *decoder = ahead;
                Ok(())
            }
            _ => Ok(decoder.skip_value()?),
        }
    }

    #[inline(always)]
    fn from_payload(payload: Payload) -> Result<Self, Error> {
        match payload.glance() {
            Glance::Unknown => Self::from_reply(&mut Decoder::from(&payload)),
            _ => Ok(()),
        }
    }
}

/// Null is false: a `SET … NX` that did not set answers null, and one that did answers `OK`.
impl FromReply for bool {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        if decoder.plain_ok() {
            return Ok(true);
        }
        match decoder.head()? {
            Head::Boolean(value) => Ok(value),
            Head::Null => Ok(false),
            Head::Integer(0) => Ok(false),
            Head::Integer(1) => Ok(true),
            Head::Integer(_) => Err(mismatch("an integer other than 0 and 1", "bool")),
            Head::Line(b'+', line) if &line[..] == b"OK" => Ok(true),
            Head::String(b'$', len @ 1) => match decoder.string(len)?[..] {
                [b'0'] => Ok(false),
                [b'1'] => Ok(true),
                _ => Err(mismatch("a string other than 0 and 1", "bool")),
            },
            head => Err(refused(decoder, head, "bool")),
        }
    }
}

/// What an integer is read from.
enum Whole {
    Number(i64),
    /// Above `i64::MAX`.
    Large(u64),
}

/// An integer that is no short one in one piece: a text of digits, a whole double, a big number or a boolean may do.
#[inline(never)]
fn whole(decoder: &mut Decoder<'_>, wanted: &'static str) -> Result<Whole, Error> {
    let text = match decoder.head()? {
        Head::Integer(value) => return Ok(Whole::Number(value)),
        Head::Boolean(value) => return Ok(Whole::Number(i64::from(value))),
        Head::Line(b',', line) => return whole_double(number::double(&line).unwrap_or(f64::NAN), wanted),
        Head::Line(b'+' | b'(', line) => line,
        Head::String(b'$', len) => decoder.string(len)?,
        Head::String(b'=', len) => decoder.verbatim(len)?.1,
        Head::Chunks => {
            let mut joined = Vec::new();
            decoder.join_chunks(&mut joined)?;
            joined.into()
        }
        head => return Err(refused(decoder, head, wanted)),
    };
    if let Some(value) = number::signed(&text) {
        return Ok(Whole::Number(value));
    }
    let digits = text.strip_prefix(b"+").unwrap_or(&text);
    if let Some(value) = number::unsigned(digits) {
        return Ok(Whole::Large(value));
    }
    Err(match number::is_integer(&text) {
        true => out_of_range(wanted),
        false => mismatch("a string that is no integer", wanted),
    })
}

/// RESP2 sends the digits where RESP3 sends a double.
fn whole_double(value: f64, wanted: &'static str) -> Result<Whole, Error> {
    // Beyond 2^53 neighbours differ by more than one, and what was sent is no longer known.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Whole::Number(value as i64));
    }
    Err(mismatch("a double that is no exact integer", wanted))
}

#[cold]
fn out_of_range(wanted: &'static str) -> Error {
    mismatch("an integer out of range", wanted)
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl FromReply for $type {
            #[inline]
            fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
                let number = match decoder.plain_integer() {
                    Some(value) => Whole::Number(value),
                    None => whole(decoder, stringify!($type))?,
                };
                match number {
                    Whole::Number(value) => $type::try_from(value).map_err(|_| out_of_range(stringify!($type))),
                    Whole::Large(value) => $type::try_from(value).map_err(|_| out_of_range(stringify!($type))),
                }
            }

            #[inline(always)]
            fn from_payload(payload: Payload) -> Result<Self, Error> {
                match payload.glance() {
                    Glance::Integer(value) => {
                        $type::try_from(value).map_err(|_| out_of_range(stringify!($type)))
                    }
                    _ => Self::from_reply(&mut Decoder::from(&payload)),
                }
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, i128, isize, u16, u32, u64, u128, usize);

impl FromReply for u8 {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let number = match decoder.plain_integer() {
            Some(value) => Whole::Number(value),
            None => whole(decoder, "u8")?,
        };
        match number {
            Whole::Number(value) => u8::try_from(value).map_err(|_| out_of_range("u8")),
            Whole::Large(_) => Err(out_of_range("u8")),
        }
    }

    /// A list of bytes is a string.
    fn list_from_reply(decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Error> {
        Ok(super::text::string(decoder, "Vec<u8>")?.into_owned())
    }

    #[inline]
    fn list_from_payload(mut payload: Payload) -> Result<Vec<Self>, Error> {
        match super::text::take_block(&mut payload) {
            Some(bytes) => Ok(bytes),
            None => Self::list_from_reply(&mut Decoder::from(&payload)),
        }
    }
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl FromReply for $type {
            fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
                let text = match decoder.head()? {
                    Head::Integer(value) => return Ok(value as $type),
                    Head::Boolean(value) => return Ok(if value { 1.0 } else { 0.0 }),
                    Head::Line(b',' | b'(' | b'+', line) => line,
                    Head::String(b'$', len) => decoder.string(len)?,
                    Head::String(b'=', len) => decoder.verbatim(len)?.1,
                    Head::Chunks => {
                        let mut joined = Vec::new();
                        decoder.join_chunks(&mut joined)?;
                        joined.into()
                    }
                    head => return Err(refused(decoder, head, stringify!($type))),
                };
                // The text itself is parsed, since rounding twice (to f64, to f32) may differ from rounding once.
                let parsed = std::str::from_utf8(&text).ok().filter(|_| number::double(&text).is_some());
                match parsed.map(|text| text.trim_start_matches(['-', '+'])) {
                    Some(plain) if plain.eq_ignore_ascii_case("nan") => Ok($type::NAN),
                    Some(_) => std::str::from_utf8(&text)
                        .ok()
                        .and_then(|text| text.parse().ok())
                        .ok_or_else(|| mismatch("a string that is no number", stringify!($type))),
                    None => Err(mismatch("a string that is no number", stringify!($type))),
                }
            }
        }
    )*};
}

floats!(f32, f64);
