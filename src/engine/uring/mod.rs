//! The engine over io_uring: one ring per client, used only by the thread that made it.
//!
//! The kernel writes into buffers and reads from chunks while we do other things, so the question everywhere is *who
//! may touch this memory now*. The idea: an operation's memory belongs to the engine from the moment its entry is
//! queued until its last completion is reaped, whatever happened to the connection meanwhile. A connection is closed
//! in one order only: cancel its operations, reap their completions, tell the counts, shut down, close.
//!
//! Invariants: at most one receive and one send of a socket are in flight; a descriptor number is never closed while an
//! entry refers to it; every operation carries connection, generation and kind, and news of an old generation only
//! gives its buffer back.

mod buf_ring;
mod connection;
mod probe;
mod refusal;
mod ring;
mod teardown;

pub use refusal::UringRefusal;
pub use teardown::leaked_engines;

use super::alarm::Alarm;
use super::socket;
use super::token::{Kind, Token};
use super::wake::EventFd;
use super::{Counters, Engine};
use crate::buf::{BufferPool, Transmit};
use crate::io::EngineOptions;
use crate::io::{Address, Completion, ConnectionFailure, ConnectionId, Op, SocketOptions};
use buf_ring::BufRing;
use connection::{Connection, InFlightSend, Phase, Receive};
use io_uring::types::{Fd, Timespec};
use io_uring::{cqueue, opcode};
use ring::Ring;
use socket2::{SockAddr, Socket};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The engine over io_uring. See [`Engine`] for the contract, [io_uring(7)] for the kernel's part.
///
/// Create it after a `fork`, not before: in a child, dropping it closes its descriptors and does nothing else.
///
/// [io_uring(7)]: https://man7.org/linux/man-pages/man7/io_uring.7.html
pub struct UringEngine {
    /// `None` after `close`.
    live: Option<Live>,
    /// What is said about operations that are submitted later.
    late: Vec<Completion>,
    pool: BufferPool,
    counters: Counters,
}

impl UringEngine {
    /// Makes the ring, registers buffers and eventfd, and sends a few bytes through a socket pair to see whether all
    /// that is needed works here, in well under two milliseconds.
    pub fn new(options: &EngineOptions) -> Result<Self, UringRefusal> {
        let pool = BufferPool::new(options.buffer_count, options.buffer_size);
        let mut live = Live::new(options, pool.clone())?;
        if let Err(refusal) = probe::self_test(&mut live) {
            live.close(&mut Vec::new());
            return Err(refusal);
        }
        live.counters = Counters::default();
        Ok(Self { live: Some(live), late: Vec::new(), pool, counters: Counters::default() })
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.live.as_ref().map_or(self.counters, Live::counters)
    }
}

impl Engine for UringEngine {
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
        self.live.as_ref().ok_or(io::ErrorKind::NotConnected)?.wake.duplicate()
    }

    fn notifier(&self) -> io::Result<OwnedFd> {
        self.live.as_ref().ok_or(io::ErrorKind::NotConnected)?.notified.duplicate()
    }

    fn pool(&self) -> &BufferPool {
        &self.pool
    }

    fn close(&mut self, out: &mut Vec<Completion>) {
        if let Some(live) = self.live.take() {
            self.counters = live.close(out);
        }
        out.append(&mut self.late);
    }
}

impl Drop for UringEngine {
    fn drop(&mut self) {
        self.close(&mut Vec::new());
    }
}

/// The answers to an operation that cannot be begun.
pub(super) fn refuse(op: Op, errno: i32, out: &mut Vec<Completion>) {
    out.push(match op {
        Op::Resolve { id, .. } => {
            let failure = ConnectionFailure::Resolve("engines do not resolve names".into());
            Completion::Failed { id, failure }
        }
        Op::Connect { id, .. } => Completion::Failed { id, failure: ConnectionFailure::from_errno(errno) },
        Op::Send { id, .. } => Completion::Sent { id, bytes: 0 },
        Op::Close { id } => Completion::Closed { id },
    });
}

/// A timespec for each of the two timer operations that may be queued at once.
#[derive(Default)]
struct AlarmTimes {
    set: Timespec,
    update: Timespec,
}

/// The engine until it is closed.
struct Live {
    ring: Ring,
    buffers: BufRing,
    pool: BufferPool,
    /// Registered with the ring: signalled with each completion.
    wake: EventFd,
    /// What others write to. Not `wake`: that one is cleared whenever the host is about to park, and a notification
    /// must not be cleared with it. The ring polls this one, so a notification is a completion like any other.
    notified: EventFd,
    notified_in_flight: bool,
    connections: Vec<Connection>,
    /// Receives that wait for a buffer, in the order in which they ran out of them (H19).
    starved: VecDeque<ConnectionId>,
    /// Receives queued since the last flush: each may take one of the provided buffers.
    arming: usize,
    /// Told by the next poll, before anything that is reaped.
    ready: Vec<Completion>,
    alarm: Alarm,
    alarm_in_flight: bool,
    /// Boxed: the kernel reads them when it takes the entry.
    times: Box<AlarmTimes>,
    counters: Counters,
    /// Who made it: a forked child must not touch the ring (H7).
    pid: u32,
}

