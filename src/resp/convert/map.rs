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

/// Calls `each` once per pair, with the decoder at the key.
fn pairs<K: FromReply, V: FromReply>(
    decoder: &mut Decoder<'_>,
    wanted: &'static str,
    mut begin: impl FnMut(usize),
    mut each: impl FnMut(K, V),
) -> Result<(), Error> {
    let (kind, count) = open(decoder, wanted)?;
    let room = capacity(decoder, count);
    let nested =
        kind != b'%' && matches!(decoder.clone().head(), Ok(Head::Aggregate(..))) && count != Some(0);
    if nested {
        begin(room);
        return elements(decoder, count, |decoder| {
            let (key, value) = super::tuple::pair(decoder, wanted)?;
            each(key, value);
            Ok(())
        });
    }
    begin(room / 2);
    match count {
        Some(count) if count % 2 == 1 => Err(mismatch("an array of odd length", wanted)),
        Some(count) => elements(decoder, Some(count / 2), |decoder| {
            each(K::from_reply(decoder)?, V::from_reply(decoder)?);
            Ok(())
        }),
        None => elements(decoder, None, |decoder| {
            let key = K::from_reply(decoder)?;
            if ends(decoder)? {
                return Err(mismatch("an array of odd length", wanted));
            }
            each(key, V::from_reply(decoder)?);
            Ok(())
        }),
    }
}

/// `Vec<(K, V)>` keeps the order and duplicates.
pub(super) fn list<K: FromReply, V: FromReply>(decoder: &mut Decoder<'_>) -> Result<Vec<(K, V)>, Error> {
    let list = std::cell::RefCell::new(Vec::new());
    pairs(
        decoder,
        "a list of pairs",
        |room| list.borrow_mut().reserve(room),
        |key, value| {
            list.borrow_mut().push((key, value));
        },
    )?;
    Ok(list.into_inner())
}

impl<K: FromReply + Eq + Hash, V: FromReply, S: BuildHasher + Default> FromReply for HashMap<K, V, S> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let mut map = HashMap::default();
        pairs(
            decoder,
            "a map",
            |_| {},
            |key, value| {
                map.insert(key, value);
            },
        )?;
        Ok(map)
    }
}

impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let mut map = BTreeMap::new();
        pairs(
            decoder,
            "a map",
            |_| {},
            |key, value| {
                map.insert(key, value);
            },
        )?;
        Ok(map)
    }
}
