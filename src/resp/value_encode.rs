//! A [`Value`] as bytes: the server's direction, for test servers and round trips.

use super::value::Value;
use crate::error::ServerError;
use std::slice::Iter;

/// What is left to write of an open aggregate.
enum Open<'v> {
    Items(Iter<'v, Value>),
    Pairs(Iter<'v, (Value, Value)>, Option<&'v Value>),
}

impl<'v> Open<'v> {
    fn next(&mut self) -> Option<&'v Value> {
        match self {
            Open::Items(items) => items.next(),
            Open::Pairs(pairs, value) => match value.take() {
                Some(value) => Some(value),
                None => pairs.next().map(|(key, later)| {
                    *value = Some(later);
                    key
                }),
            },
        }
    }
}

impl Value {
    /// Appends the value to `out` as a server would: RESP3, or the RESP2 form of it (maps as flat arrays, sets and
    /// pushes as arrays, doubles, big numbers and verbatim texts as bulk strings, booleans as 0 and 1).
    ///
    /// ```
    /// use respiral::resp::Value;
    /// let mut out = Vec::new();
    /// Value::Boolean(true).encode(&mut out, false);
    /// Value::Boolean(true).encode(&mut out, true);
    /// assert_eq!(out, b":1\r\n#t\r\n");
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>, resp3: bool) {
        let mut stack = Vec::new();
        let mut next = Some(self);
        loop {
            if let Some(value) = next
                && let Some(open) = value.encode_head(out, resp3)
            {
                stack.push(open);
            }
            let Some(open) = stack.last_mut() else { return };
            next = open.next();
            if next.is_none() {
                stack.pop();
            }
        }
    }

    /// Writes all of a value without children, or the head of an aggregate, whose content it returns.
    fn encode_head(&self, out: &mut Vec<u8>, resp3: bool) -> Option<Open<'_>> {
        match self {
            Value::Null => out.extend_from_slice(if resp3 { b"_\r\n" } else { b"$-1\r\n" }),
            Value::Simple(text) => line(out, b'+', text),
            Value::Error(error) => encode_error(error, out, resp3),
            Value::Integer(value) => line(out, b':', itoa::Buffer::new().format(*value)),
            Value::Double(value) if resp3 => line(out, b',', &double_text(*value)),
            Value::Double(value) => bulk(out, b'$', double_text(*value).as_bytes()),
            Value::Boolean(value) if resp3 => line(out, b'#', if *value { "t" } else { "f" }),
            Value::Boolean(value) => line(out, b':', if *value { "1" } else { "0" }),
            Value::BigNumber(digits) if resp3 => line(out, b'(', digits),
            Value::BigNumber(digits) => bulk(out, b'$', digits.as_bytes()),
            Value::Bulk(bytes) => bulk(out, b'$', bytes),
            Value::Verbatim { format, text } if resp3 => {
                count(out, b'=', text.len() + 4);
                out.extend_from_slice(format);
                out.push(b':');
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Value::Verbatim { text, .. } => bulk(out, b'$', text),
            Value::Array(items) => return Some(open(out, b'*', items)),
            Value::Set(items) => return Some(open(out, if resp3 { b'~' } else { b'*' }, items)),
            Value::Push(items) => return Some(open(out, if resp3 { b'>' } else { b'*' }, items)),
            Value::Map(pairs) => {
                match resp3 {
                    true => count(out, b'%', pairs.len()),
                    false => count(out, b'*', pairs.len() * 2),
                }
                return Some(Open::Pairs(pairs.iter(), None));
            }
        }
        None
    }
}

fn open<'v>(out: &mut Vec<u8>, kind: u8, items: &'v [Value]) -> Open<'v> {
    count(out, kind, items.len());
    Open::Items(items.iter())
}

fn encode_error(error: &ServerError, out: &mut Vec<u8>, resp3: bool) {
    let text = error.message();
    if resp3 && text.contains(['\r', '\n']) {
        bulk(out, b'!', text.as_bytes());
    } else {
        line(out, b'-', text);
    }
}

/// A line; line ends inside the text become spaces, as servers do.
fn line(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

fn count(out: &mut Vec<u8>, kind: u8, count: usize) {
    line(out, kind, itoa::Buffer::new().format(count));
}

fn bulk(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    count(out, kind, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn double_text(value: f64) -> String {
    if value.is_nan() {
        "nan".into()
    } else if value.is_infinite() {
        if value > 0.0 { "inf".into() } else { "-inf".into() }
    } else {
        format!("{value:e}")
    }
}
