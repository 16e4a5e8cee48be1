//! What can be chosen about an engine.

use crate::error::{Error, Result};
use std::time::Duration;

/// Which engine to use.
///
/// With io_uring, what arrives interrupts the thread's system calls: one of your own that waits (`poll`, a `recv` with a
/// timeout) may end with `EINTR`, and is to be made again. Runtimes do that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum EngineKind {
    /// io_uring when it passes its self-test, else epoll, with one warning per process.
    #[default]
    Auto,
    /// io_uring, or an error that says why not.
    Uring,
    /// epoll.
    Epoll,
}

/// Options of an engine. Checked as a whole before anything is made.
///
/// ```
/// use respiral::io::{EngineKind, EngineOptions};
/// let options = EngineOptions::new().kind(EngineKind::Epoll).buffer_count(64).buffer_size(4096);
/// assert_eq!(options.buffer_memory(), 256 * 1024);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineOptions {
    pub(crate) kind: EngineKind,
    pub(crate) buffer_count: u16,
    pub(crate) buffer_size: u32,
    pub(crate) entries: u32,
    pub(crate) completion_entries: u32,
    pub(crate) spin: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            kind: EngineKind::Auto,
            buffer_count: 128,
            buffer_size: 32 * 1024,
            entries: 128,
            completion_entries: 512,
            spin: Duration::ZERO,
        }
    }
}

impl EngineOptions {
    const BUFFER_COUNT_MAX: u16 = 1 << 15;
    const BUFFER_SIZE_MIN: u32 = 64;
    const BUFFER_MEMORY_MAX: usize = 1 << 30;
    const ENTRIES_MAX: u32 = 1 << 15;
    const COMPLETION_ENTRIES_MIN: u32 = 8;
    const SPIN_MAX: Duration = Duration::from_millis(1);

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which engine to use. Default: [`EngineKind::Auto`].
    pub fn kind(mut self, kind: EngineKind) -> Self {
        self.kind = kind;
        self
    }

    /// How many receive buffers all connections share: a power of two up to 32768. Default: 128.
    ///
    /// It is also the most that one turn can receive. Too few, and connections wait for each other while replies are
    /// held; memory is taken lazily, so too many costs address space first, and memory under the first flood.
    pub fn buffer_count(mut self, count: u16) -> Self {
        self.buffer_count = count;
        self
    }

    /// Bytes per receive buffer, at least 64. Default: 32 KiB.
    ///
    /// Larger buffers help little, since strings of 64 KiB and more get memory of their own; smaller ones split replies,
    /// which then have to be copied to be read in one piece. A reply that is kept keeps its buffer. Worst-case memory is [`buffer_memory`](Self::buffer_memory), at most 1 GiB.
    pub fn buffer_size(mut self, bytes: u32) -> Self {
        self.buffer_size = bytes;
        self
    }

    /// Entries of the submission queue: 1 to 32768, rounded up to a power of two. Default: 128.
    ///
    /// io_uring only. When more operations are queued in one turn, they go to the kernel in several calls. Rings count
    /// against the locked-memory limit (`ulimit -l`) of all processes of the user: an entry takes 64 bytes.
    pub fn entries(mut self, entries: u32) -> Self {
        self.entries = entries;
        self
    }

    /// Entries of the completion queue: 8 to 65536, and at least those of the submission queue; rounded up to a power
    /// of two. Default: 512.
    ///
    /// io_uring only. Completions beyond it are kept by the kernel until there is room, which costs system calls and
    /// ends multishot receives early, but loses nothing. An entry takes 16 bytes.
    pub fn completion_entries(mut self, entries: u32) -> Self {
        self.completion_entries = entries;
        self
    }

    /// How long to look for replies before the thread sleeps, when something was sent since callers were last woken; at most
    /// 1 ms. Default: zero.
    ///
    /// Waking a thread costs more than a short round trip, so for a few callers on a fast network this saves time and even
    /// CPU. But a thread that spins does nothing else: the runtime's other tasks wait so long. Worth trying with fewer than
    /// about a hundred callers per thread, about as long as a round trip takes.
    pub fn spin(mut self, time: Duration) -> Self {
        self.spin = time;
        self
    }

    /// The most memory that received bytes can take, in bytes: count × size.
    pub fn buffer_memory(&self) -> usize {
        usize::from(self.buffer_count) * self.buffer_size as usize
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if !self.buffer_count.is_power_of_two() || self.buffer_count > Self::BUFFER_COUNT_MAX {
            return Err(Error::config("buffer_count", "must be a power of two from 1 to 32768"));
        }
        if self.buffer_size < Self::BUFFER_SIZE_MIN {
            return Err(Error::config("buffer_size", "must be at least 64 bytes"));
        }
        if self.buffer_memory() > Self::BUFFER_MEMORY_MAX {
            return Err(Error::config("buffer_size", "times buffer_count must not exceed 1 GiB"));
        }
        if self.entries == 0 || self.entries > Self::ENTRIES_MAX {
            return Err(Error::config("entries", "must be from 1 to 32768"));
        }
        let least = self.entries.max(Self::COMPLETION_ENTRIES_MIN);
        if self.completion_entries < least || self.completion_entries > 2 * Self::ENTRIES_MAX {
            return Err(Error::config("completion_entries", "must be from 8, and from `entries`, to 65536"));
        }
        if self.spin > Self::SPIN_MAX {
            return Err(Error::config("spin", "must be at most 1 ms"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_is_checked_and_named() {
        let good = EngineOptions::new();
        assert_eq!(good.validate(), Ok(()));
        for (bad, option) in [
            (good.clone().buffer_count(0), "buffer_count"),
            (good.clone().buffer_count(3), "buffer_count"),
            (good.clone().buffer_size(63), "buffer_size"),
            (good.clone().buffer_count(32768).buffer_size(1 << 16), "buffer_size"),
            (good.clone().entries(0), "entries"),
            (good.clone().entries(40_000), "entries"),
            (good.clone().completion_entries(64), "completion_entries"),
            (good.clone().entries(1).completion_entries(4), "completion_entries"),
            (good.clone().completion_entries(70_000), "completion_entries"),
            (good.spin(Duration::from_micros(1001)), "spin"),
        ] {
            assert!(bad.validate().unwrap_err().to_string().contains(option), "{bad:?}");
        }
    }
}
