//! The open aggregates around a value.

/// `left` of a streamed aggregate, which ends by `.`.
pub(super) const STREAM: u64 = u64::MAX;

/// One open aggregate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Values still to come (keys and values count one each), or [`STREAM`].
    pub left: u64,
    /// An attribute: when it ends, the value that it describes is still to come.
    pub attribute: bool,
    /// A streamed map, which must not end between a key and its value.
    pub pairs: bool,
    /// Streamed maps: a key waits for its value.
    pub odd: bool,
}

impl Level {
    /// An aggregate of `left` values.
    pub(super) fn of(left: u64) -> Self {
        Self { left, attribute: false, pairs: false, odd: false }
    }

    /// An attribute of `left` keys and values.
    pub(super) fn attribute(left: u64) -> Self {
        Self { left, attribute: true, pairs: false, odd: false }
    }

    /// A streamed aggregate.
    pub(super) fn stream(pairs: bool) -> Self {
        Self { left: STREAM, attribute: false, pairs, odd: false }
    }

    /// True for a streamed aggregate.
    pub(super) fn is_stream(&self) -> bool {
        self.left == STREAM
    }

    /// Counts one value that is complete; true when it was the last.
    #[inline]
    pub(super) fn count_one(&mut self) -> bool {
        if self.left == STREAM {
            self.odd = self.pairs && !self.odd;
            return false;
        }
        self.left -= 1;
        self.left == 0
    }
}
