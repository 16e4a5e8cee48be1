//! What a [`Decoder`](super::Decoder) reads: one token at a time.

use std::borrow::Cow;

/// The bytes of a string: borrowed where they lie in one piece, joined where they do not.
pub type Str<'a> = Cow<'a, [u8]>;

/// A value without children, or the head of an aggregate.
///
/// Of an aggregate, `Some(n)` says how many elements (for [`Token::Map`], pairs) follow; `None` is a streamed one, whose
/// elements follow until [`Token::End`]. Attributes are skipped.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Token<'a> {
    /// `+`
    Simple(Str<'a>),
    /// `-`
    Error(Str<'a>),
    /// `:`
    Integer(i64),
    /// `$`, a streamed string included.
    Bulk(Str<'a>),
    /// `_`, and the `$-1` and `*-1` of RESP2.
    Null,
    /// `,`
    Double(f64),
    /// `#`
    Boolean(bool),
    /// `(`: digits with an optional sign.
    BigNumber(Str<'a>),
    /// `!`
    BlobError(Str<'a>),
    /// `=`
    Verbatim {
        /// `txt`, `mkd`, or another three letters.
        format: [u8; 3],
        /// The text, without the format and the colon.
        text: Str<'a>,
    },
    /// `*`
    Array(Option<usize>),
    /// `%`
    Map(Option<usize>),
    /// `~`
    Set(Option<usize>),
    /// `>`
    Push(Option<usize>),
    /// `.`: the end of a streamed aggregate.
    End,
}

impl Token<'_> {
    /// What errors call it.
    pub fn name(&self) -> &'static str {
        match self {
            Token::Simple(_) => "a simple string",
            Token::Error(_) | Token::BlobError(_) => "an error",
            Token::Integer(_) => "an integer",
            Token::Bulk(_) => "a bulk string",
            Token::Null => "null",
            Token::Double(_) => "a double",
            Token::Boolean(_) => "a boolean",
            Token::BigNumber(_) => "a big number",
            Token::Verbatim { .. } => "a verbatim string",
            Token::Array(_) => "an array",
            Token::Map(_) => "a map",
            Token::Set(_) => "a set",
            Token::Push(_) => "a push",
            Token::End => "the end of an aggregate",
        }
    }
}
