//! Replies to Rust types.

use super::{copy_of, held, read, reply};
use crate::buf::{Chain, Segment};
use crate::error::Error;
use crate::resp::{Blob, Decoder, FromReply, Reply, Value, Verbatim};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

fn map(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs.iter().map(|(key, value)| (key.to_string(), *value)).collect()
}

/// The text of the conversion error that each of these gives.
fn misfit<T: FromReply + PartialEq + std::fmt::Debug>(wire: &str) -> String {
    match read::<T>(wire.as_bytes()) {
        Err(error @ Error::Conversion(_)) => error.to_string(),
        other => panic!("{wire:?} gives {other:?}"),
    }
}

fn same<T: FromReply + PartialEq + std::fmt::Debug>(expected: T, wires: &[&str]) {
    for wire in wires {
        assert_eq!(read::<T>(wire.as_bytes()).as_ref(), Ok(&expected), "{wire:?}");
    }
}

/// How many pairs or elements there are changes nothing.
#[test]
fn every_count_is_read_whole() {
    for count in 0..=40_i64 {
        let pairs: Vec<(String, i64)> = (0..count).map(|at| (format!("key {at}"), at)).collect();
        let text: String = pairs.iter().map(|(key, value)| format!("+{key}\r\n:{value}\r\n")).collect();
        let wires = [
            format!("%{count}\r\n{text}"),
            format!("*{}\r\n{text}", 2 * count),
            format!("%?\r\n{text}.\r\n"),
            format!("*?\r\n{text}.\r\n"),
        ];
        let wires = wires.each_ref().map(String::as_str);
        same(pairs.clone(), &wires);
        same(pairs.iter().cloned().collect::<BTreeMap<_, _>>(), &wires);
        same(pairs.iter().cloned().collect::<HashMap<_, _>>(), &wires);
        let values =
            pairs.iter().map(|(key, value)| (Value::Simple(key.clone().into()), Value::Integer(*value)));
        same(Value::Map(values.clone().collect()), &[wires[0], wires[2]]);
        let flat = values.flat_map(|(key, value)| [key, value]).collect();
        same(Value::Array(flat), &[wires[1], wires[3]]);
    }
}

// CONN-023: one value for the shapes of both protocols.
#[test]
fn both_protocols_give_the_same_values() {
    let flat = "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n";
    let shapes = [
        flat,
        "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n",
        "%2\r\n+a\r\n,1\r\n+b\r\n,2\r\n",
        "*2\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n",
        "%?\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n.\r\n",
        "*?\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n.\r\n",
        "*?\r\n*2\r\n$1\r\na\r\n:1\r\n*?\r\n$1\r\nb\r\n:2\r\n.\r\n.\r\n",
        "|1\r\n+ttl\r\n:1\r\n%2\r\n|1\r\n+x\r\n+y\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n",
    ];
    same(map(&[("a", 1), ("b", 2)]), &shapes);
    same(HashMap::from([("a".to_string(), 1i64), ("b".to_string(), 2)]), &shapes);
    same(vec![("a".to_string(), 1u8), ("b".to_string(), 2)], &shapes);
    same(
        vec!["a".to_string(), "1".into(), "b".into(), "2".into()],
        &[flat, "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"],
    );
    same(map(&[]), &["*0\r\n", "%0\r\n", "*?\r\n.\r\n", "%?\r\n.\r\n"]);
    same(Vec::<(String, i64)>::new(), &["*0\r\n", "%0\r\n"]);

    same(HashSet::from([1, 2]), &["*2\r\n:1\r\n:2\r\n", "~2\r\n:1\r\n:2\r\n", "~?\r\n:1\r\n:2\r\n.\r\n"]);
    same(BTreeSet::from(["a".to_string()]), &["*1\r\n+a\r\n", "~1\r\n$1\r\na\r\n"]);
    same(1.5, &[",1.5\r\n", "$3\r\n1.5\r\n", "+1.5\r\n"]);
    same("1.5".to_string(), &[",1.5\r\n", "$3\r\n1.5\r\n", "+1.5\r\n"]);
    same(true, &["#t\r\n", ":1\r\n", "+OK\r\n", "$1\r\n1\r\n"]);
    same(false, &["#f\r\n", ":0\r\n", "$1\r\n0\r\n"]);
    same(None::<i64>, &["_\r\n", "$-1\r\n", "*-1\r\n", "|1\r\n+a\r\n:1\r\n_\r\n"]);
    same(
        1i64,
        &[
            ":1\r\n",
            "$1\r\n1\r\n",
            ",1\r\n",
            "#t\r\n",
            "(1\r\n",
            "=5\r\ntxt:1\r\n",
            "$?\r\n;1\r\n1\r\n;0\r\n",
        ],
    );
    same(
        (),
        &[
            "+OK\r\n",
            ":3\r\n",
            "*2\r\n:1\r\n*1\r\n+a\r\n",
            "$2\r\nab\r\n",
            "$?\r\n;1\r\n1\r\n;0\r\n",
            "#t\r\n",
            "=4\r\ntxt:\r\n",
        ],
    );
}

