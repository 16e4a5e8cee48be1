//! Commands on sorted sets.
//!
//! **Invariant.** ZADD checks all scores before it stores the first; a bad one changes nothing.

use super::number::{float, index_range, integer, parse_float};
use super::zset::SortedSet;
use super::{Call, Failure, Outcome};

#[derive(Clone, Copy, Default)]
struct AddFlags {
    only_absent: bool,
    only_present: bool,
    greater: bool,
    less: bool,
    counts_changed: bool,
    increments: bool,
}

pub(super) fn zadd(call: &mut Call<'_>) -> Outcome {
    let mut flags = AddFlags::default();
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        match &*word.to_ascii_uppercase() {
            b"NX" => flags.only_absent = true,
            b"XX" => flags.only_present = true,
            b"GT" => flags.greater = true,
            b"LT" => flags.less = true,
            b"CH" => flags.counts_changed = true,
            b"INCR" => flags.increments = true,
            _ => break,
        }
        at += 1;
    }
    add(call, flags, at)
}

pub(super) fn zincrby(call: &mut Call<'_>) -> Outcome {
    add(call, AddFlags { increments: true, ..AddFlags::default() }, 2)
}

/// Adds the pairs of score and member that start at `first`.
fn add(call: &mut Call<'_>, flags: AddFlags, first: usize) -> Outcome {
    let rest = call.args.from(first);
    if rest.len() == 0 || !rest.len().is_multiple_of(2) {
        return Err(Failure::Syntax);
    }
    if flags.only_absent && flags.only_present {
        return Err(Failure::text("ERR XX and NX options at the same time are not compatible"));
    }
    if (flags.greater && (flags.less || flags.only_absent)) || (flags.less && flags.only_absent) {
        return Err(Failure::text("ERR GT, LT, and/or NX options at the same time are not compatible"));
    }
    if flags.increments && rest.len() > 2 {
        return Err(Failure::text("ERR INCR option supports a single increment-element pair"));
    }
    let scores = rest.step_by(2).map(float).collect::<Result<Vec<_>, _>>()?;

    let key = call.args.at(1);
    let exists = call.store.read::<SortedSet>(key)?.is_some();
    let mut outcome = AddOutcome::default();
    if exists || !flags.only_present {
        let set = call.store.write::<SortedSet>(key)?;
        for (score, member) in scores.into_iter().zip(call.args.from(first + 1).step_by(2)) {
            if let Err(failure) = add_one(set, flags, member, score, &mut outcome) {
                call.store.edit(key, |_: &mut SortedSet| ())?;
                return Err(failure);
            }
        }
    }
    match outcome.score {
        Some(score) if flags.increments => call.reply.double(score),
        None if flags.increments => call.reply.null(),
        _ if flags.counts_changed => call.reply.count(outcome.added + outcome.changed),
        _ => call.reply.count(outcome.added),
    }
    Ok(())
}

#[derive(Default)]
struct AddOutcome {
    added: usize,
    changed: usize,
    /// The last score that was stored.
    score: Option<f64>,
}

fn add_one(
    set: &mut SortedSet,
    flags: AddFlags,
    member: &[u8],
    score: f64,
    outcome: &mut AddOutcome,
) -> Outcome {
    let old = set.score(member);
    let new = if flags.increments { old.unwrap_or(0.0) + score } else { score };
    if new.is_nan() {
        return Err(Failure::text("ERR resulting score is not a number (NaN)"));
    }
    let refused = match old {
        None => flags.only_present,
        Some(old) => flags.only_absent || (flags.greater && new <= old) || (flags.less && new >= old),
    };
    if refused {
        return Ok(());
    }
    match set.insert(member, new) {
        None => outcome.added += 1,
        Some(old) => outcome.changed += usize::from(old != new),
    }
    outcome.score = Some(new);
    Ok(())
}

pub(super) fn zrem(call: &mut Call<'_>) -> Outcome {
    let members = call.args.from(2);
    let removed = call
        .store
        .edit(call.args.at(1), |set: &mut SortedSet| members.filter(|member| set.remove(member)).count())?;
    call.reply.count(removed);
    Ok(())
}

