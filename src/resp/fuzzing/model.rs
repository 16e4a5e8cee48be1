//! A second, naive parser: recursive, whole input only, written from the specification and not from the scanner. Limits
//! are checked as soon as the bytes tell, as the scanner does, so that a stream that ends early is judged alike.

use crate::error::ServerError;
use crate::resp::{FrameKind, Limits, Value};

/// Why there is no value.
#[derive(PartialEq, Debug)]
pub enum No {
    /// More bytes are needed.
    More,
    /// No bytes can make it right: a part of the scanner's message.
    Bad(String),
}

/// The first frame of a stream.
#[derive(Debug)]
pub struct Parsed {
    /// Its bytes.
    pub len: usize,
    /// Reply or push.
    pub kind: FrameKind,
    /// It is an error.
    pub error: bool,
    /// What it says.
    pub value: Value,
}

/// What an error of the frame's size says.
pub const FRAME_SIZE: &str = "frame size limit";

/// Reads the first frame of `input`.
///
/// # Errors
/// The input ends before it, or is wrong.
pub fn frame(input: &[u8], limits: Limits, resp3: bool) -> Result<Parsed, No> {
    let mut parser = Parser { input, at: 0, elements: 0, limits, resp3 };
    let value = parser.value(0, Inside::Nothing)?.expect("only streams end");
    if parser.at > limits.frame_max {
        return Err(bad(FRAME_SIZE));
    }
    let kind = if matches!(value, Value::Push(_)) { FrameKind::Push } else { FrameKind::Reply };
    Ok(Parsed { len: parser.at, kind, error: matches!(value, Value::Error(_)), value })
}

fn bad(what: impl Into<String>) -> No {
    No::Bad(what.into())
}

/// What a value is a part of.
#[derive(Clone, Copy)]
enum Inside {
    Nothing,
    /// An aggregate of known length.
    Fixed,
    /// One that ends with `.`; in a map a value is awaited (`odd`).
    Stream {
        odd: bool,
    },
}

struct Parser<'a> {
    input: &'a [u8],
    at: usize,
    elements: u64,
    limits: Limits,
    resp3: bool,
}

