//! The two queues: entries go in, completions come out, and every one is accounted for.
//!
//! *In:* an entry is queued without a system call; a full queue is handed over and used again, and what still does not
//! fit waits in `backlog`. *Out:* completions are copied out in batches. Invariant: `outstanding` is the number of
//! entries whose last completion has not been reaped; at zero the kernel has nothing of ours.

use super::refusal::UringRefusal;
use crate::io::EngineOptions;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::time::Duration;

/// Completions that are copied out of the queue at a time.
pub(super) const BATCH: usize = 32;

pub(super) struct Ring {
    io: IoUring,
    backlog: VecDeque<squeue::Entry>,
    outstanding: usize,
    enters: u64,
}

impl Ring {
    pub(super) fn new(options: &EngineOptions) -> Result<Self, UringRefusal> {
        // Not R_DISABLED: the ring is used only by the thread that makes it. Not DEFER_TASKRUN: it runs 20 items per
        // enter (H11). SUBMIT_ALL: an entry that the kernel refuses gets its completion and does not stop the others.
        let io = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(options.completion_entries)
            .build(options.entries)
            .map_err(|e| UringRefusal::of("io_uring_setup", &e))?;
        if !io.params().is_feature_nodrop() || !io.params().is_feature_ext_arg() {
            return Err(UringRefusal::KernelTooOld { what: "no NODROP or EXT_ARG" });
        }
        Ok(Self { io, backlog: VecDeque::new(), outstanding: 0, enters: 0 })
    }

    /// Queues an entry.
    ///
    /// # Safety
    /// Whatever the entry points to stays valid and unmoved until its last completion is reaped, and its descriptor
    /// stays open that long.
    pub(super) unsafe fn push(&mut self, entry: squeue::Entry) {
        #[cfg(test)]
        let entry = older_kernel::without(entry);
        self.outstanding += 1;
        // SAFETY: the caller's promise is the one that is asked for here.
        if self.backlog.is_empty() && unsafe { self.io.submission().push(&entry) }.is_ok() {
            return;
        }
        self.backlog.push_back(entry);
        // An error here comes again, and is told, at the next flush.
        let _ = self.submit();
    }

    pub(super) fn has_queued(&mut self) -> bool {
        !self.backlog.is_empty() || !self.io.submission().is_empty()
    }

    /// Hands over all that is queued; no system call when that is nothing. What the kernel cannot take now (no memory)
    /// stays queued.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            self.refill();
            let queued = self.io.submission().len();
            if queued == 0 {
                return Ok(());
            }
            self.enters += 1;
            match self.io.submit() {
                Ok(_) if self.io.submission().len() == queued => return Ok(()),
                Ok(_) => {}
                Err(e) if is(&e, libc::EINTR) => {}
                Err(e) if is(&e, libc::EAGAIN) || is(&e, libc::EBUSY) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    fn refill(&mut self) {
        let mut queue = self.io.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: whoever pushed the entry promised what is asked for here, until its completion.
            if unsafe { queue.push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// True when completions exist that only a system call makes visible: work that waits for a kernel entry (H12), or
    /// completions that found the queue full (H22).
    pub(super) fn needs_entry(&mut self) -> bool {
        let queue = self.io.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Makes them visible, without waiting. Queued entries go along.
    pub(super) fn take_events(&mut self) -> io::Result<()> {
        self.enters += 1;
        // The crate adds GETEVENTS when the flags ask for it.
        match self.io.submit() {
            Err(e) if !is(&e, libc::EINTR) && !is(&e, libc::EAGAIN) && !is(&e, libc::EBUSY) => Err(e),
            _ => Ok(()),
        }
    }

    /// Waits until there is a completion, for at most `time`.
    pub(super) fn wait(&mut self, time: Duration) -> io::Result<()> {
        self.enters += 1;
        let time = Timespec::from(time);
        match self.io.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time)) {
            Err(e) if [libc::EINTR, libc::ETIME, libc::EAGAIN, libc::EBUSY].iter().any(|no| is(&e, *no)) => {
                Ok(())
            }
            Err(e) => Err(e),
            Ok(_) => Ok(()),
        }
    }

    pub(super) fn has_completions(&mut self) -> bool {
        !self.io.completion().is_empty()
    }

    /// Takes as many completions as there are and as fit.
    pub(super) fn reap<'a>(&mut self, into: &'a mut [MaybeUninit<cqueue::Entry>]) -> &'a [cqueue::Entry] {
        let reaped = self.io.completion().fill(into);
        for entry in &*reaped {
            if !cqueue::more(entry.flags()) {
                self.outstanding -= 1;
            }
        }
        reaped
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Entries that the kernel has taken and not ended.
    pub(super) fn in_kernel(&mut self) -> usize {
        self.outstanding - self.backlog.len() - self.io.submission().len()
    }

    /// Calls of `io_uring_enter` so far.
    pub(super) fn enters(&self) -> u64 {
        self.enters
    }

    pub(super) fn register_eventfd(&self, fd: RawFd) -> Result<(), UringRefusal> {
        self.io
            .submitter()
            .register_eventfd(fd)
            .map_err(|e| UringRefusal::of("io_uring_register (eventfd)", &e))
    }

    /// # Safety
    /// As for `IORING_REGISTER_PBUF_RING`: `entries` entries at `address` stay valid until the ring is unregistered
    /// and nothing is outstanding.
    pub(super) unsafe fn register_buffers(&self, address: u64, entries: u16) -> Result<(), UringRefusal> {
        // SAFETY: the caller's promise.
        unsafe { self.io.submitter().register_buf_ring_with_flags(address, entries, GROUP, 0) }
            .map_err(|e| UringRefusal::of("io_uring_register (buffer ring)", &e))
    }

    /// The last step before the ring is closed; an error leaves only that to do.
    pub(super) fn unregister(&self) {
        let _ = self.io.submitter().unregister_buf_ring(GROUP);
        let _ = self.io.submitter().unregister_eventfd();
    }
}

/// The one group of provided buffers.
pub(super) const GROUP: u16 = 0;

fn is(error: &io::Error, errno: i32) -> bool {
    error.raw_os_error() == Some(errno)
}

/// A kernel that lacks something, for tests of the self-test: entries that need it are spoiled, and the kernel answers
/// them as an older one would.
#[cfg(test)]
pub(super) mod older_kernel {
    use io_uring::squeue::Entry;
    use std::cell::Cell;

    /// What entries are: the number of the operation, and the flags of its own.
    pub(in super::super) type Is = fn(u8, u16) -> bool;

    thread_local!(pub(in super::super) static LACKS: Cell<Option<Is>> = const { Cell::new(None) });

    pub(super) fn without(mut entry: Entry) -> Entry {
        // SAFETY: an entry is the kernel's io_uring_sqe, plain data of 64 bytes: the operation's number first, its flags
        // (`ioprio`) in the third and fourth.
        let bytes = unsafe { &mut *std::ptr::from_mut(&mut entry).cast::<[u8; 64]>() };
        if LACKS.get().is_some_and(|lacks| lacks(bytes[0], u16::from_ne_bytes([bytes[2], bytes[3]]))) {
            bytes[0] = u8::MAX;
        }
        entry
    }
}
