//! Memory of its own for one large string, which is received right into it.

use std::mem::MaybeUninit;

/// Bytes that the stream goes on with, up to a count; what was there before stays in front.
///
/// It travels to the engine and back. Whoever has it may append; nobody else can reach it.
pub struct Block {
    bytes: Vec<u8>,
    missing: usize,
}

impl Block {
    /// Room for `missing` more bytes behind `bytes`.
    pub fn new(mut bytes: Vec<u8>, missing: usize) -> Self {
        bytes.reserve_exact(missing);
        Self { bytes, missing }
    }

    /// How many bytes still fit.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Appends the front of `bytes`, as much as is missing; says how much that was.
    pub fn copy(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.missing);
        self.bytes.extend_from_slice(&bytes[..count]);
        self.missing -= count;
        count
    }

    /// Where the missing bytes go. It stays where it is until the block is dropped or taken apart.
    pub fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.bytes.spare_capacity_mut()[..self.missing]
    }

    /// Counts what was written there.
    ///
    /// # Safety
    /// The first `count` bytes of [`room`](Self::room) are initialised.
    pub unsafe fn advance(&mut self, count: usize) {
        assert!(count <= self.missing, "more than there was room for");
        self.missing -= count;
        // SAFETY: `room` begins at the length and has `missing >= count` bytes; the caller wrote these.
        unsafe { self.bytes.set_len(self.bytes.len() + count) };
    }

    /// What has come.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl std::fmt::Debug for Block {
    /// Lengths only: the content is the user's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({} bytes, {} missing)", self.bytes.len(), self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_what_is_missing_and_no_more() {
        let mut block = Block::new(b"ab".to_vec(), 5);
        assert_eq!((block.copy(b"cde"), block.missing()), (3, 2));
        block.room()[0].write(b'f');
        // SAFETY: just written.
        unsafe { block.advance(1) };
        assert_eq!((block.copy(b"ghi"), block.missing(), block.room().len()), (1, 0, 0));
        assert_eq!(block.into_bytes(), b"abcdefg");
    }
}
