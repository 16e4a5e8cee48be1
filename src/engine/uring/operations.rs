//! What the core wants: operations become queue entries.
//!
//! Invariant: an entry is queued only with its memory and its descriptor in the table, marked as in flight; the marks
//! are taken away by its last completion alone.

use super::connection::{Connection, Fill, InFlightSend, Phase, Receive};
use super::{Live, refuse, ring};
use crate::buf::{Block, Transmit};
use crate::engine::socket;
use crate::engine::token::{Kind, Token};
use crate::io::{Address, Completion, ConnectionFailure, ConnectionId, Op, SocketOptions};
use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use socket2::{SockAddr, Socket};
use std::os::fd::AsRawFd;

/// Buffers that the kernel has at least, when the pool has so many; more with more connections. (With 8, 16 and 256 of 16 KiB
/// a load of 32 callers and 16 KiB each ran at 415, 353 and 183 thousand replies per second; fewer than 8 of 32 KiB cost
/// a few per cent.)
const WINDOW_MIN: usize = 8;

impl Live {
    pub(super) fn submit(&mut self, op: Op) {
        match op {
            Op::Connect { id, address, options } => self.connect(id, &address, &options),
            Op::Send { id, data } => self.send(id, data),
            Op::Fill { id, block } => self.fill(id, block),
            Op::Close { id } => self.close_connection(id),
            Op::Resolve { .. } => refuse(op, 0, &mut self.ready),
        }
    }

    pub(super) fn connect(&mut self, id: ConnectionId, address: &Address, options: &SocketOptions) {
        let index = usize::from(id.index);
        if index >= self.connections.len() {
            self.connections.resize_with(index + 1, Connection::default);
        }
        if self.connections[index].phase != Phase::Vacant {
            // The caller redials a place before the answer to its `Close`. Refusing keeps both apart.
            let failure = ConnectionFailure::from_errno(libc::EBUSY);
            self.ready.push(Completion::Failed { id, failure });
            return;
        }
        let begun = socket::create(address, options).and_then(|(socket, peer)| match address {
            // Connecting a Unix socket never takes time: it succeeds or fails here. As an operation it could end up
            // in a kernel thread when the peer's backlog is full (H30).
            Address::Unix(_) => socket.connect(&peer).map(|()| (socket, None)),
            Address::Tcp(_) => Ok((socket, Some(peer))),
        });
        match begun {
            Ok((socket, Some(peer))) => self.begin_connect(id, socket, peer),
            Ok((socket, None)) => {
                let mut ready = std::mem::take(&mut self.ready);
                self.adopt(id, socket, &mut ready);
                self.ready = ready;
            }
            Err(e) => {
                let connection = &mut self.connections[index];
                connection.generation = id.generation;
                connection.phase = Phase::Failed;
                self.ready.push(Completion::Failed { id, failure: ConnectionFailure::from(&e) });
            }
        }
    }

    pub(super) fn begin_connect(&mut self, id: ConnectionId, socket: Socket, peer: SockAddr) {
        let connection = &mut self.connections[usize::from(id.index)];
        connection.generation = id.generation;
        connection.phase = Phase::Connecting;
        let peer = connection.connect.insert(Box::new(peer));
        let (address, len) = (peer.as_ptr().cast(), peer.len());
        let socket = connection.socket.insert(socket);
        let entry = opcode::Connect::new(Fd(socket.as_raw_fd()), address, len).build();
        // SAFETY: the boxed address and the socket stay in the table until the completion (`is_in_flight`).
        unsafe { self.ring.push(entry.user_data(Token::new(id, Kind::Connect).pack())) };
    }

    /// A connected socket: receives from it, and sends what waited for it.
    pub(super) fn adopt(&mut self, id: ConnectionId, socket: Socket, out: &mut Vec<Completion>) {
        let index = usize::from(id.index);
        if index >= self.connections.len() {
            self.connections.resize_with(index + 1, Connection::default);
        }
        self.connections[index].generation = id.generation;
        self.connections[index].socket = Some(socket);
        self.on_open(index, out);
    }

