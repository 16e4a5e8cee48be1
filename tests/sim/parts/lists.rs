//! Lists.

use super::{Asked, Command, Kind, Part, Row, Store, Thing, any_key, number, some, word};
use crate::answer::Answer;
use std::collections::VecDeque;

pub const PART: Part = Part {
    asks: &[
        |rng, sizes| Command::new("RPUSH", [any_key(rng), word(rng, sizes.value_max.min(300))]),
        |rng, _| Command::new("LPOP", [any_key(rng)]),
        |rng, _| Command::new("LRANGE", [any_key(rng), number(some(rng, 3)), number(some(rng, 20))]),
    ],
    commands: &[
        Row("RPUSH", Kind::Writes, |store, asked| {
            let entry = store.things.entry(asked.key()).or_insert_with(|| Thing::List(VecDeque::new()));
            let Thing::List(list) = entry else { return asked.wrong_type() };
            list.push_back(asked.args[1].to_vec());
            asked.answer(Answer::Integer(list.len() as i64))
        }),
        Row("LPOP", Kind::Writes, pop),
        Row("LRANGE", Kind::Reads, |store, asked| {
            let empty = VecDeque::new();
            let list = match store.things.get(&asked.key()) {
                None => &empty,
                Some(Thing::List(list)) => list,
                Some(_) => return asked.wrong_type(),
            };
            let items =
                list.iter().skip(asked.number(1)).take((asked.number(2) + 1).saturating_sub(asked.number(1)));
            asked.answer(Answer::Array(items.map(|item| Answer::Bulk(item.clone())).collect()))
        }),
    ],
};

/// An empty list is no list.
fn pop(store: &mut Store, asked: &Asked<'_>) -> Answer {
    let key = asked.key();
    let first = match store.things.get_mut(&key) {
        None => None,
        Some(Thing::List(list)) => {
            let first = list.pop_front();
            if list.is_empty() {
                store.things.remove(&key);
            }
            first
        }
        Some(_) => return asked.wrong_type(),
    };
    asked.answer(first.map_or(Answer::Null, Answer::Bulk))
}
