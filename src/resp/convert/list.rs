//! Lists and sets.

use super::{FromReply, mismatch, refused};
use crate::buf::Payload;
use crate::error::Error;
use crate::resp::decoder::{Decoder, Head};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};

/// The head of any aggregate, as the number of values inside; `None` is a streamed one.
pub(super) fn open(decoder: &mut Decoder<'_>, wanted: &'static str) -> Result<(u8, Option<u64>), Error> {
    match decoder.head()? {
        Head::Aggregate(kind @ b'%', Some(pairs)) => Ok((kind, Some(pairs.saturating_mul(2)))),
        Head::Aggregate(kind, count) => Ok((kind, count)),
        head => Err(refused(decoder, head, wanted)),
    }
}

/// Room for `count` elements, which need three bytes each at least: never more than arrived.
pub(super) fn capacity(decoder: &Decoder<'_>, count: Option<u64>) -> usize {
    count.unwrap_or(0).min(decoder.remaining() as u64 / 3) as usize
}

/// True when a streamed aggregate ends here; its end is passed then.
pub(super) fn ends(decoder: &mut Decoder<'_>) -> Result<bool, Error> {
    let mut ahead = decoder.clone();
    let end = matches!(ahead.head()?, Head::End);
    if end {
        *decoder = ahead;
    }
    Ok(end)
}

/// Reads the elements of an open aggregate, one per call of `each`.
pub(super) fn elements<'a>(
    decoder: &mut Decoder<'a>,
    count: Option<u64>,
    mut each: impl FnMut(&mut Decoder<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    match count {
        Some(count) => {
            for _ in 0..count {
                each(decoder)?;
            }
        }
        None => {
            while !ends(decoder)? {
                each(decoder)?;
            }
        }
    }
    Ok(())
}

/// The elements of an array, set or push; a map gives keys and values in turn, as RESP2 sends it.
pub(super) fn read<T: FromReply>(decoder: &mut Decoder<'_>) -> Result<Vec<T>, Error> {
    let (_, count) = open(decoder, "a list")?;
    let mut list = Vec::with_capacity(capacity(decoder, count));
    elements(decoder, count, |decoder| {
        list.push(T::from_reply(decoder)?);
        Ok(())
    })?;
    Ok(list)
}

/// Bytes are a string, pairs may be a map: see [`FromReply::list_from_reply`].
impl<T: FromReply> FromReply for Vec<T> {
    #[inline]
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        T::list_from_reply(decoder)
    }

    #[inline]
    fn from_payload(payload: Payload) -> Result<Self, Error> {
        T::list_from_payload(payload)
    }
}

impl<T: FromReply> FromReply for VecDeque<T> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(T::list_from_reply(decoder)?.into())
    }
}

impl<T: FromReply> FromReply for Box<[T]> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(T::list_from_reply(decoder)?.into())
    }
}

impl<T: FromReply, const N: usize> FromReply for [T; N] {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        T::list_from_reply(decoder)?
            .try_into()
            .map_err(|_| mismatch("of another length", "an array of fixed length"))
    }
}

impl<T: FromReply + Eq + Hash, S: BuildHasher + Default> FromReply for HashSet<T, S> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(read::<T>(decoder)?.into_iter().collect())
    }
}

impl<T: FromReply + Ord> FromReply for BTreeSet<T> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(read::<T>(decoder)?.into_iter().collect())
    }
}
