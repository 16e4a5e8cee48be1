//! A fixed number of equal buffers, shared by all connections of one engine.

use super::segment::Segment;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;

const PAGE: usize = 4096;

/// The buffers of one engine. A cheap handle; `!Send`.
///
/// Each buffer is *free* (in the list here), *provided* (the engine gave it to the kernel) or *lent* (referred to by
/// segments). The memory goes when the pool's handles and the last segment are gone, in any order.
#[derive(Clone)]
pub struct BufferPool {
    shared: Rc<Shared>,
}

pub(super) struct Shared {
    base: NonNull<u8>,
    /// What was allocated: `base` is its first page boundary.
    allocation: NonNull<u8>,
    layout: Layout,
    size: u32,
    refs: Box<[Cell<u32>]>,
    free: RefCell<Vec<u16>>,
    lent: Cell<u32>,
    /// Set by an engine that has receives to arm and no buffer; the return that clears it calls `notify`.
    starved: Cell<bool>,
    notify: RefCell<Option<Box<dyn Fn()>>>,
}

impl BufferPool {
    /// `count` buffers of `size` bytes, the first one page aligned, zeroed lazily by the system.
    ///
    /// # Panics
    /// When either is zero or the product overflows; options are validated before.
    pub fn new(count: u16, size: u32) -> Self {
        assert!(count > 0 && size > 0, "a pool has buffers");
        let bytes = usize::from(count).checked_mul(size as usize).expect("validated");
        // Asking the allocator for page alignment makes it write the zeros itself, and so touch every page. Without,
        // a pool of this size is fresh memory from the system; the boundary is found here.
        let layout = bytes.checked_add(PAGE).and_then(|bytes| Layout::from_size_align(bytes, 16).ok());
        let layout = layout.expect("validated");
        // SAFETY: the layout has a non-zero size, asserted above.
        let allocation = unsafe { alloc_zeroed(layout) };
        let Some(allocation) = NonNull::new(allocation) else { handle_alloc_error(layout) };
        // SAFETY: the offset is below PAGE, and PAGE bytes more than the buffers take were allocated.
        let base = unsafe { allocation.add(allocation.align_offset(PAGE)) };
        let refs = (0..count).map(|_| Cell::new(0)).collect();
        // Handed out from the end: the lowest buffers first.
        let free = RefCell::new((0..count).rev().collect());
        let shared = Shared {
            base,
            allocation,
            layout,
            size,
            refs,
            free,
            lent: Cell::new(0),
            starved: Cell::new(false),
            notify: RefCell::new(None),
        };
        Self { shared: Rc::new(shared) }
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.shared.refs.len()
    }

    /// Bytes per buffer.
    pub fn buffer_size(&self) -> usize {
        self.shared.size as usize
    }

    /// Buffers that segments refer to now.
    pub fn lent(&self) -> usize {
        self.shared.lent.get() as usize
    }

    /// Buffers that can receive: free or with the kernel.
    pub fn available(&self) -> usize {
        self.count() - self.lent()
    }

    /// Takes a free buffer, if there is one.
    pub fn take_free(&self) -> Option<FreeBuffer> {
        let index = self.shared.free.borrow_mut().pop()?;
        debug_assert_eq!(self.shared.refs[usize::from(index)].get(), 0, "a free buffer is not lent");
        Some(FreeBuffer { pool: self.clone(), index })
    }

    /// Buffers in the free list.
    pub fn free(&self) -> usize {
        self.shared.free.borrow().len()
    }

    /// What to call when a buffer comes back while the pool is marked starved. It runs inside the drop of a segment,
    /// so it must not touch any machine: an engine signals its own eventfd.
    pub fn on_return(&self, notify: Option<Box<dyn Fn()>>) {
        *self.shared.notify.borrow_mut() = notify;
    }

    /// Marks that receives wait for a buffer.
    pub fn set_starved(&self) {
        self.shared.starved.set(true);
    }

    /// The first byte of a buffer, for the kernel. Reading or writing through it needs the buffer to be provided.
    pub fn address(&self, index: u16) -> *mut u8 {
        assert!(usize::from(index) < self.count(), "buffer {index} is not of this pool");
        self.shared.address(index)
    }

    /// What the kernel wrote into a provided buffer.
    ///
    /// # Safety
    /// The buffer was taken with [`FreeBuffer::provide`] and not been made a segment or put back since; the kernel
    /// has written its first `len` bytes and will not write to it any more.
    pub unsafe fn lend(&self, index: u16, len: u32) -> Segment {
        assert!(len <= self.shared.size, "the kernel wrote past buffer {index}");
        let refs = &self.shared.refs[usize::from(index)];
        debug_assert_eq!(refs.get(), 0, "buffer {index} is lent twice");
        refs.set(1);
        self.shared.lent.set(self.shared.lent.get() + 1);
        let address = self.shared.address(index);
        // SAFETY: `address` is inside the pool's allocation, so it is not null.
        let pointer = unsafe { NonNull::new_unchecked(address) };
        // SAFETY: the caller states that `len` bytes are written and stay; the count above keeps the buffer lent and
        // `shared` keeps the memory.
        unsafe { Segment::pooled(self.shared.clone(), index, pointer, len) }
    }

