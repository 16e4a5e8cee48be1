//! One place in the table of connections, and its two system calls.

use crate::buf::ChunkSlice;
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
}

impl Connection {
    /// Slices per call; more go in the next.
    const SLICES_MAX: usize = 64;
    /// Calls per try: a fast reader must not keep the thread here.
    const CALLS_MAX: usize = 16;

    pub(super) fn receive(&self, into: &mut [u8]) -> Progress {
        let Some(mut socket) = self.socket.as_ref() else { return Progress::Blocked };
        loop {
            return match socket.read(into) {
                Ok(0) => Progress::Ended(ConnectionFailure::ClosedByPeer),
                Ok(count) => Progress::Bytes(count),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Progress::Blocked,
                Err(e) => Progress::Ended(ConnectionFailure::from(&e)),
            };
        }
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
