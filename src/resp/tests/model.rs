//! A second, naive parser: recursive, whole input only, written from the specification and not from the scanner.

use crate::error::ServerError;
use crate::resp::Value;
use crate::resp::fuzzing::frames;
use crate::resp::{Decoder, Limits};
use proptest::prelude::*;

/// Why there is no value.
#[derive(PartialEq, Debug)]
enum No {
    /// More bytes are needed.
    More,
    /// No bytes can make it right.
    Bad,
}

fn line(input: &mut &[u8]) -> Result<String, No> {
    let Some(end) = input.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else { return Err(No::More) };
    match input.get(end..end + 2) {
        Some(b"\r\n") => {}
        Some(_) => return Err(No::Bad),
        None if input[end] == b'\n' => return Err(No::Bad),
        None => return Err(No::More),
    }
    let text = String::from_utf8_lossy(&input[..end]).into_owned();
    *input = &input[end + 2..];
    Ok(text)
}

fn natural(text: &str) -> Result<usize, No> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| No::Bad),
        false => Err(No::Bad),
    }
}

fn body(input: &mut &[u8], len: usize) -> Result<Vec<u8>, No> {
    if len > 512 << 20 {
        return Err(No::Bad);
    }
    let end = input.get(len..).unwrap_or_default();
    match end {
        [b'\r', b'\n', ..] => {}
        [] | [b'\r'] => return Err(No::More),
        _ => return Err(No::Bad),
    }
    let text = input[..len].to_vec();
    *input = &input[len + 2..];
    Ok(text)
}

fn error(bytes: &[u8]) -> Value {
    Value::Error(Box::new(ServerError::parse(&String::from_utf8_lossy(bytes), None)))
}

/// A value, or `None` for the end of a stream.
fn parse(input: &mut &[u8], depth: usize) -> Result<Option<Value>, No> {
    let Some((kind, rest)) = input.split_first() else { return Err(No::More) };
    if !b"+-:$*_#,(!=%~>|.".contains(kind) || (*kind == b'>' && depth > 0) {
        return Err(No::Bad);
    }
    *input = rest;
    let head = line(input)?;

    Ok(Some(match kind {
        b'+' => Value::Simple(head.into()),
        b'-' => error(head.as_bytes()),
        b':' => {
            let digits = head.strip_prefix(['-', '+']).unwrap_or(&head);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(No::Bad);
            }
            Value::Integer(head.parse().map_err(|_| No::Bad)?)
        }
        b'_' if head.is_empty() => Value::Null,
        b'#' if head == "t" || head == "f" => Value::Boolean(head == "t"),
        b',' => Value::Double(match &head[..] {
            "inf" | "+inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            text if text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte))
                && text.ends_with(|end: char| end.is_ascii_digit())
                && !text.contains(".e")
                && !text.contains(".E")
                && !text.trim_start_matches(['+', '-']).starts_with('.') =>
            {
                text.parse().map_err(|_| No::Bad)?
            }
            _ => return Err(No::Bad),
        }),
        b'(' => {
            let digits = head.strip_prefix(['-', '+']).unwrap_or(&head);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(No::Bad);
            }
            Value::BigNumber(head.into())
        }
        b'$' if head == "-1" => Value::Null,
        b'$' if head == "?" => {
            let mut joined = Vec::new();
            loop {
                match input.split_first() {
                    None => return Err(No::More),
                    Some((b';', rest)) => *input = rest,
                    Some(_) => return Err(No::Bad),
                }
                match natural(&line(input)?)? {
                    0 => break Value::Bulk(joined),
                    len => joined.extend(body(input, len)?),
                }
            }
        }
        b'$' => Value::Bulk(body(input, natural(&head)?)?),
        b'!' => error(&body(input, natural(&head)?)?),
        b'=' => {
            let len = natural(&head)?;
            for (at, byte) in input.iter().take(len.min(4)).enumerate() {
                if if at < 3 { !byte.is_ascii_alphanumeric() } else { *byte != b':' } {
                    return Err(No::Bad);
                }
            }
            if len < 4 {
                return Err(No::Bad);
            }
            let text = body(input, len)?;
            Value::Verbatim { format: text[..3].try_into().unwrap(), text: text[4..].to_vec() }
        }
        b'*' if head == "-1" => Value::Null,
        b'*' | b'~' | b'%' if head == "?" => {
            let mut items = Vec::new();
            while let Some(item) = parse(input, depth + 1)? {
                items.push(item);
            }
            if *kind == b'%' && items.len() % 2 == 1 {
                return Err(No::Bad);
            }
            aggregate(*kind, items)
        }
        b'*' | b'~' | b'%' | b'>' | b'|' => {
            let count = natural(&head)? * if matches!(kind, b'%' | b'|') { 2 } else { 1 };
            if count > 134_217_728 {
                return Err(No::Bad);
            }
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(parse(input, depth + 1)?.ok_or(No::Bad)?);
            }
            if *kind == b'|' {
                return parse(input, depth)?.map(Some).ok_or(No::Bad);
            }
            aggregate(*kind, items)
        }
        b'.' if head.is_empty() && depth > 0 => return Ok(None),
        _ => {
            return Err(No::Bad);
        }
    }))
}

