//! Arguments to bytes.

use super::held;
use crate::buf::{Log, Transmit};
use crate::resp::{Blob, Decoder, Encoder, FromReply, ToArg, ToArgs};
use std::collections::{BTreeMap, BTreeSet};

/// What the arguments are on the wire, over chunks of several sizes; the count must fit.
fn args(args: impl ToArgs) -> Vec<String> {
    let mut found = Vec::new();
    for chunk in [1, 7, 4096] {
        let mut log = Log::new(chunk);
        let mut encoder = Encoder::new(&mut log);
        encoder.begin(args.count() + 1);
        encoder.arg(b"CMD");
        args.write(&mut encoder);
        assert!(encoder.is_whole());
        let mut transmit = Transmit::new();
        log.slices(0, log.end(), &mut transmit);
        let wire: Vec<u8> = transmit.iter().flat_map(|slice| slice.to_vec()).collect();
        let (frames, failed) = crate::resp::fuzzing::frames([&wire[..]], Default::default(), false);
        assert_eq!((frames.len(), failed), (1, None));
        found = Vec::<String>::from_reply(&mut Decoder::new(&wire)).unwrap();
        assert_eq!(found.len(), args.count() + 1);
        found.remove(0);
    }
    found
}

#[test]
fn each_type() {
    assert_eq!(args("a"), ["a"]);
    assert_eq!(
        args((String::from("a"), &String::from("b"), &b"c"[..], b"d", *b"ee")),
        ["a", "b", "c", "d", "ee"]
    );
    assert_eq!(
        args((b"x".to_vec(), bytes::Bytes::from_static(b"y"), 'ü', true, false)),
        ["x", "y", "ü", "1", "0"]
    );
    assert_eq!(
        args((0u8, -1i8, i64::MIN, u64::MAX, i128::MIN)),
        [
            "0",
            "-1",
            "-9223372036854775808",
            "18446744073709551615",
            "-170141183460469231731687303715884105728"
        ]
    );
    assert_eq!(args(vec![1u16, 2]), ["1", "2"]);
    assert_eq!(args([1u8, 2]).len(), 1);
    assert_eq!(args(&["a", "b"][..]), ["a", "b"]);
    assert_eq!(args(vec![b"a".to_vec(), b"bb".to_vec()]), ["a", "bb"]);
    assert_eq!(args([("a", 1), ("b", 2)]), ["a", "1", "b", "2"]);
    assert_eq!(args((Some("a"), None::<&str>, ())), ["a"]);
    assert_eq!(args(BTreeMap::from([("a", 1), ("b", 2)])), ["a", "1", "b", "2"]);
    assert_eq!(args(BTreeSet::from(["b", "a"])), ["a", "b"]);
    assert_eq!(args(Box::new("a")), ["a"]);
    let blob = Blob::from_payload(held(crate::resp::fuzzing::chain(b"$5\r\nhello\r\n", 2))).unwrap();
    assert_eq!(args(blob), ["hello"]);
}

#[test]
fn lengths_around_the_small_frame() {
    for len in [0, 1, 9, 10, 48, 95, 96, 97, 99, 100, 1000, 70_000] {
        let text = "x".repeat(len);
        assert_eq!(args(text.clone()), [text]);
    }
}

#[test]
fn floats_read_back_and_are_short() {
    assert_eq!(
        args([1.0, 0.1, 1e300, -1.5e-300, 1e16, f64::INFINITY, f64::NEG_INFINITY]),
        ["1", "0.1", "1e300", "-1.5e-300", "10000000000000000", "inf", "-inf"]
    );
    assert_eq!(args([0.1f32, f32::MAX, f32::NAN, 16_777_216.0]), ["0.1", "3.4028235e38", "nan", "16777216"]);
    assert_eq!(
        args([-0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324]),
        ["-0", "2.2250738585072014e-308", "1.7976931348623157e308", "5e-324"]
    );
}

#[test]
fn keys_are_single_arguments() {
    fn count(key: &impl ToArg) -> usize {
        key.count()
    }
    assert_eq!(count(&"a") + count(b"a") + count(&vec![1u8]) + count(&7) + count(&&String::new()), 5);
}

#[test]
fn a_prefix_and_an_argument_are_the_bytes_expected() {
    let mut log = Log::new(4096);
    let mut encoder = Encoder::new(&mut log);
    encoder.begin_with(b"*2\r\n$3\r\nGET\r\n", 1);
    encoder.arg(b"key:123");
    assert!(encoder.is_whole());
    let mut transmit = Transmit::new();
    log.slices(0, log.end(), &mut transmit);
    assert_eq!(&*transmit[0], b"*2\r\n$3\r\nGET\r\n$7\r\nkey:123\r\n");
}

// Short values take a way of their own where a chunk has room.
#[test]
fn an_argument_of_any_length_at_any_place_in_a_chunk() {
    for len in (0..120).chain([999, 1000]) {
        for chunk in [1, 7, 16, 64, 130, 4096] {
            let mut log = Log::new(chunk);
            let mut encoder = Encoder::new(&mut log);
            let value: Vec<u8> = (0..len).map(|i| b'a' + (i % 26) as u8).collect();
            (0..3).for_each(|_| encoder.arg(&value));
            let mut transmit = Transmit::new();
            log.slices(0, log.end(), &mut transmit);
            let bytes: Vec<u8> = transmit.iter().flat_map(|slice| slice.to_vec()).collect();
            let one = [format!("${len}\r\n").as_bytes(), &value, b"\r\n"].concat();
            assert_eq!(bytes, one.repeat(3), "{len} bytes, chunks of {chunk}");
        }
    }
}

#[test]
fn a_frame_that_is_not_what_was_announced_is_not_whole() {
    let is_whole = |write: fn(&mut Encoder<'_>)| {
        let mut log = Log::new(64);
        let mut encoder = Encoder::new(&mut log);
        write(&mut encoder);
        encoder.is_whole()
    };
    assert!(is_whole(|encoder| encoder.begin_with(b"*1\r\n$4\r\nPING\r\n", 0)));
    assert!(!is_whole(|_| {}), "nothing");
    assert!(!is_whole(|encoder| encoder.begin(0)), "no name");
    assert!(!is_whole(|encoder| {
        encoder.begin(0);
        encoder.begin(1);
        encoder.arg(b"PING");
    }));
    assert!(!is_whole(|encoder| encoder.begin(1)), "too few");
    assert!(!is_whole(|encoder| encoder.arg(b"PING")), "not begun");
    assert!(!is_whole(|encoder| {
        encoder.begin(1);
        ("PING", 1).write(encoder);
    }));
    assert!(!is_whole(|encoder| {
        encoder.begin(1);
        encoder.arg(b"PING");
        encoder.begin_with(b"*1\r\n$4\r\nPING\r\n", 0);
    }));
}

proptest::proptest! {
    #[test]
    fn any_float_reads_back(value: f64, single: f32) {
        let texts = args((value, single));
        let (back, single_back): (f64, f32) = (texts[0].parse().unwrap(), texts[1].parse().unwrap());
        proptest::prop_assert!(back == value || value.is_nan());
        proptest::prop_assert!(single_back == single || single.is_nan());
    }
}
