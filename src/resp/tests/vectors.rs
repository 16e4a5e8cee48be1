//! Each type, valid and invalid, and every cut of each.

use super::refusal;
use crate::resp::fuzzing::{check_frame, frames};
use crate::resp::{Decoder, FrameKind, Limits, Token, Value};

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn value(wire: &str) -> Value {
    Value::decode(&mut Decoder::new(wire.as_bytes())).unwrap()
}

/// Frames and what they mean. All are legal under RESP3.
fn valid() -> Vec<(&'static str, Value)> {
    let pair = |key: &str, number| (Value::Simple(key.into()), Value::Integer(number));
    vec![
        ("+OK\r\n", Value::Simple("OK".into())),
        ("+\r\n", Value::Simple("".into())),
        (
            "+a text longer than what is tried at first, by far\r\n",
            Value::Simple("a text longer than what is tried at first, by far".into()),
        ),
        (":0\r\n", Value::Integer(0)),
        (":+7\r\n", Value::Integer(7)),
        (":-9223372036854775808\r\n", Value::Integer(i64::MIN)),
        (":9223372036854775807\r\n", Value::Integer(i64::MAX)),
        ("$0\r\n\r\n", bulk("")),
        ("$5\r\nhello\r\n", bulk("hello")),
        ("$12\r\nhello\r\nworld\r\n", bulk("hello\r\nworld")),
        ("$-1\r\n", Value::Null),
        ("*-1\r\n", Value::Null),
        ("*0\r\n", Value::Array(vec![])),
        (
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            Value::Array(vec![bulk("a"), Value::Array(vec![Value::Integer(1)])]),
        ),
        ("*3\r\n*0\r\n*-1\r\n$-1\r\n", Value::Array(vec![Value::Array(vec![]), Value::Null, Value::Null])),
        // F-05
        ("_\r\n", Value::Null),
        ("#t\r\n", Value::Boolean(true)),
        ("#f\r\n", Value::Boolean(false)),
        (",inf\r\n", Value::Double(f64::INFINITY)),
        (",-inf\r\n", Value::Double(f64::NEG_INFINITY)),
        (",1.5e300\r\n", Value::Double(1.5e300)),
        (",10\r\n", Value::Double(10.0)),
        (
            "(3492890328409238509324850943850943825024385\r\n",
            Value::BigNumber("3492890328409238509324850943850943825024385".into()),
        ),
        ("(-17\r\n", Value::BigNumber("-17".into())),
        ("=15\r\ntxt:Some string\r\n", Value::Verbatim { format: *b"txt", text: b"Some string".to_vec() }),
        ("=4\r\nmkd:\r\n", Value::Verbatim { format: *b"mkd", text: vec![] }),
        ("$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", bulk("Hello")),
        ("$?\r\n;0\r\n", bulk("")),
        ("*?\r\n:1\r\n:2\r\n.\r\n", Value::Array(vec![Value::Integer(1), Value::Integer(2)])),
        ("*?\r\n.\r\n", Value::Array(vec![])),
        ("%?\r\n+a\r\n:1\r\n.\r\n", Value::Map(vec![pair("a", 1)])),
        ("~?\r\n:1\r\n.\r\n", Value::Set(vec![Value::Integer(1)])),
        (
            "*2\r\n*?\r\n*?\r\n.\r\n.\r\n$?\r\n;1\r\nx\r\n;0\r\n",
            Value::Array(vec![Value::Array(vec![Value::Array(vec![])]), bulk("x")]),
        ),
        ("%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", Value::Map(vec![pair("a", 1), pair("b", 2)])),
        ("%0\r\n", Value::Map(vec![])),
        ("~2\r\n:1\r\n:2\r\n", Value::Set(vec![Value::Integer(1), Value::Integer(2)])),
        (">2\r\n$7\r\nmessage\r\n:1\r\n", Value::Push(vec![bulk("message"), Value::Integer(1)])),
        // Attributes: in front of a reply, of elements, keys and values, one after another, inside each other.
        ("|1\r\n+ttl\r\n:9\r\n:1\r\n", Value::Integer(1)),
        ("|0\r\n|1\r\n+a\r\n*1\r\n:9\r\n$1\r\nx\r\n", bulk("x")),
        (
            "*2\r\n|1\r\n+a\r\n:1\r\n:5\r\n|1\r\n+a\r\n:1\r\n:6\r\n",
            Value::Array(vec![Value::Integer(5), Value::Integer(6)]),
        ),
        ("%1\r\n|1\r\n+x\r\n+y\r\n+a\r\n|0\r\n:1\r\n", Value::Map(vec![pair("a", 1)])),
        ("|1\r\n|1\r\n+in\r\n+ner\r\n+key\r\n|0\r\n+value\r\n:3\r\n", Value::Integer(3)),
        ("%?\r\n|0\r\n+a\r\n|0\r\n:1\r\n.\r\n", Value::Map(vec![pair("a", 1)])),
    ]
}