    pub(super) fn on_open(&mut self, index: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        self.connections[index].phase = Phase::Open;
        out.push(Completion::Connected { id });
        self.receive(index);
        if self.connections[index].send.as_ref().is_some_and(|send| send.progress.is_owed()) {
            self.push_send(index);
        }
    }

    /// Arms the receive, or queues for a buffer behind those that already wait.
    pub(super) fn receive(&mut self, index: usize) {
        if self.starved.is_empty() && self.buffers.provided() > self.arming {
            self.arm(index);
        } else {
            self.starve(index);
        }
    }

    pub(super) fn arm(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        debug_assert_ne!(connection.receive, Receive::Armed, "one receive per socket");
        connection.receive = Receive::Armed;
        self.arming += 1;
        self.counters.receives_armed += 1;
        let fd = Fd(connection.raw_fd());
        let entry = match std::mem::take(&mut connection.once) {
            false => opcode::RecvMulti::new(fd, ring::GROUP).build(),
            true => opcode::Recv::new(fd, std::ptr::null_mut(), 0)
                .buf_group(ring::GROUP)
                .build()
                .flags(squeue::Flags::BUFFER_SELECT),
        };
        // SAFETY: it points to nothing of its own; the buffers are the pool's and stay until everything is reaped, and
        // the socket stays open until the last completion (`is_in_flight`).
        unsafe { self.ring.push(entry.user_data(Token::new(id, Kind::Receive).pack())) };
    }

    pub(super) fn starve(&mut self, index: usize) {
        self.connections[index].receive = Receive::Starved;
        // Places that were closed while they waited are left in the queue, and cleared out before it grows by them.
        if self.starved.len() > 2 * self.connections.len() {
            let (mut waiting, mut seen) =
                (std::mem::take(&mut self.starved), vec![false; self.connections.len()]);
            waiting.retain(|id| {
                self.is_starved(*id) && !std::mem::replace(&mut seen[usize::from(id.index)], true)
            });
            self.starved = waiting;
        }
        self.starved.push_back(self.id_of(index));
    }

    pub(super) fn is_starved(&self, id: ConnectionId) -> bool {
        self.find(id).is_some_and(|index| self.connections[index].receive == Receive::Starved)
    }

    /// How many buffers the kernel gets. A multishot receive goes on in the kernel while data comes: with all buffers, a
    /// wave of large replies is taken in whole before anybody runs, at half the throughput.
    pub(super) fn window(&self) -> usize {
        self.connections.len().max(WINDOW_MIN)
    }

    /// Arms those that wait for buffers, at most as many as there are buffers (H19).
    pub(super) fn feed_starved(&mut self) {
        while !self.starved.is_empty() && self.buffers.provided() > self.arming {
            if let Some(id) = self.starved.pop_front()
                && self.is_starved(id)
            {
                self.arm(usize::from(id.index));
            }
        }
        if !self.starved.is_empty() && self.buffers.provided() == 0 {
            self.pool.set_starved();
        }
    }

    pub(super) fn can_feed_starved(&self) -> bool {
        !self.starved.is_empty() && (self.buffers.provided() > self.arming || self.pool.free() > 0)
    }

    /// Receives into a block from now on, or as soon as the receive that is armed has ended.
    pub(super) fn fill(&mut self, id: ConnectionId, block: Block) {
        let Some(index) = self.find(id).filter(|index| self.connections[*index].phase == Phase::Open) else {
            return;
        };
        let connection = &mut self.connections[index];
        // The kernel may be writing to the block that is there: the other one goes, whoever asked for it.
        if connection.fill.is_some() || block.missing() == 0 {
            return;
        }
        connection.fill = Some(Fill { block, in_flight: false });
        match connection.receive {
            Receive::Armed => self.push_cancel(Token::new(id, Kind::Receive)),
            _ => self.push_fill(index),
        }
    }

