//! Everything the proxy is, behind one lock; see the server's state for why.

use super::ProxyStats;
use super::link::{DIRECTIONS, Link};
use crate::Hangup;
use crate::connection::Gone;
use crate::event_loop::{LISTENER, Looped, WAKE};
use crate::faults::{Direction, Faults, Selection, Target};
use crate::listener::{Accept, Listener};
use rustix::event::epoll::{Event, EventFlags};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Connections taken per turn, so that a storm of connects does not starve those that exist.
const ACCEPTS_PER_TURN: usize = 64;
/// What one read takes at most.
const READ_BYTES: usize = 64 * 1024;

/// The proxy's state.
pub(crate) struct Relay {
    pub(crate) listener: Listener,
    /// Where connections to come go.
    pub(crate) target: SocketAddr,
    epoll: Arc<OwnedFd>,
    links: BTreeMap<u64, Link>,
    /// The faults of connections to come, per direction.
    new_faults: [Faults; 2],
    /// The numbers without those of the connections that exist.
    stats: ProxyStats,
    space: Vec<u8>,
}

impl Relay {
    pub(crate) fn new(epoll: Arc<OwnedFd>, mut listener: Listener, target: SocketAddr) -> io::Result<Self> {
        listener.watch(Arc::clone(&epoll))?;
        let (links, new_faults) = (BTreeMap::new(), Default::default());
        let (stats, space) = (ProxyStats::default(), vec![0; READ_BYTES]);
        Ok(Self { listener, target, epoll, links, new_faults, stats, space })
    }

    fn attend(&mut self, number: u64, ready: Option<usize>, now: Instant) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let outcome = link.attend(ready, &mut self.space, now);
        self.settle(number, outcome);
    }

    /// Brings epoll up to date, or lets go of a connection that is over.
    fn settle(&mut self, number: u64, outcome: Result<(), Gone>) {
        let Some(link) = self.links.get_mut(&number) else { return };
        // Dropping the sockets closes them and takes them out of epoll.
        if outcome.and_then(|()| link.watch(&self.epoll)).is_err()
            && let Some(link) = self.links.remove(&number)
        {
            add(&mut self.stats, &link);
        }
    }

    fn admit(&mut self, client: OwnedFd, now: Instant) {
        self.stats.connections_accepted += 1;
        let number = self.stats.connections_accepted;
        let accept = self.listener.accept();
        if let Accept::HangUp(how) = accept {
            return how.apply(client);
        }
        let mut faults = self.new_faults.clone();
        faults.iter_mut().for_each(|faults| faults.stalled |= accept == Accept::Silent);
        match Link::new(number, client, self.target, faults, now) {
            Ok(link) => drop(self.links.insert(number, link)),
            // No socket is left for the server; the client's is closed.
            Err(_) => self.stats.connects_failed += 1,
        }
        self.attend(number, None, now);
    }

    fn selected(&self, selection: Selection) -> Vec<u64> {
        self.links.keys().copied().filter(|number| selection.includes(*number)).collect()
    }

    // From here on: what the test asks for.

    pub(crate) fn change_faults(&mut self, target: Target, change: &dyn Fn(&mut Faults)) {
        let is_meant = |direction: &Direction| target.direction.is_none_or(|only| only == *direction);
        for direction in DIRECTIONS.into_iter().filter(is_meant) {
            if target.selection.includes_new() {
                change(&mut self.new_faults[direction as usize]);
            }
            for number in self.selected(target.selection) {
                if let Some(link) = self.links.get_mut(&number) {
                    link.flows[direction as usize].change_faults(change);
                    link.apply_socket_options();
                }
            }
        }
        let now = Instant::now();
        for number in self.selected(target.selection) {
            self.attend(number, None, now);
        }
    }

    pub(crate) fn hang_up(&mut self, target: Target, how: Hangup) {
        let now = Instant::now();
        for number in self.selected(target.selection) {
            if let Some(link) = self.links.get_mut(&number) {
                let outcome = link.hang_up(target.direction, how, now);
                self.settle(number, outcome);
            }
        }
    }

    /// Refuses new clients and drops those that are connected.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        // The listener first: a client that reconnects at once must be refused.
        let closed = self.listener.close();
        self.hang_up(Target { selection: Selection::Open, direction: None }, Hangup::Fin);
        closed
    }
}

fn add(stats: &mut ProxyStats, link: &Link) {
    let [to_server, to_client] = &link.flows;
    stats.connects_failed += u64::from(link.connect_failed);
    stats.bytes_to_server += to_server.bytes_passed;
    stats.bytes_to_client += to_client.bytes_passed;
    stats.bytes_discarded += to_server.bytes_discarded + to_client.bytes_discarded;
}

impl Looped for Relay {
    type Stats = ProxyStats;

    fn turn(&mut self, events: &[Event], now: Instant) {
        for event in events {
            // The event's fields may be unaligned; copies are not.
            let (token, flags) = (event.data.u64(), event.flags);
            match token {
                LISTENER => {
                    for _ in 0..ACCEPTS_PER_TURN {
                        let Some((client, _)) = self.listener.next() else { break };
                        self.admit(client, now);
                    }
                }
                WAKE => {}
                _ => {
                    let (number, side) = Link::of_token(token);
                    let Some(link) = self.links.get_mut(&number) else { continue };
                    link.on_event(side, now);
                    let may_read = flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP);
                    self.attend(number, may_read.then_some(side), now);
                }
            }
        }
        let is_due = |link: &Link| link.next_deadline().is_some_and(|due| due <= now);
        let due: Vec<u64> =
            self.links.iter().filter(|(_, link)| is_due(link)).map(|(number, _)| *number).collect();
        for number in due {
            self.attend(number, None, now);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.links.values().filter_map(Link::next_deadline).min()
    }

    fn stats(&self) -> ProxyStats {
        let mut stats = self.stats;
        for link in self.links.values() {
            add(&mut stats, link);
            stats.connections_open += usize::from(link.is_open());
            stats.bytes_held += link.flows.iter().map(|flow| flow.held_bytes()).sum::<usize>();
        }
        stats
    }

    fn abandon(&mut self) {
        self.links.clear();
        let _ = self.listener.close();
    }
}
