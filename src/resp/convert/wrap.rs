//! Types around a type: optional ones, results of elements, trees.

use super::{FromReply, server_error};
use crate::buf::{Glance, Payload};
use crate::error::Error;
use crate::resp::decoder::Decoder;
use crate::resp::value::Value;

impl<T: FromReply> FromReply for Option<T> {
    #[inline]
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        if decoder.is_null() {
            decoder.skip_value()?;
            return Ok(None);
        }
        T::from_reply(decoder).map(Some)
    }

    #[inline(always)]
    fn from_payload(payload: Payload) -> Result<Self, Error> {
        if payload.glance() == Glance::Unknown && Decoder::from(&payload).is_null() {
            return Ok(None);
        }
        T::from_payload(payload).map(Some)
    }
}

/// For elements that may fail alone, as in the reply of a transaction: after a server error or a mismatch inside, the
/// rest of the element is passed over.
impl<T: FromReply> FromReply for Result<T, Error> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let before = decoder.clone();
        match T::from_reply(decoder) {
            Ok(value) => Ok(Ok(value)),
            Err(error) => {
                *decoder = before;
                decoder.skip_value()?;
                Ok(Err(error))
            }
        }
    }

    fn from_payload(payload: Payload) -> Result<Self, Error> {
        Ok(T::from_payload(payload))
    }
}

impl<T: FromReply> FromReply for Box<T> {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        T::from_reply(decoder).map(Box::new)
    }

    fn from_payload(payload: Payload) -> Result<Self, Error> {
        T::from_payload(payload).map(Box::new)
    }
}

/// An error as the whole reply fails; one inside of it is a [`Value::Error`].
impl FromReply for Value {
    fn from_reply(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(Value::decode(decoder)?)
    }

    fn from_payload(payload: Payload) -> Result<Self, Error> {
        let mut decoder = Decoder::from(&payload);
        match server_error(&mut decoder)? {
            Some(error) => Err(error),
            None => Value::from_reply(&mut decoder),
        }
    }
}
