//! What the kernel says: completions become news for the core.
//!
//! A completion of an old generation tells nothing, and only gives its buffer back (F-11). After a failure or a close
//! nothing is received any more, but every operation is still waited for.

use super::Live;
use super::connection::{Phase, Receive};
use crate::buf::Segment;
use crate::engine::token::{Kind, Token};
use crate::io::{Completion, ConnectionFailure, ConnectionId};
use io_uring::cqueue;
use std::time::Instant;

impl Live {
    pub(super) fn on_completion(&mut self, entry: &cqueue::Entry, out: &mut Vec<Completion>) {
        let Some(token) = Token::unpack(entry.user_data()) else { return };
        let result = entry.result();
        match token.kind {
            Kind::Receive => self.on_received(token.id, result, entry.flags(), out),
            Kind::Fill => self.on_filled(token.id, result, out),
            Kind::Send => self.on_sent(token.id, result, out),
            Kind::Connect => self.on_connected(token.id, result, out),
            Kind::Cancel => self.on_cancelled(token.id, result),
            Kind::Alarm => self.on_alarm(result),
            Kind::Wake => self.on_notified(result, entry.flags()),
            // It moved the alarm, or came too late: then the alarm's own completion is here or on its way.
            Kind::AlarmUpdate | Kind::Socket => {}
        }
    }

    /// Data first, then the ending (H22): the buffer is known by its flag alone, the end by the lack of `F_MORE` alone.
    pub(super) fn on_received(
        &mut self,
        id: ConnectionId,
        result: i32,
        flags: u32,
        out: &mut Vec<Completion>,
    ) {
        let index = self.find(id);
        let wanted = index.is_some_and(|index| self.connections[index].phase == Phase::Open);
        if let Some(buffer) = cqueue::buffer_select(flags) {
            if wanted && result > 0 {
                // SAFETY: this completion, just reaped, named the buffer with that many bytes.
                let segment = unsafe { self.buffers.take(buffer, result as u32) };
                self.tell_received(id, segment, out);
            } else {
                // SAFETY: this completion, just reaped, named the buffer.
                unsafe { self.buffers.put_back(buffer) };
            }
        }
        let Some(index) = index else { return };
        if cqueue::more(flags) {
            return;
        }
        self.connections[index].receive = Receive::Idle;
        if !wanted {
            self.finish_close(index, out);
            return;
        }
        match -result {
            0 => self.fail(index, ConnectionFailure::ClosedByPeer, out),
            // For the sake of the block, or late: that is filled already.
            libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN
                if self.connections[index].fill.is_some() =>
            {
                self.push_fill(index)
            }
            libc::ENOBUFS => {
                self.counters.starvations += 1;
                self.starve(index);
            }
            libc::EINTR | libc::EAGAIN | libc::ECANCELED => self.receive_later(index),
            errno if errno > 0 => self.fail(index, ConnectionFailure::from_errno(errno), out),
            // It carried data and ended all the same: it was for one buffer, or there was no room for completions.
            _ => self.receive_later(index),
        }
    }

    /// Bytes that came through a buffer. What a block waits for goes there; the core hears of it first.
    fn tell_received(&mut self, id: ConnectionId, mut segment: Segment, out: &mut Vec<Completion>) {
        let connection = &mut self.connections[usize::from(id.index)];
        if let Some(mut fill) = connection.fill.take_if(|fill| !fill.in_flight) {
            let count = fill.block.copy(&segment);
            out.push(Completion::Filled { id, block: fill.block });
            segment = segment.slice(count..segment.len());
        }
        if !segment.is_empty() {
            out.push(Completion::Received { id, segment });
        }
    }

    pub(super) fn on_filled(&mut self, id: ConnectionId, result: i32, out: &mut Vec<Completion>) {
        let Some(index) = self.find(id) else { return };
        let connection = &mut self.connections[index];
        let is_open = connection.phase == Phase::Open;
        let Some(mut fill) = connection.fill.take() else { return };
        match -result {
            _ if !is_open => self.finish_close(index, out),
            0 => self.fail(index, ConnectionFailure::ClosedByPeer, out),
            libc::EINTR | libc::EAGAIN => {
                connection.fill = Some(fill);
                self.push_fill(index);
            }
            errno if errno > 0 => self.fail(index, ConnectionFailure::from_errno(errno), out),
            _ => {
                // SAFETY: the kernel wrote so many bytes to the block's room, and is done with it.
                unsafe { fill.block.advance(result as usize) };
                connection.once = true;
                out.push(Completion::Filled { id, block: fill.block });
                self.receive_later(index);
            }
        }
    }

    pub(super) fn on_sent(&mut self, id: ConnectionId, result: i32, out: &mut Vec<Completion>) {
        let Some(index) = self.find(id) else { return };
        let connection = &mut self.connections[index];
        let closing = connection.phase == Phase::Closing;
        let Some(send) = &mut connection.send else { return };
        send.in_flight = false;
        send.progress.advance(usize::try_from(result).unwrap_or(0));
        let retry = result > 0 || [-libc::EINTR, -libc::EAGAIN].contains(&result);
        if !send.progress.is_done() && !closing && retry {
            self.push_send(index);
            return;
        }
        let failed = !send.progress.is_done();
        if let Some(bytes) = send.progress.finish() {
            out.push(Completion::Sent { id, bytes });
        }
        if failed && !closing {
            // Zero bytes of a send that is not empty: no kernel does that.
            let errno = if result < 0 { -result } else { libc::EIO };
            self.fail(index, ConnectionFailure::from_errno(errno), out);
        }
        self.finish_close(index, out);
    }

    pub(super) fn on_connected(&mut self, id: ConnectionId, result: i32, out: &mut Vec<Completion>) {
        let Some(index) = self.find(id) else { return };
        self.connections[index].connect = None;
        match self.connections[index].phase {
            Phase::Connecting if result >= 0 => self.on_open(index, out),
            Phase::Connecting => self.fail(index, ConnectionFailure::from_errno(-result), out),
            _ => self.finish_close(index, out),
        }
    }

    /// A cancel that did not find its operation, or found it running, is mostly late: the completion is in the queue
    /// already. Should the operation wait in a kernel thread, then the end of the socket wakes it.
    pub(super) fn on_cancelled(&mut self, id: ConnectionId, result: i32) {
        if result < 0
            && let Some(index) = self.find(id)
            && self.connections[index].phase == Phase::Closing
            && let Some(socket) = &self.connections[index].socket
        {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "an alarm that fired early is set again, relative to now")]
    pub(super) fn on_alarm(&mut self, result: i32) {
        self.alarm_in_flight = false;
        self.alarm_refused |= result < 0 && result != -libc::ETIME && result != -libc::ECANCELED;
        self.alarm.on_fired(Instant::now());
    }

    pub(super) fn on_notified(&mut self, result: i32, flags: u32) {
        if !cqueue::more(flags) {
            self.notified_in_flight = false;
        }
        if result >= 0 {
            // An eventfd of ours that is not read stays readable: nothing is lost.
            let _ = self.notified.drain();
        }
    }

    /// Tells the failure, once.
    pub(super) fn fail(&mut self, index: usize, failure: ConnectionFailure, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        if matches!(connection.phase, Phase::Connecting | Phase::Open) {
            connection.phase = Phase::Failed;
            connection.stop_waiting();
            if !connection.is_filling() {
                connection.fill = None;
            }
            if let Some(send) = &mut connection.send
                && !send.in_flight
                && let Some(bytes) = send.progress.finish()
            {
                out.push(Completion::Sent { id, bytes });
            }
            out.push(Completion::Failed { id, failure });
        }
    }
}