    pub(super) fn push_fill(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        debug_assert_ne!(connection.receive, Receive::Armed, "one receive per socket");
        let fd = connection.raw_fd();
        let Some(fill) = &mut connection.fill else { return };
        fill.in_flight = true;
        let room = fill.block.room();
        let len = u32::try_from(room.len()).unwrap_or(u32::MAX);
        let entry = opcode::Recv::new(Fd(fd), room.as_mut_ptr().cast(), len).build();
        connection.receive = Receive::Idle;
        // SAFETY: the block's memory does not move, and stays in the table with the socket until the completion
        // (`in_flight`).
        unsafe { self.ring.push(entry.user_data(Token::new(id, Kind::Fill).pack())) };
    }

    /// Has the next receive armed at the flush: should the core want a block first, nothing has to be cancelled.
    pub(super) fn receive_later(&mut self, index: usize) {
        self.connections[index].receive = Receive::Due;
        self.due.push(self.id_of(index));
    }

    pub(super) fn arm_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        for id in due.drain(..) {
            if let Some(index) = self.find(id)
                && self.connections[index].receive == Receive::Due
            {
                self.receive(index);
            }
        }
        self.due = due;
    }

    pub(super) fn send(&mut self, id: ConnectionId, data: Transmit) {
        let open = self.find(id).filter(|index| {
            let connection = &self.connections[*index];
            let busy = connection.send.as_ref().is_some_and(|send| send.progress.is_owed());
            debug_assert!(!busy, "one send at a time");
            matches!(connection.phase, Phase::Connecting | Phase::Open) && !busy
        });
        let Some(index) = open else {
            self.ready.push(Completion::Sent { id, bytes: 0 });
            return;
        };
        let connection = &mut self.connections[index];
        let send = connection.send.get_or_insert_with(InFlightSend::new);
        send.start(data);
        if send.progress.is_done() {
            send.progress.finish();
            self.ready.push(Completion::Sent { id, bytes: 0 });
        } else if connection.phase == Phase::Open {
            self.push_send(index);
        }
    }

    pub(super) fn push_send(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        let fd = connection.raw_fd();
        let Some(send) = &mut connection.send else { return };
        let entry = send.entry(fd).user_data(Token::new(id, Kind::Send).pack());
        // SAFETY: header and parts are boxed and the log's bytes counted; all stay in the table until the completion
        // (`in_flight`), as does the socket.
        unsafe { self.ring.push(entry) };
    }

    pub(super) fn close_connection(&mut self, id: ConnectionId) {
        let Some(index) = self.find(id) else {
            self.ready.push(Completion::Closed { id });
            return;
        };
        if self.connections[index].phase == Phase::Closing {
            return;
        }
        self.begin_close(index);
        let mut ready = std::mem::take(&mut self.ready);
        self.finish_close(index, &mut ready);
        self.ready = ready;
    }

    /// Cancels what the kernel has of it, by `user_data` (H3).
    pub(super) fn begin_close(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        connection.phase = Phase::Closing;
        connection.stop_waiting();
        let operations = [
            (connection.receive == Receive::Armed, Kind::Receive),
            (connection.is_filling(), Kind::Fill),
            (connection.is_sending(), Kind::Send),
            (connection.connect.is_some(), Kind::Connect),
        ];
        for (_, kind) in operations.into_iter().filter(|(in_flight, _)| *in_flight) {
            self.push_cancel(Token::new(id, kind));
        }
    }

    pub(super) fn push_cancel(&mut self, of: Token) {
        let entry = opcode::AsyncCancel::new(of.pack()).build();
        // SAFETY: it points to nothing and names no descriptor.
        unsafe { self.ring.push(entry.user_data(Token::new(of.id, Kind::Cancel).pack())) };
    }

    /// The last step of a close, once the kernel has nothing of the connection: tells the count, then closes (H26, H29).
    pub(super) fn finish_close(&mut self, index: usize, out: &mut Vec<Completion>) {
        if self.connections[index].phase != Phase::Closing || self.connections[index].is_in_flight() {
            return;
        }
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        if let Some(bytes) = connection.send.as_mut().and_then(|send| send.progress.finish()) {
            out.push(Completion::Sent { id, bytes });
        }
        if let Some(socket) = connection.socket.take() {
            socket::close(socket);
        }
        connection.fill = None;
        connection.once = false;
        connection.phase = Phase::Vacant;
        out.push(Completion::Closed { id });
    }
}
