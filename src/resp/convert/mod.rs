//! Replies to Rust types.
//!
//! A type reads itself from a [`Decoder`] over the bytes of the reply; nothing stands between. The same Rust value comes
//! out of the RESP2 and the RESP3 shape of a reply (CONN-023): a map or a flat array of pairs, a set or an array, a
//! double or a bulk string, a boolean or an integer. A server error anywhere is [`Error::Server`], unless the type has a
//! place for it: `Result<T, Error>`, [`Value`](super::Value) and [`Reply`](super::Reply) as elements.

mod list;
mod map;
mod scalar;
mod text;
mod tuple;
mod wrap;

use super::decoder::{Decoder, Head};
use crate::buf::Payload;
use crate::error::{ConversionError, Error, ServerError};

/// A type that a reply can become.
///
/// ```
/// use respiral::resp::{Decoder, FromReply};
/// use std::collections::BTreeMap;
///
/// let map = BTreeMap::<String, u32>::from_reply(&mut Decoder::new(b"*2\r\n$1\r\na\r\n:1\r\n"))?;
/// assert_eq!(map["a"], 1);
///
/// // A type of your own reads its parts in order.
/// struct Point { x: f64, y: f64 }
/// impl FromReply for Point {
///     fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, respiral::Error> {
///         let (x, y) = FromReply::from_reply(decoder)?;
///         Ok(Point { x, y })
///     }
/// }
/// let points = Vec::<Point>::from_reply(&mut Decoder::new(b"*1\r\n*2\r\n,1.5\r\n$1\r\n2\r\n"))?;
/// assert_eq!((points[0].x, points[0].y), (1.5, 2.0));
/// # Ok::<(), respiral::Error>(())
/// ```
///
/// | type | becomes it |
/// |---|---|
/// | `()` | any reply that is neither an error nor null |
/// | `bool` | 0, 1, true, false, `OK`, strings of `0` and `1`; null is false |
/// | integers | integers, digits, whole doubles, big numbers and booleans, in range |
/// | `f32`, `f64` | doubles, integers, big numbers and their texts |
/// | `String`, `Box<str>`, `Vec<u8>`, `Box<[u8]>`, `[u8; N]`, `Bytes`, `Blob` | strings, and numbers as their text |
/// | `Option<T>` | null is `None` |
/// | `Vec<T>`, `Box<[T]>`, `[T; N]`, sets | arrays, sets, pushes; maps as keys and values in turn |
/// | maps, `Vec<(K, V)>` | maps, arrays of keys and values in turn, arrays of pairs |
/// | tuples | arrays of that length; for two also a map with one pair |
/// | `Result<T, Error>` | whatever `T` is; a failed element fails alone |
/// | `Value`, `Reply` | anything |
#[diagnostic::on_unimplemented(
    message = "a reply cannot become `{Self}`",
    note = "say what the reply becomes: `let v: Option<String> = …`, or `let () = …` to ignore it",
    note = "or implement `respiral::FromReply` for a type of your own"
)]
pub trait FromReply: Sized {
    /// Reads the next value. After a success the decoder stands behind the value; after an error, anywhere inside.
    ///
    /// # Errors
    /// [`Error::Server`] for an error reply, [`Error::Conversion`] for one that does not fit.
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error>;

    /// Reads a whole reply, and may keep its bytes.
    ///
    /// # Errors
    /// See [`from_reply`](Self::from_reply).
    #[inline]
    fn from_payload(payload: Payload) -> Result<Self, Error> {
        Self::from_reply(&mut Decoder::from(&payload))
    }

    /// Reads a `Vec` of this type. Bytes are a string then, and pairs may lie flat: what specialization would say.
    #[doc(hidden)]
    fn list_from_reply(decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Error> {
        list::read(decoder)
    }

    /// Reads a whole reply as a `Vec` of this type: bytes may be taken where they lie.
    #[doc(hidden)]
    #[inline]
    fn list_from_payload(payload: Payload) -> Result<Vec<Self>, Error> {
        Self::list_from_reply(&mut Decoder::from(&payload))
    }
}

impl From<ConversionError> for Error {
    fn from(error: ConversionError) -> Self {
        Error::Conversion(Box::new(error))
    }
}

/// `found` does not fit `wanted`.
#[cold]
pub(super) fn mismatch(found: &'static str, wanted: &'static str) -> Error {
    ConversionError::new(found, wanted).into()
}

/// Why a value with this head does not fit: it is an error of the server, or of another type.
#[cold]
pub(super) fn refused(decoder: &mut Decoder<'_>, head: Head<'_>, wanted: &'static str) -> Error {
    let text = match head {
        Head::Line(b'-', line) => line.into_owned(),
        Head::String(b'!', len) => match decoder.string(len) {
            Ok(text) => text.into_owned(),
            Err(error) => return error.into(),
        },
        head => {
            let found = match head {
                Head::Line(b'+', _) => "a simple string",
                Head::Line(b',', _) => "a double",
                Head::Line(..) => "a big number",
                Head::Integer(_) => "an integer",
                Head::Boolean(_) => "a boolean",
                Head::Null => "null",
                Head::String(b'=', _) => "a verbatim string",
                Head::String(..) | Head::Chunks => "a bulk string",
                Head::Aggregate(b'*', _) => "an array",
                Head::Aggregate(b'%', _) => "a map",
                Head::Aggregate(b'~', _) => "a set",
                Head::Aggregate(..) => "a push",
                Head::End => "the end of an aggregate",
            };
            return mismatch(found, wanted);
        }
    };
    Error::Server(Box::new(ServerError::parse(&String::from_utf8_lossy(&text), None)))
}

/// The error, when the next value is one; else the decoder has not moved.
#[inline]
pub(super) fn server_error(decoder: &mut Decoder<'_>) -> Result<Option<Error>, ConversionError> {
    let mut ahead = decoder.clone();
    match ahead.head()? {
        head @ (Head::Line(b'-', _) | Head::String(b'!', _)) => {
            let error = refused(&mut ahead, head, "");
            *decoder = ahead;
            Ok(Some(error))
        }
        _ => Ok(None),
    }
}