// F-05: as the obvious types.
#[test]
fn unusual_types() {
    assert!(read_nan(",nan\r\n") && read_nan(",-nan\r\n") && read_nan("$3\r\nnan\r\n"));
    same(f64::INFINITY, &[",inf\r\n", "$3\r\ninf\r\n"]);
    same(f64::NEG_INFINITY, &[",-inf\r\n"]);
    same(1.5e300, &[",1.5e300\r\n", ",1.5e+300\r\n"]);
    same(0.1f32, &[",0.1\r\n", "$3\r\n0.1\r\n"]);
    let big = "(3492890328409238509324850943850943825024385\r\n";
    same("3492890328409238509324850943850943825024385".to_string(), &[big]);
    assert!(misfit::<i64>(big).contains("an integer out of range"));
    assert!(misfit::<u128>(big).contains("out of range"));
    same(u64::MAX, &["(18446744073709551615\r\n", "$20\r\n18446744073709551615\r\n"]);
    assert!(misfit::<i64>("(18446744073709551615\r\n").contains("out of range"));
    same("Some string".to_string(), &["=15\r\ntxt:Some string\r\n", "$11\r\nSome string\r\n"]);
    same(Verbatim { format: *b"mkd", text: "# a".into() }, &["=7\r\nmkd:# a\r\n"]);
    same(Verbatim { format: *b"txt", text: "a".into() }, &["=5\r\ntxt:a\r\n", "$1\r\na\r\n", "+a\r\n"]);
    same("Hello".to_string(), &["$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n", "$5\r\nHello\r\n"]);
    same(vec![1, 2], &["*?\r\n:1\r\n:2\r\n.\r\n", "*2\r\n:1\r\n:2\r\n"]);
    same((1, 2), &["*?\r\n:1\r\n:2\r\n.\r\n", "*2\r\n:1\r\n:2\r\n", "%1\r\n:1\r\n:2\r\n"]);
    for wire in ["-SYNTAX invalid syntax\r\n", "!21\r\nSYNTAX invalid syntax\r\n"] {
        for error in [
            read::<String>(wire.as_bytes()).unwrap_err(),
            read::<()>(wire.as_bytes()).unwrap_err(),
            read::<Option<i64>>(wire.as_bytes()).unwrap_err(),
            read::<Vec<Value>>(wire.as_bytes()).unwrap_err(),
            read::<Value>(wire.as_bytes()).unwrap_err(),
            read::<Result<Vec<bool>, Error>>(wire.as_bytes()).unwrap().unwrap_err(),
            Blob::from_payload(held(crate::resp::fuzzing::chain(wire.as_bytes(), 4))).unwrap_err(),
            Reply::from_payload(held(crate::resp::fuzzing::chain(wire.as_bytes(), 4))).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Server(error) if error.message() == "SYNTAX invalid syntax"));
        }
    }
}

fn read_nan(wire: &str) -> bool {
    f64::from_reply(&mut Decoder::new(wire.as_bytes())).unwrap().is_nan()
}

#[test]
fn ranges_and_misfits() {
    same(255u8, &[":255\r\n"]);
    assert_eq!(misfit::<u8>(":256\r\n"), "the reply is an integer out of range and cannot become u8");
    assert!(misfit::<u32>(":-1\r\n").contains("out of range"));
    same(i64::MIN, &[":-9223372036854775808\r\n"]);
    assert_eq!(
        misfit::<i64>("$3\r\nabc\r\n"),
        "the reply is a string that is no integer and cannot become i64"
    );
    assert!(misfit::<i64>(",1.5\r\n").contains("no exact integer"));
    assert!(misfit::<i64>(",1e300\r\n").contains("no exact integer"));
    assert!(misfit::<i64>(",nan\r\n").contains("no exact integer"));
    assert!(misfit::<i64>("$0\r\n\r\n").contains("no integer"));
    assert_eq!(misfit::<i64>("_\r\n"), "the reply is null and cannot become i64");
    assert_eq!(misfit::<String>("*0\r\n"), "the reply is an array and cannot become String");
    assert!(misfit::<bool>(":2\r\n").contains("other than 0 and 1"));
    assert!(misfit::<bool>("+NO\r\n").contains("a simple string"));
    assert!(misfit::<()>("_\r\n").contains("null"));
    assert!(misfit::<Vec<i64>>("_\r\n").contains("null"));
    assert!(misfit::<Vec<i64>>("$1\r\n1\r\n").contains("a bulk string"));
    assert!(misfit::<(i64, i64)>("*3\r\n:1\r\n:2\r\n:3\r\n").contains("another length"));
    assert!(misfit::<(i64, i64, i64)>("*?\r\n:1\r\n:2\r\n.\r\n").contains("another length"));
    assert!(misfit::<[i64; 2]>("*3\r\n:1\r\n:2\r\n:3\r\n").contains("another length"));
    assert!(misfit::<BTreeMap<i64, i64>>("*3\r\n:1\r\n:2\r\n:3\r\n").contains("odd length"));
    assert!(misfit::<BTreeMap<i64, i64>>("*?\r\n:1\r\n.\r\n").contains("odd length"));
    assert!(misfit::<f64>("$1\r\nx\r\n").contains("no number"));
}

