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
mod completions;
mod connection;
mod operations;
mod probe;
mod refusal;
mod ring;
mod teardown;
mod turn;

pub use refusal::UringRefusal;
pub use teardown::leaked_engines;

use super::alarm::Alarm;
use super::process::Process;
use super::wake::EventFd;
use super::{Counters, Engine};
use crate::buf::BufferPool;
use crate::io::EngineOptions;
use crate::io::{Completion, ConnectionFailure, ConnectionId, Op};
use buf_ring::BufRing;
use connection::{Connection, Phase};
use io_uring::types::Timespec;
use ring::Ring;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

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
        refusal::check_version()?;
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
        Op::Fill { .. } => return,
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
    /// Receives that the flush arms.
    due: Vec<ConnectionId>,
    /// Receives queued since the last flush: each may take one of the provided buffers.
    arming: usize,
    /// Told by the next poll, before anything that is reaped.
    ready: Vec<Completion>,
    alarm: Alarm,
    alarm_in_flight: bool,
    /// The kernel did not take one.
    alarm_refused: bool,
    /// Boxed: the kernel reads them when it takes the entry.
    times: Box<AlarmTimes>,
    counters: Counters,
    /// Who made it: a forked child must not touch the ring (H7).
    process: Process,
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
            due: Vec::new(),
            arming: 0,
            ready: Vec::new(),
            alarm: Alarm::default(),
            alarm_in_flight: false,
            alarm_refused: false,
            times: Box::default(),
            counters: Counters::default(),
            process: Process::current(),
        };
        live.buffers.provide(live.window());
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
}
