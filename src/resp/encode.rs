//! Commands to bytes: straight into the outgoing log.

use crate::buf::Log;

/// Writes one command to a connection's [`Log`].
///
/// ```
/// use respiral::buf::Log;
/// use respiral::resp::Encoder;
/// let mut log = Log::new(4096);
/// let mut encoder = Encoder::new(&mut log);
/// encoder.raw(b"*2\r\n$3\r\nGET\r\n");
/// encoder.arg(b"key:123");
/// encoder.finish();
/// assert_eq!(log.len(), 26);
/// ```
///
/// A command is either begun with [`begin`](Self::begin), or by a [`raw`](Self::raw) prefix that says how many
/// arguments follow. Debug builds check at [`finish`](Self::finish) that so many were written.
pub struct Encoder<'l> {
    log: &'l mut Log,
    /// Arguments announced by `begin` and not written yet.
    #[cfg(debug_assertions)]
    missing: Option<usize>,
}

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
        Self {
            log,
            #[cfg(debug_assertions)]
            missing: None,
        }
    }

    /// Begins a command of `count` arguments, its name included.
    pub fn begin(&mut self, count: usize) {
        #[cfg(debug_assertions)]
        {
            debug_assert!(self.missing.is_none(), "a command is begun once");
            self.missing = Some(count);
        }
        match u8::try_from(count) {
            Ok(count @ 0..=9) => self.log.append(&[b'*', b'0' + count, b'\r', b'\n']),
            _ => self.header(b'*', count),
        }
    }

    /// Appends bytes as they are: a static prefix of the command, its header and first arguments. In debug builds they
    /// do not count as arguments; with a header in the prefix, nothing is counted.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.log.append(bytes);
    }

    #[inline]
    fn count_argument(&mut self) {
        #[cfg(debug_assertions)]
        if let Some(missing) = &mut self.missing {
            debug_assert!(*missing > 0, "more arguments than announced");
            *missing -= 1;
        }
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
    #[inline]
    pub fn arg(&mut self, value: &[u8]) {
        self.count_argument();
        let len = value.len();
        // `$n\r\n` or `$nn\r\n` in one word, which is written whole; what follows overwrites its rest.
        let (header, used) = match len {
            0..10 => (u64::from_le_bytes([b'$', b'0' + len as u8, b'\r', b'\n', 0, 0, 0, 0]), 4),
            10..100 => {
                let (tens, units) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
                (u64::from_le_bytes([b'$', tens, units, b'\r', b'\n', 0, 0, 0]), 5)
            }
            _ => return self.large(value),
        };
        let Some(room) = self.log.room(size_of::<u64>() + len + 2) else { return self.large(value) };
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

    /// One argument that lies in pieces.
    pub fn chunks<'c>(&mut self, chunks: impl Iterator<Item = &'c [u8]> + Clone) {
        self.count_argument();
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

    /// The command is complete.
    #[inline]
    pub fn finish(self) {
        #[cfg(debug_assertions)]
        debug_assert!(
            matches!(self.missing, None | Some(0)),
            "fewer arguments than announced: {:?}",
            self.missing
        );
    }
}
