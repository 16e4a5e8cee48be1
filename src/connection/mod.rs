//! One connection: the machine between a pool slot's commands and one socket at a time.
//!
//! ```text
//!          connect()                 Resolved            Connected          set-up done
//!  Down ─────────────▶ Resolving ──────────▶ Connecting ─────────▶ SettingUp ─────────▶ Ready
//!   ▲                      │ failed, deadline   │ (next address)      │ refused, deadline   │ end of stream, reset,
//!   │      Closed          ▼                    ▼                     ▼                     ▼ protocol error
//!   └───────────────────────────────────── Closing ◀────────────────────────────────────────┘
//! ```
//! (`Pausing`, between two `Connecting`, is for a Unix listener whose backlog is full.)
//!
//! It does no I/O: completions go in by `handle_*`, [`Op`]s come out of [`poll_op`](Connection::poll_op), and
//! [`next_deadline`](Connection::next_deadline) says when [`handle_timeout`](Connection::handle_timeout) is due. A
//! socket that failed is always closed through the engine first, since only then is it known how many bytes the
//! kernel took (H26); its commands are told their fate after that. The queue ([`Pipeline`]) outlives the socket.

mod config;
mod event;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod inbound;
#[cfg(test)]
mod orders;
mod pipeline;
#[cfg(test)]
mod tests;

pub use config::{ConnectionConfig, Credentials, Endpoint, Protocol, Secret};
pub use event::{Event, Sink};
pub use pipeline::{Pipeline, Progress};

use crate::buf::{Block, BufferPool, Log, Payload, Returns, Segment, Spares, Transmit};
use crate::error::{ConnectionError, ConnectionFailure, Error, ProtocolError, Stage, TimeoutError};
use crate::id::{ConnectionId, TicketId};
use crate::io::{Address, Completion, Op};
use crate::resp::FrameKind;
use handshake::Handshake;
use inbound::Inbound;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

enum State {
    Down,
    Resolving,
    Connecting,
    /// The listener's backlog was full; there is no socket until the next try.
    Pausing {
        again: Instant,
    },
    SettingUp(Box<Handshake>),
    Ready,
    Closing {
        error: Option<Error>,
        was_ready: bool,
    },
}

/// A connection that was up for so long has not been lost at once.
const LASTED: Duration = Duration::from_secs(1);

/// A Unix socket whose listener's backlog is full refuses at once, where TCP would try again by itself; so it is tried
/// again after this long.
const PAUSE: Duration = Duration::from_millis(10);

/// A timeout that the clock cannot add is as good as none.
fn after(now: Instant, timeout: Option<Duration>) -> Option<Instant> {
    now.checked_add(timeout?)
}

/// See the module.
pub struct Connection {
    config: Rc<ConnectionConfig>,
    id: ConnectionId,
    state: State,
    pipeline: Pipeline,
    inbound: Inbound,
    /// Set-up frames: they go before everything in the pipeline.
    setup: Log,
    setup_sent: u64,
    /// Up to where they were given to the engine.
    setup_given: u64,
    setup_sending: bool,
    /// A send ended before its last byte: the socket has failed, and what would be sent now would follow a cut frame.
    cut: bool,
    /// Addresses that are still to be tried.
    addresses: VecDeque<SocketAddr>,
    /// When the one that is being tried must have answered, so that the others get their share of the time.
    address_deadline: Option<Instant>,
    /// A reply has come on this socket.
    served: bool,
    /// Since when commands may enter.
    up_at: Option<Instant>,
    /// The last established connection was lost at once and unused.
    lost_unused: bool,
    ops: VecDeque<Op>,
    events: VecDeque<Event>,
    /// When this attempt to connect began.
    began: Option<Instant>,
    /// When the reply to a set-up step must be there.
    setup_deadline: Option<Instant>,
    /// When bytes last arrived, or the first command of a silent spell went out.
    heard: Option<Instant>,
}

