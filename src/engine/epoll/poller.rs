//! The three descriptors of the epoll engine, as safe calls.
//!
//! See [epoll(7)](https://man7.org/linux/man-pages/man7/epoll.7.html) and
//! [timerfd_create(2)](https://man7.org/linux/man-pages/man2/timerfd_create.2.html).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

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

/// A one-shot timer that is read like an eventfd.
pub(super) struct TimerFd {
    pub(super) file: File,
}

impl TimerFd {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed.
        let fd = checked(unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        })?;
        // SAFETY: a fresh descriptor that nobody else knows.
        Ok(Self { file: unsafe { File::from_raw_fd(fd) } })
    }

    /// Fires after this time, which is not zero.
    pub(super) fn set(&self, after: Duration) -> io::Result<()> {
        let value = libc::timespec {
            tv_sec: after.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: after.subsec_nanos().into(),
        };
        let time =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: one valid itimerspec, for the length of the call; the old value is not asked for.
        checked(unsafe { libc::timerfd_settime(self.file.as_raw_fd(), 0, &time, std::ptr::null_mut()) })?;
        Ok(())
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
