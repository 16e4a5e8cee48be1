//! The epoll set, as safe calls; see [epoll(7)](https://man7.org/linux/man-pages/man7/epoll.7.html).

use crate::engine::wake::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub(super) const READ: u32 = libc::EPOLLIN as u32;
pub(super) const WRITE: u32 = libc::EPOLLOUT as u32;

/// An epoll set, level triggered.
pub(super) struct Poller {
    set: OwnedFd,
    pub(super) calls: u64,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: a fresh descriptor that nobody else knows.
        Ok(Self { set: unsafe { OwnedFd::from_raw_fd(fd) }, calls: 0 })
    }

    /// Watches `fd` for `new` instead of `old`; empty means not at all.
    pub(super) fn watch(&mut self, fd: RawFd, token: u64, old: u32, new: u32) -> io::Result<()> {
        let operation = match (old, new) {
            (old, new) if old == new => return Ok(()),
            (0, _) => libc::EPOLL_CTL_ADD,
            (_, 0) => libc::EPOLL_CTL_DEL,
            _ => libc::EPOLL_CTL_MOD,
        };
        self.calls += 1;
        let mut event = libc::epoll_event { events: new, u64: token };
        // SAFETY: one valid event, for the length of the call.
        checked(unsafe { libc::epoll_ctl(self.set.as_raw_fd(), operation, fd, &mut event) })?;
        Ok(())
    }

    /// What is ready now, up to the capacity of `events`; does not wait.
    pub(super) fn ready(&mut self, events: &mut Vec<libc::epoll_event>, max: usize) -> io::Result<()> {
        events.clear();
        let max = max.min(events.capacity());
        loop {
            self.calls += 1;
            // SAFETY: the vector has room for `max` events; the kernel writes at most that many.
            let count = checked(unsafe {
                libc::epoll_wait(self.set.as_raw_fd(), events.as_mut_ptr(), max as i32, 0)
            });
            match count {
                Ok(count) => {
                    // SAFETY: the kernel has written `count` events, at most the capacity.
                    unsafe { events.set_len(count as usize) };
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.set.try_clone()
    }
}
