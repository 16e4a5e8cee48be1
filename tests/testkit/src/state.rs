//! Everything the server is, behind one lock.
//!
//! **Problem.** The loop serves connections on its thread while the test, on another, cuts them, releases replies and asks
//! what arrived. Messages between the two would make "after this call, the connection is stalled" hard to promise.
//!
//! **Idea.** One structure, one lock. The loop holds it for one turn; a call of the test holds it for one change and does
//! the work at once (writes what was released, ends what was cut). The loop is then woken to look at deadlines again.
//!
//! **Invariant.** Between two holders of the lock, each connection's epoll interest and deadline are up to date.

use crate::Hangup;
use crate::connection::{Connection, Gone};
use crate::data::World;
use crate::event_loop::{LISTENER, Looped, WAKE};
use crate::faults::{Faults, Selection};
use crate::listener::{Accept, Listener, Place};
use crate::record::Recorded;
use crate::rules::Rules;
use crate::session::{Peers, Session};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// New connections taken per turn, so that a storm of connects does not starve those that exist.
const ACCEPTS_PER_TURN: usize = 64;

/// Numbers about a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections accepted since the start.
    pub connections_accepted: u64,
    /// Connections that are open now.
    pub connections_open: usize,
    /// Commands received, answered or not.
    pub commands: u64,
    /// Bytes read from all connections.
    pub bytes_received: u64,
    /// Bytes that the kernel took from the server, over all connections.
    pub bytes_sent: u64,
    /// Replies that wait for a release now.
    pub withheld: usize,
}

/// What a connection needs while it runs commands.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) world: World,
    pub(crate) rules: Rules,
    pub(crate) stats: Stats,
    pub(crate) recording: bool,
    pub(crate) recorded: Vec<Recorded>,
}

/// By number; a connection is taken out while it is served, so that it can look at the others.
type Table = BTreeMap<u64, Option<Box<Connection>>>;

impl Peers for Table {
    fn each(&self, visit: &mut dyn FnMut(&Session)) {
        self.values().flatten().filter(|peer| peer.is_open()).for_each(|peer| visit(&peer.session));
    }
}

/// The server's state.
pub(crate) struct Core {
    pub(crate) parts: Parts,
    pub(crate) clock_offset: Duration,
    epoll: Arc<OwnedFd>,
    listener: Listener,
    connections: Table,
    /// Connections that have a deadline; those that are gone are left in it until it comes to them.
    timed: BTreeSet<u64>,
    /// The faults of connections to come.
    new_faults: Faults,
}

impl Core {
    pub(crate) fn new(epoll: Arc<OwnedFd>, mut listener: Listener, parts: Parts) -> io::Result<Self> {
        listener.watch(Arc::clone(&epoll))?;
        Ok(Self {
            parts,
            clock_offset: Duration::ZERO,
            epoll,
            listener,
            connections: Table::new(),
            timed: BTreeSet::new(),
            new_faults: Faults::default(),
        })
    }

    pub(crate) fn place(&self) -> &Place {
        self.listener.place()
    }

    /// Sets the commands' clock; once per turn is exact enough for times to live.
    pub(crate) fn set_clock(&mut self) {
        let since_epoch =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + self.clock_offset;
        self.parts.world.store.now = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    }

    fn attend(&mut self, number: u64, readable: bool, now: Instant) {
        let Some(mut connection) = self.connections.get_mut(&number).and_then(Option::take) else { return };
        let outcome = connection.attend(readable, now, &mut self.parts, &self.connections);
        self.put_back(number, connection, outcome, now);
    }

    /// Attends to each connection that fits, in the order of their numbers.
    fn attend_those(&mut self, now: Instant, fits: impl Fn(&Connection) -> bool) {
        let fitting = self.connections.values().flatten().filter(|connection| fits(connection));
        let numbers: Vec<u64> = fitting.map(|connection| connection.session.id).collect();
        for number in numbers {
            self.attend(number, false, now);
        }
    }

    fn put_back(
        &mut self,
        number: u64,
        mut connection: Box<Connection>,
        outcome: Result<(), Gone>,
        now: Instant,
    ) {
        let wanted = connection.wanted_interest(now);
        let outcome = outcome.and_then(|()| {
            if wanted == connection.interest {
                return Ok(());
            }
            connection.interest = wanted;
            epoll::modify(&*self.epoll, &connection.socket, EventData::new_u64(number), wanted)
                .map_err(|_| Gone)
        });
        match outcome {
            Ok(()) => {
                if connection.next_deadline().is_some() {
                    self.timed.insert(number);
                }
                self.connections.insert(number, Some(connection));
            }
            // Dropping the socket closes it and takes it out of epoll.
            Err(Gone) => drop(self.connections.remove(&number)),
        }
    }

