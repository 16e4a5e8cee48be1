//! Limits, linearity, memory.

use super::refusal;
use crate::resp::fuzzing::{check_frame, frames};
use crate::resp::{Decoder, Limits, Scan, Scanner, Value};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Opens an aggregate that the next value is inside of.
const HEADERS: [&str; 6] = ["*1\r\n", "%1\r\n", "~1\r\n", "|1\r\n", "*?\r\n", "%?\r\n"];

// F-03
#[test]
fn nesting_beyond_the_limit_is_refused() {
    let mixed: String = HEADERS.iter().copied().cycle().take(100_000).collect();
    let streams: Vec<String> = HEADERS.iter().map(|header| header.repeat(100_000)).chain([mixed]).collect();
    for mut stream in streams {
        stream.push_str(":1\r\n");
        let message = refusal(stream.as_bytes(), Limits::default(), true);
        assert_eq!(message, "the reply exceeds the depth limit of 512");
    }
    // A push stands only outside; inside of it anything may nest.
    let stream = format!(">1\r\n{}:1\r\n", "*1\r\n".repeat(100_000));
    assert!(refusal(stream.as_bytes(), Limits::default(), true).contains("depth limit of 512"));
}

// F-03
#[test]
fn nesting_at_the_limit_is_accepted() {
    for headers in [&["*1\r\n"][..], &["~1\r\n"], &["*1\r\n", "~1\r\n"]] {
        let open: String = headers.iter().copied().cycle().take(512).collect();
        let stream = format!("{open}:1\r\n:2\r\n");
        let (found, error) = frames(stream.as_bytes().chunks(1), Limits::default(), true);
        assert_eq!((found.len(), error), (2, None));
        check_frame(&stream.as_bytes()[..found[0].0], false);
        let deeper = format!("*1\r\n{stream}");
        assert!(refusal(deeper.as_bytes(), Limits::default(), true).contains("depth limit of 512"));
        // An empty one is a level too.
        let empty = format!("{open}*0\r\n");
        assert!(refusal(empty.as_bytes(), Limits::default(), true).contains("depth limit of 512"));
    }
    for (header, rest) in
        [("%1\r\n", "+v\r\n"), ("|1\r\n", "+v\r\n+described\r\n"), ("%?\r\n", "+v\r\n.\r\n")]
    {
        let stream = format!("{}:1\r\n{}", header.repeat(512), rest.repeat(512));
        let (found, error) = frames(stream.as_bytes().chunks(1), Limits::default(), true);
        assert_eq!((found.len(), error), (1, None), "{header}");
        check_frame(stream.as_bytes(), false);
    }
}

#[test]
fn the_depth_has_a_ceiling_and_a_value_of_it_is_dropped_on_a_small_stack() {
    let deep = limits(|limits| limits.depth_max = usize::MAX);
    let stream = format!("{}:1\r\n", "*1\r\n".repeat(Limits::DEPTH_CEILING));
    assert_eq!(frames([stream.as_bytes()], deep, true).0.len(), 1);
    let value = Value::decode(&mut Decoder::new(stream.as_bytes())).unwrap();
    assert_eq!(value.clone(), value);
    let deeper = format!("*1\r\n{stream}");
    assert!(refusal(deeper.as_bytes(), deep, true).contains("depth limit of 1024"));
    assert!(Value::decode(&mut Decoder::new(deeper.as_bytes())).is_err());
    // Passing over bytes has no limit of its own and needs no stack.
    let deepest = format!("{}:1\r\n", "*1\r\n".repeat(100_000));
    Decoder::new(deepest.as_bytes()).skip_value().unwrap();
}

/// Work per byte, whatever the pieces (F-03, linear).
#[test]
fn work_is_linear_in_the_bytes() {
    let array = format!("*100000\r\n{}", "$3\r\nabc\r\n:12\r\n+OK\r\n,1.5\r\n_\r\n".repeat(20_000));
    let long = format!("${}\r\n{}\r\n", 1_000_000, "x".repeat(1_000_000));
    let line = limits(|limits| limits.line_max = 1_000_000);
    for (stream, per_byte) in [
        (array, 4.0),
        (format!("{}:1\r\n", "*1\r\n".repeat(512)), 6.0),
        (format!("+{}\r\n", "x".repeat(900_000)), 3.0),
        (format!("({}\r\n", "1".repeat(900_000)), 3.0),
        (
            format!("*?\r\n{}.\r\n", "*?\r\n|1\r\n+a\r\n:1\r\n$?\r\n;2\r\nxy\r\n;0\r\n.\r\n".repeat(10_000)),
            4.0,
        ),
    ] {
        for size in [1, 2, 3, 7, 64, 4096, usize::MAX] {
            let work = work(&stream, size, line);
            assert!(work <= per_byte * stream.len() as f64, "{work} for {} bytes in {size}", stream.len());
        }
    }
    // A body costs a step per piece and nothing per byte.
    assert!(work(&long, 4096, line) < 1000.0);
}

fn work(stream: &str, size: usize, limits: Limits) -> f64 {
    let mut scanner = Scanner::new(limits, true);
    let pieces = stream.as_bytes().chunks(size);
    let count = pieces.len();
    for (index, piece) in pieces.enumerate() {
        let scan = scanner.advance(piece).unwrap();
        assert_eq!(index + 1 == count, scan != Scan::Incomplete);
    }
    scanner.work as f64
}

