//! Strings and counters.
//!
//! **Invariant.** A command checks everything before it changes anything: a bad option after a good one leaves the key as
//! it was. Overwriting a string reuses its memory.

use super::number::{float, integer, parse_float, parse_integer};
use super::store::{Bytes, Entry, Value};
use super::{Call, Failure, Outcome};

pub(super) fn get(call: &mut Call<'_>) -> Outcome {
    let value = call.store.read::<Bytes>(call.args.at(1))?;
    call.reply.bulk_or_null(value.map(|value| &**value));
    Ok(())
}

/// What the options of SET and GETEX ask for.
#[derive(Default)]
struct Options {
    only_absent: bool,
    only_present: bool,
    returns_old: bool,
    expiry: Expiry,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Expiry {
    #[default]
    Unspecified,
    Keep,
    Persist,
    At(i64),
}

/// Turns a number and its unit into a moment; the number must be positive.
fn moment(call: &Call<'_>, number: &[u8], unit: i64, relative: bool) -> Result<i64, Failure> {
    let name = call.command.name;
    let invalid = || Failure::text(format!("ERR invalid expire time in '{name}' command"));
    let number = integer(number)?;
    if number <= 0 {
        return Err(invalid());
    }
    let base = if relative { call.store.now } else { 0 };
    number.checked_mul(unit).and_then(|ms| ms.checked_add(base)).ok_or_else(invalid)
}

/// Reads the options from `at` on. `is_set` tells SET's options from GETEX's.
fn options(call: &Call<'_>, mut at: usize, is_set: bool) -> Result<Options, Failure> {
    let mut options = Options::default();
    while let Some(word) = call.args.get(at) {
        at += 1;
        let expiry = match &*word.to_ascii_uppercase() {
            b"NX" if is_set && !options.only_present => {
                options.only_absent = true;
                continue;
            }
            b"XX" if is_set && !options.only_absent => {
                options.only_present = true;
                continue;
            }
            b"GET" if is_set => {
                options.returns_old = true;
                continue;
            }
            b"KEEPTTL" if is_set => Expiry::Keep,
            b"PERSIST" if !is_set => Expiry::Persist,
            unit @ (b"EX" | b"PX" | b"EXAT" | b"PXAT") => {
                let number = call.args.get(at).ok_or(Failure::Syntax)?;
                at += 1;
                let factor = if unit.starts_with(b"EX") { 1000 } else { 1 };
                // A second expiry is a syntax error even when its number is bad.
                if options.expiry != Expiry::Unspecified {
                    return Err(Failure::Syntax);
                }
                Expiry::At(moment(call, number, factor, unit.len() == 2)?)
            }
            _ => return Err(Failure::Syntax),
        };
        if options.expiry != Expiry::Unspecified {
            return Err(Failure::Syntax);
        }
        options.expiry = expiry;
    }
    Ok(options)
}

pub(super) fn set(call: &mut Call<'_>) -> Outcome {
    let (key, value) = (call.args.at(1), call.args.at(2));
    if call.args.len() == 3 {
        call.store.insert_bytes(key, value, None);
        call.reply.ok();
        return Ok(());
    }
    let options = options(call, 3, true)?;
    let (exists, old_expiry) = match call.store.entry(key) {
        Some(entry) => (true, entry.expires_at),
        None => (false, None),
    };
    if options.returns_old {
        let old = call.store.read::<Bytes>(key)?;
        call.reply.bulk_or_null(old.map(|old| &**old));
    }
    let refused = (options.only_absent && exists) || (options.only_present && !exists);
    if !refused {
        let expires_at = match options.expiry {
            Expiry::At(moment) => Some(moment),
            Expiry::Keep => old_expiry,
            Expiry::Unspecified | Expiry::Persist => None,
        };
        call.store.insert_bytes(key, value, expires_at);
    }
    match (options.returns_old, refused) {
        (true, _) => {}
        (false, true) => call.reply.null(),
        (false, false) => call.reply.ok(),
    }
    Ok(())
}

pub(super) fn getdel(call: &mut Call<'_>) -> Outcome {
    get(call)?;
    call.store.remove(call.args.at(1));
    Ok(())
}

pub(super) fn getex(call: &mut Call<'_>) -> Outcome {
    let options = options(call, 2, false)?;
    get(call)?;
    match options.expiry {
        Expiry::At(moment) => call.store.expire(call.args.at(1), Some(moment)),
        Expiry::Persist => call.store.expire(call.args.at(1), None),
        Expiry::Unspecified | Expiry::Keep => {}
    }
    Ok(())
}

pub(super) fn getset(call: &mut Call<'_>) -> Outcome {
    get(call)?;
    call.store.insert_bytes(call.args.at(1), call.args.at(2), None);
    Ok(())
}

pub(super) fn setnx(call: &mut Call<'_>) -> Outcome {
    let absent = call.store.entry(call.args.at(1)).is_none();
    if absent {
        call.store.insert_bytes(call.args.at(1), call.args.at(2), None);
    }
    call.reply.flag(absent);
    Ok(())
}

pub(super) fn setex(call: &mut Call<'_>) -> Outcome {
    set_expiring(call, 1000)
}

pub(super) fn psetex(call: &mut Call<'_>) -> Outcome {
    set_expiring(call, 1)
}

fn set_expiring(call: &mut Call<'_>, unit: i64) -> Outcome {
    let due = moment(call, call.args.at(2), unit, true)?;
    call.store.insert_bytes(call.args.at(1), call.args.at(3), Some(due));
    call.reply.ok();
    Ok(())
}

pub(super) fn mget(call: &mut Call<'_>) -> Outcome {
    let keys = call.args.from(1);
    call.reply.array(keys.len());
    for key in keys {
        // A value of another kind is a null here, not an error.
        let value = call.store.read::<Bytes>(key).unwrap_or_default();
        call.reply.bulk_or_null(value.map(|value| &**value));
    }
    Ok(())
}

pub(super) fn mset(call: &mut Call<'_>) -> Outcome {
    set_pairs(call)?;
    call.reply.ok();
    Ok(())
}

pub(super) fn msetnx(call: &mut Call<'_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return Err(Failure::Arity);
    }
    let absent = call.args.from(1).step_by(2).all(|key| call.store.entry(key).is_none());
    if absent {
        set_pairs(call)?;
    }
    call.reply.flag(absent);
    Ok(())
}

