//! One place in the table of connections: what is known of its socket, and what the kernel still holds of it.

use crate::buf::{Block, Transmit};
use crate::engine::sending::Sending;
use io_uring::{opcode, squeue, types::Fd};
use socket2::{SockAddr, Socket};
use std::os::fd::{AsRawFd, RawFd};

/// `Vacant -> Connecting -> Open -> Failed -> Closing -> Vacant`; each state but the first may skip to `Closing`,
/// and `Connecting` to `Failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Vacant,
    Connecting,
    Open,
    /// `Failed` is told; nothing but `Sent` and `Closed` follows.
    Failed,
    /// `Close` was asked for; `Closed` follows when nothing is in flight.
    Closing,
}

/// There is never more than one receive of a socket, or bytes would lose their order (H22).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Receive {
    #[default]
    Idle,
    /// The kernel has it, until a completion without `F_MORE`.
    Armed,
    /// It waits in the engine's queue for a buffer.
    Starved,
    /// It is armed at the flush, unless a block is to be filled.
    Due,
}

#[derive(Default)]
pub(super) struct Connection {
    pub(super) generation: u32,
    pub(super) phase: Phase,
    pub(super) receive: Receive,
    /// The next receive takes one buffer: after one large string comes another, mostly, which wants a block.
    pub(super) once: bool,
    pub(super) fill: Option<Fill>,
    pub(super) socket: Option<Socket>,
    /// The peer's address while the kernel may read it.
    pub(super) connect: Option<Box<SockAddr>>,
    /// Made at the first send, then used again for each.
    pub(super) send: Option<Box<InFlightSend>>,
}

impl Connection {
    pub(super) fn raw_fd(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    pub(super) fn is_sending(&self) -> bool {
        self.send.as_ref().is_some_and(|send| send.in_flight)
    }

    /// Nothing more is to be received. What is armed goes on until its end.
    pub(super) fn stop_waiting(&mut self) {
        if matches!(self.receive, Receive::Starved | Receive::Due) {
            self.receive = Receive::Idle;
        }
    }

    /// True when the kernel may write into its block.
    pub(super) fn is_filling(&self) -> bool {
        self.fill.as_ref().is_some_and(|fill| fill.in_flight)
    }

    /// True when the kernel has an operation of it.
    pub(super) fn is_in_flight(&self) -> bool {
        self.connect.is_some() || self.receive == Receive::Armed || self.is_filling() || self.is_sending()
    }
}

/// A block to receive into. It waits until the receive before it has ended, for bytes must not overtake each other.
pub(super) struct Fill {
    pub(super) block: Block,
    pub(super) in_flight: bool,
}

/// A send, with all that the kernel reads: boxed, so that none of it moves while it is in flight.
pub(super) struct InFlightSend {
    pub(super) progress: Sending,
    pub(super) in_flight: bool,
    header: libc::msghdr,
    parts: Vec<libc::iovec>,
}

impl InFlightSend {
    /// `UIO_MAXIOV`: more parts in one call are refused.
    const PARTS_MAX: usize = 1024;
    /// Bytes per slice and operation; a larger slice goes in several. A send that waits for room too often (128
    /// times) is moved to a kernel thread (H30), and this one never waits that often.
    const BYTES_MAX: usize = 1 << 20;
    /// WAITALL: the kernel goes on until all bytes are taken. NOSIGNAL: no SIGPIPE.
    const FLAGS: i32 = libc::MSG_WAITALL | libc::MSG_NOSIGNAL;

    pub(super) fn new() -> Box<Self> {
        // SAFETY: a msghdr is plain data; zero is the empty message.
        let header = unsafe { std::mem::zeroed() };
        Box::new(Self { progress: Sending::default(), in_flight: false, header, parts: Vec::new() })
    }

    pub(super) fn start(&mut self, data: Transmit) {
        debug_assert!(!self.in_flight, "the kernel reads the old one");
        self.progress.start(data);
    }

    /// The operation that sends the rest. It points into `self` and into the log.
    pub(super) fn entry(&mut self, fd: RawFd) -> squeue::Entry {
        debug_assert!(!self.in_flight, "one send at a time");
        self.in_flight = true;
        let rest = self.progress.rest();
        if let [first, ..] = rest
            && (rest.len() == 1 || first.len() >= Self::BYTES_MAX)
        {
            let len = first.len().min(Self::BYTES_MAX) as u32;
            return opcode::Send::new(Fd(fd), first.as_ptr(), len).flags(Self::FLAGS).build();
        }
        let mut bytes = 0;
        self.parts.clear();
        for slice in rest.iter().take(Self::PARTS_MAX) {
            bytes += slice.len();
            // Whole slices only: what follows a cut would overtake the rest of it.
            if bytes > Self::BYTES_MAX {
                break;
            }
            self.parts.push(libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() });
        }
        self.header.msg_iov = self.parts.as_mut_ptr();
        self.header.msg_iovlen = self.parts.len();
        opcode::SendMsg::new(Fd(fd), &self.header).flags(Self::FLAGS as u32).build()
    }
}