impl Live {
    fn new(options: &EngineOptions, pool: BufferPool) -> Result<Self, UringRefusal> {
        let ring = Ring::new(options)?;
        let wake = EventFd::new().map_err(|e| UringRefusal::of("eventfd", &e))?;
        ring.register_eventfd(wake.raw())?;
        let buffers = BufRing::new(&ring, pool.clone())?;
        let on_return = wake.clone();
        pool.on_return(Some(Box::new(move || on_return.signal())));
        let mut live = Self {
            ring,
            buffers,
            pool,
            wake,
            notified: EventFd::new().map_err(|e| UringRefusal::of("eventfd", &e))?,
            notified_in_flight: false,
            connections: Vec::new(),
            starved: VecDeque::new(),
            arming: 0,
            ready: Vec::new(),
            alarm: Alarm::default(),
            alarm_in_flight: false,
            times: Box::default(),
            counters: Counters::default(),
            pid: std::process::id(),
        };
        live.buffers.provide();
        Ok(live)
    }

    fn counters(&self) -> Counters {
        Counters { kernel_entries: self.ring.enters(), ..self.counters }
    }

    /// The place of a connection that is not `Closed` yet.
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

    fn begin_connect(&mut self, id: ConnectionId, socket: Socket, peer: SockAddr) {
        let connection = &mut self.connections[usize::from(id.index)];
        connection.generation = id.generation;
        connection.phase = Phase::Connecting;
        let peer = connection.connect.insert(Box::new(peer));
        let (address, len) = (peer.as_ptr().cast(), peer.len());
        let socket = connection.socket.insert(socket);
        let entry = opcode::Connect::new(Fd(std::os::fd::AsRawFd::as_raw_fd(socket)), address, len).build();
        // SAFETY: the boxed address and the socket stay in the table until the completion (`is_in_flight`).
        unsafe { self.ring.push(entry.user_data(Token::new(id, Kind::Connect).pack())) };
    }

    /// A connected socket: receives from it, and sends what waited for it.
    fn adopt(&mut self, id: ConnectionId, socket: Socket, out: &mut Vec<Completion>) {
        let index = usize::from(id.index);
        if index >= self.connections.len() {
            self.connections.resize_with(index + 1, Connection::default);
        }
        self.connections[index].generation = id.generation;
        self.connections[index].socket = Some(socket);
        self.on_open(index, out);
    }

    fn on_open(&mut self, index: usize, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        self.connections[index].phase = Phase::Open;
        out.push(Completion::Connected { id });
        self.receive(index);
        if self.connections[index].send.as_ref().is_some_and(|send| send.progress.is_owed()) {
            self.push_send(index);
        }
    }

    /// Arms the receive, or queues for a buffer behind those that already wait.
    fn receive(&mut self, index: usize) {
        if self.starved.is_empty() && self.buffers.provided() > self.arming {
            self.arm(index);
        } else {
            self.starve(index);
        }
    }

    fn arm(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        debug_assert_ne!(connection.receive, Receive::Armed, "one receive per socket");
        connection.receive = Receive::Armed;
        self.arming += 1;
        self.counters.receives_armed += 1;
        let entry = opcode::RecvMulti::new(Fd(connection.raw_fd()), ring::GROUP).build();
        // SAFETY: it points to nothing of its own; the buffers are the pool's and stay until everything is reaped, and
        // the socket stays open until the last completion (`is_in_flight`).
        unsafe { self.ring.push(entry.user_data(Token::new(id, Kind::Receive).pack())) };
    }

    fn starve(&mut self, index: usize) {
        self.connections[index].receive = Receive::Starved;
        // Places that were closed while they waited are left in the queue, and cleared out before it grows by them.
        if self.starved.len() > 2 * self.connections.len() {
            let mut waiting = std::mem::take(&mut self.starved);
            waiting.retain(|id| self.is_starved(*id));
            self.starved = waiting;
        }
        self.starved.push_back(self.id_of(index));
    }

    fn is_starved(&self, id: ConnectionId) -> bool {
        self.find(id).is_some_and(|index| self.connections[index].receive == Receive::Starved)
    }

