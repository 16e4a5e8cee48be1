//! The outgoing bytes of one connection: an append-only log of chunks that never move.
//!
//! Callers append frames; the kernel gets [`ChunkSlice`]s. Replies overtake the completion of the send that carried
//! their commands, so a chunk must outlive both: the log forgets it when the owner releases the bytes, and its memory
//! is used again only when no slice is left (H27). A grown `Vec` would move under the kernel's feet.

use smallvec::SmallVec;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;

/// What one send carries, in order.
pub type Transmit = SmallVec<[ChunkSlice; 4]>;

struct Chunk {
    pointer: NonNull<u8>,
    capacity: usize,
}

impl Chunk {
    fn new(capacity: usize) -> Rc<Self> {
        let layout = Layout::array::<u8>(capacity.max(1)).expect("chunk sizes are validated");
        // SAFETY: the layout is not empty.
        let Some(pointer) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        Rc::new(Self { pointer, capacity: capacity.max(1) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let layout = Layout::array::<u8>(self.capacity).expect("valid at allocation");
        // SAFETY: allocated in `new` with this layout, and this is the last reference.
        unsafe { dealloc(self.pointer.as_ptr(), layout) }
    }
}

/// Written bytes of a log, alive as long as this value. Cheap to clone; `!Send`.
#[derive(Clone)]
pub struct ChunkSlice {
    chunk: Rc<Chunk>,
    start: usize,
    len: usize,
}

impl ChunkSlice {
    /// The rest after `count` bytes.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len, "past the end of the slice");
        self.start += count;
        self.len -= count;
    }
}

impl Deref for ChunkSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the log made this slice of bytes that it had written, and it writes only past them until no slice
        // of the chunk is left; the `Rc` keeps the memory.
        unsafe { std::slice::from_raw_parts(self.chunk.pointer.as_ptr().add(self.start), self.len) }
    }
}

impl std::fmt::Debug for ChunkSlice {
    /// Lengths only: commands carry secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChunkSlice({} bytes)", self.len)
    }
}

struct Live {
    chunk: Rc<Chunk>,
    /// Log offset of the chunk's first byte.
    start: u64,
    written: usize,
}

/// The log of one connection. Offsets count from its creation and never repeat.
pub struct Log {
    chunks: VecDeque<Live>,
    spare: Vec<Rc<Chunk>>,
    chunk_size: usize,
    released: u64,
    end: u64,
}

impl Log {
    /// Chunks kept for later use when they are done with.
    const SPARE_MAX: usize = 4;
    /// The largest chunk, in bytes: what one send carries.
    const CHUNK_MAX: usize = 1 << 20;

    /// A log of chunks of `chunk_size` bytes; nothing is allocated before the first append.
    pub fn new(chunk_size: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            spare: Vec::new(),
            chunk_size: chunk_size.max(1),
            released: 0,
            end: 0,
        }
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that were appended and not released.
    pub fn len(&self) -> u64 {
        self.end - self.released
    }

    /// True when everything is released.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `bytes`, over as many chunks as they need.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        if let Some(last) = self.chunks.back_mut()
            && last.chunk.capacity - last.written >= bytes.len()
        {
            last.write(bytes);
            self.end += bytes.len() as u64;
            return;
        }
        self.append_slowly(bytes);
    }

    /// Room for `size` bytes at the end, in one piece, if the last chunk has it. What is written there counts from
    /// [`advance`](Self::advance) on.
    #[inline]
    pub fn room(&mut self, size: usize) -> Option<&mut [u8]> {
        let last = self.chunks.back_mut()?;
        if last.chunk.capacity - last.written < size {
            return None;
        }
        // SAFETY: the range lies inside the chunk, which was zeroed when it was allocated, so it is initialised; every
        // slice that exists ends at or before `written`, and the log is borrowed mutably, so nobody else reads or
        // writes these bytes while the result lives.
        Some(unsafe { std::slice::from_raw_parts_mut(last.chunk.pointer.as_ptr().add(last.written), size) })
    }

    /// The first `size` bytes of the room are written.
    #[inline]
    pub fn advance(&mut self, size: usize) {
        let Some(last) = self.chunks.back_mut() else { return };
        assert!(size <= last.chunk.capacity - last.written, "more than there was room for");
        last.written += size;
        self.end += size as u64;
    }

    #[cold]
    fn append_slowly(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.chunks.back().map_or(0, |last| last.chunk.capacity - last.written);
            if room == 0 {
                // A large value gets a chunk of its own size, so that one send needs few slices.
                let size = self.chunk_size.max(bytes.len().min(Self::CHUNK_MAX));
                let spare = if size == self.chunk_size { self.spare.pop() } else { None };
                let chunk = spare.unwrap_or_else(|| Chunk::new(size));
                self.chunks.push_back(Live { chunk, start: self.end, written: 0 });
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(last) = self.chunks.back_mut() {
                last.write(now);
            }
            self.end += now.len() as u64;
            bytes = later;
        }
    }

    /// Adds the bytes `from..to` to `out`. Both must lie in what is appended and not released.
    pub fn slices(&self, from: u64, to: u64, out: &mut Transmit) {
        assert!(self.released <= from && from <= to && to <= self.end, "range outside the log");
        // The range starts near the front in every use; few chunks are live.
        let mut at = from;
        for live in &self.chunks {
            let live_end = live.start + live.written as u64;
            if at >= live_end {
                continue;
            }
            if at >= to {
                break;
            }
            let start = (at - live.start) as usize;
            let len = (to.min(live_end) - at) as usize;
            out.push(ChunkSlice { chunk: live.chunk.clone(), start, len });
            at += len as u64;
        }
    }

    /// Forgets all bytes before `offset`. Slices of them stay valid.
    pub fn release(&mut self, offset: u64) {
        assert!(offset <= self.end, "released past the end");
        if offset <= self.released {
            return;
        }
        self.released = offset;
        if self.chunks.front().is_none_or(|first| first.start + first.written as u64 > offset) {
            return;
        }
        self.drop_released();
    }

    fn drop_released(&mut self) {
        let offset = self.released;
        while let Some(first) = self.chunks.front_mut() {
            if first.start + first.written as u64 > offset {
                break;
            }
            let unshared = Rc::strong_count(&first.chunk) == 1;
            if self.chunks.len() == 1 {
                // Everything is released. The last chunk starts over, if no slice refers to it, so that a client in
                // steady state writes to the same warm memory each turn.
                if unshared
                    && let Some(last) = self.chunks.back_mut()
                    && last.chunk.capacity == self.chunk_size
                {
                    last.start = self.end;
                    last.written = 0;
                    return;
                }
                if self.chunks.back().is_some_and(|last| last.written < last.chunk.capacity) {
                    return;
                }
            }
            if let Some(done) = self.chunks.pop_front()
                && unshared
                && done.chunk.capacity == self.chunk_size
                && self.spare.len() < Self::SPARE_MAX
            {
                self.spare.push(done.chunk);
            }
        }
    }
}

