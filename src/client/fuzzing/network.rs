//! The engine and the servers of a client.

use super::{Place, World};
use crate::buf::Segment;
use crate::connection::fuzzing::{ALL_BUT_ONE, Socket, Stage};
use crate::error::ConnectionFailure;
use crate::id::ConnectionId;
use crate::io::{Completion, Op};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::task::Waker;

impl World<'_> {
    // --- the engine

    pub(super) fn flush(&mut self) {
        self.machine.stamp(self.now);
        for number in self.live.clone() {
            self.calls[number].stamped.get_or_insert(self.now);
        }
        while let Some(op) = self.machine.poll_op(self.now) {
            match op {
                Op::Resolve { id, .. } => self.open(id, Stage::Resolving),
                Op::Connect { id, .. } => {
                    assert!(self.used.insert(id), "{id:?} is used twice");
                    self.open(id, Stage::Connecting);
                }
                Op::Send { id, data } => self.socket(id).send(data),
                Op::Fill { id, block } => self.socket(id).fill(block),
                Op::Close { id } => self.socket(id).close(),
            }
        }
        let mut wakers = Vec::new();
        self.machine.take_wakers(&mut wakers);
        wakers.into_iter().for_each(Waker::wake);
        self.lent -= self.returns.take().len();
        for number in &self.live {
            let call = &self.calls[*number];
            let may_go = call.place == Place::Waits && self.machine.is_granted(call.ticket);
            let moves = may_go || self.machine.is_over(call.ticket);
            assert!(!moves || call.bell.0.load(Ordering::Relaxed), "a lost wake-up");
        }
    }

    fn open(&mut self, id: ConnectionId, stage: Stage) {
        let place = &mut self.sockets[usize::from(id.index)];
        place.take_if(|socket| socket.stage == Stage::Resolving);
        assert!(place.is_none(), "{id:?} is opened before its forerunner is closed");
        *place = Some(Socket::new(id, stage));
    }

    fn socket(&mut self, id: ConnectionId) -> &mut Socket {
        let socket = self.sockets[usize::from(id.index)].as_mut();
        socket.filter(|socket| socket.id == id).expect("an operation on a socket that exists")
    }

    /// One of the places for sockets.
    fn some_place(&mut self) -> &mut Option<Socket> {
        let at = self.input.below(self.sockets.len());
        &mut self.sockets[at]
    }

    pub(super) fn tell(&mut self, completion: Option<Completion>) {
        if let Some(completion) = completion {
            self.machine.handle(self.now, completion);
        }
    }

    pub(super) fn go_on(&mut self) {
        let count = 1 + self.input.below(3) as u8;
        let place = self.some_place();
        let completion = match place.take_if(|socket| socket.stage == Stage::Resolving) {
            Some(Socket { id, .. }) => {
                let addresses = (0..count).map(|last| SocketAddr::from(([10, 0, 0, last], 6379))).collect();
                Some(Completion::Resolved { id, addresses })
            }
            None => place.as_mut().and_then(Socket::connect),
        };
        self.tell(completion);
    }

    pub(super) fn fail(&mut self) {
        let errno = self.input.pick(&[111, 11, 104]);
        let place = self.some_place();
        let Some(socket) = place else { return };
        let is_look_up = socket.stage == Stage::Resolving;
        let completion = socket.fail(match socket.stage {
            Stage::Resolving => ConnectionFailure::Resolve("no such host".into()),
            Stage::Open if errno == 11 => ConnectionFailure::ClosedByPeer,
            _ => ConnectionFailure::from_errno(errno),
        });
        place.take_if(|_| is_look_up);
        self.tell(completion);
    }

    pub(super) fn take(&mut self) {
        let most = self.input.pick(&[usize::MAX, usize::MAX, 1, 20, 5000, ALL_BUT_ONE]);
        let at = self.input.below(self.sockets.len());
        let Some(socket) = &mut self.sockets[at] else { return };
        socket.take(most, &mut self.input);
        for number in std::mem::take(&mut socket.executed) {
            let number = number as usize;
            assert!(self.executed.insert(number), "call {number} is run twice");
            assert!(!self.calls[number].is_void, "call {number} is run after it was told not to be");
        }
    }

    pub(super) fn end_send(&mut self) {
        let may_cut = self.input.below(16) == 1;
        let ended = self.some_place().as_mut().and_then(|socket| socket.end_send(may_cut));
        self.tell(ended.map(|(_, completion)| completion));
    }

    pub(super) fn receive(&mut self) {
        let most = self.input.pick(&[usize::MAX, usize::MAX, usize::MAX, 1, 7, 100, 30_000]);
        let pool = self.pool.clone();
        let received = self.some_place().as_mut().and_then(|socket| socket.receive(most, &pool));
        self.tell(received.map(|(_, completion)| completion));
    }

    pub(super) fn end_socket(&mut self) {
        let place = self.some_place();
        let completion = place.as_ref().and_then(Socket::end);
        place.take_if(|_| completion.is_some());
        self.tell(completion);
    }

    pub(super) fn lie(&mut self) {
        let count = self.input.below(24);
        let bytes = self.input.bytes(count);
        let Some(socket) = self.some_place() else { return };
        if count < 4 && socket.speaks_resp3() {
            return socket.say(b">2\r\n+message\r\n$2\r\nhi\r\n");
        }
        socket.say(bytes);
        self.is_hostile |= !bytes.is_empty();
    }

    pub(super) fn say_stale(&mut self) {
        let index = self.input.below(self.sockets.len() + 1) as u16;
        let id = ConnectionId { index, generation: 0 };
        let completion = match self.input.below(3) {
            0 => Completion::Closed { id },
            1 => Completion::Sent { id, bytes: 9 },
            _ => Completion::Received { id, segment: Segment::copy_of(b"+OK\r\n") },
        };
        self.tell(Some(completion));
    }
}
