//! The network and the kernel: plays the engine's side of [`respiral::io`] over a virtual clock. It takes as much of a
//! send as it likes, cuts what arrives anywhere, and tells what happened in any order that the contract allows.

use crate::checkers::{Context, Place};
use crate::plan::{NetPlan, Plan};
use crate::rng::Rng;
use crate::servers::Servers;
use crate::socket::{Link, Socket, Stage};
use crate::trace::{describe, name};
use respiral::buf::{BufferPool, Segment};
use respiral::error::ConnectionFailure;
use respiral::io::{Address, Completion, ConnectionId, Op};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// What will happen to a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A name look-up ends.
    Resolve(ConnectionId),
    /// The peer answers, or does not.
    Connect(ConnectionId),
    /// The kernel takes bytes of the send.
    Take(ConnectionId),
    /// The kernel tells that the send is over.
    Sent(ConnectionId),
    /// Bytes reach the servers.
    Arrive(ConnectionId),
    /// Bytes reach the client.
    Deliver(ConnectionId),
    /// The close is done.
    Close(ConnectionId),
    /// Something is said about a socket that is gone.
    Stale(ConnectionId),
}

/// Faults that last until they are taken back.
#[derive(Default)]
pub struct Weather {
    pub refuses: bool,
    pub swallows_connects: bool,
    pub loses_names: bool,
    pub slow_names: bool,
}

pub struct Net {
    /// The thread whose kernel this is.
    owner: usize,
    pub plan: NetPlan,
    pub weather: Weather,
    rng: Rng,
    pool: BufferPool,
    pub sockets: BTreeMap<ConnectionId, Socket>,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    pub inbox: VecDeque<Completion>,
    /// Sockets with bytes and no buffer to put them in, first come first served (H19).
    starved: VecDeque<ConnectionId>,
    /// The newest socket of each connection.
    newest: BTreeMap<u16, u32>,
    pub connects: u64,
    /// Those that succeeded.
    pub opened: u64,
    pub closes: u64,
    pub look_ups: u64,
    /// The next piece that is delivered is as long as this says.
    pub cut: Option<usize>,
}

impl Net {
    /// A name has so many at most.
    pub const ADDRESSES_MAX: u64 = 3;

    pub fn new(owner: usize, plan: &Plan, rng: Rng, pool: BufferPool) -> Self {
        Self {
            owner,
            plan: plan.net.clone(),
            weather: Weather::default(),
            rng,
            pool,
            sockets: BTreeMap::new(),
            events: BTreeMap::new(),
            sequence: 0,
            inbox: VecDeque::new(),
            starved: VecDeque::new(),
            newest: BTreeMap::new(),
            connects: 0,
            opened: 0,
            closes: 0,
            look_ups: 0,
            cut: None,
        }
    }