#[test]
fn every_type_and_every_cut() {
    for (wire, expected) in valid() {
        assert_eq!(value(wire), expected, "{wire:?}");
        let bytes = wire.as_bytes();
        let kind = if wire.starts_with('>') { FrameKind::Push } else { FrameKind::Reply };
        let whole = vec![(bytes.len(), kind, false)];
        assert_eq!(frames([bytes], Limits::default(), true), (whole.clone(), None), "{wire:?}");
        assert_eq!(frames(bytes.chunks(1), Limits::default(), true), (whole.clone(), None), "{wire:?}");
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(
                frames([first, second], Limits::default(), true),
                (whole.clone(), None),
                "{wire:?} at {cut}"
            );
            let mut chain = crate::buf::Chain::default();
            chain.push(crate::buf::Segment::copy_of(first));
            chain.push(crate::buf::Segment::copy_of(second));
            assert_eq!(Value::decode(&mut Decoder::over(chain.segments())).as_ref(), Ok(&expected));
        }
        check_frame(bytes, false);
    }
}

#[test]
fn all_in_one_stream_at_every_cut() {
    let stream: String = valid().iter().map(|(wire, _)| *wire).collect();
    let stream = stream.as_bytes();
    let whole = frames([stream], Limits::default(), true);
    assert_eq!((whole.0.len(), &whole.1), (valid().len(), &None));
    for cut in 0..=stream.len() {
        let (first, second) = stream.split_at(cut);
        assert_eq!(frames([first, second], Limits::default(), true), whole);
    }
    for size in 1..40 {
        assert_eq!(frames(stream.chunks(size), Limits::default(), true), whole);
    }
}

// F-05: a blob error behaves like a simple error.
#[test]
fn errors_are_told_apart_from_values() {
    for (wire, text) in [
        ("-ERR no\r\n", "ERR no"),
        ("!21\r\nSYNTAX invalid syntax\r\n", "SYNTAX invalid syntax"),
        ("|1\r\n+a\r\n:1\r\n-ERR no\r\n", "ERR no"),
    ] {
        let bytes = wire.as_bytes();
        for pieces in [vec![bytes], bytes.chunks(1).collect()] {
            assert_eq!(
                frames(pieces, Limits::default(), true),
                (vec![(bytes.len(), FrameKind::Reply, true)], None)
            );
        }
        check_frame(bytes, true);
        match value(wire) {
            Value::Error(error) => assert_eq!(error.message(), text),
            other => panic!("{other:?}"),
        }
    }
    // An error inside does not make the reply one.
    let inside = frames([&b"*1\r\n-ERR no\r\n"[..]], Limits::default(), true);
    assert_eq!(inside.0, [(13, FrameKind::Reply, false)]);
}

#[test]
fn not_a_number() {
    for wire in [",nan\r\n", ",-nan\r\n", ",NaN\r\n"] {
        assert!(matches!(value(wire), Value::Double(double) if double.is_nan()));
        check_frame(wire.as_bytes(), false);
    }
}

