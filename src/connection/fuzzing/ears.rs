//! What a connection tells its owner.

use crate::buf::Payload;
use crate::connection::Sink;
use crate::error::{Delivery, Error};
use crate::id::TicketId;
use crate::resp::fuzzing::assert_same;
use crate::resp::{Decoder, FromReply, Value};

/// Something that a connection told.
#[derive(Debug)]
pub(super) enum Word {
    Reply(u32, Value),
    Dropped,
    Push(Value),
    Ended(u32, Delivery),
}

#[derive(Default)]
pub(super) struct Ears {
    pub words: Vec<Word>,
    /// Replies that callers keep.
    pub kept: Vec<Payload>,
    pub keeps: bool,
}

impl Sink for Ears {
    fn reply(&mut self, ticket: TicketId, payload: impl FnOnce() -> Payload) {
        let payload = payload();
        let value = Value::decode(&mut Decoder::from(&payload)).expect("a whole frame");
        self.words.push(Word::Reply(ticket.index, value.clone()));
        match value {
            _ if self.keeps => self.kept.push(payload),
            Value::Bulk(bytes) => assert_eq!(Vec::from_payload(payload), Ok(bytes)),
            Value::Integer(value) => assert_eq!(i64::from_payload(payload), Ok(value)),
            _ => {}
        }
    }

    fn reply_dropped(&mut self) {
        self.words.push(Word::Dropped);
    }

    fn push(&mut self, payload: Payload) {
        self.words.push(Word::Push(Value::from_payload(payload).expect("a whole frame")));
    }

    fn ended(&mut self, ticket: TicketId, delivery: Delivery, _: &Error) {
        self.words.push(Word::Ended(ticket.index, delivery));
    }
}

impl Ears {
    /// These words were told, and no others.
    pub(super) fn expect(&mut self, expected: impl IntoIterator<Item = Word>) {
        let expected: Vec<Word> = expected.into_iter().collect();
        let told = std::mem::take(&mut self.words);
        assert_eq!(told.len(), expected.len(), "told: {told:?}, expected: {expected:?}");
        for pair in told.iter().zip(&expected) {
            match pair {
                (Word::Reply(told, value), Word::Reply(ticket, expected)) if told == ticket => {
                    assert_same(value, expected);
                }
                (Word::Push(value), Word::Push(expected)) => assert_same(value, expected),
                (Word::Dropped, Word::Dropped) => {}
                (Word::Ended(told, delivery), Word::Ended(ticket, expected)) => {
                    assert_eq!((told, delivery), (ticket, expected));
                }
                other => panic!("told and expected: {other:?}"),
            }
        }
    }
}
