//! The client of one deployment and one thread, without I/O.
//!
//! It owns a fixed pool of [`Connection`]s and the tickets of its callers. A call is admitted to a connection that has
//! room, or waits in line, unencoded, until one has (or until its deadline). What a dead connection had accepted ends
//! with an error that says so; what no kernel had seen goes out on the replacement.
//!
//! The owner: after any batch of calls, drain [`poll_op`](ClientMachine::poll_op), wake
//! [`take_wakers`](ClientMachine::take_wakers) when nothing is borrowed, and call
//! [`handle_timeout`](ClientMachine::handle_timeout) at [`next_deadline`](ClientMachine::next_deadline).

use super::options::ConnectOptions;
use super::pushes::{PushListener, Pushes};
use super::roster::Roster;
use super::tickets::{Place, Tickets};
use crate::buf::{BufferPool, Log, Payload, Returns, Spares};
use crate::connection::{Connection, Event, Progress, Sink};
use crate::error::{Delivery, Error, Stage, TimeoutError};
use crate::id::TicketId;
use crate::io::{Completion, Op};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// A pool that serves with some of its connections tries the others again after this long, while there is traffic.
const HEAL_AFTER: Duration = Duration::from_secs(1);

/// Connections that are made at a time, of one client. A listener holds so many that it has not accepted, in small
/// backlogs; of more at once it drops some, and each of those costs a second or more (H40).
const DIALS_MAX: usize = 128;

/// Of more connections with room than this, the call goes to the best of these: looking at thousands costs more than an
/// even load is worth.
const COMPARED_MAX: usize = 16;

/// What came of a call.
pub type Reply = Result<Payload, Error>;

/// What became of a call that was submitted or asked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Its frame is queued on a connection.
    Entered,
    /// It waits in line.
    Waiting,
}

/// What a connection carries.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    pub is_ready: bool,
    pub in_flight: usize,
    pub bytes: u64,
    pub has_room: bool,
}

/// See the module.
pub struct ClientMachine {
    connections: Vec<Connection>,
    roster: Roster,
    /// Places promised to calls that were granted and not polled yet, per connection.
    reserved: Vec<usize>,
    tickets: Tickets,
    /// Calls in line and their turns, oldest first. Entries whose ticket is gone are skipped.
    waiting: VecDeque<(u64, TicketId)>,
    /// Calls that have stood in line.
    turns: u64,
    /// How many of them still wait.
    in_line: usize,
    /// Calls whose turn has come since their wakers were last handed out, and those to whom they were handed.
    granted: Vec<TicketId>,
    called: Vec<TicketId>,
    pushes: Pushes,
    spares: Spares,
    returns: Returns,
    pool: Option<BufferPool>,
    wakers: Vec<Waker>,
    default_timeout: Duration,
    allow_admin: bool,
    state: State,
    /// For those who wait until every connection is up.
    attempts: Attempts,
    /// Where the search for a connection begins; spreads equal loads.
    rotation: usize,
    /// Whatever is down is to be dialled.
    demand: bool,
    /// How many places are still to be looked at for that, from `dial_at` on, as there is room among the dials.
    to_dial: usize,
    dial_at: usize,
    dials_max: usize,
    replies_dropped: u64,
    /// Some connections are down while others serve: when they are to be tried again, given traffic.
    heal_at: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Closing,
    Closed,
}

#[derive(Default)]
struct Attempts {
    /// How many have failed; one who waits compares with the number at its start.
    failed: u64,
    /// What the last one met.
    error: Option<Error>,
    /// Woken at every change; never dropped here, since dropping one may run user code (H15).
    wakers: Vec<Waker>,
}

/// Where connections put what they find; borrows the rest of the machine.
struct Receiver<'a> {
    tickets: &'a mut Tickets,
    wakers: &'a mut Vec<Waker>,
    pushes: &'a mut Pushes,
    replies_dropped: &'a mut u64,
}

impl Sink for Receiver<'_> {
    #[inline(always)]
    fn reply(&mut self, ticket: TicketId, payload: impl FnOnce() -> Payload) {
        self.tickets.reply(ticket, payload, self.wakers);
    }

    fn reply_dropped(&mut self) {
        *self.replies_dropped += 1;
    }

    fn push(&mut self, payload: Payload) {
        self.pushes.deliver(payload, self.wakers);
    }

    fn ended(&mut self, ticket: TicketId, delivery: Delivery, error: &Error) {
        let error = error.clone().with_delivery(delivery);
        self.tickets.fail(ticket, error, self.wakers);
    }
}

