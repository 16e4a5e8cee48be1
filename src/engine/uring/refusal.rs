//! Why io_uring is not used, and what would change that.

use std::fmt;
use std::io;

/// Why io_uring is not used. `Display` gives the cause and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UringRefusal {
    /// The administrator turned it off: `kernel.io_uring_disabled` has this value (1: for the unprivileged; 2: for
    /// all).
    Disabled(u8),
    /// A filter (seccomp, as in containers, or a security module) forbids this system call.
    Forbidden {
        /// The system call.
        call: &'static str,
    },
    /// The kernel was built without it, or a filter pretends so.
    Missing {
        /// The system call.
        call: &'static str,
    },
    /// The kernel lacks a part that is needed, or is older than 6.1, which has them all and keeps the order of completions.
    KernelTooOld {
        /// What it lacks.
        what: &'static str,
    },
    /// The user's limit of locked memory is used up.
    LockedMemory {
        /// The system call.
        call: &'static str,
    },
    /// Any other error.
    System {
        /// The step that failed.
        call: &'static str,
        /// `errno`, when there was one.
        errno: Option<i32>,
    },
    /// The self-test saw something that a working kernel does not do.
    Misbehaved {
        /// What it saw.
        what: &'static str,
    },
}

impl UringRefusal {
    pub(super) fn of(call: &'static str, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => match disabled_by_sysctl() {
                Some(value) if call == "io_uring_setup" => UringRefusal::Disabled(value),
                _ => UringRefusal::Forbidden { call },
            },
            Some(libc::ENOSYS) => UringRefusal::Missing { call },
            Some(libc::EINVAL) => UringRefusal::KernelTooOld { what: call },
            Some(libc::ENOMEM) => UringRefusal::LockedMemory { call },
            errno => UringRefusal::System { call, errno },
        }
    }

    /// What the operator can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            UringRefusal::Disabled(_) => "set the sysctl kernel.io_uring_disabled to 0",
            UringRefusal::Forbidden { .. } | UringRefusal::Missing { .. } => {
                "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile"
            }
            UringRefusal::KernelTooOld { .. } => "run Linux 6.1 or later",
            UringRefusal::LockedMemory { .. } => {
                "raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)"
            }
            UringRefusal::System { .. } => "see the error; ulimit -n if it speaks of open files",
            UringRefusal::Misbehaved { .. } => "update the kernel, and tell us which one this was",
        }
    }
}

impl fmt::Display for UringRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("io_uring refused: ")?;
        match self {
            UringRefusal::Disabled(value) => write!(f, "kernel.io_uring_disabled is {value}")?,
            UringRefusal::Forbidden { call } => {
                write!(f, "{call} is forbidden (EPERM: seccomp or a security module)")?
            }
            UringRefusal::Missing { call } => write!(f, "{call} does not exist (ENOSYS)")?,
            UringRefusal::KernelTooOld { what } => write!(f, "the kernel is too old ({what})")?,
            UringRefusal::LockedMemory { call } => write!(f, "{call}: not enough locked memory (ENOMEM)")?,
            UringRefusal::System { call, errno: Some(errno) } => {
                write!(f, "{call}: {}", io::Error::from_raw_os_error(*errno))?;
            }
            UringRefusal::System { call, errno: None } => write!(f, "{call} failed")?,
            UringRefusal::Misbehaved { what } => write!(f, "self-test: {what}")?,
        }
        write!(f, "; remedy: {}", self.remedy())
    }
}

impl std::error::Error for UringRefusal {}

/// Refuses kernels before 6.1, even such as know every operation: with them a receive that goes on while the completion
/// queue is full could bring bytes in the wrong order (H39).
pub(super) fn check_version() -> Result<(), UringRefusal> {
    // SAFETY: a utsname is plain data; zero is all empty strings.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: one valid utsname, for the length of the call.
    if unsafe { libc::uname(&mut names) } != 0 {
        return Err(UringRefusal::of("uname", &io::Error::last_os_error()));
    }
    let release: Vec<u8> = names.release.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    match version(&String::from_utf8_lossy(&release)) {
        // What cannot be read is left to the self-test.
        Some(version) if version < (6, 1) => Err(UringRefusal::KernelTooOld { what: "older than 6.1" }),
        _ => Ok(()),
    }
}

/// Major and minor number of a release such as `6.1.0-18-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The sysctl's value when it can be the cause: 1 does not stop root.
fn disabled_by_sysctl() -> Option<u8> {
    let text = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?;
    let value: u8 = text.trim().parse().ok()?;
    // SAFETY: takes no argument and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    (value >= 2 || value == 1 && !root).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errnos_become_causes_with_a_remedy() {
        let of = |errno| UringRefusal::of("io_uring_enter", &io::Error::from_raw_os_error(errno));
        assert_eq!(of(libc::EPERM), UringRefusal::Forbidden { call: "io_uring_enter" });
        assert_eq!(of(libc::ENOSYS), UringRefusal::Missing { call: "io_uring_enter" });
        assert!(of(libc::EINVAL).to_string().contains("6.1"));
        assert!(of(libc::ENOMEM).to_string().contains("ulimit -l"));
        assert!(of(libc::EMFILE).to_string().contains("ulimit -n"));
    }

    #[test]
    fn h39_releases_are_read() {
        for (release, expected) in [
            ("6.18.44-fc-v782", Some((6, 18))),
            ("5.15.0-91-generic", Some((5, 15))),
            ("6.1.0-18-amd64", Some((6, 1))),
            ("6.0-rc7", Some((6, 0))),
            ("10.0", Some((10, 0))),
            ("6", None),
            ("", None),
            ("next", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
        assert_eq!(check_version(), Ok(()));
    }
}
