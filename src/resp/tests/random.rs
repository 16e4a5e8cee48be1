//! Random values there and back, over random segments.

use super::held;
use crate::buf::{Chain, Segment};
use crate::error::ServerError;
use crate::resp::fuzzing::{check_frame, frames};
use crate::resp::{Decoder, FromReply, Limits, Reply, Value};
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Boolean),
        proptest::num::f64::ANY
            .prop_filter("equal to itself", |value| !value.is_nan())
            .prop_map(Value::Double),
        "[ -~]{0,40}".prop_map(|text| Value::Simple(text.into())),
        "[A-Z]{2,8} [ -~\r\n]{0,20}".prop_map(|text| Value::Error(Box::new(ServerError::parse(&text, None)))),
        "[+-]?[0-9]{1,60}".prop_map(|text| Value::BigNumber(text.into())),
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(Value::Bulk),
        ("[a-z]{3}", proptest::collection::vec(any::<u8>(), 0..30)).prop_map(|(format, text)| {
            Value::Verbatim { format: format.into_bytes().try_into().unwrap(), text }
        }),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::Set),
            proptest::collection::vec((inner.clone(), inner), 0..5).prop_map(Value::Map),
        ]
    })
}

fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut start = 0;
    ends.iter()
        .map(|&end| {
            let piece = &bytes[start..end];
            start = end;
            piece
        })
        .collect()
}

proptest! {
    #[test]
    fn values_there_and_back(values in proptest::collection::vec(tree(), 1..5), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut wire = Vec::new();
        let mut ends = Vec::new();
        for value in &values {
            value.encode(&mut wire, true);
            ends.push(wire.len());
        }
        let (found, failed) = frames(cut(&wire, &cuts), Limits::default(), true);
        prop_assert_eq!(failed, None);
        prop_assert_eq!(found.iter().map(|frame| frame.0).collect::<Vec<_>>(), ends);
        let mut start = 0;
        for ((end, _, error), value) in found.into_iter().zip(&values) {
            let frame = &wire[start..end];
            start = end;
            check_frame(frame, error);
            let mut chain = Chain::default();
            cut(frame, &cuts).into_iter().for_each(|piece| chain.push(Segment::copy_of(piece)));
            prop_assert_eq!(&Value::decode(&mut Decoder::over(chain.segments())).unwrap(), value);
            if !error {
                let reply = Reply::from_payload(held(chain)).unwrap();
                prop_assert_eq!(&reply.value().unwrap(), value);
                let joined: Vec<u8> = reply.chunks().flatten().copied().collect();
                prop_assert_eq!(joined.as_slice(), value.as_bytes().filter(|_| !matches!(value, Value::Simple(_)) || !joined.is_empty()).unwrap_or_default());
            }
        }
    }

    // CONN-023: the RESP2 form of a value is legal RESP2, and read as a list it has the same elements.
    #[test]
    fn resp2_forms_are_resp2(value in tree()) {
        let mut wire = Vec::new();
        value.encode(&mut wire, false);
        let (found, failed) = frames(wire.chunks(3), Limits::default(), false);
        prop_assert_eq!((found.len(), failed), (1, None));
        let mut decoder = Decoder::new(&wire);
        Value::decode(&mut decoder).unwrap();
        prop_assert_eq!(decoder.remaining(), 0);
    }
}
