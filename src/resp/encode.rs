//! Commands to bytes: straight into the outgoing log.

use crate::buf::{Log, Transmit};
use bytes::Bytes;

/// Writes one command to a connection's [`Log`].
///
/// ```
/// use respiral::buf::Log;
/// use respiral::resp::Encoder;
/// let mut log = Log::new(4096);
/// let mut encoder = Encoder::new(&mut log);
/// encoder.begin(2);
/// encoder.arg(b"GET");
/// encoder.arg(b"key:123");
/// assert!(encoder.is_whole());
/// assert_eq!(log.len(), 26);
/// ```
///
/// A command is begun once, with [`begin`](Self::begin) or [`begin_with`](Self::begin_with), and then so many arguments
/// are written as were announced. One that [is not whole](Self::is_whole) is never sent: what follows it on the connection
/// would be taken for a part of it.
pub struct Encoder<'l> {
    log: &'l mut Log,
    /// Arguments to come, as it was announced.
    announced: usize,
    written: usize,
}

/// A [`Bytes`] of so many bytes or more is sent from where it lies; below, a copy costs less than a reference.
pub const LEND_FROM: usize = 16 * 1024;

/// Nothing was announced yet.
const NOT_BEGUN: usize = usize::MAX;
/// That was done again.
const TWICE: usize = usize::MAX - 1;

/// `$n\r\n` and `$nn\r\n`, each as one word.
const HEADERS: [u64; 100] = {
    let mut headers = [0; 100];
    let mut len = 0;
    while len < headers.len() {
        let (tens, units) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
        headers[len] = u64::from_le_bytes(match len {
            0..10 => [b'$', units, b'\r', b'\n', 0, 0, 0, 0],
            _ => [b'$', tens, units, b'\r', b'\n', 0, 0, 0],
        });
        len += 1;
    }
    headers
};

/// Copies a key or another short value without a call: two words that may overlap.
#[inline(always)]
fn copy_short(to: &mut [u8], from: &[u8]) {
    if let (8..=16, Some(first), Some(last)) = (from.len(), from.first_chunk::<8>(), from.last_chunk::<8>())
        && let Some(place) = to.first_chunk_mut()
    {
        *place = *first;
        if let Some(place) = to.last_chunk_mut() {
            *place = *last;
        }
    } else if let (17..=32, Some(first), Some(last)) =
        (from.len(), from.first_chunk::<16>(), from.last_chunk::<16>())
        && let Some(place) = to.first_chunk_mut()
    {
        *place = *first;
        if let Some(place) = to.last_chunk_mut() {
            *place = *last;
        }
    } else {
        to.copy_from_slice(from);
    }
}

impl<'l> Encoder<'l> {
    /// An encoder of one command.
    #[inline]
    pub fn new(log: &'l mut Log) -> Self {
        Self { log, announced: NOT_BEGUN, written: 0 }
    }

    /// Begins a command of `count` arguments, its name included.
    pub fn begin(&mut self, count: usize) {
        self.announce(count);
        match u8::try_from(count) {
            Ok(count @ 0..=9) => self.log.append(&[b'*', b'0' + count, b'\r', b'\n']),
            _ => self.header(b'*', count),
        }
    }

    /// Begins a command with a prefix that was encoded before: its header and its first arguments. `following` arguments
    /// are to come.
    ///
    /// ```
    /// # let mut log = respiral::buf::Log::new(4096);
    /// let mut encoder = respiral::resp::Encoder::new(&mut log);
    /// encoder.begin_with(b"*2\r\n$3\r\nGET\r\n", 1);
    /// encoder.arg(b"key:123");
    /// assert!(encoder.is_whole());
    /// ```
    #[inline]
    pub fn begin_with(&mut self, prefix: &'static [u8], following: usize) {
        // The prefix counts as one.
        self.announce(1 + following);
        self.written += 1;
        self.log.append(prefix);
    }