impl Live {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.chunk.capacity - self.written);
        // SAFETY: there is room (both callers checked, see above); only the log writes to its chunks, and every slice
        // that exists ends at or before `written`, so nobody reads these bytes now.
        unsafe {
            let to = self.chunk.pointer.as_ptr().add(self.written);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.written += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &Log, from: u64, to: u64) -> Vec<u8> {
        let mut transmit = Transmit::new();
        log.slices(from, to, &mut transmit);
        transmit.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn frames_cross_chunks() {
        let mut log = Log::new(4);
        log.append(b"abc");
        log.append(b"defghij");
        assert_eq!(log.end(), 10);
        assert_eq!(read(&log, 0, 10), b"abcdefghij");
        assert_eq!(read(&log, 3, 9), b"defghi");
        log.release(5);
        assert_eq!(read(&log, 5, 10), b"fghij");
        assert_eq!(log.len(), 5);
    }

    // H27: released bytes stay where they are while the kernel may read them.
    #[test]
    fn a_slice_survives_release_and_later_appends() {
        let mut log = Log::new(8);
        log.append(b"12345678");
        let mut transmit = Transmit::new();
        log.slices(0, 8, &mut transmit);
        log.release(8);
        log.append(b"abcdefgh");
        log.append(b"ijklmnop");
        assert_eq!(&*transmit[0], b"12345678");
        assert_eq!(read(&log, 8, 24), b"abcdefghijklmnop");
    }

    #[test]
    fn a_partly_filled_chunk_in_flight_is_appended_to_not_rewound() {
        let mut log = Log::new(16);
        log.append(b"first");
        let mut transmit = Transmit::new();
        log.slices(0, 5, &mut transmit);
        log.release(5);
        log.append(b"second");
        assert_eq!(&*transmit[0], b"first");
        assert_eq!(read(&log, 5, 11), b"second");
    }

    #[test]
    fn the_steady_state_keeps_one_chunk() {
        let mut log = Log::new(64);
        log.append(b"x");
        let first = log.chunks[0].chunk.pointer;
        for _ in 0..1000 {
            log.append(&[7; 40]);
            let end = log.end();
            assert_eq!(read(&log, end - 40, end), [7; 40]);
            log.release(end);
        }
        assert_eq!(log.chunks.len(), 1);
        assert_eq!(log.chunks[0].chunk.pointer, first);
    }

    proptest::proptest! {
        #[test]
        fn any_sequence_reads_back(chunk in 1usize..20, parts in proptest::collection::vec(0usize..30, 0..40)) {
            let mut log = Log::new(chunk);
            let mut model = Vec::new();
            let mut held = Vec::new();
            for (turn, part) in parts.iter().enumerate() {
                let bytes: Vec<u8> = (0..*part).map(|i| (turn * 31 + i) as u8).collect();
                let from = log.end();
                log.append(&bytes);
                model.extend_from_slice(&bytes);
                let mut transmit = Transmit::new();
                log.slices(from, log.end(), &mut transmit);
                held.push((transmit, bytes));
                if turn % 3 == 0 {
                    log.release(from + (*part as u64) / 2);
                }
                if turn % 5 == 4 {
                    held.remove(0);
                }
            }
            for (transmit, bytes) in held {
                let read: Vec<u8> = transmit.iter().flat_map(|slice| slice.to_vec()).collect();
                proptest::prop_assert_eq!(read, bytes);
            }
        }
    }
}
