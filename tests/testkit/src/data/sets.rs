//! Sets.

use super::store::Set;
use super::{Call, Outcome};

pub(super) fn sadd(call: &mut Call<'_>) -> Outcome {
    let set = call.store.write::<Set>(call.args.at(1))?;
    let added = call.args.from(2).filter(|member| set.insert(member.to_vec())).count();
    call.reply.count(added);
    Ok(())
}

pub(super) fn srem(call: &mut Call<'_>) -> Outcome {
    let members = call.args.from(2);
    let removed = call
        .store
        .edit(call.args.at(1), |set: &mut Set| members.filter(|member| set.remove(*member)).count())?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn smembers(call: &mut Call<'_>) -> Outcome {
    let set = call.store.read::<Set>(call.args.at(1))?;
    call.reply.set(set.as_ref().map_or(0, |set| set.len()));
    for member in set.into_iter().flat_map(|set| set.iter()) {
        call.reply.bulk(member);
    }
    Ok(())
}

pub(super) fn sismember(call: &mut Call<'_>) -> Outcome {
    let set = call.store.read::<Set>(call.args.at(1))?;
    call.reply.flag(set.is_some_and(|set| set.contains(call.args.at(2))));
    Ok(())
}

pub(super) fn scard(call: &mut Call<'_>) -> Outcome {
    let length = call.store.read::<Set>(call.args.at(1))?.map_or(0, |set| set.len());
    call.reply.count(length);
    Ok(())
}
