//! Counters: a write that runs twice shows.

use super::{Asked, Command, Kind, Part, Row, Store, Thing, number, some};
use crate::answer::Answer;

pub const PART: Part = Part {
    asks: &[
        |rng, _| Command::incr(rng.index(4) as u8),
        |rng, _| Command::new("INCRBY", [b"a".to_vec(), number(some(rng, 100))]),
    ],
    commands: &[
        Row("INCR", Kind::Writes, |store, asked| add(store, asked, 1)),
        Row("INCRBY", Kind::Writes, |store, asked| add(store, asked, asked.number(1) as i64)),
    ],
};

fn add(store: &mut Store, asked: &Asked<'_>, amount: i64) -> Answer {
    let no_number = || Answer::Error(format!("ERR value is not an integer or out of range ({})", asked.id));
    let entry = store.things.entry(asked.key()).or_insert_with(|| Thing::Text(b"0".to_vec()));
    let Thing::Text(bytes) = entry else { return asked.wrong_type() };
    let Some(value) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i64>().ok()) else {
        return no_number();
    };
    let Some(sum) = value.checked_add(amount) else { return no_number() };
    *bytes = sum.to_string().into_bytes();
    asked.answer(Answer::Integer(sum))
}
