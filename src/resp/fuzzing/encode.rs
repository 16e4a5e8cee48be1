//! What is encoded and read by the model is what it was.

use super::{Input, assert_same, model};
use crate::buf::{Glance, Log, Spares, Transmit};
use crate::error::ServerError;
use crate::resp::{Blob, Encoder, FromReply, LEND_FROM, Limits, ToArgs, Value};

/// Choices, out of which commands and a value are made: the model reads the same words and the same value.
pub fn encode(data: &[u8]) {
    let mut input = Input::new(data);
    commands(&mut input);
    let value = value(&mut input, 0);
    for resp3 in [true, false] {
        let mut wire = Vec::new();
        value.encode(&mut wire, resp3);
        let found = model::frame(&wire, Limits::default(), resp3).expect("its own encoding is legal");
        assert_eq!(found.len, wire.len());
        check_form(&value, &found.value, resp3);
    }
}

/// What a server shall read.
enum Word {
    Bytes(Vec<u8>),
    Float(f64),
}

impl Word {
    fn check(&self, found: &Value) {
        let text = found.as_bytes().expect("an argument is a string");
        match self {
            Word::Bytes(bytes) => assert_eq!(text, bytes),
            Word::Float(value) => {
                let back: f64 =
                    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).expect("a number");
                assert!(back == *value || back.is_nan() && value.is_nan(), "{value} is written as {back}");
                assert!(text.len() <= 25, "{value} is written in {} bytes", text.len());
            }
        }
    }
}

fn commands(input: &mut Input<'_>) {
    let mut log = Log::new(input.pick(&[64, 1, 7, 16, 130, 4096]));
    // What a kernel holds of it stays what it was.
    let mut held = Transmit::new();
    let mut expected: Vec<Vec<Word>> = Vec::new();
    let mut given = 0;
    for _ in 0..input.below(6) {
        let mut words = Vec::new();
        let mut encoder = Encoder::new(&mut log);
        let mut count = 1 + input.below(5);
        if input.flag() {
            words.push(Word::Bytes(b"GET".to_vec()));
            encoder.begin_with(b"*2\r\n$3\r\nGET\r\n", 1);
            count = 1;
        } else {
            encoder.begin(count);
        }
        words.extend((0..count).map(|_| write_word(input, &mut encoder)));
        assert!(encoder.is_whole());
        expected.push(words);
        if input.flag() {
            log.slices(given, log.end(), &mut held);
            given = log.end();
            log.release(given);
        }
    }
    log.slices(given, log.end(), &mut held);
    let wire: Vec<u8> = held.iter().flat_map(|slice| slice.to_vec()).collect();
    let mut rest = &wire[..];
    for words in expected {
        let found = model::frame(rest, Limits::default(), false).expect("a command is legal");
        rest = &rest[found.len..];
        let Value::Array(items) = found.value else { panic!("a command is an array") };
        assert_eq!(items.len(), words.len());
        words.iter().zip(&items).for_each(|(word, item)| word.check(item));
    }
    assert!(rest.is_empty(), "bytes after the last command");
}

/// Writes one argument.
fn write_word(input: &mut Input<'_>, encoder: &mut Encoder<'_>) -> Word {
    let length = input.pick(&[0, 1, 7, 8, 9, 10, 16, 17, 32, 33, 99, 100, 101, 999, 5000, LEND_FROM]);
    let length = (length + input.below(4)).saturating_sub(1);
    let seed = input.byte();
    let bytes: Vec<u8> = (0..length).map(|at| seed.wrapping_add((at * 7) as u8)).collect();
    // Not too many of them: with chunks of a byte each takes its own memory.
    let piece = 1 + usize::from(seed).max(length / 64);
    match input.below(9) {
        0 => encoder.shared(&bytes.clone().into()),
        1 => encoder.chunks(bytes.chunks(piece)),
        2 => {
            let wire = [format!("${length}\r\n").as_bytes(), &bytes, b"\r\n"].concat();
            let payload = Spares::default().held(&mut super::chain(&wire, piece), Glance::Unknown);
            Blob::from_payload(payload).expect("a string").write(encoder);
        }
        3 => vec![&bytes[..]].write(encoder),
        kind @ 4.. if kind < 8 => {
            let number = input.number();
            let signed = number as i64;
            match kind {
                4 => encoder.int(signed),
                5 => encoder.uint(number),
                6 => i128::from(signed).write(encoder),
                _ => {
                    encoder.float(f64::from_bits(number));
                    return Word::Float(f64::from_bits(number));
                }
            }
            let text = if kind == 5 { number.to_string() } else { signed.to_string() };
            return Word::Bytes(text.into_bytes());
        }
        _ => encoder.arg(&bytes),
    }
    Word::Bytes(bytes)
}

