//! The engine over epoll: the same contract where io_uring is refused.
//!
//! Readiness instead of completion: the kernel never holds memory of ours, so every answer is exact the moment a call
//! returns, and closing needs no waiting. The set is level triggered, so what is not taken is told again; the host waits
//! for the set's own descriptor. Invariants: a socket is in the set only while something can be done about it (a
//! connection that waits for a buffer is taken out, or the set would stay ready and the host would spin, H19); the
//! host parks only after a look that found nothing ready (H14).

mod connection;
mod events;
mod operations;
#[allow(unsafe_code)]
mod poller;

use super::alarm::Alarm;
use super::process::Process;
use super::token::{Kind, Token};
use super::uring::refuse;
use super::{Counters, Engine};
use super::{TimerFd, wake::EventFd};
use crate::buf::BufferPool;
use crate::io::EngineOptions;
use crate::io::{Completion, ConnectionId, Op};
use connection::{Connection, Phase};
use poller::{Poller, READ};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// Events that are taken from the kernel at a time.
const EVENTS: usize = 128;
/// Buffers that one connection may fill per event, so that a flood does not starve the others.
const BUFFERS_PER_EVENT: usize = 16;

/// The engine over epoll. See [`Engine`] for the contract.
pub struct EpollEngine {
    /// `None` after `close`.
    live: Option<Live>,
    /// What is said about operations that are submitted later.
    late: Vec<Completion>,
    pool: BufferPool,
    counters: Counters,
}

impl EpollEngine {
    /// Makes its three descriptors: the set, a timer and an eventfd.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)`, `timerfd_create(2)` and `eventfd(2)`: too many open files.
    pub fn new(options: &EngineOptions) -> io::Result<Self> {
        let pool = BufferPool::new(options.buffer_count, options.buffer_size);
        let live = Live::new(pool.clone())?;
        Ok(Self { live: Some(live), late: Vec::new(), pool, counters: Counters::default() })
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.live.as_ref().map_or(self.counters, Live::counters)
    }
}

impl Engine for EpollEngine {
    fn submit(&mut self, op: Op) {
        match &mut self.live {
            Some(live) => live.submit(op),
            None => refuse(op, libc::ECANCELED, &mut self.late),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.live.as_mut().map_or(Ok(()), Live::flush)
    }

    fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool> {
        match &mut self.live {
            Some(live) => live.poll(budget, out),
            None => {
                out.append(&mut self.late);
                Ok(false)
            }
        }
    }

    fn may_park(&mut self) -> io::Result<bool> {
        self.live.as_mut().map_or(Ok(self.late.is_empty()), Live::may_park)
    }

    fn wake_at(&mut self, now: Instant, at: Option<Instant>) {
        if let Some(live) = &mut self.live {
            live.alarm.want(now, at);
        }
    }

    fn wake_fd(&self) -> io::Result<OwnedFd> {
        self.live.as_ref().ok_or(io::ErrorKind::NotConnected)?.poller.duplicate()
    }

    fn notifier(&self) -> io::Result<OwnedFd> {
        self.live.as_ref().ok_or(io::ErrorKind::NotConnected)?.wake.duplicate()
    }

    fn pool(&self) -> &BufferPool {
        &self.pool
    }

    fn close(&mut self, out: &mut Vec<Completion>) {
        if let Some(live) = self.live.take() {
            self.counters = live.counters();
            live.close(out);
        }
        out.append(&mut self.late);
    }
}

impl Drop for EpollEngine {
    fn drop(&mut self) {
        self.close(&mut Vec::new());
    }
}

/// The engine until it is closed.
struct Live {
    poller: Poller,
    timer: TimerFd,
    wake: EventFd,
    pool: BufferPool,
    connections: Vec<Connection>,
    /// Connections that wait for a buffer, in the order in which they ran out of them.
    starved: VecDeque<ConnectionId>,
    /// Sends for the next flush.
    to_send: Vec<ConnectionId>,
    /// Told by the next poll.
    ready: Vec<Completion>,
    /// Events that were taken from the kernel and not served, from `next_event` on.
    events: Vec<libc::epoll_event>,
    next_event: usize,
    alarm: Alarm,
    counters: Counters,
    /// Who made it: a forked child must not shut the parent's sockets down (H7).
    process: Process,
}

impl Live {
    fn new(pool: BufferPool) -> io::Result<Self> {
        let mut poller = Poller::new()?;
        let timer = TimerFd::new()?;
        let wake = EventFd::new()?;
        poller.watch(wake.raw(), Token::of_engine(Kind::Wake).pack(), 0, READ)?;
        poller.watch(timer.raw(), Token::of_engine(Kind::Alarm).pack(), 0, READ)?;
        let on_return = wake.clone();
        pool.on_return(Some(Box::new(move || on_return.signal())));
        Ok(Self {
            poller,
            timer,
            wake,
            pool,
            connections: Vec::new(),
            starved: VecDeque::new(),
            to_send: Vec::new(),
            ready: Vec::new(),
            events: Vec::with_capacity(EVENTS),
            next_event: 0,
            alarm: Alarm::default(),
            counters: Counters::default(),
            process: Process::current(),
        })
    }