#[test]
fn each_limit_is_named_and_exact() {
    let cases: [(Limits, &str, &str, &str); 6] = [
        (limits(|l| l.bulk_max = 5), "$5\r\nabcde\r\n", "$6\r\nabcdef\r\n", "bulk limit of 5"),
        (
            limits(|l| l.bulk_max = 5),
            "$?\r\n;3\r\nabc\r\n;2\r\nde\r\n;0\r\n",
            "$?\r\n;3\r\nabc\r\n;3\r\ndef\r\n",
            "bulk limit of 5",
        ),
        (
            limits(|l| l.elements_max = 4),
            "*2\r\n*2\r\n:1\r\n:2\r\n:3\r\n",
            "*2\r\n*3\r\n",
            "elements limit of 4",
        ),
        (limits(|l| l.elements_max = 4), "%2\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "%3\r\n", "elements limit of 4"),
        (
            limits(|l| l.line_max = 40),
            "+0123456789012345678901234567890123456789\r\n",
            "+01234567890123456789012345678901234567890",
            "line limit of 40",
        ),
        (
            limits(|l| l.frame_max = 18),
            "*2\r\n:1\r\n$4\r\nabc\n\r\n",
            "*2\r\n:1\r\n$5\r\n",
            "frame size limit of 18",
        ),
    ];
    for (limits, accepted, refused, name) in cases {
        for pieces in [vec![accepted.as_bytes()], accepted.as_bytes().chunks(1).collect()] {
            let (found, error) = frames(pieces, limits, true);
            assert_eq!((found.len(), error), (1, None), "{accepted:?}");
        }
        assert!(refusal(refused.as_bytes(), limits, true).contains(name));
    }
    let small = limits(|limits| limits.frame_max = 64);
    assert!(refusal(&[b'+'; 65], small, true).contains("frame size limit of 64"));
    assert!(
        refusal(
            b"*9\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
            small,
            true
        )
        .contains("frame size limit of 64")
    );
    assert!(
        refusal(format!(":{}1\r\n", "0".repeat(40)).as_bytes(), Limits::default(), true)
            .contains("line limit")
    );
}

// F-05: a streamed aggregate that never ends.
#[test]
fn endless_streams_end_at_a_limit() {
    let few = limits(|limits| limits.elements_max = 1000);
    for element in [":1\r\n", "|0\r\n:1\r\n", "*0\r\n", "$?\r\n;0\r\n"] {
        let stream = format!("*?\r\n{}", element.repeat(2000));
        assert!(refusal(stream.as_bytes(), few, true).contains("elements limit of 1000"), "{element}");
    }
    // Attributes without end, in front of a value.
    assert!(refusal("|0\r\n".repeat(2000).as_bytes(), few, true).contains("elements limit of 1000"));
    let short = limits(|limits| limits.bulk_max = 1000);
    let stream = format!("$?\r\n{}", ";1\r\nx\r\n".repeat(2000));
    assert!(refusal(stream.as_bytes(), short, true).contains("bulk limit of 1000"));
    // Each line of a frame is short; the frame is not.
    let small = limits(|limits| limits.frame_max = 5000);
    assert!(
        refusal(format!("*?\r\n{}", "+abc\r\n".repeat(2000)).as_bytes(), small, true).contains("frame size")
    );
}

// Found by comparing with the model: with limits of the largest number, the largest count was taken for a stream.
#[test]
fn the_largest_count_is_no_stream() {
    let none = limits(|limits| limits.elements_max = usize::MAX);
    for head in ["*18446744073709551615\r\n", "%9223372036854775808\r\n", "|9223372036854775807\r\n"] {
        let message = refusal(format!("{head}.\r\n").as_bytes(), none, true);
        assert!(message.contains("elements limit") || message.contains("'.'"), "{head}: {message}");
    }
}

#[test]
fn announced_lengths_cost_nothing() {
    let mut scanner = Scanner::new(Limits::default(), true);
    for announced in [
        &b"$536870912\r\n"[..],
        b"*134217728\r\n",
        b"%67108864\r\n",
        b"$?\r\n;536870912\r\n",
        b"=536870912\r\n",
    ] {
        assert_eq!(scanner.advance(announced).unwrap(), Scan::Incomplete);
        assert!(scanner.memory() < 4096, "{}", scanner.memory());
        scanner.reset();
    }
    assert_eq!(scanner.advance(b"$536870912\r\n").unwrap(), Scan::Incomplete);
    assert_eq!((scanner.wanted(), scanner.len()), (536_870_914, 12));
    scanner.reset();
    assert_eq!((scanner.wanted(), scanner.len()), (0, 0));
    // The decoder gives room for what is there, not for what was said.
    let decoded = Value::decode(&mut Decoder::new(b"*134217728\r\n:1\r\n"));
    assert!(decoded.is_err());
}

#[test]
fn the_steady_state_keeps_its_memory() {
    let mut scanner = Scanner::new(Limits::default(), true);
    let frame = b"*2\r\n%1\r\n+a\r\n,1.25\r\n(123\r\n";
    let turn = |scanner: &mut Scanner| {
        for (at, piece) in frame.chunks(1).enumerate() {
            let scan = scanner.advance(piece).unwrap();
            assert_eq!(scan == Scan::Incomplete, at + 1 < frame.len());
        }
        scanner.memory()
    };
    let first = turn(&mut scanner);
    for _ in 0..100 {
        assert_eq!(turn(&mut scanner), first);
    }
}
