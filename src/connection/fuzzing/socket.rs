//! The other side of [`Op`](crate::io::Op): a socket, its kernel, and a server behind it that is honest until told
//! otherwise. Every choice comes from the input.

use crate::buf::{Block, BufferPool, Transmit};
use crate::error::ConnectionFailure;
use crate::id::ConnectionId;
use crate::io::Completion;
use crate::resp::fuzzing::{Input, model};
use crate::resp::{Limits, Value};

/// So many bytes of a send may be taken: all but the last.
pub const ALL_BUT_ONE: usize = usize::MAX - 1;

/// How a socket stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// A name is looked up; there is no socket yet.
    Resolving,
    Connecting,
    Open,
    /// Its failure was told.
    Failed,
}

/// A send that is not over.
struct Outgoing {
    data: Transmit,
    len: usize,
    taken: usize,
}

/// See the module.
pub struct Socket {
    pub id: ConnectionId,
    pub stage: Stage,
    /// `Close` was asked for.
    pub is_closing: bool,
    /// A send ended before its last byte.
    pub is_cut: bool,
    /// The server says anything.
    pub is_hostile: bool,
    /// Commands that the server has run.
    pub executed: Vec<u32>,
    outgoing: Option<Outgoing>,
    block: Option<Block>,
    /// Bytes that the server has not read as a command.
    wire: Vec<u8>,
    /// Bytes on their way to the client.
    replies: Vec<u8>,
    resp3: bool,
}

impl Socket {
    pub fn new(id: ConnectionId, stage: Stage) -> Self {
        Self {
            id,
            stage,
            is_closing: false,
            is_cut: false,
            is_hostile: false,
            executed: Vec::new(),
            outgoing: None,
            block: None,
            wire: Vec::new(),
            replies: Vec::new(),
            resp3: false,
        }
    }

    pub fn is_sending(&self) -> bool {
        self.outgoing.is_some()
    }

    pub fn speaks_resp3(&self) -> bool {
        self.resp3
    }

    // --- what is asked for

    pub fn send(&mut self, data: Transmit) {
        assert!(self.stage == Stage::Open && !self.is_closing, "a send on a socket that is {:?}", self.stage);
        assert!(self.outgoing.is_none(), "one send at a time");
        assert!(!self.is_cut, "a send after a cut one");
        let len = data.iter().map(|slice| slice.len()).sum();
        assert!(len > 0, "a send of nothing");
        self.outgoing = Some(Outgoing { data, len, taken: 0 });
    }

    pub fn fill(&mut self, block: Block) {
        assert!(!self.is_closing && block.missing() > 0, "a block that cannot be filled");
        assert!(self.block.is_none(), "one block at a time");
        if self.stage == Stage::Open {
            self.block = Some(block);
        }
    }

    pub fn close(&mut self) {
        assert!(self.stage != Stage::Resolving, "there is no socket");
        assert!(!std::mem::replace(&mut self.is_closing, true), "a socket is closed twice");
        self.block = None;
    }

    // --- what happens

    pub fn connect(&mut self) -> Option<Completion> {
        if self.stage != Stage::Connecting || self.is_closing {
            return None;
        }
        self.stage = Stage::Open;
        Some(Completion::Connected { id: self.id })
    }

    pub fn fail(&mut self, failure: ConnectionFailure) -> Option<Completion> {
        if self.stage == Stage::Failed || self.is_closing {
            return None;
        }
        self.stage = Stage::Failed;
        self.block = None;
        Some(Completion::Failed { id: self.id, failure })
    }

    /// The kernel takes at most so many bytes of the send, and the server reads them.
    pub fn take(&mut self, most: usize, input: &mut Input<'_>) {
        let Some(outgoing) = &mut self.outgoing else { return };
        let rest = outgoing.len - outgoing.taken;
        let mut left = if most == ALL_BUT_ONE { rest.saturating_sub(1) } else { most.min(rest) };
        let mut skipped = outgoing.taken;
        outgoing.taken += left;
        for slice in &outgoing.data {
            let part = &slice[skipped.min(slice.len())..];
            skipped -= slice.len() - part.len();
            self.wire.extend_from_slice(&part[..left.min(part.len())]);
            left -= left.min(part.len());
        }
        while let Ok(frame) = model::frame(&self.wire, Limits::default(), false) {
            self.wire.drain(..frame.len);
            let Value::Array(words) = frame.value else { panic!("the server read no command") };
            self.answer(&words, input);
        }
    }

    /// The end of the send; before its last byte only when the socket fails or is closed.
    pub fn end_send(&mut self, may_cut: bool) -> Option<(usize, Completion)> {
        let is_over = |outgoing: &mut Outgoing| {
            outgoing.taken == outgoing.len || may_cut || self.is_closing || self.stage == Stage::Failed
        };
        let Outgoing { len, taken, .. } = self.outgoing.take_if(is_over)?;
        self.is_cut |= taken < len;
        Some((taken, Completion::Sent { id: self.id, bytes: taken }))
    }

