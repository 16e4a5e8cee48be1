//! The descriptors through which an engine wakes its host, and a driver itself: eventfd and timerfd.
//!
//! Hosts get duplicates of it, and never of the ring or of anything else that keeps the kernel's hands on our memory:
//! a forgotten duplicate of an eventfd costs a descriptor, a forgotten duplicate of a ring keeps the ring (H1).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

/// A non-blocking eventfd; see [eventfd(2)](https://man7.org/linux/man-pages/man2/eventfd.2.html).
#[derive(Clone)]
pub(super) struct EventFd {
    file: Rc<File>,
}

impl EventFd {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else knows.
        Ok(Self { file: Rc::new(unsafe { File::from_raw_fd(fd) }) })
    }

    /// Makes it readable. It can only fail when the counter is full, and then it is readable.
    pub(super) fn signal(&self) {
        let _ = (&*self.file).write(&1u64.to_ne_bytes());
    }

    /// Makes it unreadable: one read takes the whole count.
    pub(super) fn drain(&self) -> io::Result<()> {
        drain(&self.file)
    }

    /// Waits until it is readable; false after `time`. Only for the self-test: an engine never waits.
    pub(super) fn wait(&self, time: Duration) -> io::Result<bool> {
        let mut fd = libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd, for the length of the call.
        match unsafe { libc::poll(&mut fd, 1, time.as_millis() as i32) } {
            0 => Ok(false),
            count if count > 0 => Ok(true),
            // A signal: the caller looks again.
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(!time.is_zero()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        matches!(self.wait(Duration::ZERO), Ok(true))
    }

    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    pub(super) fn raw(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// A one-shot timer that is read like an eventfd.
pub(crate) struct TimerFd {
    file: File,
}

impl TimerFd {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed.
        let fd = checked(unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        })?;
        // SAFETY: a fresh descriptor that nobody else knows.
        Ok(Self { file: unsafe { File::from_raw_fd(fd) } })
    }

    /// Fires after this time, which is not zero.
    pub(crate) fn set(&self, after: Duration) -> io::Result<()> {
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

    /// Makes it unreadable until it fires again.
    pub(crate) fn drain(&self) -> io::Result<()> {
        drain(&self.file)
    }

    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    pub(super) fn raw(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

pub(super) fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes the count of an eventfd or a timerfd, both of which are read in eight bytes.
fn drain(mut file: &File) -> io::Result<()> {
    loop {
        match file.read(&mut [0; 8]) {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
