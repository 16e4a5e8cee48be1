//! One client's connection and its own connection to the server.
//!
//! **Idea.** Two sockets, two [`Flow`]s, all symmetric: flow `i` goes from side `i` to the other one. Ends travel as bytes
//! do: a flow's end shuts down its receiver's side, a reset ends both sides, and a connection is over when both flows are.
//!
//! **Invariant.** A socket that nothing is wanted of is not in epoll, which would report its hang-up for ever; so a stalled
//! connection does not notice that its ends are gone, as its network would not.

use super::flow::{End, Flow};
use crate::Hangup;
use crate::connection::{Gone, LINGER};
use crate::faults::{Direction, Faults};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, Shutdown, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

const SERVER: usize = 1;
pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

struct Side {
    socket: OwnedFd,
    /// What epoll was asked to report, if it watches.
    interest: EventFlags,
}

/// See the module.
pub(crate) struct Link {
    number: u64,
    /// The client's and the server's; one that was reset is gone.
    sides: [Option<Side>; 2],
    pub(crate) flows: [Flow; 2],
    /// The connection to the server is not made yet.
    connecting: bool,
    pub(crate) connect_failed: bool,
    fades_until: Option<Instant>,
}

impl Link {
    /// Begins to connect to the server.
    pub(crate) fn new(
        number: u64,
        client: OwnedFd,
        target: SocketAddr,
        faults: [Faults; 2],
        now: Instant,
    ) -> io::Result<Self> {
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let server = net::socket_with(family, SocketType::STREAM, flags, None)?;
        let sides = [client, server].map(|socket| Some(Side { socket, interest: EventFlags::empty() }));
        let mut link = Self {
            number,
            sides,
            flows: faults.map(Flow::new),
            connecting: true,
            connect_failed: false,
            fades_until: None,
        };
        link.apply_socket_options();
        for side in link.sides.iter().flatten() {
            sockopt::set_tcp_nodelay(&side.socket, true)?;
        }
        let server = link.sides[SERVER].as_ref().expect("it was just made");
        match net::connect(&server.socket, &target) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(_) => link.on_refused(now),
        }
        Ok(link)
    }

    /// The number of the connection that epoll means, and the side.
    pub(crate) fn of_token(token: u64) -> (u64, usize) {
        (token / 2, (token % 2) as usize)
    }

    /// Passes on the faults that the kernel carries out.
    pub(crate) fn apply_socket_options(&self) {
        let bytes = self.flows.iter().find_map(|flow| flow.faults.socket_buffer_bytes);
        for (side, bytes) in self.sides.iter().flatten().filter_map(|side| Some((side, bytes?))) {
            let _ = sockopt::set_socket_send_buffer_size(&side.socket, bytes);
            let _ = sockopt::set_socket_recv_buffer_size(&side.socket, bytes);
        }
    }

    /// Whether it still belongs to its ends, and is not only fading out.
    pub(crate) fn is_open(&self) -> bool {
        self.fades_until.is_none()
    }

    /// Does all that can be done now. `ready` is the side that a read may find something at.
    pub(crate) fn attend(
        &mut self,
        ready: Option<usize>,
        space: &mut [u8],
        now: Instant,
    ) -> Result<(), Gone> {
        if self.fades_until.is_some_and(|end| end <= now) {
            return Err(Gone);
        }
        if let Some(from) = ready.filter(|from| !(self.connecting && *from == SERVER))
            && let Some(side) = &self.sides[from]
            && self.may_read(from)
        {
            self.flows[from].read(&side.socket, space, now);
        }
        for (direction, to) in DIRECTIONS.into_iter().zip([SERVER, 1 - SERVER]) {
            if self.connecting && to == SERVER {
                continue;
            }
            let Some(side) = &self.sides[to] else { continue };
            match self.flows[direction as usize].write(&side.socket, now) {
                None => {}
                Some(End::Passed(Hangup::Fin)) => self.end_flow(direction),
                Some(End::Passed(how) | End::Cut(how)) => self.hang_up(None, how, now)?,
                // The end is found by reading from that side; unless it had ended before.
                Some(End::Broken) if !self.flows[to].source_over => {
                    self.flows[to].source_reset = true;
                    self.flows[direction as usize].end();
                }
                Some(End::Broken) => self.hang_up(None, Hangup::Reset, now)?,
            }
        }
        let is_over = self.flows.iter().all(|flow| flow.over && flow.source_over);
        if is_over { Err(Gone) } else { Ok(()) }
    }

    fn may_read(&self, from: usize) -> bool {
        let flow = &self.flows[from];
        let waits = flow.faults.reads_only_when_written && self.flows[1 - from].held_bytes() > 0;
        flow.may_read() && (flow.over || !waits)
    }

    /// Epoll has something to say of a side, perhaps that the connect to the server is over.
    pub(crate) fn on_event(&mut self, side: usize, now: Instant) {
        let is_news = self.connecting && side == SERVER;
        let Some(side) = self.sides[SERVER].as_ref().filter(|_| is_news) else { return };
        match sockopt::socket_error(&side.socket) {
            Ok(Ok(())) => self.connecting = false,
            _ => self.on_refused(now),
        }
    }

    fn on_refused(&mut self, now: Instant) {
        self.connecting = false;
        self.connect_failed = true;
        self.sides[SERVER] = None;
        self.flows[SERVER].source_over = true;
        let _ = self.hang_up(None, Hangup::Fin, now);
    }

    /// Ends the connection, or one side of it: that which the direction leads to.
    pub(crate) fn hang_up(
        &mut self,
        direction: Option<Direction>,
        how: Hangup,
        now: Instant,
    ) -> Result<(), Gone> {
        match (direction, how) {
            (None, Hangup::Fin) => {
                DIRECTIONS.into_iter().for_each(|direction| self.end_flow(direction));
                self.fades_until.get_or_insert(now + LINGER);
            }
            (None, Hangup::Reset) => {
                for side in self.sides.iter_mut().filter_map(Option::take) {
                    how.apply(side.socket);
                }
                self.flows.iter_mut().for_each(Flow::end);
                return Err(Gone);
            }
            (Some(direction), Hangup::Fin) => self.end_flow(direction),
            (Some(direction), Hangup::Reset) => {
                let to = 1 - direction as usize;
                if let Some(side) = self.sides[to].take() {
                    how.apply(side.socket);
                }
                // Its bytes have no receiver, and what comes from there has ended without a word.
                self.flows[direction as usize].end();
                self.flows[to].end();
                self.flows[to].source_over = true;
            }
        }
        Ok(())
    }

    fn end_flow(&mut self, direction: Direction) {
        self.flows[direction as usize].end();
        if let Some(side) = &self.sides[1 - direction as usize] {
            let _ = net::shutdown(&side.socket, Shutdown::Write);
        }
    }

    /// Brings epoll up to date.
    pub(crate) fn watch(&mut self, epoll: &OwnedFd) -> Result<(), Gone> {
        let (number, connecting) = (self.number, self.connecting);
        let may_read = [0, 1].map(|from| self.may_read(from));
        for (from, side) in self.sides.iter_mut().enumerate() {
            let Some(side) = side else { continue };
            let dials = connecting && from == SERVER;
            let mut wanted = EventFlags::empty();
            wanted.set(EventFlags::IN, may_read[from] && !dials);
            wanted.set(EventFlags::OUT, self.flows[1 - from].blocked || dials);
            let token = EventData::new_u64(number * 2 + from as u64);
            let done = match (side.interest.is_empty(), wanted.is_empty()) {
                _ if wanted == side.interest => continue,
                (_, true) => epoll::delete(epoll, &side.socket),
                (true, false) => epoll::add(epoll, &side.socket, token, wanted),
                (false, false) => epoll::modify(epoll, &side.socket, token, wanted),
            };
            side.interest = wanted;
            done.map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// When it must be attended to, even if nothing happens.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let [to_server, to_client] = self.flows.each_ref().map(Flow::next_deadline);
        [to_server.filter(|_| !self.connecting), to_client, self.fades_until].into_iter().flatten().min()
    }
}
