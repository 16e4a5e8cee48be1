//! Which connections are up, and which have something to do: so that no turn walks all of them, be there ten thousand.
//!
//! The rule: whoever changes a connection *touches* it. Touched ones are asked for their operations and their deadline; one
//! that has neither any more is forgotten until it is touched again. Invariant: a connection that has an operation is
//! touched, one that has a deadline is touched or timed.

use crate::connection::Connection;
use std::collections::VecDeque;

/// See the module.
pub(super) struct Roster {
    entries: Vec<Entry>,
    /// Oldest first.
    touched: VecDeque<u16>,
    timed: Vec<u16>,
    up: usize,
    down: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    standing: Standing,
    is_touched: bool,
    is_timed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Up,
    Between,
    Down,
}

impl Roster {
    /// So many connections, all down.
    pub fn new(count: usize) -> Self {
        let entry = Entry { standing: Standing::Down, is_touched: false, is_timed: false };
        Self { entries: vec![entry; count], touched: VecDeque::new(), timed: Vec::new(), up: 0, down: count }
    }

    /// The connection may have something to do now.
    #[inline(always)]
    pub fn touch(&mut self, index: usize) {
        if !std::mem::replace(&mut self.entries[index].is_touched, true) {
            self.touched.push_back(index as u16);
        }
    }

    /// What the connection is now: to be told after whatever may change it.
    #[inline]
    pub fn settle(&mut self, index: usize, connection: &Connection) {
        let standing = match (connection.is_ready(), connection.is_down()) {
            (true, _) => Standing::Up,
            (_, true) => Standing::Down,
            _ => Standing::Between,
        };
        if standing != self.entries[index].standing {
            self.stand(index, standing);
        }
    }

    #[inline(never)]
    fn stand(&mut self, index: usize, standing: Standing) {
        for (standing, is_more) in [(self.entries[index].standing, false), (standing, true)] {
            let count = match standing {
                Standing::Up => &mut self.up,
                Standing::Down => &mut self.down,
                Standing::Between => continue,
            };
            *count = if is_more { *count + 1 } else { *count - 1 };
        }
        self.entries[index].standing = standing;
    }

    pub fn any_up(&self) -> bool {
        self.up > 0
    }

    pub fn all_up(&self) -> bool {
        self.up == self.entries.len()
    }

    pub fn any_down(&self) -> bool {
        self.down > 0
    }

    /// Being made or closed.
    pub fn between(&self) -> usize {
        self.entries.len() - self.up - self.down
    }

    pub fn all_down(&self) -> bool {
        self.down == self.entries.len()
    }

    /// The touched connection that has waited longest.
    #[inline]
    pub fn first_touched(&self) -> Option<usize> {
        self.touched.front().map(|index| usize::from(*index))
    }

    /// The first touched one has no operation; whether it has a deadline.
    #[inline]
    pub fn drop_first_touched(&mut self, has_deadline: bool) {
        let Some(index) = self.touched.pop_front() else { return };
        let entry = &mut self.entries[usize::from(index)];
        entry.is_touched = false;
        if has_deadline && !std::mem::replace(&mut entry.is_timed, true) {
            self.timed.push(index);
        }
    }

    /// Forgets those whose deadlines are gone.
    #[inline]
    pub fn retain_timed(&mut self, mut has_deadline: impl FnMut(usize) -> bool) {
        if self.timed.is_empty() {
            return;
        }
        let entries = &mut self.entries;
        self.timed.retain(|index| {
            let index = usize::from(*index);
            entries[index].is_timed = has_deadline(index);
            entries[index].is_timed
        });
    }

    /// All that may have a deadline; some come twice.
    #[inline]
    pub fn maybe_timed(&self) -> impl Iterator<Item = usize> {
        self.timed.iter().chain(&self.touched).map(|index| usize::from(*index))
    }
}

#[cfg(test)]
mod tests {
    use super::Roster;

    fn timed(roster: &Roster) -> Vec<usize> {
        roster.maybe_timed().collect()
    }

    #[test]
    fn a_touched_connection_is_told_once_and_in_order() {
        let mut roster = Roster::new(10_000);
        for index in [7, 9_999, 7, 0] {
            roster.touch(index);
        }
        let mut told = Vec::new();
        while let Some(index) = roster.first_touched() {
            told.push(index);
            roster.drop_first_touched(false);
        }
        assert_eq!(told, [7, 9_999, 0]);
        roster.touch(7);
        assert_eq!(roster.first_touched(), Some(7));
    }

    #[test]
    fn a_deadline_is_remembered_until_it_is_gone() {
        let mut roster = Roster::new(3);
        roster.touch(2);
        assert_eq!(timed(&roster), [2], "not asked yet");
        roster.drop_first_touched(true);
        roster.touch(2);
        roster.drop_first_touched(true);
        assert_eq!(timed(&roster), [2], "once");
        roster.retain_timed(|_| true);
        assert_eq!(timed(&roster), [2]);
        roster.retain_timed(|_| false);
        assert_eq!(timed(&roster), []);
        roster.touch(2);
        roster.drop_first_touched(true);
        assert_eq!(timed(&roster), [2], "again");
    }
}
