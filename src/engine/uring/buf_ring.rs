//! The ring of provided buffers: how the kernel learns which buffers of the pool it may fill.
//!
//! The kernel takes a buffer only when bytes arrive, so idle connections hold none. We own the tail: entries are
//! written first, then the tail is stored once per batch with release order, and the kernel reads it with acquire
//! order. Invariant: `provided` counts the buffers that the kernel has and that no reaped completion has given back;
//! it never exceeds the number of entries, because each buffer of the pool is in the ring at most once.

use super::refusal::UringRefusal;
use super::ring::Ring;
use crate::buf::{BufferPool, Segment};
use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

const PAGE: usize = 4096;

pub(super) struct BufRing {
    entries: NonNull<BufRingEntry>,
    layout: Layout,
    mask: u16,
    tail: u16,
    provided: usize,
    /// Which buffers those are.
    with_kernel: Box<[bool]>,
    pool: BufferPool,
    leaked: bool,
}

impl BufRing {
    /// Registers a ring with one entry per buffer of `pool`; nothing is provided yet.
    pub(super) fn new(ring: &Ring, pool: BufferPool) -> Result<Self, UringRefusal> {
        let count = pool.count();
        debug_assert!(count.is_power_of_two() && count <= 1 << 15, "validated");
        let layout = Layout::array::<BufRingEntry>(count)
            .and_then(|layout| layout.align_to(PAGE))
            .expect("a small power of two");
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(entries) = NonNull::new(memory.cast()) else { handle_alloc_error(layout) };
        let this = Self {
            entries,
            layout,
            mask: (count - 1) as u16,
            tail: 0,
            provided: 0,
            with_kernel: vec![false; count].into(),
            pool,
            leaked: false,
        };
        // SAFETY: the memory is page aligned, has `count` entries, and lives until `this` is dropped; the engine
        // unregisters and reaps everything before, or calls `leak`.
        unsafe { ring.register_buffers(this.entries.as_ptr() as u64, count as u16)? };
        Ok(this)
    }

    /// Buffers that the kernel has.
    pub(super) fn provided(&self) -> usize {
        self.provided
    }

    /// Gives the kernel free buffers of the pool, until it has `window` of them.
    pub(super) fn provide(&mut self, window: usize) {
        if self.pool.free() == 0 || self.provided >= window {
            return;
        }
        while self.provided < window
            && let Some(buffer) = self.pool.take_free()
        {
            let (_, index) = buffer.provide();
            // SAFETY: masked, so inside the array.
            let entry = unsafe { &mut *self.entries.as_ptr().add(usize::from(self.tail & self.mask)) };
            entry.set_addr(self.pool.address(index) as u64);
            entry.set_len(self.pool.buffer_size() as u32);
            entry.set_bid(index);
            self.tail = self.tail.wrapping_add(1);
            self.provided += 1;
            self.with_kernel[usize::from(index)] = true;
        }
        debug_assert!(self.provided <= self.pool.count(), "each buffer is provided at most once");
        // SAFETY: the first entry is valid; its reserved field is the ring's tail, aligned for a u16 and shared with
        // the kernel, so it is only accessed atomically. The setters above do not touch it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries.as_ptr()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// What the kernel wrote into a buffer that a completion names.
    ///
    /// # Safety
    /// A completion just reaped named the buffer `index` with `len` bytes, and was not passed on before.
    pub(super) unsafe fn take(&mut self, index: u16, len: u32) -> Segment {
        self.on_given_back(index);
        // SAFETY: the kernel gave the buffer back with that completion, filled so far.
        unsafe { self.pool.lend(index, len) }
    }

    /// A buffer that a completion names and nobody wants.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    pub(super) unsafe fn put_back(&mut self, index: u16) {
        self.on_given_back(index);
        // SAFETY: the kernel gave the buffer back with that completion.
        unsafe { self.pool.put_back(index) }
    }

    fn on_given_back(&mut self, index: u16) {
        let had = std::mem::take(&mut self.with_kernel[usize::from(index)]);
        assert!(had, "the kernel gave back buffer {index}, which it did not have");
        self.provided -= 1;
    }

    /// Takes all buffers back. The ring must be unregistered, and nothing outstanding.
    pub(super) fn reclaim(&mut self) {
        for index in 0..self.with_kernel.len() {
            if std::mem::take(&mut self.with_kernel[index]) {
                self.provided -= 1;
                // SAFETY: the kernel knows no buffer any more (see above), so it will not write to this one.
                unsafe { self.pool.put_back(index as u16) };
            }
        }
    }

    /// The kernel may still write: nothing of it is ever freed.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
        std::mem::forget(self.pool.clone());
    }
}

impl Drop for BufRing {
    fn drop(&mut self) {
        if !self.leaked {
            // SAFETY: allocated in `new` with this layout; the ring is unregistered (see `new`).
            unsafe { dealloc(self.entries.as_ptr().cast(), self.layout) }
        }
    }
}
