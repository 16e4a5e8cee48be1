//! Choices out of bytes.

/// Bytes that are read as choices, in order. When they are used up, every choice is the first.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Choices out of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// True when all bytes are used.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below 256.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `count`, of at most 256.
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A number of 64 bits.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// So many bytes, or all that are left.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (first, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        first
    }

    /// All that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
