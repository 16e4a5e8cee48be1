//! The engine over epoll: the same contract where io_uring is refused.
//!
//! Readiness instead of completion: the kernel never holds memory of ours, so every answer is exact the moment a call
//! returns, and closing needs no waiting. The set is level triggered, so what is not taken is told again; the host waits
//! for the set's own descriptor. Invariants: a socket is in the set only while something can be done about it (a
//! connection that waits for a buffer is taken out, or the set would stay ready and the host would spin, H19); the
//! host parks only after a look that found nothing ready (H14).

mod connection;
#[allow(unsafe_code)]
mod poller;

use super::alarm::Alarm;
use super::socket;
use super::token::{Kind, Token};
use super::uring::refuse;
use super::wake::{self, EventFd};
use super::{Counters, Engine};
use crate::buf::{BufferPool, Transmit};
use crate::io::EngineOptions;
use crate::io::{Address, Completion, ConnectionFailure, ConnectionId, Op, SocketOptions};
use connection::{Connection, Phase, Progress};
use poller::{Poller, READ, TimerFd, WRITE};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
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
    pid: u32,
}

impl Live {
    fn new(pool: BufferPool) -> io::Result<Self> {
        let mut poller = Poller::new()?;
        let timer = TimerFd::new()?;
        let wake = EventFd::new()?;
        poller.watch(wake.raw(), Token::of_engine(Kind::Wake).pack(), 0, READ)?;
        poller.watch(timer.file.as_raw_fd(), Token::of_engine(Kind::Alarm).pack(), 0, READ)?;
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
            pid: std::process::id(),
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

    // What the core wants.

    fn submit(&mut self, op: Op) {
        match op {
            Op::Connect { id, address, options } => self.connect(id, &address, &options),
            Op::Send { id, data } => self.send(id, data),
            Op::Close { id } => self.close_connection(id),
            Op::Resolve { .. } => refuse(op, 0, &mut self.ready),
        }
    }

    fn connect(&mut self, id: ConnectionId, address: &Address, options: &SocketOptions) {
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

    fn on_open(&mut self, index: usize, out: &mut Vec<Completion>) {
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
    fn update_interest(&mut self, index: usize, out: &mut Vec<Completion>) {
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

    fn send(&mut self, id: ConnectionId, data: Transmit) {
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

    fn close_connection(&mut self, id: ConnectionId) {
        if let Some(index) = self.find(id) {
            let connection = &mut self.connections[index];
            // What the kernel has taken so far is exact: there is no send that it still works on (H26).
            if let Some(bytes) = connection.sending.finish() {
                self.ready.push(Completion::Sent { id, bytes });
            }
            connection.phase = Phase::Vacant;
            connection.blocked = false;
            connection.starved = false;
            // Closing the only descriptor of a socket takes it out of the set.
            connection.interest = 0;
            if let Some(socket) = connection.socket.take() {
                socket::close(socket);
            }
        }
        self.ready.push(Completion::Closed { id });
    }

    // What the kernel says.

    fn on_event(
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
    fn on_alarm(&mut self) -> io::Result<()> {
        wake::drain(&self.timer.file)?;
        self.alarm.on_fired(Instant::now());
        Ok(())
    }

    fn on_connect_ready(&mut self, index: usize, out: &mut Vec<Completion>) {
        let Some(socket) = &self.connections[index].socket else { return };
        match socket.take_error() {
            Ok(None) => self.on_open(index, out),
            Ok(Some(e)) | Err(e) => self.fail(index, ConnectionFailure::from(&e), out),
        }
    }

    /// Reads what is there into buffers, as far as budget and pool reach.
    fn receive(&mut self, index: usize, end: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        for _ in 0..BUFFERS_PER_EVENT {
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

    fn starve(&mut self, index: usize, out: &mut Vec<Completion>) {
        self.counters.starvations += 1;
        self.connections[index].starved = true;
        if self.starved.len() > 2 * self.connections.len() {
            let mut waiting = std::mem::take(&mut self.starved);
            waiting.retain(|id| self.is_starved(*id));
            self.starved = waiting;
        }
        self.starved.push_back(self.id_of(index));
        self.pool.set_starved();
        self.update_interest(index, out);
    }

    fn is_starved(&self, id: ConnectionId) -> bool {
        self.find(id).is_some_and(|index| self.connections[index].starved)
    }

    /// Watches those again that wait for buffers, at most as many as are free (H19).
    fn feed_starved(&mut self, out: &mut Vec<Completion>) {
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
    fn push_bytes(&mut self, index: usize, out: &mut Vec<Completion>) {
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
    fn fail(&mut self, index: usize, failure: ConnectionFailure, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        if !matches!(connection.phase, Phase::Connecting | Phase::Open) {
            return;
        }
        connection.phase = Phase::Failed;
        connection.blocked = false;
        if let Some(bytes) = connection.sending.finish() {
            out.push(Completion::Sent { id, bytes });
        }
        out.push(Completion::Failed { id, failure });
        self.update_interest(index, out);
    }

    // The turn.

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
        if self.pid != std::process::id() {
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