pub(super) fn zscore(call: &mut Call<'_>) -> Outcome {
    match call.store.read::<SortedSet>(call.args.at(1))?.and_then(|set| set.score(call.args.at(2))) {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

pub(super) fn zcard(call: &mut Call<'_>) -> Outcome {
    let length = call.store.read::<SortedSet>(call.args.at(1))?.map_or(0, |set| set.len());
    call.reply.count(length);
    Ok(())
}

pub(super) fn zrank(call: &mut Call<'_>) -> Outcome {
    let with_score = match call.args.get(3) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"WITHSCORE") && call.args.len() == 4 => true,
        Some(_) => return Err(Failure::Syntax),
    };
    let member = call.args.at(2);
    let set = call.store.read::<SortedSet>(call.args.at(1))?;
    let found = set.and_then(|set| Some((set.rank(member)?, set.score(member)?)));
    match found {
        None if with_score => call.reply.null_array(),
        None => call.reply.null(),
        Some((rank, score)) if with_score => {
            call.reply.array(2);
            call.reply.count(rank);
            call.reply.double(score);
        }
        Some((rank, _)) => call.reply.count(rank),
    }
    Ok(())
}

/// One end of a range of scores: `5`, `(5`, `-inf`.
struct Bound {
    score: f64,
    excluded: bool,
}

impl Bound {
    fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let (excluded, number) = match bytes {
            [b'(', number @ ..] => (true, number),
            number => (false, number),
        };
        let score = parse_float(number).ok_or(Failure::text("ERR min or max is not a float"))?;
        Ok(Self { score, excluded })
    }

    fn is_below(&self, score: f64) -> bool {
        if self.excluded { self.score < score } else { self.score <= score }
    }

    fn is_above(&self, score: f64) -> bool {
        if self.excluded { self.score > score } else { self.score >= score }
    }
}

pub(super) fn zrange(call: &mut Call<'_>) -> Outcome {
    let (mut by_score, mut reversed, mut with_scores, mut limit) = (false, false, false, None);
    let mut at = 4;
    while let Some(word) = call.args.get(at) {
        at += 1;
        match &*word.to_ascii_uppercase() {
            b"BYSCORE" => by_score = true,
            b"REV" => reversed = true,
            b"WITHSCORES" => with_scores = true,
            b"LIMIT" if at + 1 < call.args.len() => {
                limit = Some((integer(call.args.at(at))?, integer(call.args.at(at + 1))?));
                at += 2;
            }
            _ => return Err(Failure::Syntax),
        }
    }
    if limit.is_some() && !by_score {
        return Err(Failure::text(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ));
    }
    let (first, last) = (call.args.at(2), call.args.at(3));
    let found: Vec<(&[u8], f64)> = if by_score {
        let (low, high) = if reversed { (last, first) } else { (first, last) };
        let (low, high) = (Bound::parse(low)?, Bound::parse(high)?);
        let set = call.store.read::<SortedSet>(call.args.at(1))?;
        let inside = |(_, score): &(&[u8], f64)| low.is_below(*score) && high.is_above(*score);
        let (offset, count) = limit.unwrap_or((0, -1));
        // A negative offset finds nothing; a negative count means all.
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        ordered(set, reversed).into_iter().filter(inside).skip(offset).take(count).collect()
    } else {
        let (start, end) = (integer(first)?, integer(last)?);
        let set = call.store.read::<SortedSet>(call.args.at(1))?;
        let members = ordered(set, reversed);
        members[index_range(start, end, members.len())].to_vec()
    };

    // RESP3 nests pairs; RESP2 has one flat list.
    let nested = with_scores && call.reply.is_resp3();
    call.reply.array(if with_scores && !nested { found.len() * 2 } else { found.len() });
    for (member, score) in found {
        if nested {
            call.reply.array(2);
        }
        call.reply.bulk(member);
        if with_scores {
            call.reply.double(score);
        }
    }
    Ok(())
}

fn ordered(set: Option<&mut SortedSet>, reversed: bool) -> Vec<(&[u8], f64)> {
    let mut members: Vec<_> = set.map(|set| &*set).into_iter().flat_map(SortedSet::iter).collect();
    if reversed {
        members.reverse();
    }
    members
}
