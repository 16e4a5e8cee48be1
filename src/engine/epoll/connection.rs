//! One place in the table of connections, and its two system calls.

use crate::buf::{Block, ChunkSlice};
use crate::engine::sending::Sending;
use crate::io::ConnectionFailure;
use smallvec::SmallVec;
use socket2::Socket;
use std::io::{self, IoSlice, Read};

/// `Vacant -> Connecting -> Open -> Failed -> Vacant`; closing leads to `Vacant` from everywhere, at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Vacant,
    Connecting,
    Open,
    /// `Failed` is told; nothing but `Sent` and `Closed` follows.
    Failed,
}

/// What became of a call.
pub(super) enum Progress {
    /// Received: this many bytes. Sending: all.
    Bytes(usize),
    /// Later.
    Blocked,
    Ended(ConnectionFailure),
}

/// Calls again when a signal came.
fn receive(mut call: impl FnMut() -> io::Result<usize>) -> Progress {
    loop {
        return match call() {
            Ok(0) => Progress::Ended(ConnectionFailure::ClosedByPeer),
            Ok(count) => Progress::Bytes(count),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Progress::Blocked,
            Err(e) => Progress::Ended(ConnectionFailure::from(&e)),
        };
    }
}

#[derive(Default)]
pub(super) struct Connection {
    pub(super) generation: u32,
    pub(super) phase: Phase,
    pub(super) socket: Option<Socket>,
    /// What the set watches it for.
    pub(super) interest: u32,
    pub(super) sending: Sending,
    /// The send waits until the socket is writable.
    pub(super) blocked: bool,
    /// It waits for a buffer, outside the set.
    pub(super) starved: bool,
    /// What comes goes there, and not into a buffer.
    pub(super) block: Option<Block>,
    /// The next event fills one buffer: after one large string comes another, mostly, which wants a block.
    pub(super) once: bool,
}

impl Connection {
    /// Slices per call; more go in the next.
    const SLICES_MAX: usize = 64;
    /// Calls per try: a fast reader must not keep the thread here.
    const CALLS_MAX: usize = 16;

    pub(super) fn receive(&self, into: &mut [u8]) -> Progress {
        let Some(mut socket) = self.socket.as_ref() else { return Progress::Blocked };
        receive(|| socket.read(into))
    }

    /// Receives into the block, and counts it there.
    #[allow(unsafe_code)]
    pub(super) fn fill(&mut self, block: &mut Block) -> Progress {
        let Some(socket) = self.socket.as_ref() else { return Progress::Blocked };
        let progress = receive(|| socket.recv(block.room()));
        if let Progress::Bytes(count) = progress {
            // SAFETY: the kernel wrote so many bytes to the front of the room.
            unsafe { block.advance(count) };
        }
        progress
    }

    /// Sends of the rest what the socket takes.
    pub(super) fn send(&mut self, calls: &mut u64) -> Progress {
        let Some(socket) = &self.socket else { return Progress::Blocked };
        for _ in 0..Self::CALLS_MAX {
            if self.sending.is_done() {
                return Progress::Bytes(self.sending.taken());
            }
            *calls += 1;
            let slices = self.sending.rest().iter().take(Self::SLICES_MAX);
            let slices: SmallVec<[IoSlice<'_>; Self::SLICES_MAX]> =
                slices.map(|slice: &ChunkSlice| IoSlice::new(slice)).collect();
            let sent = socket.send_vectored_with_flags(&slices, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
            drop(slices);
            match sent {
                Ok(count) => self.sending.advance(count),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Progress::Blocked,
                Err(e) => return Progress::Ended(ConnectionFailure::from(&e)),
            }
        }
        if self.sending.is_done() { Progress::Bytes(self.sending.taken()) } else { Progress::Blocked }
    }
}
