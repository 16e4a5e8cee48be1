//! The bodies of the fuzz targets in `fuzz/`, which unit tests call too. Each panics on a broken invariant.

use super::{Blob, Decoder, FrameKind, FromReply, Limits, Reply, Scan, Scanner, Token, Value, Verbatim};
use crate::buf::{Chain, Glance, Segment, Spares};
use crate::error::{Error, ProtocolError};
use std::collections::{BTreeMap, HashMap, HashSet};

/// One frame: where it ends in the stream, and what it is.
pub type Frame = (usize, FrameKind, bool);

/// The frames of a stream that arrives in the given pieces, and the error that ended it.
pub fn frames<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: Limits,
    resp3: bool,
) -> (Vec<Frame>, Option<ProtocolError>) {
    let mut scanner = Scanner::new(limits, resp3);
    let mut frames = Vec::new();
    let mut taken = 0;
    for mut piece in pieces {
        while !piece.is_empty() {
            let before = scanner.len();
            match scanner.advance(piece) {
                Err(error) => {
                    // Nobody should go on, but whoever does gets an answer and no panic.
                    for _ in 0..3 {
                        let _ = scanner.advance(piece);
                    }
                    scanner.reset();
                    assert!(scanner.is_empty() && scanner.wanted() == 0, "a reset forgets the frame");
                    return (frames, Some(error));
                }
                Ok(Scan::Complete { consumed, kind, error, glance }) => {
                    check_glance(glance, &piece[..consumed]);
                    assert!(consumed > 0 && consumed <= piece.len(), "a frame ends inside the piece");
                    assert!(scanner.is_empty() && scanner.wanted() == 0, "the next frame begins anew");
                    taken += consumed;
                    frames.push((taken, kind, error));
                    piece = &piece[consumed..];
                }
                Ok(Scan::Incomplete) => {
                    assert_eq!(scanner.len(), before + piece.len(), "an incomplete frame takes all");
                    assert!(scanner.wanted() > 0, "an incomplete frame lacks something");
                    taken += piece.len();
                    piece = &[];
                }
            }
        }
    }
    (frames, None)
}

/// What was seen in passing is what a decoder reads.
fn check_glance(glance: Glance, frame: &[u8]) {
    let token = || Decoder::new(frame).token().expect("validated");
    match glance {
        Glance::Unknown => {}
        Glance::Bare => panic!("a frame has a head"),
        Glance::Text(start) => {
            assert_eq!(token(), Token::Bulk(frame[start as usize..frame.len() - 2].into()));
        }
        Glance::Integer(value) => assert_eq!(token(), Token::Integer(value)),
        Glance::Ok => assert_eq!(token(), Token::Simple(b"OK"[..].into())),
    }
}

/// The bytes as a chain of segments, cut at multiples of `step`.
pub fn chain(bytes: &[u8], step: usize) -> Chain {
    let mut chain = Chain::default();
    bytes.chunks(step.max(1)).for_each(|piece| chain.push(Segment::copy_of(piece)));
    chain
}

fn encoded(value: &Value, resp3: bool) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out, resp3);
    out
}

fn decoded(bytes: &[u8]) -> Value {
    Value::decode(&mut Decoder::new(bytes)).expect("a validated frame decodes")
}

/// Reads a type in every way; none may panic, a success must have read everything.
fn read_as<T: FromReply>(frame: &[u8], validated: bool) {
    let mut decoder = Decoder::new(frame);
    let whole = T::from_reply(&mut decoder);
    assert!(!validated || whole.is_err() || decoder.remaining() == 0, "a success reads the whole value");
    let mut chain = chain(frame, 3);
    let cut = T::from_reply(&mut Decoder::over(chain.segments()));
    assert!(!validated || whole.is_ok() == cut.is_ok(), "the result does not depend on segments");
    let small = T::from_payload(Spares::default().copy_of(frame, Glance::Unknown));
    let held = T::from_payload(Spares::default().held(&mut chain, Glance::Unknown));
    assert!(!validated || small.is_ok() == held.is_ok(), "the result does not depend on the place");
    if validated
        && let Ok(Scan::Complete { glance, .. }) = Scanner::new(Limits::default(), true).advance(frame)
    {
        let payload = Spares::default().copy_of(frame, glance);
        assert_eq!(T::from_payload(payload).is_ok(), small.is_ok(), "the result does not depend on a glance");
    }
}

