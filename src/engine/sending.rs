//! The one outstanding send of a connection: which bytes are left, and how many the kernel took.

use crate::buf::{ChunkSlice, Transmit};

/// Two sends on a socket would interleave (H28), so there is never more than one, and its end is told once.
#[derive(Default)]
pub(super) struct Sending {
    data: Transmit,
    /// The first slice of `data` that is not wholly taken.
    at: usize,
    taken: usize,
    /// A `Sent` is owed.
    owed: bool,
}

impl Sending {
    pub(super) fn start(&mut self, data: Transmit) {
        debug_assert!(!self.owed, "one send at a time");
        *self = Self { data, at: 0, taken: 0, owed: true };
        self.skip_empty();
    }

    pub(super) fn is_owed(&self) -> bool {
        self.owed
    }

    /// How many bytes the kernel took so far.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// What the kernel has not taken; the first slice is not empty.
    pub(super) fn rest(&self) -> &[ChunkSlice] {
        &self.data[self.at..]
    }

    pub(super) fn is_done(&self) -> bool {
        self.at == self.data.len()
    }

    /// The kernel took this many bytes more.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.taken += bytes;
        let mut left = bytes;
        while left > 0 {
            let slice = &mut self.data[self.at];
            let step = left.min(slice.len());
            slice.advance(step);
            left -= step;
            self.skip_empty();
        }
    }

    /// Lets go of the bytes. How many the kernel took, when that is still owed.
    pub(super) fn finish(&mut self) -> Option<usize> {
        let owed = std::mem::take(&mut self.owed);
        self.data = Transmit::new();
        self.at = 0;
        owed.then_some(self.taken)
    }

    fn skip_empty(&mut self) {
        while self.data.get(self.at).is_some_and(|slice| slice.is_empty()) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buf::Log;

    #[test]
    fn it_counts_over_slices() {
        let mut log = Log::new(4);
        for part in [&b"abcd"[..], b"efgh", b"ij"] {
            log.append(part);
        }
        let mut data = Transmit::new();
        log.slices(0, 10, &mut data);
        let mut sending = Sending::default();
        sending.start(data);
        sending.advance(3);
        assert_eq!(&*sending.rest()[0], b"d");
        sending.advance(5);
        assert_eq!((&*sending.rest()[0], sending.is_done()), (&b"ij"[..], false));
        sending.advance(2);
        assert!(sending.is_done());
        assert_eq!((sending.finish(), sending.finish()), (Some(10), None));
    }

    #[test]
    fn nothing_to_send_is_done_at_once() {
        let mut sending = Sending::default();
        sending.start(Transmit::new());
        assert!(sending.is_done());
        assert_eq!(sending.finish(), Some(0));
    }
}
