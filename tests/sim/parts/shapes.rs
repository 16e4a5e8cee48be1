//! Commands whose replies have a shape: long, wide, nested, of every type.

use super::{Asked, Command, Kind, Part, Row, Store, filler, number, some};
use crate::answer::Answer;
use crate::rng::Rng;

pub const PART: Part = Part {
    asks: &[
        |rng, sizes| Command::echo(some(rng, sizes.reply_max)),
        |rng, sizes| Command::echo(some(rng, sizes.reply_max)),
        |rng, sizes| Command::new("LIST", [number(some(rng, sizes.reply_max) / 10)]),
        |rng, sizes| Command::new("MAP", [number(some(rng, sizes.reply_max) / 20)]),
        |rng, sizes| Command::new("TYPES", [number(some(rng, sizes.reply_max.min(2000)))]),
        |_, _| Command::fail(),
    ],
    commands: &[
        Row("ECHO", Kind::Reads, |_, asked| {
            let mut text = format!("{}:", asked.id).into_bytes();
            text.extend(filler(asked.number(0)));
            Answer::Bulk(text)
        }),
        Row("LIST", Kind::Reads, |_, asked| {
            let numbers = (0..asked.number(0)).map(|at| Answer::Integer(at as i64));
            Answer::Array(std::iter::once(Answer::Simple(asked.id.to_string())).chain(numbers).collect())
        }),
        Row("MAP", Kind::Reads, |_, asked| {
            let own = (Answer::Simple("id".into()), Answer::Integer(asked.id as i64));
            let pairs = (0..asked.number(0)).map(|at| (Answer::text(number(at)), Answer::Integer(at as i64)));
            Answer::Map(std::iter::once(own).chain(pairs).collect())
        }),
        Row("TYPES", Kind::Reads, types),
        // It runs, and answers an error.
        Row("FAIL", Kind::Writes, |_, asked| Answer::Error(format!("ERR failed {}", asked.id))),
    ],
};

/// A tree of every type, which its argument decides.
fn types(_: &mut Store, asked: &Asked<'_>) -> Answer {
    let rng = &mut Rng::new(asked.number(0) as u64);
    let items = (0..asked.number(0) % 7).map(|_| tree(rng, 4)).collect();
    asked.answer(Answer::Array(items))
}

fn tree(rng: &mut Rng, depth: usize) -> Answer {
    let small = |rng: &mut Rng| Answer::text(filler(some(rng, 30)));
    match rng.index(if depth == 0 { 9 } else { 12 }) {
        0 => Answer::Null,
        1 => Answer::Simple("status".into()),
        2 => Answer::Error("ERR inside of a reply".into()),
        3 => Answer::Integer(rng.next() as i64),
        4 => Answer::Double(rng.range(0..=1000) as f64 / 8.0),
        5 => Answer::Boolean(rng.coin()),
        6 => Answer::BigNumber("3492890328409238509324850943850943825024385".into()),
        7 => Answer::Verbatim(String::from_utf8(filler(some(rng, 20))).expect("letters")),
        8 => small(rng),
        9 => Answer::Array((0..rng.index(4)).map(|_| tree(rng, depth - 1)).collect()),
        10 => Answer::Set((0..rng.index(4)).map(|at| Answer::Integer(at as i64)).collect()),
        _ => Answer::Map((0..rng.index(3)).map(|_| (small(rng), tree(rng, depth - 1))).collect()),
    }
}
