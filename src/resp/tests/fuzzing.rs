//! The bodies of the fuzz targets, over random input and over what fuzzing has kept.

use crate::resp::fuzzing::{decode, encode, parser, parser_split, replay};
use proptest::prelude::*;

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
        ",nan\r\n",
        "(123456789012345678901\r\n",
        "!5\r\nERR a\r\n",
        "=5\r\ntxt:a\r\n",
        "$?\r\n",
        ";2\r\nab\r\n",
        ";8\r\nabcdefgh\r\n",
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
    fn the_scanner_agrees_with_the_model(rules: u8, sizes: [u8; 4], pieces in pieces()) {
        let stream = pieces.concat().into_bytes();
        parser(&[&[rules], &stream[..]].concat());
        parser_split(&[&[rules][..], &sizes, &stream].concat());
    }

    #[test]
    fn the_scanner_agrees_with_the_model_on_numbers(kind in "[:,($*=!;]", text in "[-+]?[0-9]{0,3}[.]?[0-9]{0,3}[eE]?[-+]?[0-9]{0,2}") {
        parser(format!("\0{kind}{text}\r\n").as_bytes());
    }

    #[test]
    fn any_bytes_give_the_same_frames_in_any_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..64), pieces in pieces()) {
        parser(&bytes);
        parser_split(&bytes);
        decode(&bytes);
        decode(pieces.concat().as_bytes());
    }

    #[test]
    fn what_is_encoded_is_read_back(choices in proptest::collection::vec(any::<u8>(), 0..200)) {
        encode(&choices);
    }
}

#[test]
fn what_fuzzing_has_kept() {
    replay("parser", parser);
    replay("parser_split", parser_split);
    replay("decode", decode);
    replay("encode", encode);
}