    /// The answer to `Close`.
    pub fn end(&self) -> Option<Completion> {
        let is_over = self.is_closing && self.outgoing.is_none();
        is_over.then_some(Completion::Closed { id: self.id })
    }

    /// At most so many of the server's bytes arrive.
    pub fn receive(&mut self, most: usize, pool: &BufferPool) -> Option<(Vec<u8>, Completion)> {
        if self.stage != Stage::Open || self.replies.is_empty() {
            return None;
        }
        let id = self.id;
        if let Some(mut block) = self.block.take() {
            let count = most.min(self.replies.len()).min(block.missing());
            let bytes: Vec<u8> = self.replies.drain(..count).collect();
            assert_eq!(block.copy(&bytes), count);
            return Some((bytes, Completion::Filled { id, block }));
        }
        let mut buffer = pool.take_free()?;
        let count = most.min(self.replies.len()).min(pool.buffer_size());
        let bytes: Vec<u8> = self.replies.drain(..count).collect();
        buffer.bytes()[..count].copy_from_slice(&bytes);
        Some((bytes, Completion::Received { id, segment: buffer.filled(count) }))
    }

    /// The server says this.
    pub fn say(&mut self, bytes: &[u8]) {
        self.replies.extend_from_slice(bytes);
    }

    /// The server's answer to a command: the honest one mostly.
    fn answer(&mut self, words: &[Value], input: &mut Input<'_>) {
        let word = |at: usize| words.get(at).and_then(Value::as_str).unwrap_or_default();
        let reply = match word(0) {
            "HELLO" => match input.below(16) {
                0 => "-NOPROTO unsupported protocol version\r\n",
                1 => "-ERR unknown command 'HELLO', with args beginning with: '3'\r\n",
                2 => "-LOADING Redis is loading the dataset in memory\r\n",
                3 => "-WRONGPASS invalid username-password pair\r\n",
                4 => "-ERR max number of clients reached\r\n",
                5 => "%1\r\n$5\r\nproto\r\n:2\r\n",
                6 => "|1\r\n+a\r\n:1\r\n%1\r\n$5\r\nproto\r\n:3\r\n",
                _ => "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n",
            },
            "AUTH" | "SELECT" | "CLIENT" => match input.below(12) {
                0 => "-LOADING Redis is loading the dataset in memory\r\n",
                1 => "-NOPERM this user has no permissions\r\n",
                2 => "-ERR no\r\n",
                _ => "+OK\r\n",
            },
            "ECHO" => return self.echo(word(1), input),
            other => panic!("a command that nobody gave: {other}"),
        };
        self.resp3 |= reply.ends_with(":3\r\n");
        self.say(reply.as_bytes());
    }

    /// Any reply that repeats the number of its command.
    fn echo(&mut self, name: &str, input: &mut Input<'_>) {
        let number = name.trim_matches(['<', '>']).parse().expect("a number");
        assert!(!self.executed.contains(&number), "{name} is run twice");
        self.executed.push(number);
        let mut out = String::new();
        let resp3 = self.resp3;
        match input.below(12) {
            0 => out += &format!("+{name}\r\n"),
            1 => out += &format!("*2\r\n:{number}\r\n$-1\r\n"),
            2 => out += &format!("-ERR {name}\r\n"),
            3 => out += &format!("-LOADING {name}\r\n"),
            4 | 5 => {
                let length = input.pick(&[0, 5, 900, 1020, 1030, 5000, 70_000, 140_000]);
                let filler = "x".repeat(length);
                out += &format!("${}\r\n{name}{filler}\r\n", name.len() + length);
            }
            6 if resp3 => out += &format!("|1\r\n+ttl\r\n:5\r\n%1\r\n+a\r\n+{name}\r\n"),
            7 if resp3 => out += &format!(">2\r\n+message\r\n+m\r\n={}\r\ntxt:{name}\r\n", name.len() + 4),
            8 if resp3 => out += &format!("$?\r\n;{}\r\n{name}\r\n;0\r\n", name.len()),
            _ => out += &format!("${}\r\n{name}\r\n", name.len()),
        }
        self.say(out.as_bytes());
    }
}

/// What a command that repeats its number looks like, in front of `padding` bytes and a line end.
pub fn head(ticket: u32, padding: usize) -> String {
    let name = format!("<{ticket}>");
    format!("*3\r\n$4\r\nECHO\r\n${}\r\n{name}\r\n${padding}\r\n", name.len())
}

/// True when an honest reply is that to this command.
pub fn names(value: &Value, ticket: u32) -> bool {
    let name = format!("<{ticket}>");
    match value {
        Value::Error(error) => error.message().contains(&name),
        Value::Array(items) => items.first() == Some(&Value::Integer(ticket.into())),
        Value::Map(pairs) => pairs.iter().any(|(_, value)| names(value, ticket)),
        other => other.as_bytes().is_some_and(|bytes| bytes.starts_with(name.as_bytes())),
    }
}
