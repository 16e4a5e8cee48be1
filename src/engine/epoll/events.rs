//! What the kernel says: readiness becomes bytes moved, and news for the core.

use super::connection::{Phase, Progress};
use super::poller::READ;
use super::poller::WRITE;
use super::{BUFFERS_PER_EVENT, Live};
use crate::buf::Block;
use crate::engine::token::{Kind, Token};
use crate::io::{Completion, ConnectionFailure, ConnectionId};
use std::io;
use std::time::Instant;

impl Live {
    pub(super) fn on_event(
        &mut self,
        event: libc::epoll_event,
        end: usize,
        out: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let Some(token) = Token::unpack(event.u64) else { return Ok(()) };
        match token.kind {
            Kind::Wake => self.wake.drain()?,
            Kind::Alarm => self.on_alarm()?,
            _ => {
                let Some(index) = self.find(token.id) else { return Ok(()) };
                let (ready, hurt) =
                    (event.events, event.events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0);
                if self.connections[index].phase == Phase::Connecting {
                    self.on_connect_ready(index, out);
                } else {
                    if (ready & WRITE != 0 || hurt) && self.connections[index].blocked {
                        self.push_bytes(index, out);
                    }
                    if ready & READ != 0 || hurt {
                        self.receive(index, end, out);
                    }
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "an alarm that fired early is set again, relative to now")]
    pub(super) fn on_alarm(&mut self) -> io::Result<()> {
        self.timer.drain()?;
        self.alarm.on_fired(Instant::now());
        Ok(())
    }

    pub(super) fn on_connect_ready(&mut self, index: usize, out: &mut Vec<Completion>) {
        let Some(socket) = &self.connections[index].socket else { return };
        match socket.take_error() {
            Ok(None) => self.on_open(index, out),
            Ok(Some(e)) | Err(e) => self.fail(index, ConnectionFailure::from(&e), out),
        }
    }

    /// Reads what is there into buffers, as far as budget and pool reach.
    pub(super) fn receive(&mut self, index: usize, end: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        if connection.phase == Phase::Open
            && let Some(block) = connection.block.take()
        {
            return self.receive_into(index, block, out);
        }
        let buffers = if std::mem::take(&mut connection.once) { 1 } else { BUFFERS_PER_EVENT };
        for _ in 0..buffers {
            let connection = &mut self.connections[index];
            if connection.phase != Phase::Open || connection.starved || out.len() >= end {
                return;
            }
            let Some(mut buffer) = self.pool.take_free() else {
                self.starve(index, out);
                return;
            };
            self.counters.kernel_entries += 1;
            match connection.receive(buffer.bytes()) {
                Progress::Bytes(count) => {
                    let full = count == self.pool.buffer_size();
                    out.push(Completion::Received { id, segment: buffer.filled(count) });
                    if !full {
                        return;
                    }
                }
                Progress::Blocked => return,
                Progress::Ended(failure) => {
                    drop(buffer);
                    self.fail(index, failure, out);
                }
            }
        }
    }

    /// Reads what is there into a block, and no further: the core may have another one.
    fn receive_into(&mut self, index: usize, mut block: Block, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        self.counters.kernel_entries += 1;
        let connection = &mut self.connections[index];
        match connection.fill(&mut block) {
            Progress::Bytes(_) => {
                connection.once = true;
                out.push(Completion::Filled { id, block });
            }
            Progress::Blocked => connection.block = Some(block),
            Progress::Ended(failure) => self.fail(index, failure, out),
        }
    }

    pub(super) fn starve(&mut self, index: usize, out: &mut Vec<Completion>) {
        self.counters.starvations += 1;
        self.connections[index].starved = true;
        if self.starved.len() > 2 * self.connections.len() {
            let (mut waiting, mut seen) =
                (std::mem::take(&mut self.starved), vec![false; self.connections.len()]);
            waiting.retain(|id| {
                self.is_starved(*id) && !std::mem::replace(&mut seen[usize::from(id.index)], true)
            });
            self.starved = waiting;
        }
        self.starved.push_back(self.id_of(index));
        self.pool.set_starved();
        self.update_interest(index, out);
    }

    pub(super) fn is_starved(&self, id: ConnectionId) -> bool {
        self.find(id).is_some_and(|index| self.connections[index].starved)
    }

    /// Watches those again that wait for buffers, at most as many as are free (H19).
    pub(super) fn feed_starved(&mut self, out: &mut Vec<Completion>) {
        let mut free = self.pool.free();
        while free > 0
            && let Some(id) = self.starved.pop_front()
        {
            if self.is_starved(id) {
                free -= 1;
                self.counters.receives_armed += 1;
                self.connections[usize::from(id.index)].starved = false;
                self.update_interest(usize::from(id.index), out);
            }
        }
        if !self.starved.is_empty() && self.pool.free() == 0 {
            self.pool.set_starved();
        }
    }

    /// Gives the kernel what it takes of the outstanding send.
    pub(super) fn push_bytes(&mut self, index: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        let progress = connection.send(&mut self.counters.kernel_entries);
        match progress {
            Progress::Blocked => connection.blocked = true,
            Progress::Bytes(_) | Progress::Ended(_) => {
                connection.blocked = false;
                if let Some(bytes) = connection.sending.finish() {
                    out.push(Completion::Sent { id, bytes });
                }
            }
        }
        match progress {
            Progress::Ended(failure) => self.fail(index, failure, out),
            _ => self.update_interest(index, out),
        }
    }

    /// Tells the failure, once.
    pub(super) fn fail(&mut self, index: usize, failure: ConnectionFailure, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        if !matches!(connection.phase, Phase::Connecting | Phase::Open) {
            return;
        }
        connection.phase = Phase::Failed;
        connection.blocked = false;
        connection.block = None;
        if let Some(bytes) = connection.sending.finish() {
            out.push(Completion::Sent { id, bytes });
        }
        out.push(Completion::Failed { id, failure });
        self.update_interest(index, out);
    }
}
