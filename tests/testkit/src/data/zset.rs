//! A sorted set: members by name and by score.
//!
//! **Idea.** Two trees, one for each question. The second is ordered by (score, member), which is the order of ZRANGE.
//!
//! **Invariant.** Both trees hold the same members with the same scores; no score is NaN, so the order is total.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A score that is not NaN.
#[derive(Clone, Copy, Debug)]
struct Score(f64);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Score {}
impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        // Not `total_cmp`: 0 and -0 are the same score.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SortedSet {
    scores: BTreeMap<Vec<u8>, f64>,
    order: BTreeSet<(Score, Vec<u8>)>,
}

impl SortedSet {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Sets a member's score; the old score, when it was there.
    pub(crate) fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        assert!(!score.is_nan(), "a score is never NaN");
        let old = self.scores.insert(member.to_vec(), score);
        if let Some(old) = old {
            self.order.remove(&(Score(old), member.to_vec()));
        }
        self.order.insert((Score(score), member.to_vec()));
        assert_eq!(self.scores.len(), self.order.len(), "a member is in one tree only");
        old
    }

    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        match self.scores.remove(member) {
            Some(score) => self.order.remove(&(Score(score), member.to_vec())),
            None => false,
        }
    }

    /// Members and scores, lowest score first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        self.order.iter().map(|(score, member)| (&**member, score.0))
    }

    /// How many members come before this one.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.order.range(..(Score(score), member.to_vec())).count())
    }
}
