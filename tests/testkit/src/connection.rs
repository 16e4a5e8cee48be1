//! One client's socket: reading requests, running them, writing replies, under its faults.
//!
//! **Problem.** The server must be much faster than the client under test and yet be able to do everything wrong that a
//! server or a network can do wrong.
//!
//! **Idea.** One read takes what is there, all complete commands in it run, one write sends all their replies. Faults are
//! limits asked at the read and at the write; gates in the [`Outbox`] decide which bytes may go.
//!
//! **Invariant.** Nothing blocks. What the connection waits for is either in `interest` (a socket event) or in
//! `next_deadline` (time), or it waits for the test.

use crate::Hangup;
use crate::faults::Faults;
use crate::outbox::{Gate, Outbox};
use crate::record::{Recorded, Request};
use crate::request::{Args, Parsed, parse};
use crate::rules::{Answer, Moment};
use crate::session::{Peers, Session};
use crate::state::Parts;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown, sockopt};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The input buffer of a connection at rest.
const INPUT_BYTES: usize = 64 * 1024;
/// A larger one is given back when it is empty.
const INPUT_BYTES_KEPT_MAX: usize = 4 * 1024 * 1024;
/// How long a connection that was ended cleanly goes on discarding input, so that the client sees the end of stream and
/// no reset that overtakes it.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// The connection is over and must be dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// One accepted socket.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) session: Session,
    pub(crate) outbox: Outbox,
    pub(crate) faults: Faults,
    input: Vec<u8>,
    unread: Range<usize>,
    spans: Vec<Range<usize>>,
    /// No command is run any more: an end was decided.
    closing: bool,
    lingers_until: Option<Instant>,
    /// The kernel took less than offered; wait until it takes more.
    blocked: bool,
    next_write: Option<Instant>,
    next_read: Option<Instant>,
    /// What epoll was asked to report.
    pub(crate) interest: EventFlags,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, session: Session, faults: Faults) -> Self {
        let connection = Self {
            socket,
            session,
            outbox: Outbox::default(),
            faults,
            input: vec![0; INPUT_BYTES],
            unread: 0..0,
            spans: Vec::new(),
            closing: false,
            lingers_until: None,
            blocked: false,
            next_write: None,
            next_read: None,
            interest: EventFlags::empty(),
        };
        // A Unix socket has no such option; the failure means nothing.
        let _ = sockopt::set_tcp_nodelay(&connection.socket, true);
        connection.apply_socket_options();
        connection
    }

    /// Changes the faults; a pause that has begun under the old ones is over.
    pub(crate) fn change_faults(&mut self, change: &dyn Fn(&mut Faults)) {
        change(&mut self.faults);
        (self.next_write, self.next_read) = (None, None);
        self.apply_socket_options();
    }

    /// Passes on the faults that the kernel carries out.
    fn apply_socket_options(&self) {
        if let Some(bytes) = self.faults.socket_buffer_bytes {
            let _ = sockopt::set_socket_send_buffer_size(&self.socket, bytes);
            let _ = sockopt::set_socket_recv_buffer_size(&self.socket, bytes);
        }
    }

    /// Whether the connection still belongs to the client, and is not only fading out.
    pub(crate) fn is_open(&self) -> bool {
        self.lingers_until.is_none()
    }

    /// Does all that can be done now. `readable` says that a read may find bytes.
    pub(crate) fn attend(
        &mut self,
        readable: bool,
        now: Instant,
        parts: &mut Parts,
        peers: &dyn Peers,
    ) -> Result<(), Gone> {
        if let Some(end) = self.lingers_until {
            return if now >= end { Err(Gone) } else { self.discard() };
        }
        if readable && self.may_read(now) {
            self.read(now, parts)?;
            self.run_commands(now, parts, peers);
        }
        self.write(now, parts)
    }

    fn may_read(&self, now: Instant) -> bool {
        let waits_for_writes = self.faults.reads_only_when_written && !self.outbox.unsent().is_empty();
        let is_early = self.next_read.is_some_and(|due| due > now);
        !(self.closing || self.faults.stalled || waits_for_writes || is_early)
    }

    fn read(&mut self, now: Instant, parts: &mut Parts) -> Result<(), Gone> {
        let space = &mut self.input[self.unread.end..];
        let mut limit = space.len();
        if let Some(slow) = self.faults.slow_reader {
            limit = limit.min(slow.bytes);
            self.next_read = Some(now + slow.interval);
        }
        match rustix::io::read(&self.socket, &mut space[..limit]) {
            Ok(0) => Err(Gone),
            Ok(count) => {
                self.unread.end += count;
                parts.stats.bytes_received += count as u64;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    /// Runs all complete commands of the input.
    fn run_commands(&mut self, now: Instant, parts: &mut Parts, peers: &dyn Peers) {
        if let Some(delay) = self.faults.delay {
            self.outbox.close_gate(Gate::At(now + delay));
        }
        let mut needed = 0;
        while !self.closing {
            let bytes = &self.input[self.unread.clone()];
            match parse(bytes, &mut self.spans) {
                Ok(Parsed::Complete(length)) => {
                    let args = Args::new(bytes, &self.spans);
                    self.unread.start += length;
                    if args.len() > 0 {
                        run_command(
                            args,
                            &mut self.session,
                            &mut self.outbox,
                            &mut self.closing,
                            now,
                            parts,
                            peers,
                        );
                    }
                }
                Ok(Parsed::Incomplete(total)) => {
                    needed = total;
                    break;
                }
                Err(error) => {
                    let text = format!("-ERR Protocol error: {error}\r\n");
                    self.outbox.tail().extend_from_slice(text.as_bytes());
                    self.outbox.close_gate(Gate::End(Hangup::Fin));
                    self.closing = true;
                }
            }
        }
        self.make_room(needed);
    }

    /// Moves the incomplete command to the front, and makes sure that a read can take at least one byte of it.
    fn make_room(&mut self, needed: usize) {
        self.input.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let length = self.input.len();
        if needed > length {
            // At least twofold, because a command of many small arguments says only step by step how long it is; at most
            // fourfold, because a header that promises a huge argument must not take memory before the bytes come.
            self.input.resize(needed.clamp(length * 2, length * 4), 0);
        } else if self.unread.is_empty() && length > INPUT_BYTES_KEPT_MAX {
            self.input = vec![0; INPUT_BYTES];
        }
    }

    fn write(&mut self, now: Instant, parts: &mut Parts) -> Result<(), Gone> {
        self.blocked = false;
        loop {
            if self.faults.cut.is_some_and(|cut| cut.bytes_left == 0) {
                return self.end(self.faults.cut.map_or(Hangup::Fin, |cut| cut.how), now);
            }
            let end = self.outbox.open_due(now);
            let unsent = self.outbox.unsent();
            if unsent.is_empty() {
                return end.filter(|_| !self.faults.stalled).map_or(Ok(()), |how| self.end(how, now));
            }
            if self.faults.stalled || self.next_write.is_some_and(|due| due > now) {
                return Ok(());
            }
            let limit = self.faults.write_limit(unsent.len());
            match send(&self.socket, &unsent[..limit], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    parts.stats.bytes_sent += count as u64;
                    self.outbox.advance(count);
                    self.next_write = self.faults.next_write(now, count);
                    if let Some(how) = self.faults.on_written(count) {
                        return self.end(how, now);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Ends the connection now; bytes that the kernel does not have are lost.
    pub(crate) fn end(&mut self, how: Hangup, now: Instant) -> Result<(), Gone> {
        self.closing = true;
        match how {
            Hangup::Reset => {
                // A linger time of zero makes the kernel send a reset when the descriptor is closed.
                let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
                Err(Gone)
            }
            Hangup::Fin => {
                shutdown(&self.socket, Shutdown::Write).map_err(|_| Gone)?;
                self.lingers_until = Some(now + LINGER);
                self.discard()
            }
        }
    }

    fn discard(&mut self) -> Result<(), Gone> {
        match rustix::io::read(&self.socket, &mut self.input[..]) {
            Ok(0) => Err(Gone),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    /// What epoll should report for this connection now.
    pub(crate) fn wanted_interest(&self, now: Instant) -> EventFlags {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, self.lingers_until.is_some() || self.may_read(now));
        wanted.set(EventFlags::OUT, self.blocked);
        wanted
    }

    /// When the connection must be attended to, even if nothing happens.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.lingers_until.is_some() {
            return self.lingers_until;
        }
        if self.faults.stalled {
            return None;
        }
        let write = self.next_write.filter(|_| !self.outbox.unsent().is_empty() && !self.blocked);
        let read = self.next_read.filter(|_| !self.interest.contains(EventFlags::IN) && !self.closing);
        [write, read, self.outbox.next_deadline()].into_iter().flatten().min()
    }
}

/// Runs or scripts one command; a function of the connection's parts, because the arguments borrow its input.
fn run_command(
    args: Args<'_>,
    session: &mut Session,
    outbox: &mut Outbox,
    closing: &mut bool,
    now: Instant,
    parts: &mut Parts,
    peers: &dyn Peers,
) {
    parts.stats.commands += 1;
    if parts.recording {
        parts.recorded.push(Recorded::new(session.id, args));
    }
    let action =
        if parts.rules.is_empty() { None } else { parts.rules.decide(session.id, &Request::new(args)) };
    let Some(action) = action else {
        parts.world.run(args, session, peers, outbox.tail());
        if session.quits {
            outbox.close_gate(Gate::End(Hangup::Fin));
            *closing = true;
        }
        return;
    };
    match action.moment {
        Moment::Now => {}
        Moment::Released => outbox.close_gate(Gate::Release),
        Moment::After(delay) => outbox.close_gate(Gate::At(now + delay)),
    }
    match action.answer {
        Answer::Normal => parts.world.run(args, session, peers, outbox.tail()),
        Answer::Raw(bytes) => outbox.tail().extend_from_slice(&bytes),
        Answer::Error(text) => crate::reply::Reply::new(outbox.tail(), session.resp3).error(&text),
        Answer::Nothing => {}
    }
    if let Some(how) = action.hangup.or(session.quits.then_some(Hangup::Fin)) {
        outbox.close_gate(Gate::End(how));
        *closing = true;
    }
}
