//! Lists.

use super::number::{index_range, integer, positive};
use super::store::List;
use super::{Call, Failure, Outcome};

pub(super) fn lpush(call: &mut Call<'_>) -> Outcome {
    push(call, List::push_front)
}

pub(super) fn rpush(call: &mut Call<'_>) -> Outcome {
    push(call, List::push_back)
}

fn push(call: &mut Call<'_>, push: fn(&mut List, Vec<u8>)) -> Outcome {
    let list = call.store.write::<List>(call.args.at(1))?;
    call.args.from(2).for_each(|element| push(list, element.to_vec()));
    call.reply.count(list.len());
    Ok(())
}

pub(super) fn lpop(call: &mut Call<'_>) -> Outcome {
    pop(call, List::pop_front)
}

pub(super) fn rpop(call: &mut Call<'_>) -> Outcome {
    pop(call, List::pop_back)
}

fn pop(call: &mut Call<'_>, pop: fn(&mut List) -> Option<Vec<u8>>) -> Outcome {
    let key = call.args.at(1);
    let count = match call.args.len() {
        2 => None,
        3 => Some(positive(call.args.at(2))?),
        _ => return Err(Failure::Arity),
    };
    let exists = call.store.read::<List>(key)?.is_some();
    let wanted = count.unwrap_or(1);
    let popped: Vec<Vec<u8>> = call
        .store
        .edit(key, |list: &mut List| (0..wanted.min(list.len())).filter_map(|_| pop(list)).collect())?;
    match count {
        None => call.reply.bulk_or_null(popped.first().map(|element| &**element)),
        Some(_) if !exists => call.reply.null_array(),
        Some(_) => {
            call.reply.array(popped.len());
            popped.iter().for_each(|element| call.reply.bulk(element));
        }
    }
    Ok(())
}

pub(super) fn llen(call: &mut Call<'_>) -> Outcome {
    let length = call.store.read::<List>(call.args.at(1))?.map_or(0, |list| list.len());
    call.reply.count(length);
    Ok(())
}

pub(super) fn lrange(call: &mut Call<'_>) -> Outcome {
    let (start, end) = (integer(call.args.at(2))?, integer(call.args.at(3))?);
    let Some(list) = call.store.read::<List>(call.args.at(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    let range = index_range(start, end, list.len());
    call.reply.array(range.len());
    list.range(range).for_each(|element| call.reply.bulk(element));
    Ok(())
}

pub(super) fn lindex(call: &mut Call<'_>) -> Outcome {
    let index = integer(call.args.at(2))?;
    let list = call.store.read::<List>(call.args.at(1))?;
    let element = list.and_then(|list| list.get(index_range(index, index, list.len()).next()?));
    call.reply.bulk_or_null(element.map(|element| &**element));
    Ok(())
}

pub(super) fn lrem(call: &mut Call<'_>) -> Outcome {
    let count = integer(call.args.at(2))?;
    let element = call.args.at(3);
    let removed = call.store.edit(call.args.at(1), |list: &mut List| {
        let limit =
            if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
        let mut removed = 0;
        let mut keep = |found: &Vec<u8>| {
            let remove = removed < limit && found == element;
            removed += usize::from(remove);
            !remove
        };
        if count >= 0 {
            list.retain(keep);
        } else {
            let kept: Vec<Vec<u8>> = list.drain(..).rev().filter(|found| keep(found)).collect();
            list.extend(kept.into_iter().rev());
        }
        removed
    })?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn ltrim(call: &mut Call<'_>) -> Outcome {
    let (start, end) = (integer(call.args.at(2))?, integer(call.args.at(3))?);
    call.store.edit(call.args.at(1), |list: &mut List| {
        let range = index_range(start, end, list.len());
        list.truncate(range.end);
        list.drain(..range.start);
    })?;
    call.reply.ok();
    Ok(())
}
