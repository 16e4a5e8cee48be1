//! GETRANGE and SETRANGE: parts of strings.
//!
//! **Invariant.** No string grows beyond the limit for bulk strings; otherwise one command could take all memory.

use super::number::{index_range, integer};
use super::store::Bytes;
use super::{Call, Failure, Outcome};
use crate::request::BULK_BYTES_MAX;

pub(super) fn getrange(call: &mut Call<'_>) -> Outcome {
    let (start, end) = (integer(call.args.at(2))?, integer(call.args.at(3))?);
    let value = call.store.read::<Bytes>(call.args.at(1))?;
    call.reply.bulk(value.map_or(b"", |value| &value[index_range(start, end, value.len())]));
    Ok(())
}

pub(super) fn setrange(call: &mut Call<'_>) -> Outcome {
    let (key, patch) = (call.args.at(1), call.args.at(3));
    let offset = integer(call.args.at(2))?;
    let Ok(start) = usize::try_from(offset) else {
        return Err(Failure::text("ERR offset is out of range"));
    };
    if patch.is_empty() {
        let length = call.store.read::<Bytes>(key)?.map_or(0, |value| value.len());
        call.reply.count(length);
        return Ok(());
    }
    let end = start.saturating_add(patch.len());
    if end as u64 > BULK_BYTES_MAX as u64 {
        return Err(Failure::text("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    let value = call.store.write::<Bytes>(key)?;
    if value.len() < end {
        value.resize(end, 0);
    }
    value[start..end].copy_from_slice(patch);
    call.reply.count(value.len());
    Ok(())
}