    pub fn next_event(&self) -> Option<u64> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn schedule(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn soon(&mut self, now: u64, event: Event) {
        let delay = self.rng.range(0..=self.plan.delay_max);
        self.schedule(now + delay, event);
    }

    pub fn is_newest(&self, id: ConnectionId) -> bool {
        self.newest.get(&id.index) == Some(&id.generation)
    }

    /// The newest socket of a connection.
    pub fn newest(&self, index: u16) -> Option<Place> {
        let generation = *self.newest.get(&index)?;
        Some(self.place(ConnectionId { index, generation }))
    }

    fn place(&self, id: ConnectionId) -> Place {
        (self.owner, id)
    }

    /// What passes at once, and when more does.
    fn pace(&mut self, is_slow: bool) -> usize {
        let most = if is_slow { 8 } else { self.plan.piece_max };
        self.rng.range(1..=most as u64) as usize
    }

    fn next_piece(&mut self, now: u64, is_slow: bool, event: Event) {
        let wait = if is_slow { self.plan.delay_max } else { 0 };
        self.soon(now + wait, event);
    }

    fn tell(&mut self, context: &mut Context, completion: Completion) {
        context.trace.note(context.now, || format!("  kernel of {}: {}", self.owner, describe(&completion)));
        self.inbox.push_back(completion);
    }

    // --- what the core asks for

    pub fn submit(&mut self, op: Op, context: &mut Context) {
        let now = context.now;
        match op {
            Op::Resolve { id, host, .. } => {
                context
                    .trace
                    .note(now, || format!("core of {}: resolve {host} for {}", self.owner, name(id)));
                self.look_ups += 1;
                self.newest.insert(id.index, id.generation);
                let delay = if self.weather.slow_names { 400_000 } else { self.plan.delay_max };
                let at = now + self.rng.range(0..=delay);
                self.schedule(at, Event::Resolve(id));
            }
            Op::Connect { id, address, .. } => {
                context.trace.note(now, || format!("core of {}: connect {}", self.owner, name(id)));
                self.connects += 1;
                self.newest.insert(id.index, id.generation);
                context.ledger.new_socket(self.place(id));
                let before = self.sockets.insert(id, Socket::new(address_of(&address), now));
                assert!(before.is_none(), "{} is used twice", name(id));
                let forerunner = self
                    .sockets
                    .iter()
                    .find(|(other, socket)| other.index == id.index && **other != id && !socket.is_closed());
                assert!(forerunner.is_none(), "{} is opened before its forerunner is closed", name(id));
                self.soon(now, Event::Connect(id));
            }
            Op::Send { id, data } => {
                context.trace.note(now, || {
                    format!(
                        "core of {}: send {} bytes on {}",
                        self.owner,
                        data.iter().map(|s| s.len()).sum::<usize>(),
                        name(id)
                    )
                });
                let place = self.place(id);
                let socket = self.sockets.get_mut(&id).expect("a send on a socket that exists");
                socket.hand(place, data, context);
                self.soon(now, Event::Take(id));
            }
            Op::Fill { id, mut block } => {
                context.trace.note(now, || {
                    format!("core of {}: fill {} bytes on {}", self.owner, block.missing(), name(id))
                });
                assert!(block.missing() > 0, "a block with nothing missing");
                let received = |c: &Completion| c.id() == id && matches!(c, Completion::Received { .. });
                if let Some(at) = self.inbox.iter().position(received) {
                    // As an engine does with what a buffer had already, and it has not told.
                    let Some(Completion::Received { segment, .. }) = self.inbox.remove(at) else { return };
                    let count = block.copy(&segment);
                    self.inbox.insert(at, Completion::Filled { id, block });
                    if count < segment.len() {
                        let segment = segment.slice(count..segment.len());
                        self.inbox.insert(at + 1, Completion::Received { id, segment });
                    }
                    return;
                }
                let socket = self.sockets.get_mut(&id).expect("a block for a socket that exists");
                assert!(socket.block.is_none(), "{}: one block at a time", name(id));
                if socket.stage == Stage::Open && !socket.closing {
                    socket.block = Some(block);
                    self.starved.retain(|other| *other != id);
                    self.soon(now, Event::Deliver(id));
                }
            }
            Op::Close { id } => {
                context.trace.note(now, || format!("core of {}: close {}", self.owner, name(id)));
                let socket = self.sockets.get_mut(&id).expect("only sockets are closed");
                assert!(!std::mem::replace(&mut socket.closing, true), "{} is closed twice", name(id));
                self.closes += 1;
                let cut = socket.cut_call();
                let mut at = now + self.rng.range(0..=self.plan.close_lag_max);
                if let Some(deadline) = cut.and_then(|call| context.ledger.deadline(call))
                    && self.rng.coin()
                {
                    // Its deadline passes first.
                    at = at.max(deadline + 1).min(now + 3 * self.plan.unit());
                }
                self.schedule(at, Event::Close(id));
            }
        }
    }

    // --- what happens

    /// Everything that is due.
    pub fn run(&mut self, context: &mut Context, servers: &mut Servers) {
        self.feed_starved(context.now);
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > context.now {
                break;
            }
            let event = entry.remove();
            match event {
                Event::Resolve(id) => self.resolve(id, context, servers),
                Event::Connect(id) => self.connect(id, context, servers),
                Event::Take(id) => self.take(id, context, servers),
                Event::Sent(id) => self.end_send(id, context),
                Event::Arrive(id) => self.arrive(id, context, servers),
                Event::Deliver(id) => self.deliver(id, context, servers),
                Event::Close(id) => self.close(id, context, servers),
                Event::Stale(id) => self.say_stale(id, context),
            }
        }
    }

    /// Buffers that came back go to those who wait.
    pub fn feed_starved(&mut self, now: u64) {
        for _ in 0..self.pool.free().min(self.starved.len()) {
            let Some(id) = self.starved.pop_front() else { return };
            self.schedule(now, Event::Deliver(id));
        }
    }

    pub fn is_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    fn resolve(&mut self, id: ConnectionId, context: &mut Context, servers: &Servers) {
        if self.weather.loses_names {
            let failure = ConnectionFailure::Resolve("no such host".into());
            return self.tell(context, Completion::Failed { id, failure });
        }
        // Sometimes dead addresses stand before the live one.
        let dead = self.rng.pick(&[0, 0, 0, 1, Self::ADDRESSES_MAX - 1]);
        let hosts = (0..dead).map(|_| Servers::DEAD).chain([servers.primary()]);
        let addresses = hosts.map(|host| SocketAddr::from(([10, 0, 0, host], 6379))).collect();
        self.tell(context, Completion::Resolved { id, addresses });
    }

