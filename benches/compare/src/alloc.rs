//! The allocator of every run: the system's, which counts only when a run asks for it.
//!
//! Counting costs a few atomic additions per block. Clients that allocate would pay for being looked at, so CPU time is
//! measured with counting off, and allocations in a run of their own.

use respiral_testkit::CountingAllocator;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Switchable(CountingAllocator);

static IS_COUNTING: AtomicBool = AtomicBool::new(false);

impl Switchable {
    pub const fn new() -> Self {
        Self(CountingAllocator::new())
    }
}

/// Counts from now on; see [`respiral_testkit::alloc_count::total`].
pub fn count() {
    IS_COUNTING.store(true, Ordering::Relaxed);
}

/// Counts no longer.
pub fn stop() {
    IS_COUNTING.store(false, Ordering::Relaxed);
}

pub fn is_counting() -> bool {
    IS_COUNTING.load(Ordering::Relaxed)
}

// SAFETY: both allocators pass every request unchanged to `System`, so a block may come from one and go to the other.
unsafe impl GlobalAlloc for Switchable {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { if is_counting() { self.0.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { if is_counting() { self.0.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { if is_counting() { self.0.dealloc(block, layout) } else { System.dealloc(block, layout) } }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe {
            if is_counting() {
                self.0.realloc(block, layout, new_size)
            } else {
                System.realloc(block, layout, new_size)
            }
        }
    }
}
