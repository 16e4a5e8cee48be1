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

    /// A copy of `bytes`: inside the value itself when they are few, else in a spare vector.
    #[inline]
    pub fn copy_of(&self, bytes: &[u8]) -> SmallBytes {
        if bytes.len() <= INLINE {
            let mut inline = Inline { len: bytes.len() as u8, bytes: [0; INLINE] };
            inline.bytes[..bytes.len()].copy_from_slice(bytes);
            return SmallBytes(Small::Inline(inline));
        }
        let mut vector = self.list.borrow_mut().pop().unwrap_or_default();
        vector.extend_from_slice(bytes);
        SmallBytes(Small::Spare(Spare { vector, home: self.clone() }))
    }

    /// How many wait now.
    pub fn waiting(&self) -> usize {
        self.list.borrow().len()
    }
}

/// Numbers, `OK` and the like need no vector.
const INLINE: usize = 31;

/// Aligned as the other variant is. Without it every move of a reply copies from an odd address what was just written
/// in words, and the processor waits for the stores: 30 % of a command at 512 callers.
#[repr(align(8))]
struct Inline {
    len: u8,
    bytes: [u8; INLINE],
}

/// The bytes of a small reply.
pub struct SmallBytes(Small);

enum Small {
    Inline(Inline),
    Spare(Spare),
}

/// A vector that goes home when it is dropped.
struct Spare {
    vector: Vec<u8>,
    home: Spares,
}

impl SmallBytes {
    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Small::Inline(inline) => &inline.bytes[..usize::from(inline.len)],
            Small::Spare(spare) => &spare.vector,
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        let mut vector = std::mem::take(&mut self.vector);
        vector.clear();
        let mut list = self.home.list.borrow_mut();
        if list.len() < Spares::MAX {
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
        let first = spares.copy_of(&[1; 100]);
        assert_eq!(first.as_slice(), [1; 100]);
        drop(first);
        assert_eq!(spares.waiting(), 1);
        let second = spares.copy_of(&[2; 50]);
        assert_eq!((second.as_slice(), spares.waiting()), (&[2; 50][..], 0));
    }

    #[test]
    fn few_bytes_need_no_vector() {
        let spares = Spares::default();
        for len in 0..=INLINE {
            assert_eq!(spares.copy_of(&vec![7; len]).as_slice(), vec![7; len]);
        }
        assert_eq!(spares.waiting(), 0);
        assert!(size_of::<Payload>() <= 40);
    }
}
