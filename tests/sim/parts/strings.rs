//! Strings.

use super::{Asked, Command, Kind, Part, Row, Store, Thing, any_key, some, word};
use crate::answer::Answer;

pub const PART: Part = Part {
    asks: &[
        |rng, _| Command::new("GET", [any_key(rng)]),
        |rng, sizes| Command::new("SET", [any_key(rng), vec![b'v'; some(rng, sizes.value_max)]]),
        |rng, sizes| Command::new("SET", [any_key(rng), word(rng, sizes.value_max)]),
        |rng, _| Command::new("APPEND", [any_key(rng), word(rng, 20)]),
        |rng, _| Command::new("DEL", [any_key(rng)]),
    ],
    commands: &[
        Row("GET", Kind::Reads, |store, asked| match store.things.get(&asked.key()) {
            None => asked.answer(Answer::Null),
            Some(Thing::Text(bytes)) => asked.answer(Answer::Bulk(bytes.clone())),
            Some(_) => asked.wrong_type(),
        }),
        Row("SET", Kind::Writes, |store, asked| {
            store.things.insert(asked.key(), Thing::Text(asked.args[1].to_vec()));
            Answer::Simple(format!("OK {}", asked.id))
        }),
        Row("APPEND", Kind::Writes, append),
        Row("DEL", Kind::Writes, |store, asked| {
            let gone = store.things.remove(&asked.key()).is_some();
            asked.answer(Answer::Integer(gone.into()))
        }),
    ],
};

fn append(store: &mut Store, asked: &Asked<'_>) -> Answer {
    match store.things.entry(asked.key()).or_insert_with(|| Thing::Text(Vec::new())) {
        Thing::Text(bytes) => {
            bytes.extend_from_slice(asked.args[1]);
            asked.answer(Answer::Integer(bytes.len() as i64))
        }
        _ => asked.wrong_type(),
    }
}
