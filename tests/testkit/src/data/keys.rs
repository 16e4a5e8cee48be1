//! Keys as such: removing, expiring, renaming, listing.
//!
//! **Problem.** SCAN must return every key that stays, although keys come and go between its calls, and without the
//! server keeping a cursor.
//!
//! **Idea.** The cursor is a position in the order of the keys' hashes: a call returns the next keys in that order and the
//! position behind them.
//!
//! **Invariant.** Keys of equal hash are returned together, so none falls between two calls. Cursor 0 is start and end.

use super::number::{integer, parse_integer};
use super::{Call, Failure, Outcome, glob, hasher};

const SCAN_COUNT: usize = 10;

pub(super) fn del(call: &mut Call<'_>) -> Outcome {
    let removed = call.args.from(1).filter(|key| call.store.remove(key).is_some()).count();
    call.reply.count(removed);
    Ok(())
}

pub(super) fn exists(call: &mut Call<'_>) -> Outcome {
    let found = call.args.from(1).filter(|key| call.store.entry(key).is_some()).count();
    call.reply.count(found);
    Ok(())
}

pub(super) fn expire(call: &mut Call<'_>) -> Outcome {
    expire_in(call, 1000, true)
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Outcome {
    expire_in(call, 1, true)
}

pub(super) fn expireat(call: &mut Call<'_>) -> Outcome {
    expire_in(call, 1000, false)
}

pub(super) fn pexpireat(call: &mut Call<'_>) -> Outcome {
    expire_in(call, 1, false)
}

fn expire_in(call: &mut Call<'_>, unit: i64, relative: bool) -> Outcome {
    let key = call.args.at(1);
    let name = call.command.name;
    let invalid = || Failure::text(format!("ERR invalid expire time in '{name}' command"));
    let (mut absent, mut present, mut greater, mut less) = (false, false, false, false);
    for flag in call.args.from(3) {
        match &*flag.to_ascii_uppercase() {
            b"NX" => absent = true,
            b"XX" => present = true,
            b"GT" => greater = true,
            b"LT" => less = true,
            _ => {
                let flag = String::from_utf8_lossy(flag).into_owned();
                return Err(Failure::text(format!("ERR Unsupported option {flag}")));
            }
        }
    }
    if absent && (present || greater || less) {
        return Err(Failure::text("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if greater && less {
        return Err(Failure::text("ERR GT and LT options at the same time are not compatible"));
    }
    let base = if relative { call.store.now } else { 0 };
    let number = integer(call.args.at(2))?;
    let due = number.checked_mul(unit).and_then(|ms| ms.checked_add(base)).ok_or_else(invalid)?;
    let Some(entry) = call.store.entry(key) else {
        call.reply.flag(false);
        return Ok(());
    };
    // No time to live counts as infinite for GT and LT.
    let current = entry.expires_at;
    let refused = (absent && current.is_some())
        || (present && current.is_none())
        || (greater && current.is_none_or(|current| due <= current))
        || (less && current.is_some_and(|current| due >= current));
    if !refused {
        call.store.expire(key, Some(due));
    }
    call.reply.flag(!refused);
    Ok(())
}

pub(super) fn ttl(call: &mut Call<'_>) -> Outcome {
    // Rounded, as the real server does it: EX 10 answers 10 just afterwards.
    remaining(call, |ms| (ms + 500) / 1000)
}

pub(super) fn pttl(call: &mut Call<'_>) -> Outcome {
    remaining(call, |ms| ms)
}

fn remaining(call: &mut Call<'_>, unit: fn(i64) -> i64) -> Outcome {
    let now = call.store.now;
    call.reply.integer(match call.store.entry(call.args.at(1)).map(|entry| entry.expires_at) {
        None => -2,
        Some(None) => -1,
        Some(Some(due)) => unit(due - now),
    });
    Ok(())
}

pub(super) fn persist(call: &mut Call<'_>) -> Outcome {
    let had = call.store.entry(call.args.at(1)).and_then(|entry| entry.expires_at.take());
    call.reply.flag(had.is_some());
    Ok(())
}

pub(super) fn type_of(call: &mut Call<'_>) -> Outcome {
    let name = call.store.entry(call.args.at(1)).map_or("none", |entry| entry.value.type_name());
    call.reply.simple(name);
    Ok(())
}

pub(super) fn rename(call: &mut Call<'_>) -> Outcome {
    let entry = call.store.remove(call.args.at(1)).ok_or(Failure::NoSuchKey)?;
    call.store.insert(call.args.at(2), entry.value, entry.expires_at);
    call.reply.ok();
    Ok(())
}

pub(super) fn keys(call: &mut Call<'_>) -> Outcome {
    let pattern = call.args.at(1);
    let mut found: Vec<&[u8]> =
        call.store.keys().map(|(key, _)| key).filter(|key| glob::matches(pattern, key)).collect();
    found.sort_unstable();
    call.reply.array(found.len());
    found.into_iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

pub(super) fn scan(call: &mut Call<'_>) -> Outcome {
    let cursor = std::str::from_utf8(call.args.at(1)).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or(Failure::text("ERR invalid cursor"))?;
    let (mut count, mut pattern, mut kind) = (SCAN_COUNT, None, None);
    for at in (2..call.args.len()).step_by(2) {
        let value = call.args.get(at + 1).ok_or(Failure::Syntax)?;
        match &*call.args[at].to_ascii_uppercase() {
            b"COUNT" => {
                let given = parse_integer(value).ok_or(Failure::NotInteger)?;
                count = usize::try_from(given).ok().filter(|count| *count > 0).ok_or(Failure::Syntax)?;
            }
            b"MATCH" => pattern = Some(value),
            b"TYPE" => kind = Some(value.to_ascii_lowercase()),
            _ => return Err(Failure::Syntax),
        }
    }

    // One bit less, so that "behind the last" is still a number; never 0, which is the start.
    let position = |key: &[u8]| (hasher::hash(key) >> 1).max(1);
    let mut ahead: Vec<(u64, &[u8], &'static str)> = call
        .store
        .keys()
        .map(|(key, entry)| (position(key), key, entry.value.type_name()))
        .filter(|(position, ..)| *position >= cursor)
        .collect();
    ahead.sort_unstable();
    let mut taken = count.min(ahead.len());
    while taken > 0 && taken < ahead.len() && ahead[taken].0 == ahead[taken - 1].0 {
        taken += 1;
    }
    let next = if taken == ahead.len() { 0 } else { ahead[taken].0 };
    ahead.truncate(taken);
    ahead.retain(|(_, key, type_name)| {
        pattern.is_none_or(|pattern| glob::matches(pattern, key))
            && kind.as_ref().is_none_or(|kind| kind == type_name.as_bytes())
    });
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(ahead.len());
    ahead.into_iter().for_each(|(_, key, _)| call.reply.bulk(key));
    Ok(())
}
