//! The outgoing bytes of one connection: an append-only log of chunks that never move.
//!
//! Callers append frames; the kernel gets [`ChunkSlice`]s. Replies overtake the completion of the send that carried
//! their commands, so a chunk must outlive both: the log forgets it when the owner releases the bytes, and its memory
//! is used again only when no slice is left (H27). A grown `Vec` would move under the kernel's feet.
//!
//! A large value that is shared already ([`Bytes`]) is not copied: it is a chunk of its own, [lent](Log::lend).

use bytes::Bytes;
use smallvec::SmallVec;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;

/// What one send carries, in order.
pub type Transmit = SmallVec<[ChunkSlice; 4]>;

/// Values that were lent and are not needed any more. Dropping one may run user code, so whoever owns the logs does that
/// when nothing is borrowed (H15). A cheap handle; `!Send`.
#[derive(Clone, Default)]
pub struct Returns(Rc<RefCell<Vec<Bytes>>>);

impl Returns {
    /// True when nothing came back.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// What came back since the last time.
    pub fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.0.borrow_mut())
    }
}

struct Chunk {
    pointer: NonNull<u8>,
    capacity: usize,
    /// Whose memory it is, when it was lent, and where that goes afterwards.
    lent: Option<(Bytes, Returns)>,
}

impl Chunk {
    fn new(capacity: usize) -> Rc<Self> {
        let layout = Layout::array::<u8>(capacity.max(1)).expect("chunk sizes are validated");
        // SAFETY: the layout is not empty.
        let Some(pointer) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        Rc::new(Self { pointer, capacity: capacity.max(1), lent: None })
    }

