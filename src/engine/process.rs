//! What the system knows of us. Which process a client belongs to: a forked child has copies of what is its parent's (H7).
//!
//! Rings, sockets and the runtime's own registrations are shared with the parent, and a child must leave them alone.
//! Asking the system who one is costs a system call, too much for every command. So a fork is noted once, in the child,
//! and to look is one load.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the first process that made a client and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that made something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    pid: u32,
    forks: u32,
}

impl Process {
    /// This one.
    pub(crate) fn current() -> Self {
        static NOTED: Once = Once::new();
        NOTED.call_once(|| {
            extern "C" fn note() {
                FORKS.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: the handler lives as long as the code, and does nothing but count, as is allowed in the child of a
            // process with threads. It fails for want of memory; the process id is left then.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(note)) };
        });
        Self { pid: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// False after `fork(2)` by way of the C library.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.forks
    }

    /// False also in a child that was made by a bare system call. Makes one itself.
    pub(crate) fn is_surely_current(self) -> bool {
        self.is_current() && self.pid == std::process::id()
    }
}

/// How often this thread has waited: its voluntary context switches, see
/// [getrusage(2)](https://man7.org/linux/man-pages/man2/getrusage.2.html). Takes a system call.
pub(crate) fn times_slept() -> i64 {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: one valid rusage, for the length of the call.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nvcsw
}

#[cfg(test)]
mod tests {
    use super::{Process, times_slept};

    // H9: waiting counts, and working does not (but for what the test runner's threads make this one wait for).
    #[test]
    fn h09_a_thread_that_waits_has_slept() {
        let before = times_slept();
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        assert!(times_slept() >= before + 10);
        let before = times_slept();
        let sum = (0..1_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
        assert!(times_slept() < before + 10, "{sum}");
    }

    // H7: told apart without the system's help, in the child and in the child's child; what the child makes is its own.
    #[test]
    fn h07_a_child_is_another_process() {
        let parent = Process::current();
        assert!(parent.is_current() && parent.is_surely_current());
        // SAFETY: the children call nothing that could wait for another thread's lock, and end with _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let own = Process::current();
            let mut good = !parent.is_current() && !parent.is_surely_current() && own.is_surely_current();
            // SAFETY: as above.
            let grandchild = unsafe { libc::fork() };
            if grandchild == 0 {
                good &= !parent.is_current() && !own.is_current();
            } else {
                good &= succeeded(grandchild) && own.is_current();
            }
            // SAFETY: always safe; nothing of the parent's is flushed or destroyed.
            unsafe { libc::_exit(i32::from(!good)) }
        }
        assert!(succeeded(child));
        assert!(parent.is_current());
    }

    fn succeeded(child: libc::pid_t) -> bool {
        let mut status = 0;
        // SAFETY: one valid int, for the length of the call.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}
