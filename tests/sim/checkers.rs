//! What must hold, whatever happens: the ledger follows each call from its caller to the kernel, to the server and back,
//! and panics at the first word that does not fit.

use crate::answer::Answer;
use crate::rng::Rng;
use crate::shrink::Cuts;
use crate::trace::Trace;
use respiral::error::{Error, Stage};
use respiral::io::ConnectionId;
use respiral::{Delivery, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A socket, and whose it is.
pub type Place = (usize, ConnectionId);

/// What every part of the world shares.
pub struct Context {
    pub now: u64,
    pub trace: Trace,
    /// What a smaller run leaves out.
    pub cuts: Cuts,
    /// Calls that callers wanted to make.
    pub asked: u64,
    pub ledger: Ledger,
    /// Chance on the server's side.
    pub rng: Rng,
}

/// How a call ended, as its caller saw it.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    Reply,
    Failed(Error),
    /// The caller went away.
    Dropped,
}

#[derive(Debug)]
struct Call {
    begun: u64,
    timeout: Option<u64>,
    /// Set at the first flush after it began.
    stamped: Option<u64>,
    /// When its frame was written to a connection's log, as a number that only grows.
    entered: Option<u64>,
    /// The engine has got it, for this socket.
    handed: Option<Place>,
    /// Its first byte went to the kernel, of this socket.
    accepted: Option<Place>,
    /// Its last byte went to the kernel.
    taken: bool,
    /// The engine has it, and it is not known how much of it the kernel took.
    sending: bool,
    /// When that became known.
    sent_at: Option<u64>,
    executed: u32,
    /// What the server made of it: a value, or the text of an error.
    answer: Option<Result<Value, String>>,
    end: Option<End>,
}

/// Everything about all calls of a run.
#[derive(Default)]
pub struct Ledger {
    calls: BTreeMap<u64, Call>,
    entries: u64,
    /// The last entry that each connection was given to send.
    last_handed: BTreeMap<(usize, u16), u64>,
    /// Calls that each socket was given and that are not over.
    owed: BTreeMap<Place, BTreeSet<u64>>,
    pub largest_frame: u64,
    /// How often something that is no RESP was sent, and how many calls were told that it stood for their reply.
    pub garbage_sent: u64,
    garbage_told: u64,
    pub counts: Counts,
}

#[derive(Default, Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub calls: u64,
    pub replies: u64,
    pub not_executed: u64,
    pub maybe: u64,
    pub answered: u64,
    pub dropped: u64,
    pub executed: u64,
    pub refused: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Virtual microseconds with faults.
    pub time: u64,
    /// Blocks that came back filled.
    pub filled: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.replies += other.replies;
        self.not_executed += other.not_executed;
        self.maybe += other.maybe;
        self.answered += other.answered;
        self.dropped += other.dropped;
        self.executed += other.executed;
        self.refused += other.refused;
        self.faults += other.faults;
        self.time += other.time;
        self.filled += other.filled;
    }
}

impl Ledger {
    fn call(&mut self, id: u64) -> &mut Call {
        self.calls.get_mut(&id).unwrap_or_else(|| panic!("nobody made call {id}"))
    }

    // --- the caller

    pub fn begin(&mut self, now: u64, timeout: Option<u64>) -> u64 {
        let id = self.calls.len() as u64 + 1;
        self.counts.calls += 1;
        let call = Call {
            begun: now,
            timeout,
            stamped: None,
            entered: None,
            handed: None,
            accepted: None,
            taken: false,
            sending: false,
            sent_at: None,
            executed: 0,
            answer: None,
            end: None,
        };
        self.calls.insert(id, call);
        id
    }

    /// The frame is written.
    pub fn entered(&mut self, id: u64, bytes: u64) {
        self.entries += 1;
        self.largest_frame = self.largest_frame.max(bytes);
        let entry = self.entries;
        let before = self.call(id).entered.replace(entry);
        assert_eq!(before, None, "call {id} is written twice");
    }

