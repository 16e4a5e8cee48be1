//! The connection machine under any legal sequence of operations: what it tells and asks for is compared with a naive
//! model, after each of them.

mod ears;
mod network;
mod queue;
mod socket;

pub use socket::{ALL_BUT_ONE, Socket, Stage, head, names};

use super::*;
use crate::error::Delivery;
use crate::io::SocketOptions;
use crate::resp::fuzzing::{Input, rules};
use bytes::Bytes;
use ears::{Ears, Word};
use queue::Queue;

struct World<'a> {
    input: Input<'a>,
    now: Instant,
    config: Rc<ConnectionConfig>,
    connection: Connection,
    ears: Ears,
    spares: Spares,
    pool: BufferPool,
    returns: Returns,
    socket: Option<Socket>,
    /// Sockets that are gone.
    old: Vec<ConnectionId>,
    queue: Queue,
    /// The number of each ticket.
    numbers: Vec<u64>,
    /// Values that were lent and are not back.
    lent: usize,
    /// What arrived on this socket and is no whole frame.
    arrived: Vec<u8>,
    resp3: bool,
    /// The reply to HELLO is awaited.
    greets: bool,
    is_closed: bool,
}

/// Choices, out of which a configuration and a sequence of operations are made.
pub fn operations(data: &[u8], now: Instant) {
    let mut world = World::new(Input::new(data), now);
    while !world.input.is_over() {
        world.step();
    }
    world.finish();
}

fn config(input: &mut Input<'_>) -> ConnectionConfig {
    let login = Credentials { username: input.flag().then(|| "app".into()), password: "hunter2".into() };
    let (limits, _) = rules(input.pick(&[0, 0, 0, 0, 0, 0, 0x40, 0x02, 0x04, 0x08, 0x10, 0x20, 0x3e]));
    let times = [Duration::from_millis(5), Duration::from_secs(1), Duration::MAX];
    ConnectionConfig {
        endpoint: match input.below(4) {
            0 => Endpoint::Unix("/run/server".into()),
            1 => Endpoint::Tcp { host: "cache".into(), port: 6379 },
            _ => Endpoint::Tcp { host: "::1".into(), port: 6379 },
        },
        protocol: input.pick(&[Protocol::Resp2, Protocol::Auto, Protocol::Auto, Protocol::Resp3]),
        credentials: (input.below(4) == 1).then_some(login),
        client_name: (input.below(4) == 1).then(|| "name".into()),
        database: input.pick(&[0, 0, 3]),
        set_info: input.below(4) == 1,
        connect_timeout: input.pick(&times),
        command_timeout: input.flag().then(|| input.pick(&times)),
        idle_read_timeout: (input.below(3) == 1).then(|| input.pick(&times)),
        limits,
        inflight_max: input.pick(&[64, 1, 2, 5]),
        queued_bytes_max: input.pick(&[1 << 24, 1, 100, 4000]),
        write_buffer: input.pick(&[256, 1, 16, 4096]),
        socket: SocketOptions::default(),
    }
}

impl<'a> World<'a> {
    fn new(mut input: Input<'a>, now: Instant) -> Self {
        let config = Rc::new(config(&mut input));
        let returns = Returns::default();
        let pool = BufferPool::new(input.pick(&[8, 2, 1]), input.pick(&[4096, 64, 1500, 16_384]));
        let connection = Connection::new(0, config.clone(), returns.clone());
        let mut this = Self {
            input,
            now,
            config,
            connection,
            ears: Ears::default(),
            spares: Spares::default(),
            pool,
            returns,
            socket: None,
            old: Vec::new(),
            queue: Queue::default(),
            numbers: Vec::new(),
            lent: 0,
            arrived: Vec::new(),
            resp3: false,
            greets: false,
            is_closed: false,
        };
        this.connection.connect(now);
        this.pump();
        this
    }

    fn step(&mut self) {
        match self.input.below(24) {
            0..4 => self.submit(),
            4 => self.cancel(),
            5 => self.wait(),
            6 => self.connect(),
            7 => match self.input.below(16) {
                0 => self.close(),
                1 => self.ears.keeps = !self.ears.keeps,
                2 => self.say_stale(),
                _ => self.ears.kept.clear(),
            },
            8 => self.lie(),
            9 => self.fail(),
            10..13 => self.take(),
            13..16 => self.end_send(),
            16..21 => self.receive(),
            21 => self.end(),
            _ => self.go_on(),
        }
        // Operations may come in batches.
        if self.input.below(4) != 0 {
            self.pump();
        }
        self.check();
    }