    fn connect(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.is_closed() || socket.stage != Stage::Connecting || self.weather.swallows_connects {
            return;
        }
        if !servers.is_up(socket.host) || self.weather.refuses {
            socket.stage = Stage::Failed;
            return self
                .tell(context, Completion::Failed { id, failure: ConnectionFailure::from_errno(111) });
        }
        socket.stage = Stage::Open;
        self.opened += 1;
        socket.session = Some(servers.open(self.owner, socket.host));
        self.tell(context, Completion::Connected { id });
    }

    fn take(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let place = self.place(id);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if let Some(count) = socket.spring(&mut self.rng) {
            // What is taken may still arrive before the connection breaks, or not.
            socket.take(place, count, usize::MAX, context);
            if self.rng.coin() {
                return self.end_stream(id, context, servers);
            }
            return self.reset(id, context, servers);
        }
        let most = self.rng.range(1..=self.plan.take_max as u64) as usize;
        let Some(left) = socket.take(place, most, self.plan.send_buffer, context) else { return };
        if left == 0 {
            let at = context.now + self.rng.range(0..=self.plan.sent_lag_max);
            self.schedule(at, Event::Sent(id));
        } else if socket.send_buffer_has_room(self.plan.send_buffer) {
            self.soon(context.now, Event::Take(id));
        }
        self.soon(context.now, Event::Arrive(id));
    }