macro_rules! receiver {
    ($machine:ident) => {
        Receiver {
            tickets: &mut $machine.tickets,
            wakers: &mut $machine.wakers,
            pushes: &mut $machine.pushes,
            replies_dropped: &mut $machine.replies_dropped,
        }
    };
}

impl ClientMachine {
    /// A machine for validated options; nothing is connected yet. `pool` is what the received segments come from, if
    /// they come from one.
    pub fn new(options: &ConnectOptions, pool: Option<BufferPool>) -> Result<Self, Error> {
        options.validate()?;
        let config = Rc::new(options.connection_config());
        let returns = Returns::default();
        let count = options.pool_size();
        Ok(Self {
            connections: (0..count)
                .map(|index| Connection::new(index, config.clone(), returns.clone()))
                .collect(),
            roster: Roster::new(count.into()),
            returns,
            reserved: vec![0; count.into()],
            tickets: Tickets::new(),
            waiting: VecDeque::new(),
            turns: 0,
            in_line: 0,
            granted: Vec::new(),
            called: Vec::new(),
            pushes: Pushes::default(),
            spares: Spares::default(),
            pool,
            wakers: Vec::new(),
            default_timeout: options.timeout().unwrap_or(Duration::MAX),
            allow_admin: options.is_admin_allowed(),
            state: State::Open,
            attempts: Attempts::default(),
            rotation: 0,
            demand: false,
            to_dial: 0,
            dial_at: 0,
            dials_max: DIALS_MAX,
            replies_dropped: 0,
            heal_at: None,
        })
    }

    /// Makes so many connections at a time, instead of 128: for simulations, which have few.
    #[doc(hidden)]
    pub fn set_dials_max(&mut self, count: usize) {
        self.dials_max = count.max(1);
    }

    // --- the application speaks

    /// Whether commands that need `allow_admin` may pass.
    pub fn allow_admin(&self) -> bool {
        self.allow_admin
    }

    /// The timeout of calls that name none; [`Duration::MAX`] is none.
    pub fn default_timeout(&self) -> Duration {
        self.default_timeout
    }

    /// Asks for all connections that are down, as a first command or an eager connect does. Gives what
    /// [`poll_connected`](Self::poll_connected) wants to know.
    pub fn connect(&mut self) -> u64 {
        self.demand = true;
        self.attempts.failed
    }

    /// Whether every connection is up, or an attempt has failed since the [`connect`](Self::connect) that gave `since`.
    pub fn poll_connected(&mut self, since: u64, waker: &Waker) -> Poll<Result<(), Error>> {
        if self.state != State::Open {
            return Poll::Ready(Err(Error::Closed(Delivery::NotExecuted)));
        }
        if self.roster.all_up() || planted!(EagerTooEarly) && self.roster.any_up() {
            return Poll::Ready(Ok(()));
        }
        if self.attempts.failed > since
            && let Some(error) = &self.attempts.error
        {
            return Poll::Ready(Err(error.clone()));
        }
        if !self.attempts.wakers.iter().any(|known| known.will_wake(waker)) {
            self.attempts.wakers.push(waker.clone());
        }
        Poll::Pending
    }

    /// True when a command could go out now.
    pub fn is_connected(&self) -> bool {
        self.state == State::Open && self.roster.any_up()
    }

    /// A new listener for push messages.
    pub fn listen(&mut self, capacity: usize) -> PushListener {
        self.pushes.listen(capacity)
    }

    /// Push messages that have arrived.
    pub fn pushes_seen(&self) -> u64 {
        self.pushes.seen()
    }

    /// Replies that arrived after their callers had left.
    pub fn replies_dropped(&self) -> u64 {
        self.replies_dropped
    }