#[test]
fn text_must_be_utf8_and_bytes_need_not() {
    let wire = b"$2\r\n\xff\xfe\r\n";
    assert_eq!(read::<Vec<u8>>(wire), Ok(vec![0xff, 0xfe]));
    assert_eq!(read::<bytes::Bytes>(wire), Ok(bytes::Bytes::from_static(b"\xff\xfe")));
    assert_eq!(read::<[u8; 2]>(wire), Ok([0xff, 0xfe]));
    assert_eq!(read::<Box<[u8]>>(wire), Ok(Box::from(&b"\xff\xfe"[..])));
    for error in [
        read::<String>(wire).unwrap_err(),
        read::<Box<str>>(wire).unwrap_err(),
        read::<Verbatim>(wire).unwrap_err(),
    ] {
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }
    // Bytes are a string and never a list.
    assert!(read::<Vec<u8>>(b"*1\r\n:1\r\n").is_err());
    assert_eq!(read::<Vec<Vec<u8>>>(b"*1\r\n$1\r\na\r\n"), Ok(vec![b"a".to_vec()]));
    assert_eq!(read::<Vec<u16>>(b"*1\r\n:1\r\n"), Ok(vec![1]));
    assert_eq!(read::<Option<Vec<u8>>>(b"$1\r\na\r\n"), Ok(Some(b"a".to_vec())));
}

#[test]
fn an_element_may_fail_alone() {
    type Elements = Vec<Result<Vec<i64>, Error>>;
    let wire = b"*5\r\n*1\r\n:1\r\n-ERR a\r\n*3\r\n:1\r\n*1\r\n+x\r\n:2\r\n!5\r\nERR b\r\n*1\r\n:9\r\n";
    let found = read::<Elements>(wire).unwrap();
    assert_eq!((&found[0], &found[4]), (&Ok(vec![1]), &Ok(vec![9])));
    assert!(matches!(&found[1], Err(Error::Server(error)) if error.message() == "ERR a"));
    assert!(matches!(&found[2], Err(Error::Conversion(_))));
    assert!(matches!(&found[3], Err(Error::Server(error)) if error.message() == "ERR b"));
    // Without a place for it, it fails the whole.
    assert!(matches!(read::<Vec<Vec<i64>>>(wire), Err(Error::Server(_))));
    // A tree has a place.
    let values = read::<Vec<Value>>(wire).unwrap();
    assert!(matches!(&values[1], Value::Error(error) if error.message() == "ERR a"));
    let (first, second) = read::<(Result<i64, Error>, i64)>(b"*2\r\n*?\r\n*1\r\n:1\r\n.\r\n:7\r\n").unwrap();
    assert!(first.is_err());
    assert_eq!(second, 7);
}

