//! Where the bytes of a complete reply wait for their caller.

use super::chain::Chain;
use std::cell::RefCell;
use std::rc::Rc;

/// Spare vectors for small replies, so that the steady state allocates nothing. A cheap handle; `!Send`.
#[derive(Clone, Default)]
pub struct Spares {
    list: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Spares {
    /// At most this many vectors wait; each holds a reply below the copy threshold (1 KiB).
    const MAX: usize = 4096;

    /// A copy of `bytes` in a spare vector.
    pub fn copy_of(&self, bytes: &[u8]) -> SmallBytes {
        let mut vector = self.list.borrow_mut().pop().unwrap_or_default();
        vector.extend_from_slice(bytes);
        SmallBytes { vector, home: self.clone() }
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.list.borrow().len()
    }
}

/// The bytes of a small reply; the vector goes home when it is dropped.
pub struct SmallBytes {
    vector: Vec<u8>,
    home: Spares,
}

impl SmallBytes {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.vector
    }
}

impl Drop for SmallBytes {
    fn drop(&mut self) {
        let mut vector = std::mem::take(&mut self.vector);
        vector.clear();
        let mut list = self.home.list.borrow_mut();
        if vector.capacity() > 0 && list.len() < Spares::MAX {
            list.push(vector);
        }
    }
}

/// The bytes of one reply: copied when small, held where they arrived when large.
pub enum Payload {
    /// Below the copy threshold.
    Small(SmallBytes),
    /// Held in place.
    Held(Chain),
}

impl Payload {
    /// How many bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Small(small) => small.as_slice().len(),
            Payload::Held(chain) => chain.len(),
        }
    }

    /// True without any byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes when they lie in one piece.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Payload::Small(small) => Some(small.as_slice()),
            Payload::Held(chain) => chain.as_slice(),
        }
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_used_again() {
        let spares = Spares::default();
        let first = spares.copy_of(b"one");
        assert_eq!(first.as_slice(), b"one");
        drop(first);
        assert_eq!(spares.waiting(), 1);
        let second = spares.copy_of(b"two");
        assert_eq!((second.as_slice(), spares.waiting()), (&b"two"[..], 0));
    }
}