impl Parser<'_> {
    fn rest(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// There are no more bytes.
    fn more(&self) -> No {
        if self.input.len() > self.limits.frame_max { bad(FRAME_SIZE) } else { No::More }
    }

    fn next(&self) -> Result<u8, No> {
        self.rest().first().copied().ok_or_else(|| self.more())
    }

    fn line(&mut self, kind: u8) -> Result<Vec<u8>, No> {
        let rest = self.rest();
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
        let text_max = self.limits.line_max.max(32);
        if end > if matches!(kind, b'+' | b'-' | b'(' | b',') { text_max } else { 32 } {
            return Err(bad("line limit"));
        }
        match &rest[end..] {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Err(self.more()),
            [b'\r', ..] => return Err(bad("CR without LF")),
            _ => return Err(bad("LF without CR")),
        }
        let text = rest[..end].to_vec();
        self.at += end + 2;
        Ok(text)
    }

    /// The length or count in a line.
    fn natural(&self, kind: u8, text: &[u8]) -> Result<u64, No> {
        let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| malformed(kind))
    }

    /// May a string of this length be here, `before` bytes of which came already?
    fn check_string(&self, len: u64, before: usize) -> Result<usize, No> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if before.saturating_add(len) > self.limits.bulk_max {
            return Err(bad("bulk limit"));
        }
        if self.at.saturating_add(len).saturating_add(2) > self.limits.frame_max {
            return Err(bad(FRAME_SIZE));
        }
        Ok(len)
    }

    fn body(&mut self, len: usize) -> Result<Vec<u8>, No> {
        match self.rest().get(len..).unwrap_or_default() {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Err(self.more()),
            _ => return Err(bad("longer than its announced length")),
        }
        let text = self.rest()[..len].to_vec();
        self.at += len + 2;
        Ok(text)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, No> {
        let mut joined = Vec::new();
        loop {
            if self.next()? != b';' {
                return Err(bad("unexpected type byte"));
            }
            self.at += 1;
            let head = self.line(b';')?;
            let len = self.check_string(self.natural(b';', &head)?, joined.len())?;
            if len == 0 {
                return Ok(joined);
            }
            joined.extend(self.body(len)?);
        }
    }

    fn verbatim(&mut self, len: usize) -> Result<Value, No> {
        let prefix = self.rest().iter().take(4).enumerate();
        let is_wrong = |(at, byte): (usize, &u8)| {
            if at < 3 { !byte.is_ascii_alphanumeric() } else { *byte != b':' }
        };
        if len < 4 || prefix.into_iter().any(is_wrong) {
            return Err(bad("three-letter format"));
        }
        let text = self.body(len)?;
        Ok(Value::Verbatim { format: [text[0], text[1], text[2]], text: text[4..].to_vec() })
    }

    fn count(&mut self, elements: u64) -> Result<(), No> {
        self.elements = self.elements.saturating_add(elements);
        if self.elements > self.limits.elements_max.min(usize::MAX - 1) as u64 {
            Err(bad("elements limit"))
        } else {
            Ok(())
        }
    }

    fn check_depth(&self, depth: usize) -> Result<(), No> {
        let most = self.limits.depth_max.min(Limits::DEPTH_CEILING);
        if depth >= most { Err(bad("depth limit")) } else { Ok(()) }
    }

    /// So many values inside an aggregate.
    fn items(&mut self, count: u64, depth: usize) -> Result<Vec<Value>, No> {
        let mut items = Vec::new();
        for _ in 0..count {
            items.extend(self.value(depth, Inside::Fixed)?);
        }
        Ok(items)
    }

    /// Values up to a `.`.
    fn stream(&mut self, kind: u8, depth: usize) -> Result<Vec<Value>, No> {
        let mut items = Vec::new();
        loop {
            let odd = kind == b'%' && items.len() % 2 == 1;
            match self.value(depth, Inside::Stream { odd })? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
    }

    /// A value, or `None` for the end of a stream. `depth` aggregates are open.
    fn value(&mut self, depth: usize, inside: Inside) -> Result<Option<Value>, No> {
        let mut described = false;
        loop {
            let kind = self.next()?;
            let known: &[u8] = if self.resp3 { b"+-:$*_#,(!=%~>|." } else { b"+-:$*" };
            if !known.contains(&kind) {
                return Err(bad("unexpected type byte"));
            }
            if depth > 0 && kind == b'>' {
                return Err(bad("a push inside another value"));
            }
            if kind != b'.' && matches!(inside, Inside::Stream { .. }) {
                self.count(1)?;
            }
            self.at += 1;
            let head = self.line(kind)?;
            if kind != b'|' {
                return match kind {
                    b'.' => end(&head, inside, described).map(|()| None),
                    b'$' | b'!' | b'=' => self.string(kind, &head).map(Some),
                    b'*' | b'~' | b'%' | b'>' => self.aggregate(kind, &head, depth).map(Some),
                    _ => scalar(kind, &head).map(Some),
                };
            }
            // Attributes: what they say is dropped, the value follows.
            let count = self.natural(kind, &head)?.saturating_mul(2);
            self.check_depth(depth)?;
            self.count(count.saturating_add(1))?;
            self.items(count, depth + 1)?;
            described = true;
        }
    }

    fn string(&mut self, kind: u8, head: &[u8]) -> Result<Value, No> {
        match (kind, head) {
            (b'$', b"-1") => return Ok(Value::Null),
            (b'$', b"?") if self.resp3 => return self.chunks().map(Value::Bulk),
            _ => {}
        }
        let len = self.check_string(self.natural(kind, head)?, 0)?;
        match kind {
            b'$' => self.body(len).map(Value::Bulk),
            b'!' => self.body(len).map(|text| error(&text)),
            _ => self.verbatim(len),
        }
    }

    fn aggregate(&mut self, kind: u8, head: &[u8], depth: usize) -> Result<Value, No> {
        let items = match (kind, head) {
            (b'*', b"-1") => return Ok(Value::Null),
            (b'*' | b'~' | b'%', b"?") if self.resp3 => {
                self.check_depth(depth)?;
                self.stream(kind, depth + 1)?
            }
            _ => {
                let count = self.natural(kind, head)?.saturating_mul(if kind == b'%' { 2 } else { 1 });
                self.check_depth(depth)?;
                self.count(count)?;
                self.items(count, depth + 1)?
            }
        };
        Ok(match kind {
            b'*' => Value::Array(items),
            b'~' => Value::Set(items),
            b'>' => Value::Push(items),
            _ => {
                let mut pairs = Vec::new();
                let mut items = items.into_iter();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
        })
    }
}

/// A line that is no value of its type.
fn malformed(kind: u8) -> No {
    bad(format!("'{}'", char::from(kind)))
}

fn end(head: &[u8], inside: Inside, described: bool) -> Result<(), No> {
    match inside {
        _ if !head.is_empty() => Err(malformed(b'.')),
        Inside::Stream { odd: true } => Err(bad("ends after a key")),
        Inside::Stream { .. } if described => Err(bad("an attribute without a value")),
        Inside::Stream { .. } => Ok(()),
        _ => Err(bad("unexpected type byte '.'")),
    }
}

fn error(text: &[u8]) -> Value {
    Value::Error(Box::new(ServerError::parse(&String::from_utf8_lossy(text), None)))
}

/// A value that is its line.
fn scalar(kind: u8, head: &[u8]) -> Result<Value, No> {
    let text = String::from_utf8_lossy(head);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    Ok(match (kind, &text[..]) {
        (b'+', _) => Value::Simple(text.into()),
        (b'-', _) => error(head),
        (b':', text) if is_number(unsigned) && text.parse::<i64>().is_ok() => {
            Value::Integer(text.parse().map_err(|_| malformed(kind))?)
        }
        (b'_', "") => Value::Null,
        (b'#', "t") => Value::Boolean(true),
        (b'#', "f") => Value::Boolean(false),
        (b',', text) if is_double(unsigned, is_number) => {
            Value::Double(text.parse().map_err(|_| malformed(kind))?)
        }
        (b'(', text) if is_number(unsigned) => Value::BigNumber(text.into()),
        _ => return Err(malformed(kind)),
    })
}

/// Digits, perhaps with a fraction, perhaps with an exponent; or a word.
fn is_double(text: &str, is_number: impl Fn(&str) -> bool) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_word = text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("nan");
    is_word || [whole, fraction, exponent].into_iter().all(is_number)
}
