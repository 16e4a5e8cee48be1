//! The bodies of the fuzz targets in `fuzz/`, which unit tests call too. Each panics on a broken invariant. They are
//! built for tests and by `cargo fuzz` (`--cfg fuzzing`) only.

mod encode;
mod input;
pub mod model;

pub use encode::encode;
pub use input::Input;

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
    // Where the frame ends at the earliest.
    let mut least = 0;
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
                    assert!(taken >= least, "the frame lacked less than was wanted");
                    frames.push((taken, kind, error));
                    piece = &piece[consumed..];
                }
                Ok(Scan::Incomplete) => {
                    assert_eq!(scanner.len(), before + piece.len(), "an incomplete frame takes all");
                    assert!(scanner.wanted() > 0, "an incomplete frame lacks something");
                    taken += piece.len();
                    least = taken + scanner.wanted();
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
pub fn read_as<T: FromReply>(frame: &[u8], validated: bool) {
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

/// The protocol and the limits that the first byte stands for: none, or those that short input reaches.
pub fn rules(choice: u8) -> (Limits, bool) {
    let mut limits = Limits::default();
    let is_set = |bit: u8| choice >> bit & 1 == 1;
    let small = [
        (1, &mut limits.bulk_max, 9),
        (2, &mut limits.depth_max, 3),
        (3, &mut limits.elements_max, 7),
        (4, &mut limits.line_max, 64),
        (5, &mut limits.frame_max, 64),
    ];
    for (bit, limit, least) in small {
        *limit = if is_set(bit) { least } else { *limit };
    }
    if is_set(6) {
        (limits.bulk_max, limits.depth_max, limits.elements_max) = (usize::MAX, usize::MAX, usize::MAX);
        limits.frame_max = u32::MAX as usize;
    }
    (limits, !is_set(0))
}

/// A stream as the model reads it.
struct Expected<'a> {
    stream: &'a [u8],
    limits: Limits,
    resp3: bool,
    frames: Vec<model::Parsed>,
    end: model::No,
    /// Of the frame that is not whole.
    left: usize,
}

impl<'a> Expected<'a> {
    fn new(stream: &'a [u8], limits: Limits, resp3: bool) -> Self {
        let mut frames: Vec<model::Parsed> = Vec::new();
        let mut left = stream;
        let end = loop {
            match model::frame(left, limits, resp3) {
                Ok(frame) => {
                    left = &left[frame.len..];
                    frames.push(frame);
                }
                Err(end) => break end,
            }
        };
        Self { stream, limits, resp3, frames, end, left: left.len() }
    }

    /// The scanner finds the same in these pieces: the same frames, and the same kind of error.
    fn compare(&self, pieces: impl IntoIterator<Item = &'a [u8]>) {
        let (found, failed) = frames(pieces, self.limits, self.resp3);
        let mut end = 0;
        let expected = self.frames.iter().map(|frame| {
            end += frame.len;
            (end, frame.kind, frame.error)
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "other frames than the model's");
        match (&failed, &self.end) {
            (None, model::No::More) => {}
            (Some(error), model::No::Bad(kind)) => {
                let is_long = self.left > self.limits.frame_max;
                let is_size = error.message.contains(model::FRAME_SIZE) || kind == model::FRAME_SIZE;
                // Of two faults in a frame beyond the limit, the pieces decide which is seen first.
                let agrees = error.message.contains(kind.as_str()) || is_long && is_size;
                assert!(agrees, "{:?} where the model says {kind:?}", error.message);
            }
            other => panic!("scanner and model disagree: {other:?}"),
        }
    }

    /// The decoder reads the same values, in one piece and in pieces.
    fn compare_values(&self, step: usize) {
        let mut start = 0;
        for frame in &self.frames {
            let bytes = &self.stream[start..start + frame.len];
            start += frame.len;
            assert_same(&decoded(bytes), &frame.value);
            let chain = chain(bytes, step);
            let cut = Value::decode(&mut Decoder::over(chain.segments())).expect("segments change nothing");
            assert_same(&cut, &frame.value);
        }
    }
}

/// Equality in which not a number equals itself.
pub fn assert_same(found: &Value, expected: &Value) {
    if found != expected {
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}

/// Rules, and a stream in one piece: frames, errors and values are those of the model.
pub fn parser(data: &[u8]) {
    let Some((choice, stream)) = data.split_first() else { return };
    let (limits, resp3) = rules(*choice);
    let expected = Expected::new(stream, limits, resp3);
    expected.compare([stream]);
    expected.compare_values(1 + usize::from(choice % 7));
}

/// Rules, sizes of pieces, and a stream in these pieces and byte by byte: frames and errors are those of the model.
pub fn parser_split(data: &[u8]) {
    let Some(([choice, sizes @ ..], stream)) = data.split_first_chunk::<5>() else { return };
    let (limits, resp3) = rules(*choice);
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
    let expected = Expected::new(stream, limits, resp3);
    expected.compare(pieces);
    expected.compare(stream.chunks(1));
}

/// Any bytes, never validated, as a reply: errors, no panics. And where they are valid, each frame as each type.
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
    let mut start = 0;
    for (end, _, error) in frames([data], Limits::default(), true).0.into_iter().take(3) {
        check_frame(&data[start..end], error);
        start = end;
    }
    if let Ok(reply) = Reply::from_payload(Spares::default().held(&mut chain(data, 3), Glance::Unknown)) {
        let _ = (reply.as_bytes().is_some(), reply.chunks().count(), reply.is_null(), reply.value().is_ok());
    }
    if let Ok(blob) = Blob::from_payload(Spares::default().held(&mut chain(data, 3), Glance::Unknown)) {
        assert_eq!(blob.to_vec().len(), blob.len());
    }
}

/// Runs a target's body over its corpus.
#[cfg(test)]
pub fn replay(target: &str, body: impl Fn(&[u8])) {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(&corpus).expect("a corpus").flatten().map(|file| file.path()).collect();
    files.sort_unstable();
    assert!(files.len() > 10, "a corpus of {} files", files.len());
    for file in files {
        let input = std::fs::read(&file).expect("readable");
        // Shown only when it fails.
        println!("{}", file.display());
        body(&input);
    }
}
