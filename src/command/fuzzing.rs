//! Any bytes as the replies that have a type of their own.

use super::typed::reply::{Cursor, KeyType, Milliseconds, Seconds, ServerTime, TimeToLive};
use crate::resp::fuzzing::read_as;

/// Any bytes, never validated, as a reply.
pub fn decode(data: &[u8]) {
    read_as::<Cursor>(data, false);
    read_as::<KeyType>(data, false);
    read_as::<ServerTime>(data, false);
    read_as::<TimeToLive<Seconds>>(data, false);
    read_as::<TimeToLive<Milliseconds>>(data, false);
    read_as::<(Cursor, Vec<String>)>(data, false);
}
