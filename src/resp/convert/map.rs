//! Maps, and lists of pairs.
//!
//! Three shapes mean the same: a map, an array of keys and values in turn (RESP2), and an array of two-element arrays
//! (RESP3's answer to commands such as `ZRANGE … WITHSCORES`). In an array, the first element decides: when it is an
//! array itself, all are pairs. (So keys that are arrays are read from maps and pairs only.)

use super::list::{capacity, elements, ends, open};
use super::{FromReply, mismatch};
use crate::error::Error;
use crate::resp::decoder::{Decoder, Head};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// Reads pairs into `out`: `reserve` once with how many may come, then `put` for each.
fn pairs<K: FromReply, V: FromReply, C>(
    decoder: &mut Decoder<'_>,
    wanted: &'static str,
    mut out: C,
    reserve: fn(&mut C, usize),
    put: impl Fn(&mut C, K, V),
) -> Result<C, Error> {
    let (kind, count) = open(decoder, wanted)?;
    let room = capacity(decoder, count);
    let nested =
        kind != b'%' && matches!(decoder.clone().head(), Ok(Head::Aggregate(..))) && count != Some(0);
    if nested {
        reserve(&mut out, room);
        elements(decoder, count, |decoder| {
            let (key, value) = super::tuple::pair(decoder, wanted)?;
            put(&mut out, key, value);
            Ok(())
        })?;
        return Ok(out);
    }
    reserve(&mut out, room / 2);
    match count {
        Some(count) if count % 2 == 1 => return Err(mismatch("an array of odd length", wanted)),
        Some(count) => elements(decoder, Some(count / 2), |decoder| {
            put(&mut out, K::from_reply(decoder)?, V::from_reply(decoder)?);
            Ok(())
        })?,
        None => elements(decoder, None, |decoder| {
            let key = K::from_reply(decoder)?;
            if ends(decoder)? {
                return Err(mismatch("an array of odd length", wanted));
            }
            put(&mut out, key, V::from_reply(decoder)?);
            Ok(())
        })?,
    }
    Ok(out)
}

/// `Vec<(K, V)>` keeps the order and duplicates.
pub(super) fn list<K: FromReply, V: FromReply>(decoder: &mut Decoder<'_>) -> Result<Vec<(K, V)>, Error> {
    pairs(decoder, "a list of pairs", Vec::new(), Vec::reserve, |list, key, value| list.push((key, value)))
}

impl<K: FromReply + Eq + Hash, V: FromReply, S: BuildHasher + Default> FromReply for HashMap<K, V, S> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        pairs(decoder, "a map", HashMap::default(), HashMap::reserve, |map, key, value| {
            map.insert(key, value);
        })
    }
}

impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        pairs(
            decoder,
            "a map",
            BTreeMap::new(),
            |_, _| {},
            |map, key, value| {
                map.insert(key, value);
            },
        )
    }
}
