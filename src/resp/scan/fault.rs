//! What is wrong with the bytes, in words: types and limits, never content.

use crate::error::ProtocolError;

#[cold]
pub(super) fn unexpected(byte: u8, place: &str) -> ProtocolError {
    if byte.is_ascii_graphic() {
        ProtocolError::new(format!("unexpected type byte '{}' {place}", char::from(byte)))
    } else {
        ProtocolError::new(format!("unexpected type byte 0x{byte:02x} {place}"))
    }
}

#[cold]
pub(super) fn malformed(kind: u8) -> ProtocolError {
    ProtocolError::new(match kind {
        b':' => "an integer ':' that is none or is out of range",
        b'_' => "a null '_' with content",
        b'#' => "a boolean '#' that is neither 't' nor 'f'",
        b',' => "a double ',' that is none",
        b'(' => "a big number '(' that is none",
        b'$' => "a bulk string '$' with an invalid length",
        b'!' => "a blob error '!' with an invalid length",
        b'=' => "a verbatim string '=' with an invalid length",
        b';' => "a chunk ';' with an invalid length",
        b'*' => "an array '*' with an invalid length",
        b'%' => "a map '%' with an invalid length",
        b'~' => "a set '~' with an invalid length",
        b'>' => "a push '>' with an invalid length",
        b'|' => "an attribute '|' with an invalid length",
        _ => "an end '.' with content",
    })
}

#[cold]
pub(super) fn over(what: &str, limit: usize) -> ProtocolError {
    ProtocolError::new(format!("the reply exceeds the {what} limit of {limit}"))
}