impl Connection {
    /// A connection that is down. Values that it was lent go to `returns`.
    pub fn new(index: u16, config: Rc<ConnectionConfig>, returns: Returns) -> Self {
        Self {
            id: ConnectionId { index, generation: 0 },
            state: State::Down,
            pipeline: Pipeline::new(config.write_buffer, returns),
            inbound: Inbound::new(config.limits),
            setup: Log::new(1024),
            setup_sent: 0,
            setup_given: 0,
            setup_sending: false,
            cut: false,
            addresses: VecDeque::new(),
            address_deadline: None,
            served: false,
            up_at: None,
            lost_unused: false,
            ops: VecDeque::new(),
            events: VecDeque::new(),
            began: None,
            setup_deadline: None,
            heard: None,
            config,
        }
    }

    /// The socket of now.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// True when commands may enter.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// True when there is no socket and no attempt to get one.
    pub fn is_down(&self) -> bool {
        matches!(self.state, State::Down)
    }

    /// True when one more command fits, besides `reserved` others. (How many bytes those will bring is a guess: without
    /// one, every byte that becomes free would call all who wait, for one of them to get it.)
    #[inline]
    pub fn has_room(&self, reserved: usize) -> bool {
        self.is_ready()
            && self.pipeline.in_flight() + reserved
                < self.config.inflight_max + usize::from(planted!(OneTooMany))
            && (self.pipeline.bytes_with(reserved) < self.config.queued_bytes_max
                || planted!(ByteLimitIgnored))
    }

    /// Commands queued or awaiting their reply.
    pub fn in_flight(&self) -> usize {
        self.pipeline.in_flight()
    }

    /// Bytes of those commands.
    #[doc(hidden)]
    pub fn queued_bytes(&self) -> u64 {
        self.pipeline.bytes()
    }

    /// The endpoint, for errors.
    pub fn endpoint(&self) -> String {
        self.config.endpoint.to_string()
    }

    // --- the application speaks

    /// Begins to connect, when the connection is down.
    pub fn connect(&mut self, now: Instant) {
        if !self.is_down() {
            return;
        }
        self.id.generation = self.id.generation.wrapping_add(1);
        self.began = Some(now);
        self.addresses.clear();
        self.dial_endpoint();
    }

    fn dial_endpoint(&mut self) {
        match &self.config.endpoint {
            Endpoint::Unix(path) => {
                let address = Address::Unix(path.as_path().into());
                self.dial(address);
            }
            Endpoint::Tcp { host, port } => match host.parse::<IpAddr>() {
                Ok(ip) => self.dial(Address::Tcp(SocketAddr::new(ip, *port))),
                Err(_) => {
                    self.ops.push_back(Op::Resolve { id: self.id, host: host.clone(), port: *port });
                    self.state = State::Resolving;
                }
            },
        }
    }

    fn dial(&mut self, address: Address) {
        self.ops.push_back(Op::Connect { id: self.id, address, options: self.config.socket });
        self.state = State::Connecting;
    }

    /// Queues one frame; the connection must have room. Tells its number, for `cancel` and `progress`.
    #[inline]
    pub fn submit(&mut self, ticket: TicketId, encode: impl FnOnce(&mut Log)) -> u64 {
        debug_assert!(self.is_ready());
        self.pipeline.push(ticket, encode)
    }

    /// The caller of a command is gone.
    pub fn cancel(&mut self, number: u64) {
        self.pipeline.cancel(number);
    }

    /// How far a command has come.
    pub fn progress(&self, number: u64) -> Progress {
        self.pipeline.progress(number)
    }

    /// Ends the connection for good; what it had is told `error` when the socket is closed.
    pub fn close(&mut self, error: Error) {
        match &mut self.state {
            State::Down => self.events.push_back(Event::Closed),
            State::Closing { error: reason, .. } => *reason = Some(error),
            _ => self.fail(error),
        }
    }

    // --- the network speaks