    // --- the owner

    fn submit(&mut self) {
        let reserved = self.input.below(3);
        let has_room = self.connection.has_room(reserved);
        assert!(!has_room || self.connection.is_ready());
        assert!(!has_room || self.queue.in_flight() + reserved < self.config.inflight_max);
        if !self.connection.has_room(0) {
            return;
        }
        static ZEROS: [u8; 700_000] = [0; 700_000];
        let ticket = self.numbers.len() as u32;
        let padding = match self.input.byte() {
            255 => 700_000,
            choice => [0, 0, 0, 10, 100, 3000, 0, 20_000][usize::from(choice % 8)],
        };
        let is_lent = padding >= 20_000;
        let start = head(ticket, padding);
        let number = self.connection.submit(TicketId { index: ticket, generation: 0 }, |log| {
            log.append(start.as_bytes());
            match is_lent {
                true => log.lend(Bytes::from_static(&ZEROS[..padding])),
                false => log.append(&ZEROS[..padding]),
            }
            log.append(b"\r\n");
        });
        self.lent += usize::from(is_lent);
        self.numbers.push(number);
        self.queue.push(ticket, number, [start.as_bytes(), &ZEROS[..padding], b"\r\n"].concat());
    }

    fn some_number(&mut self) -> Option<u64> {
        let back = self.input.below(self.numbers.len().clamp(1, 256));
        self.numbers.iter().rev().nth(back).copied()
    }

    fn cancel(&mut self) {
        let Some(number) = self.some_number() else { return };
        self.connection.cancel(number);
        self.queue.cancel(number);
    }

    fn wait(&mut self) {
        let deadline = self.connection.next_deadline();
        self.now += match (self.input.below(5), deadline) {
            (0, Some(deadline)) => deadline.saturating_duration_since(self.now),
            (1, _) => Duration::from_secs(1),
            (step, _) => Duration::from_millis(step as u64 * 3),
        };
        let owed = self.queue.owes_reply() && self.config.idle_read_timeout.is_some();
        let was_ready = self.connection.is_ready();
        self.connection.handle_timeout(self.now);
        assert!(!was_ready || self.connection.is_ready() || owed, "a connection ends that owes nothing");
        let next = self.connection.next_deadline();
        assert!(next.is_none_or(|next| next > self.now), "a deadline that passed is still there");
        self.take_events();
    }

    fn connect(&mut self) {
        if !self.is_closed {
            self.connection.connect(self.now);
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.connection.close(Error::Closed(Delivery::NotExecuted));
        self.take_events();
    }

    /// As the client does with what it is told.
    fn take_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Up => {}
                Event::Lost(_) => {
                    assert!(self.connection.is_down());
                    if self.input.flag() {
                        self.connect();
                    }
                }
                Event::Failed(error) => self.give_up(&error),
                Event::Closed => {
                    assert!(self.is_closed, "closed by nobody");
                    self.give_up(&Error::Closed(Delivery::NotExecuted));
                }
            }
        }
    }

    fn give_up(&mut self, error: &Error) {
        assert!(self.connection.is_down());
        self.connection.give_up(error, &mut self.ears);
        let ended = self.queue.clear();
        self.ears.expect(ended.into_iter().map(|(ticket, delivery)| Word::Ended(ticket, delivery)));
    }

    // --- what must hold

    fn check(&mut self) {
        assert_eq!(self.connection.in_flight(), self.queue.in_flight());
        assert_eq!(self.connection.queued_bytes(), self.queue.bytes());
        for _ in 0..2 {
            if let Some(number) = self.some_number()
                && let Some(expected) = self.queue.progress(number)
            {
                assert_eq!(self.connection.progress(number), expected);
            }
        }
        self.lent -= self.returns.take().len();
    }

    /// Everything is given back at the end.
    fn finish(mut self) {
        self.pump();
        self.close();
        self.pump();
        while let Some(socket) = self.socket.as_ref().filter(|socket| socket.stage != Stage::Resolving) {
            assert!(socket.is_closing, "a socket is left open");
            self.end_send();
            self.end();
            self.pump();
        }
        // Down between two tries, it was closed at once.
        self.ears.kept.clear();
        self.check();
        assert!(self.connection.is_down() && self.connection.poll_op(self.now).is_none());
        assert_eq!((self.queue.in_flight(), self.lent, self.pool.lent()), (0, 0, 0));
        assert_eq!(self.connection.next_deadline(), None);
    }
}