    fn accept_waiting(&mut self, now: Instant) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some((socket, peer)) = self.listener.next() else { return };
            self.admit(socket, peer, now);
        }
    }

    fn admit(&mut self, socket: OwnedFd, peer: Option<SocketAddr>, now: Instant) {
        self.parts.stats.connections_accepted += 1;
        let number = self.parts.stats.connections_accepted;
        if let Accept::HangUp(how) = self.listener.accept() {
            how.apply(socket);
            return;
        }
        let local = match self.place() {
            Place::Tcp(addr) => addr.to_string(),
            Place::Unix(path) => format!("{}:0", path.display()),
        };
        let peer = peer.map_or_else(|| local.clone(), |peer| peer.to_string());
        let authenticated = self.parts.world.settings.users.is_empty();
        let mut faults = self.new_faults.clone();
        faults.stalled |= self.listener.accept() == Accept::Silent;
        let session = Session::new(number, peer, local, authenticated);
        let connection = Box::new(Connection::new(socket, session, faults));
        let added =
            epoll::add(&*self.epoll, &connection.socket, EventData::new_u64(number), EventFlags::empty());
        self.put_back(number, connection, added.map_err(|_| Gone), now);
        self.attend(number, false, now);
    }

    // From here on: what the test asks for.

    pub(crate) fn set_accept(&mut self, accept: Accept) -> io::Result<()> {
        self.listener.set_accept(accept)
    }

    pub(crate) fn change_faults(&mut self, selection: Selection, change: &dyn Fn(&mut Faults)) {
        if selection.includes_new() {
            change(&mut self.new_faults);
        }
        for (_, connection) in self.connections.iter_mut().filter(|(number, _)| selection.includes(**number))
        {
            if let Some(connection) = connection {
                connection.change_faults(change);
            }
        }
        self.attend_selected(selection);
    }

    fn attend_selected(&mut self, selection: Selection) {
        self.set_clock();
        self.attend_those(Instant::now(), |connection| selection.includes(connection.session.id));
    }

    pub(crate) fn hang_up(&mut self, selection: Selection, how: Hangup) {
        let now = Instant::now();
        let numbers: Vec<u64> =
            self.connections.keys().copied().filter(|number| selection.includes(*number)).collect();
        for number in numbers {
            if let Some(mut connection) = self.connections.get_mut(&number).and_then(Option::take) {
                let outcome = connection.end(how, now);
                self.put_back(number, connection, outcome, now);
            }
        }
    }

    fn selected(&mut self, selection: Selection) -> impl Iterator<Item = &mut Connection> {
        let selected = self.connections.iter_mut().filter(move |(number, _)| selection.includes(**number));
        selected
            .filter_map(|(_, connection)| connection.as_deref_mut())
            .filter(|connection| connection.is_open())
    }

    pub(crate) fn release(&mut self, selection: Selection) -> usize {
        let now = Instant::now();
        let released = self.selected(selection).map(|connection| connection.outbox.release(now)).sum();
        self.attend_selected(selection);
        released
    }

    pub(crate) fn push(&mut self, selection: Selection, bytes: &[u8]) -> usize {
        let count = self.selected(selection).map(|connection| connection.outbox.push(bytes)).count();
        self.attend_selected(selection);
        count
    }

    /// Refuses new clients and drops those that are connected.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        // The listener first: a client that reconnects at once must be refused.
        let closed = self.listener.close();
        self.hang_up(Selection::Open, Hangup::Fin);
        closed
    }

    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.listener.reopen()
    }
}

impl Looped for Core {
    type Stats = Stats;

    fn turn(&mut self, events: &[Event], now: Instant) {
        self.set_clock();
        for event in events {
            // The event's fields may be unaligned; copies are not.
            let (token, flags) = (event.data.u64(), event.flags);
            match token {
                LISTENER => self.accept_waiting(now),
                WAKE => {}
                _ if flags.intersects(EventFlags::IN | EventFlags::OUT) => {
                    self.attend(token, flags.contains(EventFlags::IN), now);
                }
                // An error or hang-up on a connection that asks for nothing: it would be reported for ever.
                _ => drop(self.connections.remove(&token)),
            }
        }
        // Not all connections are looked at: there may be thousands.
        let mut due = Vec::new();
        self.timed.retain(|number| {
            let Some(connection) = self.connections.get(number).and_then(Option::as_ref) else {
                return false;
            };
            let deadline = connection.next_deadline();
            if deadline.is_some_and(|deadline| deadline <= now) {
                due.push(*number);
            }
            deadline.is_some()
        });
        for number in due {
            self.attend(number, false, now);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let timed = self.timed.iter().filter_map(|number| self.connections.get(number)?.as_ref());
        timed.filter_map(|connection| connection.next_deadline()).min()
    }

    fn stats(&self) -> Stats {
        let open = || self.connections.values().flatten().filter(|connection| connection.is_open());
        Stats {
            connections_open: open().count(),
            withheld: open().map(|connection| connection.outbox.withheld()).sum(),
            ..self.parts.stats
        }
    }

    fn abandon(&mut self) {
        self.connections.clear();
        let _ = self.listener.close();
    }
}