    pub fn stamp(&mut self, id: u64, now: u64) {
        self.call(id).stamped.get_or_insert(now);
    }

    /// The call's deadline, once its clock runs.
    pub fn deadline(&self, id: u64) -> Option<u64> {
        let call = &self.calls[&id];
        Some(call.stamped? + call.timeout?)
    }

    /// The caller has its outcome, or has left.
    pub fn end(&mut self, id: u64, now: u64, end: End) {
        if let End::Failed(error @ Error::Protocol(_)) = &end {
            // In set-up it ends all that wait; later it is the fault of one command.
            self.garbage_told += u64::from(error.delivery() == Delivery::MaybeExecuted);
            let is_true = self.garbage_sent > 0 && self.garbage_told <= self.garbage_sent;
            assert!(is_true, "call {id}: nothing but RESP was sent to it: {error:?}");
        }
        let call = self.call(id);
        assert!(call.end.is_none(), "call {id} ends twice: {:?}, then {end:?}", call.end);
        match &end {
            End::Reply => {
                assert_eq!(call.executed, 1, "call {id} has a reply and was not run once");
            }
            End::Dropped => {}
            End::Failed(error) => call.judge(id, now, error),
        }
        let delivery = match &end {
            End::Failed(error) => Some(error.delivery()),
            _ => None,
        };
        call.end = Some(end.clone());
        if let Some(owed) = call.handed.and_then(|socket| self.owed.get_mut(&socket)) {
            owed.remove(&id);
        }
        let counts = &mut self.counts;
        match (end, delivery) {
            (End::Reply, _) => counts.replies += 1,
            (End::Dropped, _) => counts.dropped += 1,
            (_, Some(Delivery::NotExecuted)) => counts.not_executed += 1,
            (_, Some(Delivery::MaybeExecuted)) => counts.maybe += 1,
            _ => counts.answered += 1,
        }
    }

    pub fn outcome(&self, id: u64) -> Option<&End> {
        self.calls[&id].end.as_ref()
    }

    // --- the wire

    /// The engine gets a frame to send.
    pub fn handed(&mut self, id: u64, socket: Place) {
        let connection = (socket.0, socket.1.index);
        let last = self.last_handed.get(&connection).copied().unwrap_or(0);
        let call = self.call(id);
        assert!(call.end.is_none(), "call {id} is sent after its end (SYS-006): {:?}", call.end);
        assert_eq!(call.accepted, None, "call {id}, accepted, is sent again on {socket:?} (SYS-005)");
        assert!(!call.sending, "call {id} is given to the engine twice");
        let entry = call.entered.expect("written before it is sent");
        call.sending = true;
        let before = call.handed.replace(socket);
        assert!(entry > last, "call {id} is out of order on {socket:?}");
        if let Some(owed) = before.and_then(|socket| self.owed.get_mut(&socket)) {
            owed.remove(&id);
        }
        self.owed.entry(socket).or_default().insert(id);
        self.last_handed.insert(connection, entry);
    }

    /// A new socket of a connection: the order begins again with what its forerunner did not take.
    pub fn new_socket(&mut self, socket: Place) {
        self.last_handed.remove(&(socket.0, socket.1.index));
    }

    /// A reply is owed for what a socket was given.
    pub fn owes(&self, socket: Place) -> bool {
        self.owed.get(&socket).is_some_and(|calls| !calls.is_empty())
    }

    /// The kernel has taken the frame's first byte.
    pub fn accepted(&mut self, id: u64, socket: Place) {
        let before = self.call(id).accepted.replace(socket);
        assert_eq!(before, None, "call {id} is accepted twice (SYS-005)");
    }

    /// The kernel has taken the frame's last byte.
    pub fn taken(&mut self, id: u64) {
        self.call(id).taken = true;
    }

    /// The send that carried a part of it is over.
    pub fn sent(&mut self, id: u64, now: u64) {
        let call = self.call(id);
        call.sending = false;
        call.sent_at = Some(now);
    }