    /// Takes what happened to the socket. News of an earlier socket is ignored.
    pub fn handle(
        &mut self,
        now: Instant,
        completion: Completion,
        pool: Option<&BufferPool>,
        spares: &Spares,
        sink: &mut impl Sink,
    ) {
        if completion.id() != self.id && !planted!(StaleNewsHeard) {
            return;
        }
        match completion {
            // What arrives while the socket is being closed is of no use: its commands get their fate from the close.
            Completion::Received { .. } if matches!(self.state, State::Closing { .. } | State::Down) => {}
            Completion::Received { segment, .. } => self.handle_received(now, segment, pool, spares, sink),
            Completion::Filled { .. } if matches!(self.state, State::Closing { .. } | State::Down) => {}
            Completion::Filled { block, .. } => self.handle_filled(now, block, pool, spares, sink),
            Completion::Sent { bytes, .. } => self.handle_sent(bytes),
            Completion::Connected { .. } => self.handle_connected(now),
            Completion::Resolved { addresses, .. } => {
                if matches!(self.state, State::Resolving) {
                    self.addresses = addresses.into();
                    self.dial_next(now);
                }
            }
            Completion::Failed { failure, .. } => self.handle_failed(failure),
            Completion::Closed { .. } => self.handle_closed(now, sink),
        }
    }

    #[inline(never)]
    fn dial_next(&mut self, now: Instant) {
        let rest = self.connect_deadline().map(|deadline| deadline.saturating_duration_since(now));
        let tries = self.addresses.len() as u32;
        self.address_deadline = rest.filter(|_| tries > 1).and_then(|rest| now.checked_add(rest / tries));
        match self.addresses.pop_front() {
            Some(address) => self.dial(Address::Tcp(address)),
            None => self.down(Error::Connection(Box::new(ConnectionError::new(
                self.endpoint(),
                ConnectionFailure::Resolve("no address".into()),
            )))),
        }
    }

    #[inline(never)]
    fn handle_connected(&mut self, now: Instant) {
        if !matches!(self.state, State::Connecting) {
            return;
        }
        if !planted!(OldBytesKept) {
            self.inbound.reset();
        }
        self.served = false;
        self.cut = false;
        self.setup = Log::new(1024);
        (self.setup_sent, self.setup_given) = (0, 0);
        let handshake = Handshake::begin(&self.config, &mut self.setup);
        self.inbound.set_resp3(handshake.resp3());
        self.setup_deadline = after(now, self.config.command_timeout);
        if handshake.is_done() {
            self.up(now, handshake.resp3());
        } else {
            self.state = State::SettingUp(Box::new(handshake));
        }
    }

    fn up(&mut self, now: Instant, resp3: bool) {
        self.inbound.set_resp3(resp3);
        self.state = State::Ready;
        self.began = None;
        self.setup_deadline = None;
        self.heard = Some(now);
        self.up_at = Some(now);
        self.events.push_back(Event::Up);
    }

    fn handle_sent(&mut self, mut bytes: usize) {
        if planted!(LateCountIgnored) && matches!(self.state, State::Closing { .. }) {
            bytes = 0;
        }
        if self.setup_sending {
            self.setup_sending = false;
            self.setup_sent += bytes as u64;
            self.setup.release(self.setup_sent);
            self.cut |= self.setup_sent < self.setup_given;
        } else if !self.pipeline.handle_sent(bytes) {
            self.cut = true;
        }
    }

    #[inline(never)]
    fn handle_failed(&mut self, failure: ConnectionFailure) {
        let error = Error::Connection(Box::new(ConnectionError::new(self.endpoint(), failure)));
        match self.state {
            // Nothing was opened: the driver serves `Resolve` itself.
            State::Resolving => self.down(error),
            State::Down | State::Closing { .. } => {}
            _ => self.fail(error),
        }
    }

    /// Takes the short replies at the front of `rest` for callers that wait for them.
    #[inline(never)]
    fn take_replies(&mut self, rest: &mut &[u8], spares: &Spares, sink: &mut impl Sink) {
        let mut left = *rest;
        let taken = self.pipeline.take_awaited(|ticket| {
            let Some((bytes, glance)) = self.inbound.peek_short(left) else { return false };
            left = &left[bytes.len()..];
            sink.reply(ticket, || spares.copy_of(bytes, glance));
            true
        });
        self.served |= taken > 0;
        *rest = left;
    }