    /// Puts back a provided buffer that the kernel did not use.
    ///
    /// # Safety
    /// As for [`lend`](Self::lend): the buffer is provided and the kernel will not write to it any more.
    pub unsafe fn put_back(&self, index: u16) {
        debug_assert_eq!(self.shared.refs[usize::from(index)].get(), 0);
        self.shared.put_free(index);
    }
}

impl Shared {
    fn address(&self, index: u16) -> *mut u8 {
        // SAFETY: index < count, so the result lies inside the allocation of count * size bytes.
        unsafe { self.base.as_ptr().add(usize::from(index) * self.size as usize) }
    }

    fn put_free(&self, index: u16) {
        // Capacity is the number of buffers, so this never allocates.
        self.free.borrow_mut().push(index);
        if self.starved.replace(false)
            && let Some(notify) = &*self.notify.borrow()
        {
            notify();
        }
    }

    pub(super) fn retain(&self, index: u16) {
        let refs = &self.refs[usize::from(index)];
        refs.set(refs.get().checked_add(1).expect("fewer than 2^32 references to one buffer"));
    }

    pub(super) fn release(&self, index: u16) {
        let refs = &self.refs[usize::from(index)];
        let left = refs.get() - 1;
        refs.set(left);
        if left == 0 {
            self.lent.set(self.lent.get() - 1);
            self.put_free(index);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; segments hold an `Rc` of this, so none is left.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

/// A buffer that nobody else can reach: to be filled here, or provided to the kernel.
pub struct FreeBuffer {
    pool: BufferPool,
    index: u16,
}

impl FreeBuffer {
    /// Its index in the pool.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: a free buffer is neither with the kernel nor lent, `self` is the only holder of its index and is
        // borrowed mutably; the memory was zeroed at allocation, so it is initialised.
        unsafe {
            std::slice::from_raw_parts_mut(self.pool.shared.address(self.index), self.pool.buffer_size())
        }
    }

    /// The first `len` bytes as a segment.
    pub fn filled(self, len: usize) -> Segment {
        assert!(len <= self.pool.buffer_size(), "longer than the buffer");
        let (pool, index) = self.provide();
        // SAFETY: just taken out of the free list by `provide`, never shown to a kernel, and initialised.
        unsafe { pool.lend(index, len as u32) }
    }

    /// Gives the buffer away: the caller lets the kernel write to it, then calls [`BufferPool::lend`] or
    /// [`BufferPool::put_back`]. Forgetting it only loses the buffer.
    pub fn provide(self) -> (BufferPool, u16) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so the pool handle is moved out exactly once.
        (unsafe { std::ptr::read(&this.pool) }, this.index)
    }
}

impl Drop for FreeBuffer {
    fn drop(&mut self) {
        self.pool.shared.put_free(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_the_last_reference() {
        let pool = BufferPool::new(2, 64);
        let mut buffer = pool.take_free().unwrap();
        buffer.bytes()[..5].copy_from_slice(b"hello");
        let segment = buffer.filled(5);
        let tail = segment.slice(1..5);
        assert_eq!((pool.lent(), pool.available(), pool.free()), (1, 1, 1));
        drop(segment);
        assert_eq!(&*tail, b"ello");
        assert_eq!(pool.lent(), 1);
        drop(tail);
        assert_eq!((pool.lent(), pool.free()), (0, 2));
        assert_eq!(pool.address(0) as usize % PAGE, 0);
    }

    // H6: holds may outlive the pool's handles.
    #[test]
    fn a_segment_outlives_the_pool() {
        let pool = BufferPool::new(1, 16);
        let mut buffer = pool.take_free().unwrap();
        buffer.bytes()[0] = 7;
        let segment = buffer.filled(1);
        drop(pool);
        assert_eq!(&*segment, &[7]);
    }

    // H16: the return of a buffer tells a starved engine, once.
    #[test]
    fn a_return_notifies_only_while_starved() {
        let pool = BufferPool::new(1, 16);
        let calls = Rc::new(Cell::new(0));
        let seen = calls.clone();
        pool.on_return(Some(Box::new(move || seen.set(seen.get() + 1))));
        drop(pool.take_free().unwrap().filled(1));
        assert_eq!(calls.get(), 0);
        let segment = pool.take_free().unwrap().filled(1);
        assert!(pool.take_free().is_none());
        pool.set_starved();
        drop(segment);
        assert_eq!(calls.get(), 1);
        drop(pool.take_free().unwrap());
        assert_eq!(calls.get(), 1);
    }
}