    /// Begins a call: its frame is written by `encode`, now or, if it has to wait, when [`admit`](Self::admit) finds
    /// room. A timeout of [`Duration::MAX`] is none. `waker` is called when the call's state changes. `None`: the client is
    /// closed.
    #[inline]
    pub fn submit(
        &mut self,
        timeout: Duration,
        waker: &Waker,
        encode: impl FnOnce(&mut Log),
    ) -> Option<(TicketId, Admission)> {
        if self.state != State::Open {
            return None;
        }
        let ticket = self.tickets.next();
        // Cloning and encoding run user code, and come before anything that a panic would leave behind.
        let waker = waker.clone();
        if self.in_line == 0
            && let Some(index) = self.choose()
        {
            self.roster.touch(index);
            let number = self.connections[index].submit(ticket, encode);
            self.tickets.add_entered(ticket, index as u16, number, timeout, waker);
            return Some((ticket, Admission::Entered));
        }
        self.tickets.add_waiting(timeout, waker);
        self.demand = true;
        self.turns += 1;
        self.waiting.push_back((self.turns, ticket));
        self.in_line += 1;
        Some((ticket, Admission::Waiting))
    }

    /// Lets a waiting call enter when its turn has come.
    pub fn admit(&mut self, ticket: TicketId, encode: impl FnOnce(&mut Log)) -> Admission {
        let (granted, turn) = match self.tickets.place(ticket) {
            Some(Place::Granted { connection, turn }) => (Some(usize::from(*connection)), *turn),
            Some(Place::Passed { turn }) => (None, *turn),
            _ => return Admission::Waiting,
        };
        if let Some(index) = granted {
            self.reserved[index] -= 1;
            if let Some(place) = self.tickets.place(ticket) {
                *place = Place::Passed { turn };
            }
        }
        let same = granted.filter(|index| self.connections[*index].has_room(self.reserved[*index]));
        match same.or_else(|| self.choose()) {
            Some(index) => {
                self.enter(ticket, index, encode);
                // It may have brought fewer bytes than were reserved for it.
                self.grant();
                Admission::Entered
            }
            None => {
                // The room is gone in between: back to where it stood, since others may have come back before it.
                if let Some(place) = self.tickets.place(ticket) {
                    *place = Place::Waiting;
                }
                let at = self.waiting.partition_point(|(other, _)| *other < turn || planted!(LineDisordered));
                self.waiting.insert(at, (turn, ticket));
                self.in_line += 1;
                self.demand = true;
                Admission::Waiting
            }
        }
    }

    /// Gives the places of calls that were called and not polled since to those behind them: a future that nobody polls
    /// must not hold up the others. The owner calls it when those whom it woke have had time to run.
    pub fn pass_absent(&mut self) {
        if self.called.is_empty() {
            return;
        }
        let mut called = std::mem::take(&mut self.called);
        for ticket in called.drain(..) {
            if let Some(place) = self.tickets.place(ticket)
                && let Place::Granted { connection, turn } = *place
            {
                *place = Place::Passed { turn };
                self.reserved[usize::from(connection)] -= usize::from(!planted!(PlaceKept));
            }
        }
        self.called = called;
        self.grant();
    }

    #[inline]
    fn enter(&mut self, ticket: TicketId, index: usize, encode: impl FnOnce(&mut Log)) {
        self.roster.touch(index);
        let number = self.connections[index].submit(ticket, encode);
        if let Some(place) = self.tickets.place(ticket) {
            *place = Place::Entered { connection: index as u16, number };
        }
    }

    /// The connection with room that has the least in flight, of those that it looks at.
    #[inline(always)]
    fn choose(&mut self) -> Option<usize> {
        match &self.connections[..] {
            [only] => only.has_room(self.reserved[0]).then_some(0),
            _ => self.choose_of_many(),
        }
    }

