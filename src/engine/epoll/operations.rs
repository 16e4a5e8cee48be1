//! What the core wants. Sends wait for the flush; all else happens at once, since none of it can block.

use super::Live;
use super::connection::{Connection, Phase};
use super::poller::{READ, WRITE};
use crate::buf::{Block, Transmit};
use crate::engine::socket;
use crate::engine::token::{Kind, Token};
use crate::engine::uring::refuse;
use crate::io::{Address, Completion, ConnectionFailure, ConnectionId, Op, SocketOptions};
use std::os::fd::AsRawFd;

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
            let failure = ConnectionFailure::from_errno(libc::EBUSY);
            self.ready.push(Completion::Failed { id, failure });
            return;
        }
        let connection = &mut self.connections[index];
        connection.generation = id.generation;
        connection.phase = Phase::Connecting;
        connection.starved = false;
        let begun = socket::create(address, options).and_then(|(socket, peer)| {
            let result = socket.connect(&peer);
            connection.socket = Some(socket);
            result
        });
        let mut ready = std::mem::take(&mut self.ready);
        match begun {
            Ok(()) => self.on_open(index, &mut ready),
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => self.update_interest(index, &mut ready),
            Err(e) => self.fail(index, ConnectionFailure::from(&e), &mut ready),
        }
        self.ready = ready;
    }

    pub(super) fn on_open(&mut self, index: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        self.connections[index].phase = Phase::Open;
        out.push(Completion::Connected { id });
        self.counters.receives_armed += 1;
        self.update_interest(index, out);
        if self.connections[index].sending.is_owed() {
            self.to_send.push(id);
        }
    }

    /// Tells the kernel what the connection waits for.
    pub(super) fn update_interest(&mut self, index: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        let Some(socket) = &connection.socket else { return };
        let wanted = match connection.phase {
            Phase::Connecting => WRITE,
            Phase::Open => {
                let read = if connection.starved { 0 } else { READ };
                let write = if connection.blocked { WRITE } else { 0 };
                read | write
            }
            // A dead socket is always ready: it would keep the host awake.
            Phase::Vacant | Phase::Failed => 0,
        };
        let token = Token::new(id, Kind::Socket).pack();
        let watched = self.poller.watch(socket.as_raw_fd(), token, connection.interest, wanted);
        connection.interest = wanted;
        if let Err(e) = watched {
            connection.interest = 0;
            self.fail(index, ConnectionFailure::from(&e), out);
        }
    }

    /// Receives into a block from now on. It needs no buffer, so it does not wait for one.
    pub(super) fn fill(&mut self, id: ConnectionId, block: Block) {
        let Some(index) = self.find(id).filter(|index| self.connections[*index].phase == Phase::Open) else {
            return;
        };
        if self.connections[index].block.is_some() || block.missing() == 0 {
            return;
        }
        self.connections[index].block = Some(block);
        if std::mem::take(&mut self.connections[index].starved) {
            let mut ready = std::mem::take(&mut self.ready);
            self.update_interest(index, &mut ready);
            self.ready = ready;
        }
    }

    pub(super) fn send(&mut self, id: ConnectionId, data: Transmit) {
        let open = self.find(id).filter(|index| {
            let connection = &self.connections[*index];
            debug_assert!(!connection.sending.is_owed(), "one send at a time");
            matches!(connection.phase, Phase::Connecting | Phase::Open) && !connection.sending.is_owed()
        });
        let Some(index) = open else {
            self.ready.push(Completion::Sent { id, bytes: 0 });
            return;
        };
        let connection = &mut self.connections[index];
        connection.sending.start(data);
        if connection.phase == Phase::Open {
            self.to_send.push(id);
        }
    }

    pub(super) fn close_connection(&mut self, id: ConnectionId) {
        if let Some(index) = self.find(id) {
            let connection = &mut self.connections[index];
            // What the kernel has taken so far is exact: there is no send that it still works on (H26).
            if let Some(bytes) = connection.sending.finish() {
                self.ready.push(Completion::Sent { id, bytes });
            }
            connection.phase = Phase::Vacant;
            connection.blocked = false;
            connection.starved = false;
            connection.block = None;
            connection.once = false;
            // Closing the only descriptor of a socket takes it out of the set.
            connection.interest = 0;
            if let Some(socket) = connection.socket.take() {
                socket::close(socket);
            }
        }
        self.ready.push(Completion::Closed { id });
    }
}
