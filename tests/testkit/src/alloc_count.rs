//! Counting what a piece of code allocates.
//!
//! **Problem.** "No allocation per command" is a promise that nobody keeps by reading code; it needs a number in a test.
//!
//! **Idea.** [`CountingAllocator`] wraps the system's allocator and counts in thread-local cells and, for the whole
//! process, in atomics. A test installs it once and asks [`measure`].
//!
//! **Invariant.** Counting never allocates, never panics, and changes nothing about the memory itself: every request goes
//! to [`System`] unchanged. The cells are constant-initialised and have no destructor, so they work at any moment in a
//! thread's life.
//!
//! ```
//! use respiral_testkit::alloc_count::{self, CountingAllocator};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator::new();
//!
//! let (counts, text) = alloc_count::measure_with(|| String::from("on the heap"));
//! assert_eq!(counts.allocations, 1);
//! assert_eq!(counts.bytes_allocated, text.len() as u64);
//! assert_eq!(alloc_count::measure(|| 1 + 1).allocations, 0);
//!
//! alloc_count::reset_peak();
//! let before = alloc_count::peak();
//! drop(vec![0_u8; 1 << 20]);
//! assert!(alloc_count::peak() - before >= 1 << 20);
//! alloc_count::reset_peak();
//! assert!(alloc_count::peak() - before < 1 << 20);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A global allocator that counts, and otherwise is [`System`].
#[derive(Debug, Default)]
pub struct CountingAllocator(());

impl CountingAllocator {
    /// For `#[global_allocator] static ALLOCATOR: CountingAllocator = CountingAllocator::new();`.
    pub const fn new() -> Self {
        Self(())
    }
}

/// Numbers of calls and bytes. A reallocation counts as one allocation and one deallocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks requested.
    pub allocations: u64,
    /// Blocks given back.
    pub deallocations: u64,
    /// Bytes requested.
    pub bytes_allocated: u64,
    /// Bytes given back.
    pub bytes_deallocated: u64,
}

impl Counts {
    /// Bytes requested and not given back. Negative when more was freed than allocated.
    pub fn bytes_live(&self) -> i64 {
        self.bytes_allocated.wrapping_sub(self.bytes_deallocated) as i64
    }
}

impl Sub for Counts {
    type Output = Self;
    /// What happened between two snapshots: later minus earlier.
    fn sub(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations - earlier.allocations,
            deallocations: self.deallocations - earlier.deallocations,
            bytes_allocated: self.bytes_allocated - earlier.bytes_allocated,
            bytes_deallocated: self.bytes_deallocated - earlier.bytes_deallocated,
        }
    }
}

/// What this thread has counted since it started. Zero when [`CountingAllocator`] is not installed.
pub fn snapshot() -> Counts {
    THREAD.try_with(Cell::get).unwrap_or_default()
}

/// What all threads together have counted.
pub fn total() -> Counts {
    TOTAL.load()
}

/// The most bytes that were live at once, over all threads, since the last [`reset_peak`]. A reallocation counts old and new
/// block together: both may exist for a moment.
pub fn peak() -> i64 {
    PEAK.load(Ordering::Relaxed)
}

/// Lets [`peak`] begin anew, at what is live now.
pub fn reset_peak() {
    PEAK.store(total().bytes_live(), Ordering::Relaxed);
}

/// Runs `work` and says what this thread allocated meanwhile. The result of `work` is dropped inside the measurement.
pub fn measure<R>(work: impl FnOnce() -> R) -> Counts {
    let before = snapshot();
    drop(work());
    snapshot() - before
}

/// Runs `work` and says what this thread allocated meanwhile, together with the result, whose drop is not counted.
pub fn measure_with<R>(work: impl FnOnce() -> R) -> (Counts, R) {
    let before = snapshot();
    let result = work();
    (snapshot() - before, result)
}

thread_local! {
    static THREAD: Cell<Counts> = const {
        Cell::new(Counts { allocations: 0, deallocations: 0, bytes_allocated: 0, bytes_deallocated: 0 })
    };
}

static TOTAL: AtomicCounts = AtomicCounts {
    allocations: AtomicU64::new(0),
    deallocations: AtomicU64::new(0),
    bytes_allocated: AtomicU64::new(0),
    bytes_deallocated: AtomicU64::new(0),
};

static PEAK: AtomicI64 = AtomicI64::new(0);

struct AtomicCounts {
    allocations: AtomicU64,
    deallocations: AtomicU64,
    bytes_allocated: AtomicU64,
    bytes_deallocated: AtomicU64,
}

impl AtomicCounts {
    // Relaxed is enough: each number stands for itself, and a test reads it after joining the threads it asks about.
    fn load(&self) -> Counts {
        Counts {
            allocations: self.allocations.load(Ordering::Relaxed),
            deallocations: self.deallocations.load(Ordering::Relaxed),
            bytes_allocated: self.bytes_allocated.load(Ordering::Relaxed),
            bytes_deallocated: self.bytes_deallocated.load(Ordering::Relaxed),
        }
    }
}

fn count_allocation(bytes: usize) {
    TOTAL.allocations.fetch_add(1, Ordering::Relaxed);
    let allocated = TOTAL.bytes_allocated.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
    let live = allocated.wrapping_sub(TOTAL.bytes_deallocated.load(Ordering::Relaxed)) as i64;
    // Mostly it is no peak; reading costs less than writing.
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
    let _ = THREAD.try_with(|cell| {
        let mut counts = cell.get();
        counts.allocations += 1;
        counts.bytes_allocated += bytes as u64;
        cell.set(counts);
    });
}

fn count_deallocation(bytes: usize) {
    TOTAL.deallocations.fetch_add(1, Ordering::Relaxed);
    TOTAL.bytes_deallocated.fetch_add(bytes as u64, Ordering::Relaxed);
    let _ = THREAD.try_with(|cell| {
        let mut counts = cell.get();
        counts.deallocations += 1;
        counts.bytes_deallocated += bytes as u64;
        cell.set(counts);
    });
}

// SAFETY: every method passes its arguments unchanged to `System`, which upholds the contract of `GlobalAlloc`; counting
// neither allocates nor panics, and does not touch the memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: the caller keeps the contract of `alloc` (a layout of non-zero size), which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_deallocation(layout.size());
        // SAFETY: the caller got `block` from this allocator with `layout`, hence from `System` with `layout`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_allocation(new_size);
        count_deallocation(layout.size());
        // SAFETY: as in `dealloc`; the caller keeps `new_size` non-zero and not overflowing.
        unsafe { System.realloc(block, layout, new_size) }
    }
}