fn aggregate(kind: u8, items: Vec<Value>) -> Value {
    match kind {
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
    }
}

/// Both parsers over the same stream: the same values, and an error in both or in none. A model that stops for want of
/// bytes may overlook an error in the part it has; the scanner may not accept more than it.
fn compare(stream: &[u8]) {
    let (found, failed) = frames([stream], Limits::default(), true);
    let mut rest = stream;
    let mut start = 0;
    for (end, ..) in found {
        let expected = parse(&mut rest, 0).expect("the scanner accepted it").expect("a value");
        assert_eq!(stream.len() - rest.len(), end, "{:?}", String::from_utf8_lossy(stream));
        assert_eq!(Value::decode(&mut Decoder::new(&stream[start..end])).unwrap(), expected);
        start = end;
    }
    if rest.is_empty() {
        return;
    }
    match parse(&mut rest, 0) {
        Ok(_) => panic!("only the model accepts {:?}", String::from_utf8_lossy(stream)),
        Err(No::Bad) => {
            assert!(failed.is_some(), "only the model refuses {:?}", String::from_utf8_lossy(stream))
        }
        Err(No::More) => {}
    }
}

/// Pieces of the grammar, so that random streams are often right.
fn pieces() -> impl Strategy<Value = Vec<&'static str>> {
    let known = [
        "+OK\r\n",
        "-ERR x\r\n",
        ":12\r\n",
        ":-1\r\n",
        "$3\r\nabc\r\n",
        "$0\r\n\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*1\r\n",
        "*2\r\n",
        "*3\r\n",
        "%1\r\n",
        "%2\r\n",
        "%0\r\n",
        "~1\r\n",
        "~2\r\n",
        ">1\r\n",
        ">2\r\n",
        "|1\r\n",
        "|0\r\n",
        "*?\r\n",
        "%?\r\n",
        "~?\r\n",
        ".\r\n",
        "_\r\n",
        "#t\r\n",
        "#f\r\n",
        ",1.5\r\n",
        ",-inf\r\n",
        "(123456789012345678901\r\n",
        "!5\r\nERR a\r\n",
        "=5\r\ntxt:a\r\n",
        "$?\r\n",
        ";2\r\nab\r\n",
        ";0\r\n",
        "\r\n",
        "1",
        "\r",
        "\n",
        "$",
        "a",
        "?",
    ];
    proptest::collection::vec(proptest::sample::select(known.to_vec()), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_scanner_agrees_with_the_model(pieces in pieces()) {
        compare(pieces.concat().as_bytes());
    }

    #[test]
    fn the_scanner_agrees_with_the_model_on_numbers(kind in "[:,($*=!;]", text in "[-+]?[0-9]{0,3}[.]?[0-9]{0,3}[eE]?[-+]?[0-9]{0,2}") {
        compare(format!("{kind}{text}\r\n").as_bytes());
    }

    #[test]
    fn any_bytes_give_the_same_frames_in_any_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..64), pieces in pieces()) {
        crate::resp::fuzzing::parser_split(&bytes);
        let mut stream = vec![1, 2, 3, 5];
        stream.extend_from_slice(pieces.concat().as_bytes());
        crate::resp::fuzzing::parser_split(&stream);
        crate::resp::fuzzing::parser(&stream[4..]);
        crate::resp::fuzzing::decode(&stream[4..]);
        crate::resp::fuzzing::decode(&bytes);
    }
}
