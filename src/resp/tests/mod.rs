//! Tests of the whole layer: both directions, every split, and a second parser to compare with.

mod convert;
mod encode;
mod fuzzing;
mod limits;
mod random;
mod vectors;

use super::{FromReply, Limits, Reply};
use crate::buf::{Chain, Glance, Payload, Spares};
use crate::error::Error;

/// A payload that was copied, of which nothing is known.
fn copy_of(wire: &[u8]) -> Payload {
    Spares::default().copy_of(wire, Glance::Unknown)
}

/// A payload that is held where it arrived.
fn held(mut chain: Chain) -> Payload {
    Spares::default().held(&mut chain, Glance::Unknown)
}

/// A reply as the type, read in place; and from single-byte segments, with the same result.
fn read<T: FromReply + PartialEq + std::fmt::Debug>(wire: &[u8]) -> Result<T, Error> {
    let chain = super::fuzzing::chain(wire, 1);
    let value = T::from_payload(copy_of(wire));
    assert_eq!(T::from_payload(held(chain)), value);
    value
}

fn reply(wire: &[u8]) -> Reply {
    Reply::from_payload(copy_of(wire)).unwrap()
}

/// The error of a stream under RESP3, which must be there whatever the pieces.
fn refusal(wire: &[u8], limits: Limits, resp3: bool) -> String {
    let (_, whole) = super::fuzzing::frames([wire], limits, resp3);
    let (_, single) = super::fuzzing::frames(wire.chunks(1), limits, resp3);
    assert!(single.is_some());
    whole.unwrap_or_else(|| panic!("accepted: {:?}", String::from_utf8_lossy(wire))).message.into_owned()
}