    fn counters(&self) -> Counters {
        Counters { kernel_entries: self.counters.kernel_entries + self.poller.calls, ..self.counters }
    }

    fn find(&self, id: ConnectionId) -> Option<usize> {
        let index = usize::from(id.index);
        let connection = self.connections.get(index)?;
        (connection.phase != Phase::Vacant && connection.generation == id.generation).then_some(index)
    }

    fn id_of(&self, index: usize) -> ConnectionId {
        ConnectionId { index: index as u16, generation: self.connections[index].generation }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        let mut to_send = std::mem::take(&mut self.to_send);
        for id in to_send.drain(..) {
            if let Some(index) = self.find(id)
                && self.connections[index].phase == Phase::Open
            {
                self.push_bytes(index, &mut ready);
            }
        }
        self.to_send = to_send;
        self.feed_starved(&mut ready);
        self.ready = ready;
        if let Some(after) = self.alarm.due() {
            self.counters.kernel_entries += 1;
            self.timer.set(after)?;
            self.alarm.mark_set();
        }
        Ok(())
    }

    fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool> {
        let end = out.len() + budget.max(1);
        let told = self.ready.len().min(end - out.len());
        out.extend(self.ready.drain(..told));
        if !self.ready.is_empty() || out.len() >= end {
            return Ok(true);
        }
        self.feed_starved(out);
        if self.next_event == self.events.len() {
            self.look(end - out.len())?;
        }
        while out.len() < end && self.next_event < self.events.len() {
            let event = self.events[self.next_event];
            self.next_event += 1;
            self.on_event(event, end, out)?;
        }
        Ok(self.next_event < self.events.len() || out.len() >= end)
    }

    /// Takes what is ready from the kernel.
    fn look(&mut self, max: usize) -> io::Result<()> {
        self.next_event = 0;
        self.poller.ready(&mut self.events, max.max(1))?;
        self.counters.completions += self.events.len() as u64;
        Ok(())
    }

    fn may_park(&mut self) -> io::Result<bool> {
        if !self.ready.is_empty()
            || !self.to_send.is_empty()
            || self.next_event < self.events.len()
            || self.alarm.due().is_some()
            || !self.starved.is_empty() && self.pool.free() > 0
        {
            return Ok(false);
        }
        // The common case is one look that finds nothing. What it finds is kept for the next poll, which also clears
        // alarm and eventfd: a host that parked here could miss what they announce.
        self.look(EVENTS)?;
        Ok(self.events.is_empty())
    }

    fn close(mut self, out: &mut Vec<Completion>) {
        self.pool.on_return(None);
        if !self.process.is_surely_current() {
            return;
        }
        for index in 0..self.connections.len() {
            if self.connections[index].phase != Phase::Vacant {
                let id = self.id_of(index);
                self.close_connection(id);
            }
        }
        out.append(&mut self.ready);
    }
}
