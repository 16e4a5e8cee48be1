//! A counted reference to received bytes.

use super::pool::Shared;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::rc::Rc;

/// Immutable received bytes: a part of a pool's buffer, or of a heap block. Cheap to clone and to slice; `!Send`.
///
/// The last segment of a buffer gives it back to the kernel, so keep small things by copying them.
pub struct Segment {
    pointer: NonNull<u8>,
    len: u32,
    owner: Owner,
}

enum Owner {
    Pool(Rc<Shared>, u16),
    /// It keeps what `pointer` refers to.
    Heap(Rc<Vec<u8>>),
}

impl Segment {
    /// # Safety
    /// `pointer..pointer + len` lies in buffer `index` of `pool`, is initialised and not written while the buffer's
    /// count is above zero; the caller has counted this segment.
    pub(super) unsafe fn pooled(pool: Rc<Shared>, index: u16, pointer: NonNull<u8>, len: u32) -> Self {
        Self { pointer, len, owner: Owner::Pool(pool, index) }
    }

    /// A copy of `bytes` on the heap.
    pub fn copy_of(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }

    /// A part of it. Panics when the range is outside.
    pub fn slice(&self, range: Range<usize>) -> Segment {
        assert!(range.start <= range.end && range.end <= self.len as usize, "range outside the segment");
        let mut part = self.clone();
        // SAFETY: start <= len, so the pointer stays inside the owner's memory (or one past its end).
        part.pointer = unsafe { part.pointer.add(range.start) };
        part.len = (range.end - range.start) as u32;
        part
    }

    /// Its memory, when that is a heap block of which it is the only reference and the whole. It is empty then.
    pub fn take_vec(&mut self) -> Option<Vec<u8>> {
        let Owner::Heap(block) = &mut self.owner else { return None };
        if self.pointer.as_ptr().cast_const() != block.as_ptr() || self.len as usize != block.len() {
            return None;
        }
        let bytes = std::mem::take(Rc::get_mut(block)?);
        self.len = 0;
        Some(bytes)
    }

    /// True when it refers to a pool's buffer (and so keeps it from the kernel).
    pub fn is_pooled(&self) -> bool {
        matches!(self.owner, Owner::Pool(..))
    }
}

impl From<Vec<u8>> for Segment {
    /// Takes the vector; nothing is copied.
    ///
    /// # Panics
    /// Above 4 GiB, which no reply limit allows.
    fn from(bytes: Vec<u8>) -> Self {
        let len = u32::try_from(bytes.len()).expect("limits keep a segment below 4 GiB");
        let block = Rc::new(bytes);
        // SAFETY: a vector's pointer is never null.
        let pointer = unsafe { NonNull::new_unchecked(block.as_ptr().cast_mut()) };
        Self { pointer, len, owner: Owner::Heap(block) }
    }
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies in the owner's initialised memory, which nobody writes while a segment exists:
        // `pooled`'s caller promises it for pools, and a heap block is ours alone.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len as usize) }
    }
}

impl Clone for Segment {
    fn clone(&self) -> Self {
        let owner = match &self.owner {
            Owner::Pool(pool, index) => {
                pool.retain(*index);
                Owner::Pool(pool.clone(), *index)
            }
            Owner::Heap(block) => Owner::Heap(block.clone()),
        };
        Self { pointer: self.pointer, len: self.len, owner }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if let Owner::Pool(pool, index) = &self.owner {
            pool.release(*index);
        }
    }
}

impl fmt::Debug for Segment {
    /// Lengths only: the content is the user's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({} bytes)", self.len)
    }
}
