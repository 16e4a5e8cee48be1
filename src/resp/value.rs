//! Any reply as an owned tree.

use super::decoder::{Decoder, Head};
use super::number;
use crate::error::{ConversionError, ServerError};

/// One reply of any type, owned.
///
/// Attributes are dropped ([`Decoder::attribute`] reads them), streamed forms equal their fixed twins, and a blob error
/// is an [`Value::Error`] like a simple one. Decoding does not recurse; dropping, cloning and comparing recurse once per
/// level, of which a reply has at most [`Limits::depth_max`](super::Limits::depth_max).
///
/// ```
/// use respiral::resp::{Decoder, Value};
/// let value = Value::decode(&mut Decoder::new(b"%1\r\n+a\r\n:1\r\n"))?;
/// assert_eq!(value, Value::Map(vec![(Value::Simple("a".into()), Value::Integer(1))]));
/// # Ok::<(), respiral::error::ConversionError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    Null,
    /// A short text such as `OK`.
    Simple(Box<str>),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// An error inside of a reply.
    Error(Box<ServerError>),
    /// A whole number.
    Integer(i64),
    /// A floating point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// A whole number of any size: digits with an optional sign.
    BigNumber(Box<str>),
    /// A text with its format.
    Verbatim {
        /// `txt` or `mkd`.
        format: [u8; 3],
        /// The text alone.
        text: Vec<u8>,
    },
    /// Elements in order.
    Array(Vec<Value>),
    /// Keys and values in the order received.
    Map(Vec<(Value, Value)>),
    /// Distinct elements in the order received.
    Set(Vec<Value>),
    /// Out-of-band data.
    Push(Vec<Value>),
}

/// An aggregate that is being filled. A map's keys and values alternate.
struct Open {
    kind: u8,
    left: Option<u64>,
    items: Vec<Value>,
}

impl Open {
    fn close(self) -> Value {
        match self.kind {
            b'*' => Value::Array(self.items),
            b'~' => Value::Set(self.items),
            b'%' => {
                let mut items = self.items.into_iter();
                let mut pairs = Vec::with_capacity(items.len() / 2);
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
            _ => Value::Push(self.items),
        }
    }
}

/// Depth beyond which unvalidated bytes are refused, so that dropping the tree stays safe.
const DEPTH_MAX: usize = super::Limits::DEPTH_CEILING;

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

impl Value {
    /// Reads the next value; errors become [`Value::Error`].
    ///
    /// # Errors
    /// See [`Decoder::token`].
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Value, ConversionError> {
        let broken = || ConversionError::new("not a whole reply", "Value");
        let mut stack: Vec<Open> = Vec::new();
        loop {
            let mut value = match decoder.head()? {
                Head::Line(b'+', line) => Value::Simple(text(&line)),
                Head::Line(b'-', line) => Value::Error(Box::new(ServerError::parse(&text(&line), None))),
                Head::Line(b',', line) => Value::Double(number::double(&line).ok_or_else(broken)?),
                Head::Line(_, line) => Value::BigNumber(text(&line)),
                Head::Integer(value) => Value::Integer(value),
                Head::Boolean(value) => Value::Boolean(value),
                Head::Null => Value::Null,
                Head::String(b'$', len) => Value::Bulk(decoder.string(len)?.into_owned()),
                Head::String(b'!', len) => {
                    Value::Error(Box::new(ServerError::parse(&text(&decoder.string(len)?), None)))
                }
                Head::String(_, len) => {
                    let (format, text) = decoder.verbatim(len)?;
                    Value::Verbatim { format, text: text.into_owned() }
                }
                Head::Chunks => {
                    let mut joined = Vec::new();
                    decoder.join_chunks(&mut joined)?;
                    Value::Bulk(joined)
                }
                Head::Aggregate(kind, count) => {
                    if stack.len() >= DEPTH_MAX {
                        return Err(ConversionError::new("nested too deeply", "Value"));
                    }
                    let left = match (kind, count) {
                        (b'%', Some(pairs)) => Some(pairs.saturating_mul(2)),
                        (_, count) => count,
                    };
                    // The frame is whole, so its elements are there, of three bytes each or more.
                    let capacity = left.unwrap_or(0).min(decoder.remaining() as u64 / 3) as usize;
                    let open = Open { kind, left, items: Vec::with_capacity(capacity) };
                    if left != Some(0) {
                        stack.push(open);
                        continue;
                    }
                    open.close()
                }
                Head::End => match stack.pop() {
                    Some(open) if open.left.is_none() => open.close(),
                    _ => return Err(broken()),
                },
            };
            loop {
                let Some(open) = stack.last_mut() else { return Ok(value) };
                open.items.push(value);
                match &mut open.left {
                    None => break,
                    Some(left) => {
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                    }
                }
                let Some(open) = stack.pop() else { return Err(broken()) };
                value = open.close();
            }
        }
    }

    /// True for [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The bytes of a string of any kind.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(text) => Some(text.as_bytes()),
            Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The text of a string of any kind, when it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }
}
