//! Hashes.

use super::{Command, Kind, Part, Row, Thing, any_key, word};
use crate::answer::Answer;
use std::collections::BTreeMap;

pub const PART: Part = Part {
    asks: &[
        |rng, sizes| Command::new("HSET", [any_key(rng), word(rng, 8), word(rng, sizes.value_max.min(300))]),
        |rng, _| Command::new("HGET", [any_key(rng), word(rng, 8)]),
        |rng, _| Command::new("HGETALL", [any_key(rng)]),
    ],
    commands: &[
        Row("HSET", Kind::Writes, |store, asked| {
            let entry = store.things.entry(asked.key()).or_insert_with(|| Thing::Hash(BTreeMap::new()));
            let Thing::Hash(hash) = entry else { return asked.wrong_type() };
            let is_new = hash.insert(asked.args[1].to_vec(), asked.args[2].to_vec()).is_none();
            asked.answer(Answer::Integer(is_new.into()))
        }),
        Row("HGET", Kind::Reads, |store, asked| match store.things.get(&asked.key()) {
            None => asked.answer(Answer::Null),
            Some(Thing::Hash(hash)) => asked
                .answer(hash.get(asked.args[1]).map_or(Answer::Null, |value| Answer::Bulk(value.clone()))),
            Some(_) => asked.wrong_type(),
        }),
        Row("HGETALL", Kind::Reads, |store, asked| match store.things.get(&asked.key()) {
            None => asked.answer(Answer::Map(Vec::new())),
            Some(Thing::Hash(hash)) => {
                let pair = |(field, value): (&Vec<u8>, &Vec<u8>)| {
                    (Answer::Bulk(field.clone()), Answer::Bulk(value.clone()))
                };
                asked.answer(Answer::Map(hash.iter().map(pair).collect()))
            }
            Some(_) => asked.wrong_type(),
        }),
    ],
};