    fn end_send(&mut self, id: ConnectionId, context: &mut Context) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if let Some(bytes) = socket.end_send(context) {
            self.tell(context, Completion::Sent { id, bytes });
        }
    }

    fn arrive(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let Some(session) = socket.session else { return };
        if socket.to_server.is_empty() || socket.up == Link::Lost {
            return;
        }
        if let Link::Stalled(until) = socket.up {
            if until > context.now {
                return self.schedule(until, Event::Arrive(id));
            }
            socket.up = Link::Good;
        }
        if socket.to_client.len() > servers.plan.unread_max && !socket.is_closed() {
            // The server writes before it reads on; `deliver` comes back here.
            return;
        }
        // How the client's bytes come to a server makes no difference to the client, save when they stop.
        let slow = socket.slow_until > context.now;
        let piece = self.rng.range(1..=if slow { 8 } else { 2000 }) as usize;
        let length = piece.min(socket.to_server.len());
        let bytes: Vec<u8> = socket.to_server.drain(..length).collect();
        let mut out = Vec::new();
        servers.receive(session, &bytes, context, &mut out);
        if !socket.is_closed() {
            socket.to_client.extend(out);
        }
        let more = !socket.to_server.is_empty();
        let blocked = socket.outgoing.is_some();
        if more {
            self.next_piece(context.now, slow, Event::Arrive(id));
        }
        if blocked {
            self.soon(context.now, Event::Take(id));
        }
        self.soon(context.now, Event::Deliver(id));
    }

    pub fn deliver(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.is_closed() || socket.stage != Stage::Open || socket.down == Link::Lost {
            return;
        }
        let held = socket.session.map_or(0, |session| servers.held_until(session));
        let stalled = if let Link::Stalled(until) = socket.down { until } else { 0 };
        if held.max(stalled) > context.now {
            return self.schedule(held.max(stalled), Event::Deliver(id));
        }
        socket.down = Link::Good;
        if socket.to_client.is_empty() {
            if socket.ended {
                socket.stage = Stage::Failed;
                self.tell(context, Completion::Failed { id, failure: ConnectionFailure::ClosedByPeer });
            }
            return;
        }
        let slow = socket.slow_until > context.now;
        let chance = self.pace(slow);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if let Some(mut block) = socket.block.take() {
            // Strings that are received so are long: pieces are, too.
            let length =
                self.cut.take().unwrap_or(chance * 64).min(socket.to_client.len()).min(block.missing());
            let bytes: Vec<u8> = socket.to_client.drain(..length).collect();
            block.copy(&bytes);
            context.ledger.counts.filled += 1;
            self.tell(context, Completion::Filled { id, block });
            self.next_piece(context.now, slow, Event::Deliver(id));
            return self.soon(context.now, Event::Arrive(id));
        }
        let Some(mut buffer) = self.pool.take_free() else {
            if !self.starved.contains(&id) {
                self.starved.push_back(id);
                self.pool.set_starved();
            }
            return;
        };
        let piece = self.cut.take().unwrap_or(chance);
        let length = piece.min(socket.to_client.len()).min(self.pool.buffer_size());
        for (to, from) in buffer.bytes().iter_mut().zip(socket.to_client.drain(..length)) {
            *to = from;
        }
        let more = !socket.to_client.is_empty() || socket.ended;
        self.tell(context, Completion::Received { id, segment: buffer.filled(length) });
        if more {
            self.next_piece(context.now, slow, Event::Deliver(id));
        }
        self.soon(context.now, Event::Arrive(id));
    }

    /// The answer to a close: the send's count first, then the last word. What was taken may still arrive (H26).
    fn close(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.stage == Stage::Connecting && self.rng.coin() {
            let failure = ConnectionFailure::from_errno(125);
            self.tell(context, Completion::Failed { id, failure });
        }
        self.end_send(id, context);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.stage = Stage::Closed;
        socket.block = None;
        socket.to_client.clear();
        self.tell(context, Completion::Closed { id });
        self.soon(context.now, Event::Arrive(id));
        self.starved.retain(|other| *other != id);
        if self.rng.per_mille(self.plan.stale) {
            let at = context.now + self.rng.range(1..=20_000);
            self.schedule(at, Event::Stale(id));
        }
        // Sessions end when nothing of them is on its way.
        let done: Vec<_> = self.sockets.iter().filter(|(_, s)| s.is_over()).map(|(id, _)| *id).collect();
        for id in done {
            if let Some(session) = self.sockets.remove(&id).and_then(|socket| socket.session) {
                servers.end(session);
            }
        }
    }

    /// News of a socket that is gone, after the next one was asked for: nobody may listen (F-11).
    fn say_stale(&mut self, id: ConnectionId, context: &mut Context) {
        if self.newest.get(&id.index).is_none_or(|newest| *newest == id.generation) {
            return;
        }
        let completion = match self.rng.index(6) {
            0 => Completion::Sent { id, bytes: 5 },
            1 => Completion::Failed { id, failure: ConnectionFailure::ClosedByPeer },
            2 => Completion::Connected { id },
            3 => Completion::Closed { id },
            4 => Completion::Resolved { id, addresses: vec![SocketAddr::from(([10, 0, 0, 9], 1))] },
            _ => Completion::Received { id, segment: Segment::copy_of(b"+stale\r\n") },
        };
        self.tell(context, completion);
    }

    /// The connection breaks: what was not delivered is lost.
    pub fn reset(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.stage != Stage::Open {
            return;
        }
        if let Some(session) = socket.break_off() {
            servers.end(session);
        }
        // The send's end is told before, soon, or only when the socket is closed.
        if self.rng.coin() {
            self.end_send(id, context);
        }
        self.tell(context, Completion::Failed { id, failure: ConnectionFailure::from_errno(104) });
        if self.rng.coin() {
            self.soon(context.now, Event::Sent(id));
        }
    }

    /// The server ends the connection after what it has written.
    pub fn end_stream(&mut self, id: ConnectionId, context: &mut Context, servers: &mut Servers) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if let Some(session) = socket.session.take() {
            servers.end(session);
        }
        socket.to_server.clear();
        socket.ended = true;
        socket.deaf = self.rng.coin();
        self.soon(context.now, Event::Deliver(id));
        self.soon(context.now, Event::Take(id));
    }

    /// Faults end: what hangs goes on, and what cannot is broken off, as a peer that forgot the connection does.
    pub fn heal(&mut self, context: &mut Context, servers: &mut Servers) {
        self.weather = Weather::default();
        let ids: Vec<_> = self.sockets.keys().copied().collect();
        for id in ids {
            let Some(socket) = self.sockets.get_mut(&id) else { continue };
            socket.trap = None;
            if socket.up == Link::Lost || socket.down == Link::Lost {
                self.reset(id, context, servers);
            } else if socket.stage == Stage::Connecting {
                self.schedule(context.now, Event::Connect(id));
            }
        }
    }

    /// Sockets that carry a session now.
    pub fn open_sockets(&self) -> Vec<ConnectionId> {
        let open = self.sockets.iter().filter(|(_, socket)| socket.stage == Stage::Open && !socket.closing);
        open.map(|(id, _)| *id).collect()
    }
}

fn address_of(address: &Address) -> u8 {
    match address {
        Address::Tcp(SocketAddr::V4(address)) => address.ip().octets()[3],
        _ => 0,
    }
}