    fn handle_received(
        &mut self,
        now: Instant,
        segment: Segment,
        pool: Option<&BufferPool>,
        spares: &Spares,
        sink: &mut impl Sink,
    ) {
        self.heard = Some(now);
        let mut rest = &segment[..];
        loop {
            if self.is_ready() {
                self.take_replies(&mut rest, spares, sink);
            }
            let frame = match self.inbound.next(&segment, &mut rest, pool) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => break self.fail_protocol(error),
            };
            let take = |inbound: &mut Inbound| inbound.take(frame, (&segment, rest), pool, spares);
            if !self.handle_frame(now, frame.kind, take, sink) {
                break;
            }
        }
        self.pipeline.release();
    }

    /// A block comes back: the string may be whole, and with it a frame.
    #[inline(never)]
    fn handle_filled(
        &mut self,
        now: Instant,
        block: Block,
        pool: Option<&BufferPool>,
        spares: &Spares,
        sink: &mut impl Sink,
    ) {
        self.heard = Some(now);
        match self.inbound.fill(block) {
            Ok(Some(frame)) => {
                self.handle_frame(now, frame.kind, |inbound| inbound.take_filled(pool, spares), sink);
            }
            Ok(None) => {}
            Err(error) => self.fail_protocol(error),
        }
        self.pipeline.release();
    }

    /// A whole frame, which is to be taken out. False when nothing that follows is of use.
    #[inline]
    fn handle_frame(
        &mut self,
        now: Instant,
        kind: FrameKind,
        take: impl FnOnce(&mut Inbound) -> Payload,
        sink: &mut impl Sink,
    ) -> bool {
        if kind == FrameKind::Push && !planted!(PushIsReply) {
            sink.push(take(&mut self.inbound));
        } else if let State::Ready = self.state {
            match self.pipeline.pop() {
                Some(Some(ticket)) => {
                    self.served = true;
                    let payload = take(&mut self.inbound);
                    sink.reply(ticket, || payload);
                }
                Some(None) => {
                    self.served = true;
                    self.inbound.drop_frame();
                    sink.reply_dropped();
                }
                None => {
                    let payload = take(&mut self.inbound);
                    self.fail_unasked(&payload);
                    return false;
                }
            }
        } else if let State::SettingUp(_) = self.state {
            let payload = take(&mut self.inbound);
            self.handle_setup_reply(now, &payload);
            // Refused, it has its error; what follows must not make another one of it.
            return !matches!(self.state, State::Closing { .. });
        } else {
            return false;
        }
        true
    }

    /// A reply that no command asked for. Servers say an error and close when they have no room for a client.
    #[inline(never)]
    fn fail_unasked(&mut self, payload: &Payload) {
        let text = match crate::resp::Decoder::from(payload).token() {
            Ok(crate::resp::Token::Error(text)) => {
                let error = crate::error::ServerError::parse(&String::from_utf8_lossy(&text), None);
                format!("the server said, unasked: {error}")
            }
            _ => "a reply that no command asked for".to_owned(),
        };
        self.fail_protocol(ProtocolError::new(text));
    }

    #[cold]
    fn fail_protocol(&mut self, mut error: ProtocolError) {
        error.endpoint = Some(self.endpoint().into());
        if let State::SettingUp(_) = self.state {
            error.message = format!("{} (is it a Redis or Valkey server?)", error.message).into();
        }
        self.fail(Error::Protocol(Box::new(error)));
    }

    #[inline(never)]
    fn handle_setup_reply(&mut self, now: Instant, payload: &Payload) {
        let State::SettingUp(handshake) = &mut self.state else { return };
        match handshake.handle_reply(now, payload, &self.config, &mut self.setup) {
            Err(error) => self.fail(error),
            Ok(progress) => {
                let resp3 = handshake.resp3();
                self.inbound.set_resp3(resp3);
                self.setup_deadline = match self.config.command_timeout {
                    timeout if handshake.is_waiting_for_reply() => after(now, timeout),
                    _ => None,
                };
                if progress == handshake::Progress::Done || planted!(CommandInSetUp) {
                    self.up(now, resp3);
                }
            }
        }
    }

    /// The socket is of no use; the engine is asked to close it.
    #[inline(never)]
    fn fail(&mut self, error: Error) {
        let was_ready = self.is_ready();
        self.ops.retain(|op| !matches!(op, Op::Send { .. }));
        let has_no_socket = matches!(self.state, State::Resolving | State::Pausing { .. });
        self.state = State::Closing { error: Some(error), was_ready };
        self.setup_deadline = None;
        if has_no_socket {
            // The driver owns the look-up; its answer is recognised as late by its generation.
            self.ops.clear();
            let State::Closing { error: Some(error), .. } = std::mem::replace(&mut self.state, State::Down)
            else {
                return;
            };
            self.down(error);
        } else if !planted!(CloseForgotten) {
            self.ops.push_back(Op::Close { id: self.id });
        }
    }

    #[inline(never)]
    fn handle_closed(&mut self, now: Instant, sink: &mut impl Sink) {
        let State::Closing { error, was_ready } = std::mem::replace(&mut self.state, State::Down) else {
            return;
        };
        self.setup_sending = false;
        if !planted!(OldBytesKept) {
            self.inbound.reset();
        }
        self.heard = None;
        let error = error.unwrap_or(Error::Closed(crate::Delivery::NotExecuted));
        let next_may_do = matches!(error, Error::Connection(_) | Error::Timeout(_) | Error::Protocol(_));
        if !was_ready && next_may_do && !self.addresses.is_empty() {
            // This address is of no use; the next may be. The deadline goes on.
            self.id.generation = self.id.generation.wrapping_add(1);
            self.state = State::Connecting;
            return self.dial_next(now);
        }
        if !was_ready && self.is_backlog_full(&error) {
            self.state = State::Pausing { again: now.checked_add(PAUSE).unwrap_or(now) };
            return;
        }
        // RECON-011: a replacement starts at once. But a server that takes connections and drops them unused must not
        // be dialled without end: the second such loss in a row counts as an attempt that failed.
        let lasted = self.up_at.take().is_some_and(|at| now.duration_since(at) >= LASTED);
        let was_used = self.served || self.pipeline.in_flight() > 0 || lasted;
        // Bytes that are no reply are the fault of the command whose reply was next; the others lost their connection.
        let others = match &error {
            Error::Protocol(fault) => Some(ConnectionFailure::Protocol(fault.message.as_ref().into())),
            _ => None,
        };
        let others =
            others.map(|failure| Error::Connection(Box::new(ConnectionError::new(self.endpoint(), failure))));
        self.pipeline.handle_closed(|ticket, delivery, is_next| {
            sink.ended(ticket, delivery, others.as_ref().filter(|_| !is_next).unwrap_or(&error));
        });
        let replace_at_once = was_used || !std::mem::replace(&mut self.lost_unused, true);
        if was_used {
            self.lost_unused = false;
        }
        if was_ready && replace_at_once && !matches!(error, Error::Closed(_)) {
            self.events.push_back(Event::Lost(error));
        } else {
            self.down(error);
        }
    }

    fn is_backlog_full(&self, error: &Error) -> bool {
        let Error::Connection(error) = error else { return false };
        matches!(self.config.endpoint, Endpoint::Unix(_))
            && matches!(error.failure, ConnectionFailure::Io { kind: std::io::ErrorKind::WouldBlock, .. })
    }

    fn down(&mut self, error: Error) {
        self.state = State::Down;
        self.began = None;
        self.setup_deadline = None;
        self.events.push_back(match error {
            Error::Closed(_) => Event::Closed,
            error => Event::Failed(error),
        });
    }

    /// No connection will carry what is queued: everything ends, not executed.
    pub fn give_up(&mut self, error: &Error, sink: &mut impl Sink) {
        self.pipeline.clear(|ticket| sink.ended(ticket, crate::Delivery::NotExecuted, error));
    }

    // --- time

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        let connect = self.connect_deadline();
        let again = match &self.state {
            State::SettingUp(handshake) => handshake.again_at(),
            State::Pausing { again } => Some(*again),
            _ => None,
        };
        let address = self.address_deadline.filter(|_| matches!(self.state, State::Connecting));
        [connect, address, self.setup_deadline(), again, self.stall_deadline()].into_iter().flatten().min()
    }

    fn setup_deadline(&self) -> Option<Instant> {
        self.setup_deadline.filter(|_| !planted!(SetUpForEver))
    }

    /// Bounds connecting, and waiting for a server that loads; replies of set-up have their own (CONN-048).
    fn connect_deadline(&self) -> Option<Instant> {
        let began = self.began?;
        let applies = match &self.state {
            State::Resolving | State::Connecting | State::Pausing { .. } => true,
            State::SettingUp(handshake) => {
                handshake.loading().is_some() || self.config.command_timeout.is_none()
            }
            _ => false,
        };
        (applies && !planted!(ConnectForEver)).then(|| began.checked_add(self.config.connect_timeout))?
    }

    fn stall_deadline(&self) -> Option<Instant> {
        let timeout = self.config.idle_read_timeout?;
        (self.is_ready() && self.pipeline.owes_reply() && !planted!(SilenceForEver))
            .then(|| self.heard.and_then(|heard| heard.checked_add(timeout)))?
    }

    /// Acts on deadlines that have passed; early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.connect_deadline()) {
            let error = self.connect_timed_out();
            // The deadline is for all addresses together.
            self.addresses.clear();
            return self.fail(error);
        }
        if matches!(self.state, State::Connecting) && due(self.address_deadline) {
            let error = self.connect_timed_out();
            return self.fail(error);
        }
        if due(self.setup_deadline()) {
            let error = self.setup_timed_out();
            return self.fail(error);
        }
        if due(self.stall_deadline()) {
            let failure = ConnectionFailure::Stalled(self.config.idle_read_timeout.unwrap_or_default());
            return self.fail(Error::Connection(Box::new(ConnectionError::new(self.endpoint(), failure))));
        }
        if let State::Pausing { again } = self.state
            && again <= now
        {
            self.id.generation = self.id.generation.wrapping_add(1);
            return self.dial_endpoint();
        }
        if let State::SettingUp(handshake) = &mut self.state {
            handshake.handle_timeout(now, &self.config, &mut self.setup);
            if handshake.is_waiting_for_reply() && self.setup_deadline.is_none() {
                self.setup_deadline = after(now, self.config.command_timeout);
            }
        }
    }

    fn connect_timed_out(&self) -> Error {
        if let State::SettingUp(handshake) = &self.state
            && let Some(loading) = handshake.loading()
        {
            return Error::Server(Box::new(loading.clone()));
        }
        self.timeout("CONNECT", self.config.connect_timeout, Stage::Connecting)
    }

    fn setup_timed_out(&self) -> Error {
        let command = match &self.state {
            State::SettingUp(handshake) => handshake.awaited(),
            _ => "CONNECT",
        };
        self.timeout(command, self.config.command_timeout.unwrap_or_default(), Stage::AwaitingReply)
    }

    fn timeout(&self, command: &'static str, budget: Duration, stage: Stage) -> Error {
        Error::Timeout(Box::new(TimeoutError {
            command: Some(command.into()),
            budget,
            stage,
            endpoint: Some(self.endpoint().into()),
            delivery: crate::Delivery::NotExecuted,
        }))
    }

    // --- what to do now

    /// The next operation for the engine. Call until `None` after any batch of the calls above.
    #[must_use]
    pub fn poll_op(&mut self, now: Instant) -> Option<Op> {
        if let Some(op) = self.ops.pop_front() {
            return Some(op);
        }
        match self.state {
            State::SettingUp(_) | State::Ready => {}
            _ => return None,
        }
        if let Some(block) = self.inbound.take_block() {
            return Some(Op::Fill { id: self.id, block });
        }
        if self.setup_sending || self.pipeline.is_sending() || self.cut {
            return None;
        }
        if self.setup_sent < self.setup.end() {
            let mut data = Transmit::new();
            self.setup.slices(self.setup_sent, self.setup.end(), &mut data);
            self.setup_sending = true;
            self.setup_given = self.setup.end();
            return Some(Op::Send { id: self.id, data });
        }
        if !self.is_ready() || !self.pipeline.has_transmit() {
            return None;
        }
        if !self.pipeline.owes_reply() {
            self.heard = Some(now);
        }
        Some(Op::Send { id: self.id, data: self.pipeline.transmit() })
    }

    /// The next change of state. Call until `None`.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