#[test]
fn malformed_bytes_are_refused_at_every_cut() {
    let cases = [
        "OK\r\n",
        "\r\n",
        "\0",
        "?1\r\n",
        "+a\rb\r\n",
        "+a\nb\r\n",
        "+a\r\r\n",
        "-a\n",
        ":\r\n",
        ":1a\r\n",
        ":-\r\n",
        ": 1\r\n",
        ":9223372036854775808\r\n",
        ":-9223372036854775809\r\n",
        "$\r\n",
        "$-2\r\n",
        "$+1\r\n",
        "$1x\r\n",
        "$1\n",
        "$3\r\nabcd\r\n",
        "$3\r\nabc\rX",
        "$3\r\nabcX\n",
        "$18446744073709551616\r\n",
        "$99999999999999999999999999999999999\r\n",
        "*\r\n",
        "*-2\r\n",
        "*x\r\n",
        "*1\r\n?\r\n",
        "_x\r\n",
        "#\r\n",
        "#x\r\n",
        "#tt\r\n",
        ",\r\n",
        ",1.\r\n",
        ",abc\r\n",
        ",1e\r\n",
        "(\r\n",
        "(-\r\n",
        "(12x\r\n",
        "=3\r\ntxt\r\n",
        "=-1\r\n",
        "=?\r\n",
        "=5\r\ntxt;x\r\n",
        "=5\r\nt\r\n:x\r\n",
        "!-1\r\n",
        "!?\r\n",
        "%-1\r\n",
        "~-1\r\n",
        "%1x\r\n",
        // Streams: ends and chunks out of place.
        ".\r\n",
        "*1\r\n.\r\n",
        "*?\r\n.x\r\n",
        "%?\r\n+a\r\n.\r\n",
        "%?\r\n+a\r\n:1\r\n+b\r\n.\r\n",
        ";1\r\nx\r\n",
        "$?\r\n:1\r\n",
        "$?\r\n;\r\n",
        "$?\r\n;-1\r\n",
        "$?\r\n;?\r\n",
        "*?\r\n;0\r\n",
        "*?\r\n|0\r\n.\r\n",
        "*?\r\n|1\r\n+a\r\n+b\r\n.\r\n",
        "|1\r\n.\r\n",
        // F-05: a chunk of wrong size.
        "$?\r\n;4\r\nHello\r\n;0\r\n",
        "$?\r\n;3\r\nab\r\n;0\r\n",
        // Streamed pushes and attributes do not exist; a push stands alone.
        ">?\r\n",
        "|?\r\n",
        ">-1\r\n",
        "|-1\r\n",
        "*1\r\n>1\r\n+a\r\n",
        "|1\r\n>1\r\n+a\r\n",
        "%1\r\n+a\r\n>0\r\n",
        "*?\r\n>0\r\n",
    ];
    for wire in cases {
        let bytes = wire.as_bytes();
        let message = refusal(bytes, Limits::default(), true);
        for cut in 0..=bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let (found, error) = frames([first, second], Limits::default(), true);
            assert_eq!(
                (found.len(), error.map(|e| e.message.into_owned())),
                (0, Some(message.clone())),
                "{wire:?} {cut}"
            );
        }
    }
}

// F-01: RESP3's own types on a connection that negotiated RESP2.
#[test]
fn resp2_has_five_types() {
    for wire in [
        "_\r\n",
        "#t\r\n",
        ",1\r\n",
        "(1\r\n",
        "!1\r\nx\r\n",
        "=5\r\ntxt:a\r\n",
        "%0\r\n",
        "~0\r\n",
        ">0\r\n",
        "|0\r\n",
    ] {
        let message = refusal(wire.as_bytes(), Limits::default(), false);
        assert!(message.contains(&format!("'{}'", &wire[..1])) && message.contains("RESP2"), "{message}");
        refusal(format!("*1\r\n{wire}").as_bytes(), Limits::default(), false);
    }
    for wire in ["$?\r\n", "*?\r\n"] {
        refusal(wire.as_bytes(), Limits::default(), false);
    }
    for wire in ["+a\r\n", "-a\r\n", ":1\r\n", "$1\r\na\r\n", "$-1\r\n", "*-1\r\n", "*1\r\n*0\r\n"] {
        assert_eq!(frames([wire.as_bytes()], Limits::default(), false).1, None);
    }
}