    /// A chunk that is full of these bytes.
    fn lent(bytes: Bytes, returns: Returns) -> Rc<Self> {
        let pointer = NonNull::from(&bytes[..]).cast();
        Rc::new(Self { pointer, capacity: bytes.len(), lent: Some((bytes, returns)) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some((bytes, returns)) = self.lent.take() {
            returns.0.borrow_mut().push(bytes);
            return;
        }
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

    /// The same bytes to be shared, when they were lent to the log.
    pub fn shared(&self) -> Option<Bytes> {
        let (bytes, _) = self.chunk.lent.as_ref()?;
        Some(bytes.slice(self.start..self.start + self.len))
    }
}

impl Deref for ChunkSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the log made this slice of bytes that it had written, and it writes only past them until no slice
        // of the chunk is left (and to a lent one never: it is full); the `Rc` keeps the memory, or the `Bytes` in it.
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
    /// Log offset of the chunk's first byte. Its last byte lies before the next chunk's first, or before the log's end.
    start: u64,
}

/// The log of one connection. Offsets count from its creation and never repeat.
pub struct Log {
    /// Bytes that fit behind `tail`.
    left: usize,
    /// The byte after the last one that was written, in the last chunk; dangling while there is no chunk.
    tail: NonNull<u8>,
    end: u64,
    released: u64,
    chunks: VecDeque<Live>,
    spare: Vec<Rc<Chunk>>,
    chunk_size: usize,
    /// Size of the next chunk: twice that of the last, up to `chunk_size`. A connection that is hardly used, one of ten
    /// thousand, has little.
    next_size: usize,
    returns: Returns,
}

impl Log {
    /// The first chunk, in bytes.
    const CHUNK_MIN: usize = 2048;
    /// Chunks kept for later use when they are done with.
    const SPARE_MAX: usize = 4;
    /// The largest chunk, in bytes: what one send carries.
    const CHUNK_MAX: usize = 1 << 20;

    /// A log of chunks of `chunk_size` bytes; nothing is allocated before the first append. What it was lent is dropped
    /// with the log: not for a log inside of a client.
    pub fn new(chunk_size: usize) -> Self {
        Self::returning_to(chunk_size, Returns::default())
    }

    /// As [`new`](Self::new); values that were lent go to `returns`.
    pub fn returning_to(chunk_size: usize, returns: Returns) -> Self {
        Self {
            returns,
            left: 0,
            tail: NonNull::dangling(),
            end: 0,
            released: 0,
            chunks: VecDeque::new(),
            spare: Vec::new(),
            chunk_size: chunk_size.max(1),
            next_size: chunk_size.clamp(1, Self::CHUNK_MIN),
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
        match self.room(bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.advance(bytes.len());
            }
            None => self.append_slowly(bytes),
        }
    }

    /// Room for `size` bytes at the end, in one piece, if the last chunk has it. What is written there counts from
    /// [`advance`](Self::advance) on.
    #[inline(always)]
    pub fn room(&mut self, size: usize) -> Option<&mut [u8]> {
        if self.left < size {
            return None;
        }
        // SAFETY: `left` bytes behind `tail` lie inside the last chunk, which `chunks` keeps and which was zeroed when it
        // was allocated, so they are initialised (for none, any non-null pointer will do); every slice that exists ends
        // at or before `tail`, and the log is borrowed mutably, so nobody else reads or writes these bytes while the
        // result lives.
        Some(unsafe { std::slice::from_raw_parts_mut(self.tail.as_ptr(), size) })
    }

    /// The first `size` bytes of the room are written.
    #[inline(always)]
    pub fn advance(&mut self, size: usize) {
        assert!(size <= self.left, "more than there was room for");
        self.left -= size;
        // SAFETY: `left` bytes behind `tail` belong to the same chunk.
        self.tail = unsafe { self.tail.add(size) };
        self.end += size as u64;
    }

    #[cold]
    fn append_slowly(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 {
                // A large value gets a chunk of its own size, so that one send needs few slices.
                let size = self.next_size.max(bytes.len().min(Self::CHUNK_MAX));
                self.next_size = (2 * self.next_size).min(self.chunk_size);
                let spare = if size == self.chunk_size { self.spare.pop() } else { None };
                let chunk = spare.unwrap_or_else(|| Chunk::new(size));
                (self.tail, self.left) = (chunk.pointer, chunk.capacity);
                self.chunks.push_back(Live { chunk, start: self.end });
            }
            let (now, later) = bytes.split_at(self.left.min(bytes.len()));
            if let Some(room) = self.room(now.len()) {
                room.copy_from_slice(now);
                self.advance(now.len());
            }
            bytes = later;
        }
    }

    /// Appends bytes that are shared already, by reference, as a chunk of their own.
    pub fn lend(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let start = self.end;
        self.end += bytes.len() as u64;
        // The room behind the last chunk is given up: offsets must not overtake it.
        self.left = 0;
        self.chunks.push_back(Live { chunk: Chunk::lent(bytes, self.returns.clone()), start });
    }

    /// Log offset after the last byte of the chunk at this position.
    fn end_of(&self, position: usize) -> u64 {
        self.chunks.get(position + 1).map_or(self.end, |next| next.start)
    }

    /// Adds the bytes `from..to` to `out`. Both must lie in what is appended and not released.
    pub fn slices(&self, from: u64, to: u64, out: &mut Transmit) {
        assert!(self.released <= from && from <= to && to <= self.end, "range outside the log");
        // The range starts near the front in every use; few chunks are live.
        let mut at = from;
        for (position, live) in self.chunks.iter().enumerate() {
            let live_end = self.end_of(position);
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
        while !self.chunks.is_empty() && self.end_of(0) <= offset {
            if self.chunks.len() == 1 && !self.is_last_done() {
                return;
            }
            if let Some(done) = self.chunks.pop_front()
                && Rc::strong_count(&done.chunk) == 1
                && done.chunk.capacity == self.chunk_size
                && done.chunk.lent.is_none()
                && self.spare.len() < Self::SPARE_MAX
            {
                self.spare.push(done.chunk);
            }
        }
        if self.chunks.is_empty() {
            self.left = 0;
        }
    }

    /// Everything is released. The last chunk starts over, if no slice refers to it, so that a client in steady state
    /// writes to the same warm memory each turn; it stays while it has room; else it is done.
    fn is_last_done(&mut self) -> bool {
        let (end, most) = (self.end, self.chunk_size);
        let Some(last) = self.chunks.back_mut() else { return false };
        let is_unread = Rc::strong_count(&last.chunk) == 1 || planted!(MemoryReused);
        if is_unread && last.chunk.capacity <= most && last.chunk.lent.is_none() {
            last.start = end;
            (self.tail, self.left) = (last.chunk.pointer, last.chunk.capacity);
            return false;
        }
        self.left == 0
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

    #[test]
    fn a_lent_value_is_not_copied_and_comes_back() {
        let returns = Returns::default();
        let mut log = Log::returning_to(64, returns.clone());
        let value = Bytes::from(vec![7; 64]);
        log.append(b"head");
        log.lend(value.clone());
        log.append(b"tail");
        log.lend(Bytes::new());
        let mut transmit = Transmit::new();
        log.slices(0, log.end(), &mut transmit);
        assert_eq!(transmit[1].as_ptr(), value.as_ptr());
        assert_eq!(transmit[1].shared().unwrap(), value);
        assert!(transmit[0].shared().is_none());
        assert_eq!(read(&log, 2, 70), [&b"ad"[..], &value, b"ta"].concat());
        log.release(log.end());
        assert!(returns.is_empty(), "the kernel still reads it");
        drop(transmit);
        assert_eq!(returns.take(), [value]);
        // Its memory is not written to, although its size is that of a chunk.
        log.append(b"next");
        assert_eq!(read(&log, 72, 76), b"next");
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
                match turn % 4 {
                    3 => log.lend(bytes.clone().into()),
                    _ => log.append(&bytes),
                }
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