fn read_as_each_type(frame: &[u8], validated: bool) {
    read_as::<()>(frame, validated);
    read_as::<bool>(frame, validated);
    read_as::<i64>(frame, validated);
    read_as::<u8>(frame, validated);
    read_as::<f64>(frame, validated);
    read_as::<String>(frame, validated);
    read_as::<Vec<u8>>(frame, validated);
    read_as::<bytes::Bytes>(frame, validated);
    read_as::<Option<Blob>>(frame, validated);
    read_as::<Verbatim>(frame, validated);
    read_as::<Vec<Option<i64>>>(frame, validated);
    read_as::<Vec<(String, Vec<u8>)>>(frame, validated);
    read_as::<HashMap<String, Value>>(frame, validated);
    read_as::<BTreeMap<Vec<u8>, Option<String>>>(frame, validated);
    read_as::<HashSet<Vec<u8>>>(frame, validated);
    read_as::<(i64, Vec<Blob>, Reply)>(frame, validated);
    read_as::<[Reply; 2]>(frame, validated);
    read_as::<Vec<Result<Vec<i64>, Error>>>(frame, validated);
    read_as::<Vec<Value>>(frame, validated);
    read_as::<Reply>(frame, validated);
}

/// What must hold for a whole frame that a scanner accepted.
pub fn check_frame(frame: &[u8], error: bool) {
    let mut decoder = Decoder::new(frame);
    decoder.skip_value().expect("a validated frame can be passed over");
    assert_eq!(decoder.remaining(), 0, "and is one value");

    let mut decoder = Decoder::new(frame);
    let first = decoder.token().expect("a validated frame has a first token");
    assert_eq!(error, matches!(first, Token::Error(_) | Token::BlobError(_)));
    while decoder.remaining() > 0 {
        decoder.token().expect("a validated frame is tokens to its end");
    }

    let value = decoded(frame);
    let wire = encoded(&value, true);
    for resp3 in [true, false] {
        let wire = encoded(&value, resp3);
        let (found, failed) = frames([&wire[..]], Limits::default(), resp3);
        assert!(failed.is_none(), "own encoding is refused: {failed:?}");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, wire.len());
    }
    // Compared as bytes, since not a number differs from itself.
    assert_eq!(encoded(&decoded(&wire), true), wire);
    for step in [1, 7] {
        let chain = chain(frame, step);
        let cut = Value::decode(&mut Decoder::over(chain.segments())).expect("segments change nothing");
        assert_eq!(encoded(&cut, true), wire);
    }
    read_as_each_type(frame, true);
}

/// Any bytes as a stream in one piece.
pub fn parser(data: &[u8]) {
    for resp3 in [true, false] {
        let mut start = 0;
        for (end, _, error) in frames([data], Limits::default(), resp3).0 {
            check_frame(&data[start..end], error);
            start = end;
        }
    }
}

/// Any bytes as a stream in one piece and in pieces, whose sizes the first bytes choose: the same frames.
pub fn parser_split(data: &[u8]) {
    let Some((sizes, stream)) = data.split_at_checked(4) else { return };
    let mut pieces = Vec::new();
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at(rest.len().min(1 + usize::from(size % 32)));
        pieces.push(piece);
        rest = later;
    }
    for resp3 in [true, false] {
        let (whole, whole_error) = frames([stream], Limits::default(), resp3);
        let (split, split_error) = frames(pieces.iter().copied(), Limits::default(), resp3);
        assert_eq!(whole, split);
        assert_eq!(whole_error, split_error);
        let (single, single_error) = frames(stream.chunks(1), Limits::default(), resp3);
        assert_eq!(whole, single);
        assert_eq!(whole_error, single_error);
    }
}

/// Any bytes, never validated, as a reply: errors, no panics.
pub fn decode(data: &[u8]) {
    for chain in [chain(data, 1), chain(data, 5), chain(data, 4096)] {
        let _ = Decoder::over(chain.segments()).skip_value();
        let _ = Value::decode(&mut Decoder::over(chain.segments()));
        let mut decoder = Decoder::over(chain.segments());
        while decoder.token().is_ok() {}
        let mut decoder = Decoder::over(chain.segments());
        while let Ok(Some((_, mut inside))) = decoder.attribute() {
            let _ = inside.skip_value();
        }
    }
    read_as_each_type(data, false);
    if let Ok(reply) = Reply::from_payload(Spares::default().held(&mut chain(data, 3), Glance::Unknown)) {
        let _ = (reply.as_bytes().is_some(), reply.chunks().count(), reply.is_null(), reply.value().is_ok());
    }
    if let Ok(blob) = Blob::from_payload(Spares::default().held(&mut chain(data, 3), Glance::Unknown)) {
        assert_eq!(blob.to_vec().len(), blob.len());
    }
}