// F-01: the invalidation between two replies, cut anywhere.
#[test]
fn a_push_between_two_replies() {
    let stream = b"$1\r\n1\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\n2\r\n";
    let expected =
        vec![(7, FrameKind::Reply, false), (39, FrameKind::Push, false), (46, FrameKind::Reply, false)];
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(frames(pieces, Limits::default(), true), (expected.clone(), None));
        }
    }
}

#[test]
fn an_attribute_in_front_of_a_push_is_the_pushs() {
    let found = frames([&b"|1\r\n+a\r\n:1\r\n>1\r\n+x\r\n:1\r\n"[..]], Limits::default(), true);
    assert_eq!(found, (vec![(20, FrameKind::Push, false), (24, FrameKind::Reply, false)], None));
}

#[test]
fn errors_name_the_byte_and_not_the_content() {
    assert_eq!(refusal(b"secret", Limits::default(), true), "unexpected type byte 's' where a value begins");
    assert_eq!(refusal(b"\x00", Limits::default(), true), "unexpected type byte 0x00 where a value begins");
    assert!(!refusal(b":secret\r\n", Limits::default(), true).contains("secret"));
    assert!(!refusal(b"$2\r\nsecret\r\n", Limits::default(), true).contains("secret"));
}

#[test]
fn tokens_and_attributes_can_be_read_one_by_one() {
    let mut decoder = Decoder::new(b"|2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n%?\r\n+k\r\n#t\r\n.\r\n");
    let (pairs, mut inside) = decoder.attribute().unwrap().unwrap();
    assert_eq!((pairs, inside.token().unwrap()), (2, Token::Simple(b"a"[..].into())));
    assert!(decoder.attribute().unwrap().is_none());
    assert_eq!(decoder.token().unwrap(), Token::Map(None));
    let saved = decoder.clone();
    decoder.skip_value().unwrap();
    assert_eq!(decoder.token().unwrap(), Token::Boolean(true));
    assert_eq!(decoder.token().unwrap(), Token::End);
    assert!(decoder.token().is_err());
    decoder = saved;
    assert_eq!(decoder.token().unwrap(), Token::Simple(b"k"[..].into()));
}

#[test]
fn what_is_wanted_is_never_more_than_what_is_missing() {
    for (wire, _) in valid() {
        let bytes = wire.as_bytes();
        for cut in 1..bytes.len() {
            let mut scanner = crate::resp::Scanner::new(Limits::default(), true);
            scanner.advance(&bytes[..cut]).unwrap();
            assert_eq!(scanner.len(), cut);
            assert!(
                (1..=bytes.len() - cut).contains(&scanner.wanted()),
                "{wire:?} at {cut}: {}",
                scanner.wanted()
            );
        }
    }
    let mut scanner = crate::resp::Scanner::new(Limits::default(), true);
    scanner.advance(b"*1\r\n$100\r\nabc").unwrap();
    assert_eq!(scanner.wanted(), 99);
}

#[test]
fn nothing_prints_what_was_received() {
    let mut scanner = crate::resp::Scanner::new(Limits::default(), true);
    scanner.advance(b"(987654").unwrap();
    let decoder = Decoder::new(b"+secret\r\n");
    let reply = super::reply(b"+secret\r\n");
    let text = format!("{scanner:?} {decoder:?} {reply:?} {:?}", reply.chunks());
    assert!(!text.contains("secret") && !text.contains("987654") && !text.contains("54, 53"), "{text}");
}
