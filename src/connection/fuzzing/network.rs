//! The engine and the server of a connection: what is asked for must be what the model expects, and what happens is told.

use super::World;
use super::ears::Word;
use super::socket::{ALL_BUT_ONE, Socket, Stage, names};
use crate::buf::{Block, Segment};
use crate::connection::Protocol;
use crate::error::{ConnectionFailure, code};
use crate::id::ConnectionId;
use crate::io::{Completion, Op};
use crate::resp::fuzzing::model;
use crate::resp::{FrameKind, Limits, Value};
use std::net::SocketAddr;

impl World<'_> {
    // --- the engine

    pub(super) fn pump(&mut self) {
        while let Some(op) = self.connection.poll_op(self.now) {
            match op {
                Op::Resolve { id, .. } => self.open(id, Stage::Resolving),
                Op::Connect { id, .. } => {
                    assert!(!self.old.contains(&id), "{id:?} is used twice");
                    self.old.push(id);
                    self.open(id, Stage::Connecting);
                }
                Op::Send { id, data } => {
                    let bytes = data.iter().map(|slice| &slice[..]).collect::<Vec<_>>().concat();
                    let word = bytes.split(|byte| *byte == b'\n').nth(2).unwrap_or_default();
                    let setup = [&b"HELLO"[..], b"AUTH", b"CLIENT", b"SELECT"];
                    if !setup.iter().any(|name| word.starts_with(name)) {
                        assert!(self.queue.give() == bytes, "what is sent is not what waits");
                    }
                    self.socket(id).send(data);
                }
                Op::Fill { id, block } => self.socket(id).fill(block),
                Op::Close { id } => self.socket(id).close(),
            }
        }
        let is_idle = self.socket.as_ref().is_some_and(|socket| !socket.is_sending() && !socket.is_cut);
        assert!(!is_idle || !self.connection.is_ready() || !self.queue.has_unsent(), "commands are not sent");
    }

    fn open(&mut self, id: ConnectionId, stage: Stage) {
        // A look-up that is of no use any more ends silently.
        self.socket.take_if(|socket| socket.stage == Stage::Resolving);
        assert!(self.socket.is_none(), "{id:?} is opened before its forerunner is closed");
        self.socket = Some(Socket::new(id, stage));
        self.arrived.clear();
        self.greets = self.config.protocol != Protocol::Resp2;
        self.resp3 = self.greets;
    }

    fn socket(&mut self, id: ConnectionId) -> &mut Socket {
        self.socket.as_mut().filter(|socket| socket.id == id).expect("an operation on a socket that exists")
    }

    /// Something happens; the connection tells these words, then what they lead to.
    fn tell(&mut self, completion: Completion, expected: impl IntoIterator<Item = Word>) {
        self.connection.handle(self.now, completion, Some(&self.pool), &self.spares, &mut self.ears);
        self.ears.expect(expected);
        self.take_events();
    }

    pub(super) fn go_on(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        if socket.stage == Stage::Resolving {
            let id = socket.id;
            let address = |last| SocketAddr::from(([10, 0, 0, last], 6379));
            let addresses = (0..=self.input.below(3) as u8).map(address).collect();
            self.socket = None;
            return self.tell(Completion::Resolved { id, addresses }, []);
        }
        if let Some(completion) = socket.connect() {
            self.tell(completion, []);
        }
    }

    pub(super) fn fail(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        let is_look_up = socket.stage == Stage::Resolving;
        let failure = match socket.stage {
            Stage::Resolving => ConnectionFailure::Resolve("no such host".into()),
            Stage::Connecting => ConnectionFailure::from_errno(self.input.pick(&[111, 11, 113])),
            _ if self.input.flag() => ConnectionFailure::ClosedByPeer,
            _ => ConnectionFailure::from_errno(104),
        };
        let Some(completion) = socket.fail(failure) else { return };
        if is_look_up {
            self.socket = None;
        }
        self.tell(completion, []);
    }

    pub(super) fn take(&mut self) {
        let most = self.input.pick(&[usize::MAX, usize::MAX, 1, 20, 5000, ALL_BUT_ONE]);
        if let Some(socket) = &mut self.socket {
            socket.take(most, &mut self.input);
        }
    }

    pub(super) fn end_send(&mut self) {
        let may_cut = self.input.below(16) == 0;
        let Some((taken, completion)) = self.socket.as_mut().and_then(|it| it.end_send(may_cut)) else {
            return;
        };
        if self.queue.is_sending() {
            self.queue.sent(taken);
        }
        self.tell(completion, []);
    }

    pub(super) fn end(&mut self) {
        let Some(completion) = self.socket.as_ref().and_then(Socket::end) else { return };
        self.socket = None;
        let ended = self.queue.close();
        self.tell(completion, ended.into_iter().map(|(ticket, delivery)| Word::Ended(ticket, delivery)));
    }

    /// News of a socket that is gone changes nothing.
    pub(super) fn say_stale(&mut self) {
        let now = self.connection.id();
        let Some(id) = self.old.iter().rev().copied().find(|id| *id != now) else { return };
        let standing = (self.connection.is_ready(), self.connection.is_down());
        let completion = match self.input.below(6) {
            0 => Completion::Connected { id },
            1 => Completion::Sent { id, bytes: 5 },
            2 => Completion::Closed { id },
            3 => Completion::Failed { id, failure: ConnectionFailure::ClosedByPeer },
            4 => Completion::Filled { id, block: Block::new(b"x".to_vec(), 0) },
            _ => Completion::Received { id, segment: Segment::copy_of(b"+OK\r\n") },
        };
        self.tell(completion, []);
        assert_eq!(standing, (self.connection.is_ready(), self.connection.is_down()));
    }

    // --- the server

    /// The server says what it likes; or, honest still, a push.
    pub(super) fn lie(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        let known = [
            &b"+OK\r\n"[..],
            b"-ERR no\r\n",
            b"$3\r\nabc\r\n",
            b"$100000\r\n",
            b"*2\r\n",
            b">1\r\n",
            b"_\r\n",
        ];
        match self.input.below(4) {
            0 if socket.speaks_resp3() => return socket.say(b">2\r\n+message\r\n$2\r\nhi\r\n"),
            0 | 1 => socket.say(self.input.pick(&known)),
            _ => {
                let count = self.input.below(24);
                socket.say(self.input.bytes(count));
            }
        }
        socket.is_hostile = true;
    }

    pub(super) fn receive(&mut self) {
        let most = self.input.pick(&[usize::MAX, usize::MAX, usize::MAX, 1, 2, 7, 100, 1024, 30_000]);
        let Some(socket) = &mut self.socket else { return };
        let Some((bytes, completion)) = socket.receive(most, &self.pool) else { return };
        self.arrived.extend_from_slice(&bytes);
        if self.connection.is_ready() {
            let (words, fails) = self.expected_words();
            self.tell(completion, words);
            assert!(!fails || !self.connection.is_ready(), "wrong bytes are accepted");
            assert!(fails || self.connection.is_ready(), "right bytes are refused");
            return;
        }
        let (pushes, is_right) = self.setup_pushes();
        self.connection.handle(self.now, completion, Some(&self.pool), &self.spares, &mut self.ears);
        let told = self.ears.words.len();
        assert!(told <= pushes.len(), "words that nobody said");
        assert!(!self.connection.is_ready() || is_right && told == pushes.len());
        self.ears.expect(pushes.into_iter().take(told));
        self.take_events();
    }

    /// What the next frames shall lead to, and whether the connection fails then.
    fn expected_words(&mut self) -> (Vec<Word>, bool) {
        let mut words = Vec::new();
        let is_hostile = self.socket.as_ref().is_none_or(|socket| socket.is_hostile);
        let fails = loop {
            let frame = match model::frame(&self.arrived, self.config.limits, self.resp3) {
                Ok(frame) => frame,
                Err(no) => break no != model::No::More,
            };
            self.arrived.drain(..frame.len);
            if frame.kind == FrameKind::Push {
                words.push(Word::Push(frame.value));
                continue;
            }
            match self.queue.pop() {
                Some(Some(ticket)) => {
                    assert!(is_hostile || names(&frame.value, ticket), "{ticket} is told {:?}", frame.value);
                    words.push(Word::Reply(ticket, frame.value));
                }
                Some(None) => words.push(Word::Dropped),
                None => break true,
            }
        };
        let is_limited = self.config.limits != Limits::default();
        assert!(!fails || is_hostile || is_limited, "an honest server's connection fails");
        (words, fails)
    }

    /// During set-up: the pushes that may be told, and whether all is RESP.
    fn setup_pushes(&mut self) -> (Vec<Word>, bool) {
        let mut pushes = Vec::new();
        loop {
            let frame = match model::frame(&self.arrived, self.config.limits, self.resp3) {
                Ok(frame) => frame,
                Err(no) => return (pushes, no == model::No::More),
            };
            self.arrived.drain(..frame.len);
            match frame.value {
                value if frame.kind == FrameKind::Push => pushes.push(Word::Push(value)),
                Value::Error(error) if self.greets => {
                    let is_unknown = error.message().to_ascii_lowercase().starts_with("err unknown command");
                    self.resp3 = !is_unknown && error.code() != code::NOPROTO;
                    self.greets = error.code() == code::LOADING;
                }
                _ => self.greets = false,
            }
        }
    }
}