fn set_pairs(call: &mut Call<'_>) -> Outcome {
    if call.args.len().is_multiple_of(2) {
        return Err(Failure::Arity);
    }
    for at in (1..call.args.len()).step_by(2) {
        call.store.insert_bytes(call.args.at(at), call.args.at(at + 1), None);
    }
    Ok(())
}

pub(super) fn append(call: &mut Call<'_>) -> Outcome {
    let value = call.store.write::<Bytes>(call.args.at(1))?;
    value.extend_from_slice(call.args.at(2));
    call.reply.count(value.len());
    Ok(())
}

pub(super) fn strlen(call: &mut Call<'_>) -> Outcome {
    let length = call.store.read::<Bytes>(call.args.at(1))?.map_or(0, |value| value.len());
    call.reply.count(length);
    Ok(())
}

pub(super) fn incr(call: &mut Call<'_>) -> Outcome {
    add(call, 1)
}

pub(super) fn decr(call: &mut Call<'_>) -> Outcome {
    add(call, -1)
}

pub(super) fn incrby(call: &mut Call<'_>) -> Outcome {
    add(call, integer(call.args.at(2))?)
}

pub(super) fn decrby(call: &mut Call<'_>) -> Outcome {
    let step = integer(call.args.at(2))?;
    add(call, step.checked_neg().ok_or(Failure::text("ERR decrement would overflow"))?)
}

fn add(call: &mut Call<'_>, step: i64) -> Outcome {
    let key = call.args.at(1);
    let stored = call.store.read::<Bytes>(key)?;
    let old = match &stored {
        Some(old) => parse_integer(old).ok_or(Failure::NotInteger)?,
        None => 0,
    };
    let new = old.checked_add(step).ok_or(Failure::text("ERR increment or decrement would overflow"))?;
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(new).as_bytes();
    match stored {
        Some(stored) => {
            stored.clear();
            stored.extend_from_slice(text);
        }
        None => call.store.insert(key, Value::Bytes(text.to_vec()), None),
    }
    call.reply.integer(new);
    Ok(())
}

pub(super) fn incrbyfloat(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let old = match call.store.entry(key) {
        None => 0.0,
        Some(Entry { value: Value::Bytes(old), .. }) => parse_float(old).ok_or(Failure::NotFloat)?,
        Some(_) => return Err(Failure::WrongType),
    };
    let new = old + float(call.args.at(2))?;
    if !new.is_finite() {
        return Err(Failure::text("ERR increment would produce NaN or Infinity"));
    }
    let text = sum_text(new);
    let stored = call.store.write::<Bytes>(key)?;
    stored.clear();
    stored.extend_from_slice(text.as_bytes());
    call.reply.bulk(text.as_bytes());
    Ok(())
}

/// The real server adds in extended precision; rounding to 16 digits hides that we do not (0.1 + 0.2 is 0.3).
fn sum_text(sum: f64) -> String {
    let rounded = format!("{sum:.15e}").parse::<f64>().unwrap_or(sum);
    format!("{rounded}")
}