    fn choose_of_many(&mut self) -> Option<usize> {
        let count = self.connections.len();
        self.rotation = (self.rotation + 1) % count;
        let mut best = None;
        let mut compared = 0;
        for index in (self.rotation..count).chain(0..self.rotation) {
            let connection = &self.connections[index];
            if !connection.has_room(self.reserved[index]) {
                continue;
            }
            let load = connection.in_flight();
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, index));
            }
            compared += 1;
            if load == 0 || compared == COMPARED_MAX {
                break;
            }
        }
        best.map(|(_, index)| index)
    }

    /// True when the call is over and [`take`](Self::take) will give its outcome.
    #[inline]
    pub fn is_over(&mut self, ticket: TicketId) -> bool {
        matches!(self.tickets.place(ticket), Some(Place::Done) | None)
    }

    /// True when the call may enter a connection: [`admit`](Self::admit) it.
    pub fn is_granted(&mut self, ticket: TicketId) -> bool {
        matches!(self.tickets.place(ticket), Some(Place::Granted { .. } | Place::Passed { .. }))
    }

    /// Whom to wake when the call's state changes. Gives back a waker to be dropped when nothing is borrowed.
    #[must_use]
    #[inline]
    pub fn set_waker(&mut self, ticket: TicketId, waker: &Waker) -> Option<Waker> {
        self.tickets.set_waker(ticket, waker)
    }

    /// The reply of a call that has one; its ticket is free again.
    #[inline(always)]
    pub fn take_reply(&mut self, ticket: TicketId) -> Option<Payload> {
        self.tickets.take_reply(ticket)
    }

    /// The error of a call that failed; its ticket is free again.
    pub fn take_error(&mut self, ticket: TicketId) -> Option<Error> {
        self.tickets.take_error(ticket)
    }

    /// The outcome of a call that is over; its ticket is free again.
    pub fn take(&mut self, ticket: TicketId) -> Option<Reply> {
        self.tickets.take(ticket)
    }

    /// The caller is gone. Unsent, its command is removed and never sent; sent, it keeps its place and the reply is
    /// dropped on arrival. The result is to be dropped when nothing is borrowed.
    #[must_use]
    pub fn cancel(&mut self, ticket: TicketId) -> Option<(Option<Reply>, Option<Waker>)> {
        let (place, outcome, waker) = self.tickets.remove(ticket)?;
        self.leave(place);
        Some((outcome, waker))
    }

    /// Gives up what a call held: its place in line, its reservation, its place in a pipeline.
    fn leave(&mut self, place: Place) {
        match place {
            Place::Waiting => {
                self.in_line -= 1;
                // The line keeps its dead entries only while they are few.
                if self.waiting.len() > 64 && self.waiting.len() > 2 * self.in_line {
                    let tickets = &mut self.tickets;
                    self.waiting.retain(|(_, id)| matches!(tickets.place(*id), Some(Place::Waiting)));
                }
            }
            Place::Granted { connection, .. } => {
                self.reserved[usize::from(connection)] -= 1;
                if !planted!(TurnLost) {
                    self.grant();
                }
            }
            Place::Entered { connection, number } => {
                self.roster.touch(connection.into());
                self.connections[usize::from(connection)].cancel(number);
                self.grant();
            }
            Place::Passed { .. } => self.grant(),
            Place::Done | Place::Free => {}
        }
    }

    /// Tells those first in line that there is room.
    #[inline(never)]
    fn grant(&mut self) {
        while self.in_line > 0 {
            let Some(index) = self.choose() else { return };
            let Some((turn, ticket)) = self.waiting.pop_front() else { return };
            let Some(place @ Place::Waiting) = self.tickets.place(ticket) else { continue };
            *place = Place::Granted { connection: index as u16, turn };
            self.in_line -= 1;
            self.reserved[index] += 1;
            self.granted.push(ticket);
            self.wakers.extend(self.tickets.take_waker(ticket));
        }
    }

    /// Ends everything: calls with [`Error::Closed`], connections when the engine has closed them. Idempotent.
    pub fn close(&mut self) {
        if self.state != State::Open {
            return;
        }
        self.state = State::Closing;
        for (index, connection) in self.connections.iter_mut().enumerate() {
            connection.close(Error::Closed(Delivery::NotExecuted));
            self.roster.touch(index);
            self.roster.settle(index, connection);
        }
        self.wakers.append(&mut self.attempts.wakers);
        self.handle_closed_events();
    }

    /// True when nothing is left to be done.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    // --- the network speaks

    /// Takes what happened to a connection.
    #[inline]
    pub fn handle(&mut self, now: Instant, completion: Completion) {
        let index = usize::from(completion.id().index);
        let Some(connection) = self.connections.get_mut(index) else { return };
        let mut receiver = receiver!(self);
        connection.handle(now, completion, self.pool.as_ref(), &self.spares, &mut receiver);
        self.roster.touch(index);
        self.roster.settle(index, connection);
        self.handle_events(now, index);
        // No other connection has got room.
        if self.in_line > 0 && self.connections[index].has_room(self.reserved[index]) {
            self.grant();
        }
    }

    #[inline]
    fn handle_events(&mut self, now: Instant, index: usize) {
        while let Some(event) = self.connections[index].poll_event() {
            self.handle_event(now, index, event);
        }
        if self.state == State::Closing && self.roster.all_down() {
            self.finish_close();
        }
    }

    /// Connections that were down are closed at once; no time is needed to be told so.
    fn handle_closed_events(&mut self) {
        for index in 0..self.connections.len() {
            while let Some(event) = self.connections[index].poll_event() {
                if event == Event::Closed {
                    let closed = Error::Closed(Delivery::NotExecuted);
                    self.connections[index].give_up(&closed, &mut receiver!(self));
                }
            }
        }
        if self.roster.all_down() {
            self.finish_close();
        }
    }

    #[inline(never)]
    fn handle_event(&mut self, now: Instant, index: usize, event: Event) {
        let connection = &mut self.connections[index];
        match event {
            Event::Up => {
                tracing::debug!(endpoint = connection.endpoint(), index, "connection is up");
                self.wakers.append(&mut self.attempts.wakers);
            }
            Event::Lost(error) => {
                tracing::info!(endpoint = connection.endpoint(), index, %error, "connection lost");
                // RECON-011: the replacement starts at once.
                self.demand = !planted!(NotReplaced);
            }
            Event::Failed(error) => {
                tracing::info!(endpoint = connection.endpoint(), index, %error, "connection attempt failed");
                connection.give_up(&error, &mut receiver!(self));
                self.heal_at = now.checked_add(HEAL_AFTER);
                if !self.roster.any_up() && self.to_dial > 0 {
                    // The server is gone, it seems: what has not been dialled is left to the next use, and what is queued
                    // there would wait for it in vain.
                    self.to_dial = 0;
                    let left = self.connections.iter_mut().filter(|it| it.is_down() && it.in_flight() > 0);
                    for connection in left {
                        connection.give_up(&error, &mut receiver!(self));
                    }
                }
                self.demand |= planted!(DialsForEver);
                self.attempts.failed += 1;
                self.attempts.error = Some(error.clone());
                self.wakers.append(&mut self.attempts.wakers);
                self.fail_waiting(&error);
            }
            Event::Closed => {
                connection.give_up(&Error::Closed(Delivery::NotExecuted), &mut receiver!(self));
            }
        }
    }

    /// Calls in line have nothing to wait for when no connection is up or on its way.
    fn fail_waiting(&mut self, error: &Error) {
        if self.demand || !self.roster.all_down() || planted!(LineForgotten) {
            return;
        }
        while let Some((_, ticket)) = self.waiting.pop_front() {
            if matches!(self.tickets.place(ticket), Some(Place::Waiting)) {
                let error = error.clone().with_delivery(Delivery::NotExecuted);
                self.tickets.fail(ticket, error, &mut self.wakers);
            }
        }
        self.in_line = 0;
    }

    #[inline(never)]
    fn finish_close(&mut self) {
        self.state = State::Closed;
        for ticket in self.tickets.pending() {
            if planted!(CallersForgotten) {
                break;
            }
            let Some(place) = self.tickets.place(ticket).copied() else { continue };
            // In line mostly; abandoned, it may be anywhere.
            let (_, delivery) = self.stage(place);
            self.tickets.fail(ticket, Error::Closed(delivery), &mut self.wakers);
        }
        self.waiting.clear();
        self.in_line = 0;
        self.reserved.fill(0);
        self.granted.clear();
        self.called.clear();
        self.pushes.close(&mut self.wakers);
    }

    // --- time

    /// Starts the clocks of the calls that began since the last turn. The owner calls it before it sleeps.
    #[inline]
    pub fn stamp(&mut self, now: Instant) {
        if self.tickets.has_unstamped() {
            self.tickets.stamp(now);
        }
    }

    /// True when calls have begun whose clock does not run yet.
    pub fn has_unstamped(&self) -> bool {
        self.tickets.has_unstamped()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        let connections =
            self.roster.maybe_timed().filter_map(|index| self.connections[index].next_deadline());
        connections.chain(self.tickets.next_deadline()).min()
    }

    /// Acts on deadlines that have passed. To be called when the input is dry: a late host must not fail calls whose
    /// replies have arrived (H18).
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |index: &usize| self.connections[*index].next_deadline().is_some_and(|at| at <= now);
        let due: Vec<usize> = self.roster.maybe_timed().filter(is_due).collect();
        for &index in &due {
            let connection = &mut self.connections[index];
            connection.handle_timeout(now);
            self.roster.touch(index);
            self.roster.settle(index, connection);
        }
        for (ticket, budget) in self.tickets.expired(now) {
            self.expire(ticket, budget);
        }
        for index in due {
            self.handle_events(now, index);
        }
    }

    fn expire(&mut self, ticket: TicketId, budget: Duration) {
        let Some(place) = self.tickets.place(ticket) else { return };
        let place = *place;
        let (stage, delivery) = self.stage(place);
        // All connections of a client go to the same place.
        let endpoint = self.connections.first().map(|connection| connection.endpoint().into());
        let error =
            Error::Timeout(Box::new(TimeoutError { command: None, budget, stage, endpoint, delivery }));
        self.tickets.fail(ticket, error, &mut self.wakers);
        self.leave(place);
    }

    /// How far a call has come, and what that says about it when nothing more is heard.
    fn stage(&self, place: Place) -> (Stage, Delivery) {
        let Place::Entered { connection, number } = place else {
            return (Stage::WaitingForCapacity, Delivery::NotExecuted);
        };
        // What the engine has may still reach the kernel; what a finished send left behind will not.
        match self.connections[usize::from(connection)].progress(number) {
            Progress::Queued => (Stage::Buffered, Delivery::NotExecuted),
            Progress::Submitted => (Stage::Writing, Delivery::MaybeExecuted),
            Progress::Cut => (Stage::Writing, Delivery::NotExecuted),
            Progress::Taken => (Stage::AwaitingReply, Delivery::MaybeExecuted),
        }
    }

    // --- what to do now

    /// The next operation for the engine. Call until `None`.
    #[must_use]
    pub fn poll_op(&mut self, now: Instant) -> Option<Op> {
        if self.heal_at.is_some_and(|at| at <= now) && self.is_connected() {
            self.heal_at = None;
            self.demand = true;
        }
        if self.demand && self.state == State::Open {
            self.demand = false;
            self.to_dial = self.connections.len();
        }
        if self.to_dial > 0 {
            self.dial(now);
        }
        while let Some(index) = self.roster.first_touched() {
            let connection = &mut self.connections[index];
            if let Some(op) = connection.poll_op(now) {
                return Some(op);
            }
            self.roster.drop_first_touched(connection.next_deadline().is_some());
        }
        self.roster.retain_timed(|index| self.connections[index].next_deadline().is_some());
        None
    }

    /// Dials what is down, in turn, as far as there is room; the rest when some are up or have failed.
    #[inline(never)]
    fn dial(&mut self, now: Instant) {
        if self.state != State::Open || !self.roster.any_down() {
            self.to_dial = 0;
        }
        while self.to_dial > 0 && (self.roster.between() < self.dials_max || planted!(ManyDials)) {
            let index = self.dial_at;
            self.dial_at = (index + 1) % self.connections.len();
            self.to_dial -= 1;
            let connection = &mut self.connections[index];
            if connection.is_down() {
                connection.connect(now);
                self.roster.touch(index);
                self.roster.settle(index, connection);
            }
        }
    }

    /// Moves the wakers of callers whose state has changed to `out`. Call them when nothing is borrowed.
    pub fn take_wakers(&mut self, out: &mut Vec<Waker>) {
        out.append(&mut self.wakers);
        self.called.append(&mut self.granted);
    }

    /// Where values come that callers had lent (large arguments that are `Bytes`). Take them and drop them when nothing is
    /// borrowed.
    pub fn returns(&self) -> &Returns {
        &self.returns
    }

    /// True when callers wait to be woken, or were called and may be absent: a turn has something to do.
    pub fn needs_turn(&self) -> bool {
        !self.wakers.is_empty() || !self.called.is_empty()
    }

    /// The engine is gone and will say nothing more: whatever is left ends now.
    pub fn abandon(&mut self) {
        self.close();
        self.finish_close();
    }

    /// True when calls have begun and are not over.
    pub fn has_calls(&self) -> bool {
        self.tickets.live() > 0
    }

    /// What a machine at rest does not have: tickets, calls in line, reservations.
    pub fn held(&self) -> (usize, usize, usize) {
        (self.tickets.live(), self.in_line, self.reserved.iter().sum())
    }

    /// What each connection carries, for tests that look for what is never given back.
    #[doc(hidden)]
    pub fn loads(&self) -> impl Iterator<Item = Load> {
        self.connections.iter().zip(&self.reserved).map(|(connection, reserved)| Load {
            is_ready: connection.is_ready(),
            in_flight: connection.in_flight(),
            bytes: connection.queued_bytes(),
            has_room: connection.has_room(*reserved),
        })
    }
}