    #[inline]
    fn announce(&mut self, count: usize) {
        self.announced = if self.is_begun() { TWICE } else { count };
    }

    /// True when a command was begun.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        self.announced != NOT_BEGUN
    }

    /// Appends `count` arguments that were encoded before.
    pub(crate) fn encoded(&mut self, slices: Transmit, count: usize) {
        self.written += count;
        for slice in slices {
            match slice.shared() {
                Some(bytes) => self.log.lend(bytes),
                None => self.log.append(&slice),
            }
        }
    }

    /// Arguments written so far.
    pub fn written(&self) -> usize {
        self.written
    }

    /// True when a command was begun and has all its arguments.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.announced == self.written && self.written > 0
    }

    /// `$5\r\n` and its like.
    fn header(&mut self, kind: u8, count: usize) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(count).as_bytes();
        let mut header = [kind; 24];
        header[1..1 + digits.len()].copy_from_slice(digits);
        header[1 + digits.len()..3 + digits.len()].copy_from_slice(b"\r\n");
        self.log.append(&header[..3 + digits.len()]);
    }

    /// One argument.
    #[inline(always)]
    pub fn arg(&mut self, value: &[u8]) {
        self.written += 1;
        let len = value.len();
        let Some(header) = HEADERS.get(len) else { return self.large(value) };
        let used = 4 + usize::from(len >= 10);
        let Some(room) = self.log.room(size_of::<u64>() + len + 2) else { return self.large(value) };
        // The header's word is written whole; what follows overwrites its rest.
        room[..size_of::<u64>()].copy_from_slice(&header.to_le_bytes());
        copy_short(&mut room[used..used + len], value);
        room[used + len..used + len + 2].copy_from_slice(b"\r\n");
        self.log.advance(used + len + 2);
    }

    #[inline(never)]
    fn large(&mut self, value: &[u8]) {
        self.header(b'$', value.len());
        self.log.append(value);
        self.log.append(b"\r\n");
    }

    /// One argument that is shared already: from [`LEND_FROM`] bytes on by reference, without a copy.
    pub fn shared(&mut self, value: &Bytes) {
        if value.len() < LEND_FROM {
            return self.arg(value);
        }
        self.written += 1;
        self.header(b'$', value.len());
        self.log.lend(value.clone());
        self.log.append(b"\r\n");
    }

    /// One argument that lies in pieces.
    pub fn chunks<'c>(&mut self, chunks: impl Iterator<Item = &'c [u8]> + Clone) {
        self.written += 1;
        self.header(b'$', chunks.clone().map(<[u8]>::len).sum());
        chunks.for_each(|chunk| self.log.append(chunk));
        self.log.append(b"\r\n");
    }

    /// One argument: a signed number.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.arg(itoa::Buffer::new().format(value).as_bytes());
    }

    /// One argument: an unsigned number.
    #[inline]
    pub fn uint(&mut self, value: u64) {
        self.arg(itoa::Buffer::new().format(value).as_bytes());
    }

    /// One argument: the shortest text that reads back as the same number; `inf`, `-inf` and `nan`.
    pub fn float(&mut self, value: f64) {
        self.display_float(value, value);
    }

    /// A number and its value, of which only the size is looked at.
    pub(super) fn display_float(&mut self, value: f64, shown: impl std::fmt::Display + std::fmt::LowerExp) {
        use std::io::Write;
        let mut text = [0u8; 48];
        let size = value.abs();
        let mut cursor = &mut text[..];
        let written = if value.is_nan() {
            cursor.write_all(b"nan")
        } else if value == 0.0 || (1e-5..1e17).contains(&size) || value.is_infinite() {
            write!(cursor, "{shown}")
        } else {
            // Without an exponent 1e300 has 301 digits.
            write!(cursor, "{shown:e}")
        };
        let len = 48 - cursor.len();
        debug_assert!(written.is_ok(), "the shortest text of a float has at most 25 bytes");
        self.arg(&text[..len]);
    }
}
