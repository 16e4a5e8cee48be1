//! The whole core in memory: calls are submitted, sent, answered, and their replies converted, with a model server in the
//! place of kernel and network.

use super::{CALLERS, bulk};
use respiral::buf::{BufferPool, Payload};
use respiral::client::{ClientMachine, TicketId};
use respiral::io::{Completion, ConnectionId, Op};
use respiral::resp::{Encoder, FromReply};
use respiral::{Blob, ConnectOptions, Protocol};
use std::task::Waker;
use std::time::Instant;

/// What is asked, and what its reply becomes.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A string in place.
    Blob,
    /// A string that is owned: one allocation.
    Text,
    /// Bytes that are owned: one allocation.
    Bytes,
    /// A number.
    Number,
    /// `OK`.
    Ok,
    /// 16 strings in place: one allocation for their list.
    List,
}

impl Kind {
    fn encode(self, encoder: &mut Encoder<'_>) {
        match self {
            Kind::List => {
                encoder.begin(17);
                encoder.arg(b"MGET");
                return [b"key:12345678"; 16].iter().for_each(|key| encoder.arg(&key[..]));
            }
            Kind::Blob | Kind::Text | Kind::Bytes => encoder.begin_with(b"*2\r\n$3\r\nGET\r\n", 1),
            Kind::Number => encoder.begin_with(b"*2\r\n$4\r\nINCR\r\n", 1),
            Kind::Ok => encoder.begin_with(b"*3\r\n$3\r\nSET\r\n", 2),
        }
        encoder.arg(b"key:12345678");
        if let Kind::Ok = self {
            encoder.arg(&[b'v'; 64]);
        }
    }

    fn reply(self) -> Vec<u8> {
        match self {
            Kind::Blob | Kind::Text | Kind::Bytes => bulk(64),
            Kind::Number => b":1234567890\r\n".to_vec(),
            Kind::Ok => b"+OK\r\n".to_vec(),
            Kind::List => [b"*16\r\n".to_vec(), bulk(64).repeat(16)].concat(),
        }
    }

    fn convert(self, payload: Payload) {
        match self {
            Kind::Blob => assert_eq!(Blob::from_payload(payload).unwrap().len(), 64),
            Kind::Text => assert_eq!(String::from_payload(payload).unwrap().len(), 64),
            Kind::Bytes => assert_eq!(Vec::<u8>::from_payload(payload).unwrap().len(), 64),
            Kind::Number => assert_eq!(i64::from_payload(payload).unwrap(), 1_234_567_890),
            Kind::Ok => <()>::from_payload(payload).unwrap(),
            Kind::List => assert_eq!(Vec::<Blob>::from_payload(payload).unwrap().len(), 16),
        }
    }
}

struct Desk {
    machine: ClientMachine,
    pool: BufferPool,
    now: Instant,
    /// One reply.
    reply: Vec<u8>,
    /// How many bytes each connection was sent in this wave; all commands are of one length.
    sent: Vec<(ConnectionId, usize)>,
    tickets: Vec<TicketId>,
    wakers: Vec<Waker>,
}

/// One run is a wave of [`CALLERS`] operations of one kind, over so many connections.
pub fn run(kind: Kind, connections: u32) -> Box<dyn FnMut()> {
    let pool = BufferPool::new(16, 128 * 1024);
    let options = ConnectOptions::tcp("127.0.0.1", 1).protocol(Protocol::Resp2).set_info(false);
    let mut machine = ClientMachine::new(&options.connections(connections), Some(pool.clone())).unwrap();
    let now = Instant::now();
    machine.connect();
    while let Some(op) = machine.poll_op(now) {
        let Op::Connect { id, .. } = op else { panic!("{op:?}") };
        machine.handle(now, Completion::Connected { id });
    }
    let mut desk = Desk {
        machine,
        pool,
        now,
        reply: kind.reply(),
        sent: Vec::new(),
        tickets: Vec::new(),
        wakers: Vec::new(),
    };
    Box::new(move || desk.wave(kind))
}

impl Desk {
    fn wave(&mut self, kind: Kind) {
        for _ in 0..CALLERS {
            let timeout = self.machine.default_timeout();
            let encode = |log: &mut _| kind.encode(&mut Encoder::new(log));
            let (ticket, _) = self.machine.submit(timeout, Waker::noop(), encode).unwrap();
            self.tickets.push(ticket);
        }
        self.machine.stamp(self.now);
        while let Some(op) = self.machine.poll_op(self.now) {
            let Op::Send { id, data } = op else { panic!("{op:?}") };
            let bytes = data.iter().map(|slice| slice.len()).sum();
            drop(data);
            self.machine.handle(self.now, Completion::Sent { id, bytes });
            self.sent.push((id, bytes));
        }
        assert!(self.machine.next_deadline().is_some(), "the calls have deadlines");
        let bytes: usize = self.sent.iter().map(|(_, bytes)| bytes).sum();
        for (id, share) in self.sent.drain(..) {
            let (mut buffer, mut len) = (self.pool.take_free().unwrap(), 0);
            for _ in 0..CALLERS * share / bytes {
                buffer.bytes()[len..len + self.reply.len()].copy_from_slice(&self.reply);
                len += self.reply.len();
            }
            self.machine.handle(self.now, Completion::Received { id, segment: buffer.filled(len) });
        }
        self.machine.take_wakers(&mut self.wakers);
        self.wakers.drain(..).for_each(Waker::wake);
        for ticket in self.tickets.drain(..) {
            kind.convert(self.machine.take_reply(ticket).unwrap());
        }
    }
}
