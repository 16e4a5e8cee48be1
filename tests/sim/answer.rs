//! What a server means to say, its bytes in either protocol, and what a client must make of it.

use crate::rng::Rng;
use respiral::Value;
use respiral::error::ServerError;

#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    Null,
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Double(f64),
    Boolean(bool),
    BigNumber(String),
    Verbatim(String),
    Array(Vec<Answer>),
    Map(Vec<(Answer, Answer)>),
    Set(Vec<Answer>),
}

/// How a server speaks to one client.
pub struct Dialect<'r> {
    pub resp3: bool,
    /// Of a thousand RESP3 values so many are said in another way that means the same: streamed, or with an attribute.
    pub twists: u64,
    pub rng: &'r mut Rng,
}

impl Dialect<'_> {
    fn encode_all<'a>(
        &mut self,
        kind: char,
        count: usize,
        items: impl IntoIterator<Item = &'a Answer>,
        streamed: bool,
        out: &mut Vec<u8>,
    ) {
        line(out, &if streamed { format!("{kind}?") } else { format!("{kind}{count}") });
        items.into_iter().for_each(|item| item.encode(self, out));
        if streamed {
            line(out, ".");
        }
    }
}

fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

impl Answer {
    /// Every answer tells its call's number, so that none can be taken for another's.
    pub fn to(id: u64, answer: Answer) -> Self {
        Answer::Array(vec![Answer::Simple(id.to_string()), answer])
    }

    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Answer::Bulk(text.into())
    }

    /// RESP2 has no word for these types; they are told in others.
    fn plain(&self) -> Option<Answer> {
        Some(match self {
            Answer::Double(number) => Answer::text(number.to_string()),
            Answer::Boolean(yes) => Answer::Integer((*yes).into()),
            Answer::BigNumber(digits) => Answer::text(digits.as_bytes()),
            Answer::Verbatim(text) => Answer::text(text.as_bytes()),
            Answer::Map(pairs) => {
                Answer::Array(pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect())
            }
            Answer::Set(items) => Answer::Array(items.clone()),
            _ => return None,
        })
    }

    /// Its bytes.
    pub fn encode(&self, dialect: &mut Dialect<'_>, out: &mut Vec<u8>) {
        if !dialect.resp3
            && let Some(plain) = self.plain()
        {
            return plain.encode(dialect, out);
        }
        let twisted = dialect.resp3 && dialect.rng.per_mille(dialect.twists);
        if twisted && dialect.rng.coin() {
            out.extend_from_slice(b"|1\r\n+note\r\n*2\r\n:1\r\n$2\r\n\r\n\r\n");
        }
        match self {
            Answer::Null => line(out, if dialect.resp3 { "_" } else { "$-1" }),
            Answer::Simple(text) => line(out, &format!("+{text}")),
            Answer::Error(text) if twisted => line(out, &format!("!{}\r\n{text}", text.len())),
            Answer::Error(text) => line(out, &format!("-{text}")),
            Answer::Integer(number) => line(out, &format!(":{number}")),
            Answer::Double(number) => line(out, &format!(",{number}")),
            Answer::Boolean(yes) => line(out, if *yes { "#t" } else { "#f" }),
            Answer::BigNumber(digits) => line(out, &format!("({digits}")),
            Answer::Verbatim(text) => line(out, &format!("={}\r\ntxt:{text}", text.len() + 4)),
            Answer::Bulk(bytes) if twisted => {
                line(out, "$?");
                for piece in bytes.chunks(dialect.rng.range(1..=bytes.len().max(1) as u64) as usize) {
                    line(out, &format!(";{}", piece.len()));
                    out.extend_from_slice(piece);
                    line(out, "");
                }
                line(out, ";0");
            }
            Answer::Bulk(bytes) => {
                line(out, &format!("${}", bytes.len()));
                out.extend_from_slice(bytes);
                line(out, "");
            }
            Answer::Array(items) => dialect.encode_all('*', items.len(), items, twisted, out),
            Answer::Set(items) => dialect.encode_all('~', items.len(), items, twisted, out),
            Answer::Map(pairs) => {
                let items = pairs.iter().flat_map(|(key, value)| [key, value]);
                dialect.encode_all('%', pairs.len(), items, twisted, out);
            }
        }
    }

    /// What a client must read.
    pub fn expected(&self, resp3: bool) -> Value {
        if !resp3 && let Some(plain) = self.plain() {
            return plain.expected(resp3);
        }
        let all = |items: &[Answer]| items.iter().map(|item| item.expected(resp3)).collect();
        match self {
            Answer::Null => Value::Null,
            Answer::Simple(text) => Value::Simple(text.as_str().into()),
            Answer::Error(text) => Value::Error(Box::new(ServerError::parse(text, None))),
            Answer::Integer(number) => Value::Integer(*number),
            Answer::Bulk(bytes) => Value::Bulk(bytes.clone()),
            Answer::Double(number) => Value::Double(*number),
            Answer::Boolean(yes) => Value::Boolean(*yes),
            Answer::BigNumber(digits) => Value::BigNumber(digits.as_str().into()),
            Answer::Verbatim(text) => Value::Verbatim { format: *b"txt", text: text.clone().into_bytes() },
            Answer::Array(items) => Value::Array(all(items)),
            Answer::Set(items) => Value::Set(all(items)),
            Answer::Map(pairs) => Value::Map(
                pairs.iter().map(|(key, value)| (key.expected(resp3), value.expected(resp3))).collect(),
            ),
        }
    }
}