#[test]
fn tuples_and_nested_types() {
    assert_eq!(read::<(i64,)>(b"*1\r\n:1\r\n"), Ok((1,)));
    let twelve = format!("*12\r\n{}", ":1\r\n".repeat(12));
    assert_eq!(
        read::<(u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8)>(twelve.as_bytes()),
        Ok((1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
    );
    // SCAN: a cursor and a page.
    assert_eq!(
        read::<(u64, Vec<String>)>(b"*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        Ok((17, vec!["a".into(), "b".into()]))
    );
    // XREAD: a map of streams to entries, of which the fields are flat.
    type Entries = Vec<(String, Vec<(String, BTreeMap<String, i64>)>)>;
    let entries = "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n";
    let expected: Entries = vec![("s".into(), vec![("1-1".into(), map(&[("a", 1)]))])];
    same(expected, &[&format!("*1\r\n*2\r\n$1\r\ns\r\n{entries}"), &format!("%1\r\n$1\r\ns\r\n{entries}")]);
    assert_eq!(read::<Vec<Option<String>>>(b"*2\r\n$1\r\na\r\n$-1\r\n"), Ok(vec![Some("a".into()), None]));
}

#[test]
fn blobs_lie_in_place() {
    let blob = Blob::from_payload(copy_of(b"$5\r\nhello\r\n")).unwrap();
    assert_eq!((blob.as_slice(), blob.len()), (Some(&b"hello"[..]), 5));
    let blob = Blob::from_payload(held(crate::resp::fuzzing::chain(b"$5\r\nhello\r\n", 2))).unwrap();
    assert_eq!((blob.as_slice(), blob.len()), (None, 5));
    assert_eq!(blob.chunks().collect::<Vec<_>>(), [&b"he"[..], b"ll", b"o"]);
    assert_eq!((blob.to_vec(), &blob.to_bytes()[..]), (b"hello".to_vec(), &b"hello"[..]));
    assert!(blob == b"hello"[..] && blob != b"hellO"[..] && blob != b"hell"[..]);
    assert_eq!(format!("{blob:?}"), "Blob(5 bytes)");
    let empty = Blob::from_payload(held(crate::resp::fuzzing::chain(b"$0\r\n\r\n", 3))).unwrap();
    assert_eq!((empty.as_slice(), empty.is_empty(), empty.chunks().count()), (Some(&b""[..]), true, 0));
    let verbatim = Blob::from_payload(held(crate::resp::fuzzing::chain(b"=7\r\ntxt:abc\r\n", 100))).unwrap();
    assert_eq!(verbatim.as_slice(), Some(&b"abc"[..]));
    let streamed =
        Blob::from_payload(held(crate::resp::fuzzing::chain(b"$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n", 100)))
            .unwrap();
    assert_eq!(streamed.as_slice(), Some(&b"abc"[..]));
    let null = Option::<Blob>::from_payload(held(crate::resp::fuzzing::chain(b"$-1\r\n", 2)));
    assert!(null.unwrap().is_none());
}

// H21: large elements are held in place, small ones are copied.
#[test]
fn elements_of_a_list_are_held_when_large() {
    let mut wire = b"*2\r\n$3\r\nabc\r\n$2000\r\n".to_vec();
    wire.extend_from_slice(&[b'x'; 2000]);
    wire.extend_from_slice(b"\r\n");
    let pool = crate::buf::BufferPool::new(1, 4096);
    let mut buffer = pool.take_free().unwrap();
    buffer.bytes()[..wire.len()].copy_from_slice(&wire);
    let chain = Chain::from(buffer.filled(wire.len()));
    let blobs = Vec::<Blob>::from_payload(held(chain.clone())).unwrap();
    let replies = Vec::<Reply>::from_payload(held(chain)).unwrap();
    assert_eq!((blobs[0].as_slice(), replies[0].as_bytes()), (Some(&b"abc"[..]), Some(&b"abc"[..])));
    assert_eq!((blobs[1].as_slice().unwrap().len(), replies[1].as_bytes().unwrap().len()), (2000, 2000));
    drop((blobs, replies));
    assert_eq!(pool.lent(), 0);
}

#[test]
fn replies_are_read_when_asked() {
    let list = reply(b"*2\r\n:1\r\n$-1\r\n");
    assert_eq!(list.parse::<(i64, Option<i64>)>(), Ok((1, None)));
    assert!(list.parse::<i64>().is_err());
    assert_eq!(list.value(), Ok(Value::Array(vec![Value::Integer(1), Value::Null])));
    assert!(!list.is_null() && list.as_bytes().is_none() && list.chunks().count() == 0);
    assert!(reply(b"_\r\n").is_null() && reply(b"*-1\r\n").is_null());
    assert_eq!(reply(b"|1\r\n+a\r\n+b\r\n$1\r\nx\r\n").as_bytes(), Some(&b"x"[..]));
    assert_eq!(reply(b"+OK\r\n").as_bytes(), Some(&b"OK"[..]));
    let cut = Reply::from_payload(held({
        let mut chain = Chain::default();
        chain.push(Segment::copy_of(b"$4\r\nab"));
        chain.push(Segment::copy_of(b"cd\r\n"));
        chain
    }))
    .unwrap();
    assert_eq!((cut.as_bytes(), cut.chunks().collect::<Vec<_>>()), (None, vec![&b"ab"[..], b"cd"]));
    assert_eq!(cut.parse::<String>(), Ok("abcd".into()));
}
