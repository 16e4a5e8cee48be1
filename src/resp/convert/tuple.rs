//! Tuples: arrays of exactly that length.

use super::list::{ends, open};
use super::{FromReply, map, mismatch};
use crate::error::Error;
use crate::resp::decoder::Decoder;

/// A two-element array, or a map with one pair.
pub(super) fn pair<A: FromReply, B: FromReply>(
    decoder: &mut Decoder<'_>,
    wanted: &'static str,
) -> Result<(A, B), Error> {
    let mut fields = Fields::open(decoder, 2, wanted)?;
    let pair = (fields.read(decoder)?, fields.read(decoder)?);
    fields.close(decoder)?;
    Ok(pair)
}

/// Reads the fields of a tuple and checks that there are neither fewer nor more.
struct Fields {
    streamed: bool,
    wanted: &'static str,
}

impl Fields {
    fn open(decoder: &mut Decoder<'_>, want: u64, wanted: &'static str) -> Result<Self, Error> {
        let (_, count) = open(decoder, wanted)?;
        match count {
            Some(count) if count != want => Err(mismatch("an array of another length", wanted)),
            count => Ok(Self { streamed: count.is_none(), wanted }),
        }
    }

    fn read<T: FromReply>(&mut self, decoder: &mut Decoder<'_>) -> Result<T, Error> {
        if self.streamed && ends(decoder)? {
            return Err(mismatch("an array of another length", self.wanted));
        }
        T::from_reply(decoder)
    }

    fn close(self, decoder: &mut Decoder<'_>) -> Result<(), Error> {
        if self.streamed && !ends(decoder)? {
            return Err(mismatch("an array of another length", self.wanted));
        }
        Ok(())
    }
}

impl<A: FromReply, B: FromReply> FromReply for (A, B) {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        pair(decoder, "a tuple of 2")
    }

    /// A list of pairs has the three shapes of a map.
    fn list_from_reply(decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Error> {
        map::list(decoder)
    }
}

macro_rules! tuples {
    ($($count:literal $wanted:literal: $($name:ident)*;)*) => {$(
        impl<$($name: FromReply),*> FromReply for ($($name,)*) {
            fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
                let mut fields = Fields::open(decoder, $count, $wanted)?;
                let tuple = ($(fields.read::<$name>(decoder)?,)*);
                fields.close(decoder)?;
                Ok(tuple)
            }
        }
    )*};
}

tuples! {
    1 "a tuple of 1": A;
    3 "a tuple of 3": A B C;
    4 "a tuple of 4": A B C D;
    5 "a tuple of 5": A B C D E;
    6 "a tuple of 6": A B C D E F;
    7 "a tuple of 7": A B C D E F G;
    8 "a tuple of 8": A B C D E F G H;
    9 "a tuple of 9": A B C D E F G H I;
    10 "a tuple of 10": A B C D E F G H I J;
    11 "a tuple of 11": A B C D E F G H I J K;
    12 "a tuple of 12": A B C D E F G H I J K L;
}