    /// Arms those that wait for buffers, at most as many as there are buffers (H19).
    fn feed_starved(&mut self) {
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

    fn can_feed_starved(&self) -> bool {
        !self.starved.is_empty() && (self.buffers.provided() > self.arming || self.pool.free() > 0)
    }

    fn send(&mut self, id: ConnectionId, data: Transmit) {
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

    fn push_send(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        let fd = connection.raw_fd();
        let Some(send) = &mut connection.send else { return };
        let entry = send.entry(fd).user_data(Token::new(id, Kind::Send).pack());
        // SAFETY: header and parts are boxed and the log's bytes counted; all stay in the table until the completion
        // (`in_flight`), as does the socket.
        unsafe { self.ring.push(entry) };
    }

    fn close_connection(&mut self, id: ConnectionId) {
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
    fn begin_close(&mut self, index: usize) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        connection.phase = Phase::Closing;
        if connection.receive == Receive::Starved {
            connection.receive = Receive::Idle;
        }
        let operations = [
            (connection.receive == Receive::Armed, Kind::Receive),
            (connection.is_sending(), Kind::Send),
            (connection.connect.is_some(), Kind::Connect),
        ];
        for (_, kind) in operations.into_iter().filter(|(in_flight, _)| *in_flight) {
            self.push_cancel(Token::new(id, kind));
        }
    }

    fn push_cancel(&mut self, of: Token) {
        let entry = opcode::AsyncCancel::new(of.pack()).build();
        // SAFETY: it points to nothing and names no descriptor.
        unsafe { self.ring.push(entry.user_data(Token::new(of.id, Kind::Cancel).pack())) };
    }

    /// The last step of a close, once the kernel has nothing of the connection: tells the count, then closes (H26, H29).
    fn finish_close(&mut self, index: usize, out: &mut Vec<Completion>) {
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
        connection.phase = Phase::Vacant;
        out.push(Completion::Closed { id });
    }

    // What the kernel says.

    fn on_completion(&mut self, entry: &cqueue::Entry, out: &mut Vec<Completion>) {
        let Some(token) = Token::unpack(entry.user_data()) else { return };
        let result = entry.result();
        match token.kind {
            Kind::Receive => self.on_received(token.id, result, entry.flags(), out),
            Kind::Send => self.on_sent(token.id, result, out),
            Kind::Connect => self.on_connected(token.id, result, out),
            Kind::Cancel => self.on_cancelled(token.id, result),
            Kind::Alarm => self.on_alarm(),
            Kind::Wake => self.on_notified(result, entry.flags()),
            // It moved the alarm, or came too late: then the alarm's own completion is here or on its way.
            Kind::AlarmUpdate | Kind::Socket => {}
        }
    }

    /// Data first, then the ending (H22): the buffer is known by its flag alone, the end by the lack of `F_MORE` alone.
    fn on_received(&mut self, id: ConnectionId, result: i32, flags: u32, out: &mut Vec<Completion>) {
        let index = self.find(id);
        let wanted = index.is_some_and(|index| self.connections[index].phase == Phase::Open);
        if let Some(buffer) = cqueue::buffer_select(flags) {
            if wanted && result > 0 {
                // SAFETY: this completion, just reaped, named the buffer with that many bytes.
                let segment = unsafe { self.buffers.take(buffer, result as u32) };
                out.push(Completion::Received { id, segment });
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
            libc::ENOBUFS => {
                self.counters.starvations += 1;
                self.starve(index);
            }
            libc::EINTR | libc::EAGAIN => self.receive(index),
            errno if errno > 0 => self.fail(index, ConnectionFailure::from_errno(errno), out),
            // It carried data and ended all the same, for want of room in the completion queue.
            _ => self.receive(index),
        }
    }

    fn on_sent(&mut self, id: ConnectionId, result: i32, out: &mut Vec<Completion>) {
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

    fn on_connected(&mut self, id: ConnectionId, result: i32, out: &mut Vec<Completion>) {
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
    fn on_cancelled(&mut self, id: ConnectionId, result: i32) {
        if result < 0
            && let Some(index) = self.find(id)
            && self.connections[index].phase == Phase::Closing
            && let Some(socket) = &self.connections[index].socket
        {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "an alarm that fired early is set again, relative to now")]
    fn on_alarm(&mut self) {
        self.alarm_in_flight = false;
        self.alarm.on_fired(Instant::now());
    }

    fn on_notified(&mut self, result: i32, flags: u32) {
        if !cqueue::more(flags) {
            self.notified_in_flight = false;
        }
        if result >= 0 {
            // An eventfd of ours that is not read stays readable: nothing is lost.
            let _ = self.notified.drain();
        }
    }

    /// Tells the failure, once.
    fn fail(&mut self, index: usize, failure: ConnectionFailure, out: &mut Vec<Completion>) {
        let id = self.id_of(index);
        let connection = &mut self.connections[index];
        if matches!(connection.phase, Phase::Connecting | Phase::Open) {
            connection.phase = Phase::Failed;
            if connection.receive == Receive::Starved {
                connection.receive = Receive::Idle;
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

    // The turn.

    fn flush(&mut self) -> io::Result<()> {
        self.buffers.provide();
        self.feed_starved();
        self.set_alarm();
        self.watch_notified();
        if self.ring.has_queued() {
            self.ring.submit()?;
        }
        self.arming = 0;
        Ok(())
    }

    fn set_alarm(&mut self) {
        let Some(after) = self.alarm.due() else { return };
        self.alarm.mark_set();
        let alarm = Token::of_engine(Kind::Alarm).pack();
        let time = Timespec::from(after);
        let entry = if self.alarm_in_flight {
            self.times.update = time;
            let update = opcode::TimeoutUpdate::new(alarm, &self.times.update).build();
            update.user_data(Token::of_engine(Kind::AlarmUpdate).pack())
        } else {
            self.times.set = time;
            self.alarm_in_flight = true;
            opcode::Timeout::new(&self.times.set).build().user_data(alarm)
        };
        // SAFETY: the timespecs are boxed and live as long as the ring. They are written again only for a later entry
        // of their kind; should the earlier one still be queued, it merely gets the newer time.
        unsafe { self.ring.push(entry) };
    }

    /// Polls the notifier's descriptor, until closed: a multishot that the kernel ends only when the completion queue
    /// is full, and then another one.
    fn watch_notified(&mut self) {
        if !self.notified_in_flight {
            self.notified_in_flight = true;
            let entry =
                opcode::PollAdd::new(Fd(self.notified.raw()), libc::POLLIN as u32).multi(true).build();
            // SAFETY: it points to nothing, and the descriptor is closed after everything is reaped.
            unsafe { self.ring.push(entry.user_data(Token::of_engine(Kind::Wake).pack())) };
        }
    }

    fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool> {
        let end = out.len() + budget.max(1);
        let told = self.ready.len().min(end - out.len());
        out.extend(self.ready.drain(..told));
        let mut entered = false;
        while self.ready.is_empty() && out.len() < end {
            let mut batch = [const { MaybeUninit::uninit() }; ring::BATCH];
            let room = ring::BATCH.min(end - out.len());
            let reaped = self.ring.reap(&mut batch[..room]);
            for entry in reaped {
                self.on_completion(entry, out);
            }
            self.counters.completions += reaped.len() as u64;
            if reaped.is_empty() {
                if entered || !self.ring.needs_entry() {
                    break;
                }
                entered = true;
                self.ring.take_events()?;
            }
        }
        self.buffers.provide();
        self.feed_starved();
        Ok(!self.ready.is_empty() || self.ring.has_completions() || self.ring.needs_entry())
    }

    fn may_park(&mut self) -> io::Result<bool> {
        self.wake.drain()?;
        // Only now: what comes after this look signals the eventfd anew.
        if self.ring.needs_entry() {
            self.ring.take_events()?;
            return Ok(false);
        }
        Ok(self.ready.is_empty()
            && !self.ring.has_completions()
            && !self.ring.has_queued()
            && self.alarm.due().is_none()
            && self.notified_in_flight
            && !self.can_feed_starved())
    }

    /// Cancels everything that is in flight, in batches, and waits for the ends, up to `bound`. True when the kernel
    /// has nothing left.
    #[expect(clippy::disallowed_methods, reason = "closing is bounded in time")]
    fn quiesce(&mut self, bound: Duration, out: &mut Vec<Completion>) -> io::Result<bool> {
        out.append(&mut self.ready);
        let deadline = Instant::now() + bound;
        for (in_flight, kind) in [(self.alarm_in_flight, Kind::Alarm), (self.notified_in_flight, Kind::Wake)]
        {
            if in_flight {
                self.push_cancel(Token::of_engine(kind));
            }
        }
        for index in 0..self.connections.len() {
            match self.connections[index].phase {
                Phase::Vacant => continue,
                Phase::Closing => {}
                _ => self.begin_close(index),
            }
            self.finish_close(index, out);
            if index % ring::BATCH == ring::BATCH - 1 {
                self.reap_all(out)?;
            }
        }
        loop {
            self.reap_all(out)?;
            if self.ring.outstanding() == 0 {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.ring.wait(left)?;
        }
    }

    fn reap_all(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        self.ring.submit()?;
        let mut batch = [const { MaybeUninit::uninit() }; ring::BATCH];
        loop {
            let reaped = self.ring.reap(&mut batch);
            for entry in reaped {
                self.on_completion(entry, out);
            }
            self.counters.completions += reaped.len() as u64;
            if !reaped.is_empty() {
                continue;
            }
            if !self.ring.needs_entry() {
                return Ok(());
            }
            self.ring.take_events()?;
        }
    }
}