fn value(input: &mut Input<'_>, depth: usize) -> Value {
    let length = input.below(12);
    let text = |input: &mut Input<'_>| String::from_utf8_lossy(input.bytes(length)).into_owned();
    let items = |input: &mut Input<'_>| (0..length).map(|_| value(input, depth + 1)).collect();
    match input.below(if depth < 4 { 13 } else { 9 }) {
        0 => Value::Null,
        1 => Value::Simple(text(input).into()),
        2 => Value::Bulk(input.bytes(length).to_vec()),
        3 => Value::Error(Box::new(ServerError::parse(&text(input), None))),
        4 => Value::Integer(input.number() as i64),
        5 => Value::Double(f64::from_bits(input.number())),
        6 => Value::Boolean(input.flag()),
        7 => Value::BigNumber(format!("{}{}", input.pick(&["", "-", "+"]), input.number()).into()),
        8 => Value::Verbatim { format: input.pick(&[*b"txt", *b"mkd"]), text: input.bytes(length).to_vec() },
        9 => Value::Array(items(input)),
        10 => Value::Set(items(input)),
        11 => Value::Map((0..length).map(|_| (value(input, depth + 1), value(input, depth + 1))).collect()),
        // It stands only outside.
        _ if depth == 0 => Value::Push(items(input)),
        _ => Value::Array(items(input)),
    }
}

/// Line ends inside a line become spaces, as servers do.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

/// `found` is what `value` is in this protocol.
fn check_form(value: &Value, found: &Value, resp3: bool) {
    let expected = match (value, found) {
        (Value::Simple(text), _) => Value::Simple(one_line(text).into()),
        (Value::Error(error), _) if !resp3 => {
            Value::Error(Box::new(ServerError::parse(&one_line(error.message()), None)))
        }
        (Value::Boolean(value), _) if !resp3 => Value::Integer(i64::from(*value)),
        (Value::BigNumber(digits), _) if !resp3 => Value::Bulk(digits.to_string().into_bytes()),
        (Value::Verbatim { text, .. }, _) if !resp3 => Value::Bulk(text.clone()),
        (Value::Double(value), Value::Bulk(_)) if !resp3 => return Word::Float(*value).check(found),
        (Value::Array(items), Value::Array(found))
        | (Value::Set(items), Value::Set(found))
        | (Value::Push(items), Value::Push(found)) => return check_items(items.iter(), found.iter(), resp3),
        (Value::Set(items) | Value::Push(items), Value::Array(found)) if !resp3 => {
            return check_items(items.iter(), found.iter(), resp3);
        }
        (Value::Map(pairs), Value::Map(found)) if resp3 => {
            return check_items(flat(pairs).iter().copied(), flat(found).iter().copied(), resp3);
        }
        (Value::Map(pairs), Value::Array(found)) if !resp3 => {
            return check_items(flat(pairs).iter().copied(), found.iter(), resp3);
        }
        _ => value.clone(),
    };
    assert_same(found, &expected);
}

fn flat(pairs: &[(Value, Value)]) -> Vec<&Value> {
    pairs.iter().flat_map(|(key, value)| [key, value]).collect()
}

fn check_items<'v>(
    values: impl ExactSizeIterator<Item = &'v Value>,
    found: impl ExactSizeIterator<Item = &'v Value>,
    resp3: bool,
) {
    assert_eq!(values.len(), found.len());
    values.zip(found).for_each(|(value, found)| check_form(value, found, resp3));
}