    // --- the server

    pub fn executed(&mut self, id: u64, answer: &Answer, resp3: bool) {
        self.counts.executed += 1;
        let call = self.call(id);
        call.executed += 1;
        call.answer = Some(match answer {
            Answer::Error(text) => Err(text.clone()),
            answer => Ok(answer.expected(resp3)),
        });
        assert_eq!(call.executed, 1, "call {id} is run twice (SYS-005, RECON-007)");
        assert!(call.taken, "call {id} is run before its last byte was taken");
        if let Some(End::Failed(error)) = &call.end {
            let delivery = error.delivery();
            assert_ne!(
                delivery,
                Delivery::NotExecuted,
                "call {id} is run after it was told not to be: {error:?}"
            );
        }
    }

    /// It is not run, and told so.
    pub fn refused(&mut self, id: u64, text: String) {
        self.counts.refused += 1;
        self.call(id).answer = Some(Err(text));
    }

    /// The reply of a call is its own.
    pub fn check_reply(&mut self, id: u64, value: &Value) {
        let answer = &self.call(id).answer;
        if answer.as_ref().is_none_or(|answer| answer.as_ref() != Ok(value)) {
            let show = |text: String| text.chars().take(300).collect::<String>();
            let (got, meant) = (show(format!("{value:?}")), show(format!("{answer:?}")));
            panic!("call {id} has another's reply: {got} instead of {meant}");
        }
    }
}

impl Call {
    /// Is this error true?
    fn judge(&self, id: u64, now: u64, error: &Error) {
        match error.delivery() {
            Delivery::NotExecuted => {
                assert_eq!(self.executed, 0, "call {id} was run and is told it was not: {error:?}");
                if let (Error::Server(error), Some(Err(text))) = (error, &self.answer) {
                    assert_eq!(error.message(), text, "call {id} has another's refusal");
                }
                let refused = self.executed == 0 && matches!(self.answer, Some(Err(_)));
                assert!(!self.taken || refused, "call {id} may run and is told it will not: {error:?}");
            }
            Delivery::MaybeExecuted => {
                let cut = matches!(error, Error::Timeout(timeout) if timeout.stage == Stage::Writing);
                // The error is from when the deadline was noticed, the call may be polled later.
                let due = self.stamped.zip(self.timeout).map(|(stamped, timeout)| stamped + timeout);
                let unknown = cut && (self.sending || self.sent_at >= due);
                assert!(self.taken || unknown, "call {id} cannot have run (RECON-033): {error:?}");
            }
            Delivery::Answered => {
                let Error::Server(error) = error else {
                    panic!("no server's answer to call {id}: {error:?}")
                };
                let meant = self.answer.as_ref().and_then(|answer| answer.as_ref().err());
                assert_eq!(Some(error.message()), meant.map(String::as_str), "call {id} has another's error");
            }
        }
        if let Error::Timeout(timeout) = error
            && timeout.command.is_none()
        {
            let budget = self.timeout.unwrap_or_else(|| panic!("call {id} has no timeout: {error:?}"));
            let stamped = self.stamped.unwrap_or(self.begun);
            assert!(now >= stamped + budget, "call {id} timed out early: {now} < {stamped} + {budget}");
            if timeout.stage == Stage::AwaitingReply {
                assert!(self.taken, "call {id} was not sent whole: {error:?}");
            }
        }
    }
}

/// Calls that wait in line without a promise, oldest first, and those that have one or have entered.
pub struct Line {
    pub waiting: Vec<u64>,
    pub let_in: Vec<u64>,
}

/// The line is first come, first served: nobody is let in while one who came before waits on.
pub fn check_line(before: &Line, now: &Line) {
    for late in now.let_in.iter().filter(|id| !before.let_in.contains(id)) {
        let passed = before.waiting.iter().find(|id| *id < late && now.waiting.contains(id));
        assert_eq!(passed, None, "call {late} passed one that waits longer (CONN-040)");
    }
}
