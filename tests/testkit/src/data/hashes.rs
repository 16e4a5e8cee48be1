//! Hashes: fields of a key.

use super::number::{integer, parse_integer};
use super::store::Hash;
use super::{Call, Failure, Outcome};

pub(super) fn hset(call: &mut Call<'_>) -> Outcome {
    if !call.args.len().is_multiple_of(2) {
        return Err(Failure::Arity);
    }
    let hash = call.store.write::<Hash>(call.args.at(1))?;
    let mut added = 0;
    for at in (2..call.args.len()).step_by(2) {
        let value = call.args.at(at + 1);
        match hash.get_mut(call.args.at(at)) {
            Some(old) => {
                old.clear();
                old.extend_from_slice(value);
            }
            None => {
                hash.insert(call.args.at(at).to_vec(), value.to_vec());
                added += 1;
            }
        }
    }
    call.reply.count(added);
    Ok(())
}

pub(super) fn hsetnx(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.write::<Hash>(call.args.at(1))?;
    let absent = !hash.contains_key(call.args.at(2));
    if absent {
        hash.insert(call.args.at(2).to_vec(), call.args.at(3).to_vec());
    }
    call.reply.flag(absent);
    Ok(())
}

pub(super) fn hget(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.read::<Hash>(call.args.at(1))?;
    let value = hash.and_then(|hash| hash.get(call.args.at(2)));
    call.reply.bulk_or_null(value.map(|value| &**value));
    Ok(())
}

pub(super) fn hmget(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.read::<Hash>(call.args.at(1))?;
    let fields = call.args.from(2);
    call.reply.array(fields.len());
    for field in fields {
        let value = hash.as_ref().and_then(|hash| hash.get(field));
        call.reply.bulk_or_null(value.map(|value| &**value));
    }
    Ok(())
}

pub(super) fn hgetall(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.read::<Hash>(call.args.at(1))?;
    call.reply.map(hash.as_ref().map_or(0, |hash| hash.len()));
    for (field, value) in hash.into_iter().flatten() {
        call.reply.bulk(field);
        call.reply.bulk(value);
    }
    Ok(())
}

pub(super) fn hdel(call: &mut Call<'_>) -> Outcome {
    let fields = call.args.from(2);
    let removed = call.store.edit(call.args.at(1), |hash: &mut Hash| {
        fields.filter(|field| hash.remove(*field).is_some()).count()
    })?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn hexists(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.read::<Hash>(call.args.at(1))?;
    call.reply.flag(hash.is_some_and(|hash| hash.contains_key(call.args.at(2))));
    Ok(())
}

pub(super) fn hlen(call: &mut Call<'_>) -> Outcome {
    let length = call.store.read::<Hash>(call.args.at(1))?.map_or(0, |hash| hash.len());
    call.reply.count(length);
    Ok(())
}

pub(super) fn hkeys(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.read::<Hash>(call.args.at(1))?;
    call.reply.array(hash.as_ref().map_or(0, |hash| hash.len()));
    hash.into_iter().flatten().for_each(|(field, _)| call.reply.bulk(field));
    Ok(())
}

pub(super) fn hvals(call: &mut Call<'_>) -> Outcome {
    let hash = call.store.read::<Hash>(call.args.at(1))?;
    call.reply.array(hash.as_ref().map_or(0, |hash| hash.len()));
    hash.into_iter().flatten().for_each(|(_, value)| call.reply.bulk(value));
    Ok(())
}

pub(super) fn hincrby(call: &mut Call<'_>) -> Outcome {
    let (key, field) = (call.args.at(1), call.args.at(2));
    let step = integer(call.args.at(3))?;
    let old = match call.store.read::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(old) => parse_integer(old).ok_or(Failure::text("ERR hash value is not an integer"))?,
        None => 0,
    };
    let new = old.checked_add(step).ok_or(Failure::text("ERR increment or decrement would overflow"))?;
    call.store.write::<Hash>(key)?.insert(field.to_vec(), new.to_string().into_bytes());
    call.reply.integer(new);
    Ok(())
}
