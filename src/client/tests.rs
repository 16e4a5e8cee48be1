//! The client machine on virtual time: admission, deadlines, connecting again, the end.

use super::machine::{Admission, ClientMachine};
use super::options::ConnectOptions;
use crate::buf::{Segment, Transmit};
use crate::connection::Protocol;
use crate::error::{Delivery, Error, Stage};
use crate::id::{ConnectionId, TicketId};
use crate::io::{Completion, ConnectionFailure, Op};
use crate::resp::{FromReply, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A machine, the clock, and the sockets that it asked for.
struct Desk {
    machine: ClientMachine,
    now: Instant,
    /// Every connect that was asked for.
    dials: Vec<ConnectionId>,
    closes: Vec<ConnectionId>,
    /// What each send carried.
    sends: Vec<(ConnectionId, Vec<u8>)>,
    hold_sent: bool,
    wakes: Arc<Count>,
}

fn options() -> ConnectOptions {
    ConnectOptions::tcp("127.0.0.1", 6379).protocol(Protocol::Resp2).set_info(false)
}

impl Desk {
    fn new(options: ConnectOptions) -> Self {
        let machine = ClientMachine::new(&options, None).unwrap();
        let (dials, closes, sends) = (Vec::new(), Vec::new(), Vec::new());
        Self { machine, now: Instant::now(), dials, closes, sends, hold_sent: false, wakes: Arc::default() }
    }

    /// A machine whose connections are all up.
    fn up(options: ConnectOptions) -> Self {
        let mut desk = Self::new(options);
        desk.machine.connect();
        desk.pump();
        desk.accept_all();
        desk
    }

    fn pump(&mut self) {
        self.machine.stamp(self.now);
        while let Some(op) = self.machine.poll_op(self.now) {
            match op {
                Op::Connect { id, .. } => self.dials.push(id),
                Op::Send { id, data } => {
                    let bytes = gather(&data);
                    let length = bytes.len();
                    self.sends.push((id, bytes));
                    if !self.hold_sent {
                        self.machine.handle(self.now, Completion::Sent { id, bytes: length });
                    }
                }
                Op::Close { id } => self.closes.push(id),
                Op::Fill { .. } => unreachable!("no reply is so long"),
                Op::Resolve { .. } => unreachable!("addresses are numeric"),
            }
        }
        let mut wakers = Vec::new();
        self.machine.take_wakers(&mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn accept_all(&mut self) {
        for at in 0.. {
            let Some(id) = self.dials.get(at).copied() else { return };
            self.tell(Completion::Connected { id });
        }
    }

    fn tell(&mut self, completion: Completion) {
        self.machine.handle(self.now, completion);
        self.pump();
    }

    fn fail(&mut self, id: ConnectionId) {
        self.tell(Completion::Failed { id, failure: ConnectionFailure::ClosedByPeer });
    }

    /// Fails a socket and lets the engine close it, with so many bytes of an outstanding send taken.
    fn lose(&mut self, id: ConnectionId, taken: Option<usize>) {
        self.fail(id);
        if let Some(bytes) = taken {
            self.machine.handle(self.now, Completion::Sent { id, bytes });
        }
        self.tell(Completion::Closed { id });
    }

    fn receive(&mut self, id: ConnectionId, bytes: &str) {
        self.tell(Completion::Received { id, segment: Segment::copy_of(bytes.as_bytes()) });
    }

    fn call(&mut self, name: &str) -> TicketId {
        self.call_within(name, self.machine.default_timeout())
    }

    fn call_within(&mut self, name: &str, timeout: Duration) -> TicketId {
        let waker = Waker::from(self.wakes.clone());
        let (ticket, _) = self.machine.submit(timeout, &waker, |log| log.append(name.as_bytes())).unwrap();
        self.pump();
        ticket
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.machine.handle_timeout(self.now);
        self.pump();
    }

    fn text(&mut self, ticket: TicketId) -> Option<String> {
        let payload = self.machine.take(ticket)?.expect("a reply");
        Some(Value::from_payload(payload).unwrap().as_str().unwrap().to_owned())
    }

    fn error(&mut self, ticket: TicketId) -> Error {
        self.machine.take(ticket).expect("over").expect_err("an error")
    }

    fn sent(&self) -> String {
        self.sends.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect()
    }

    fn last(&self) -> ConnectionId {
        *self.dials.last().expect("a dial")
    }
}

fn gather(data: &Transmit) -> Vec<u8> {
    data.iter().flat_map(|slice| slice.to_vec()).collect()
}

fn is_over(desk: &mut Desk, ticket: TicketId) -> bool {
    desk.machine.is_over(ticket)
}

// CONN-003, CONN-029, CONN-012: nothing is opened before the first command, then the whole pool; the command waits.
#[test]
fn a_lazy_client_opens_its_pool_with_the_first_command() {
    let mut desk = Desk::new(options().connections(3));
    desk.pump();
    assert_eq!(desk.dials, []);
    let ticket = desk.call("GET k");
    assert_eq!(desk.dials.len(), 3);
    assert_eq!(desk.sent(), "");
    let admitted = |desk: &mut Desk| desk.machine.admit(ticket, |log| log.append(b"GET k"));
    assert_eq!(admitted(&mut desk), Admission::Waiting);
    desk.tell(Completion::Connected { id: desk.dials[1] });
    assert!(desk.machine.is_granted(ticket));
    assert_eq!(desk.wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(admitted(&mut desk), Admission::Entered);
    desk.pump();
    desk.receive(desk.dials[1], "+v\r\n");
    assert_eq!(desk.text(ticket).as_deref(), Some("v"));
    assert_eq!(desk.machine.held(), (0, 0, 0));
}

// CONN-001, CONN-002
#[test]
fn an_eager_client_is_there_when_all_connections_are() {
    let waker = Waker::noop();
    let mut desk = Desk::new(options().connections(2));
    desk.machine.connect();
    desk.pump();
    assert!(desk.machine.poll_connected(0, waker).is_pending());
    desk.tell(Completion::Connected { id: desk.dials[0] });
    assert!(desk.machine.poll_connected(0, waker).is_pending());
    desk.tell(Completion::Connected { id: desk.dials[1] });
    assert_eq!(desk.machine.poll_connected(0, waker), Poll::Ready(Ok(())));
    let mut refused = Desk::new(options().connections(2));
    refused.machine.connect();
    refused.pump();
    let id = refused.dials[1];
    refused.lose(id, None);
    let result = refused.machine.poll_connected(0, waker);
    assert!(matches!(&result, Poll::Ready(Err(Error::Connection(_)))), "{result:?}");
}

// CONN-040: the cap, the line behind it, in order.
#[test]
fn calls_beyond_the_cap_wait_in_line() {
    let mut desk = Desk::up(options().max_inflight_commands(2));
    let id = desk.last();
    let first = desk.call("a");
    desk.call("b");
    let third = desk.call("c");
    let fourth = desk.call("d");
    assert_eq!(desk.sent(), "ab");
    desk.receive(id, "+1\r\n");
    assert!(desk.machine.is_granted(third) && !desk.machine.is_granted(fourth));
    // A new call does not overtake the line.
    let fifth = desk.call("e");
    assert!(!desk.machine.is_granted(fifth));
    desk.machine.admit(third, |log| log.append(b"c"));
    desk.pump();
    assert_eq!(desk.sent(), "abc");
    assert_eq!(desk.text(first).as_deref(), Some("1"));
    // The next place goes to the fourth; when its caller leaves, to the fifth.
    desk.receive(id, "+2\r\n");
    assert!(desk.machine.is_granted(fourth));
    drop(desk.machine.cancel(fourth));
    assert!(desk.machine.is_granted(fifth));
}

#[test]
fn the_byte_quota_stops_admission() {
    let mut desk = Desk::up(options().max_queued_bytes(10));
    let id = desk.last();
    desk.call("0123456789");
    let waiting = desk.call("x");
    assert!(!desk.machine.is_granted(waiting));
    desk.receive(id, "+1\r\n");
    assert!(desk.machine.is_granted(waiting));
}

// One byte that is free calls those whom it will serve, not all who wait.
#[test]
fn a_free_byte_does_not_call_the_whole_line() {
    let mut desk = Desk::up(options().max_queued_bytes(25));
    let id = desk.last();
    let sent: Vec<_> = (0..3).map(|_| desk.call("0123456789")).collect();
    let waiting: Vec<_> = (0..100).map(|_| desk.call("0123456789")).collect();
    desk.receive(id, "+1\r\n+2\r\n");
    let granted = |desk: &mut Desk| waiting.iter().filter(|ticket| desk.machine.is_granted(**ticket)).count();
    assert_eq!(granted(&mut desk), 2);
    for ticket in &waiting[..2] {
        assert_eq!(desk.machine.admit(*ticket, |log| log.append(b"0123456789")), Admission::Entered);
    }
    desk.pump();
    assert_eq!(granted(&mut desk), 0);
    assert!(sent.len() == 3 && desk.machine.held().0 == 103);
}

// CONN-031, CONN-112: each stage, on time, with its delivery.
#[test]
fn deadlines_in_every_stage() {
    let second = Duration::from_secs(1);
    let mut desk = Desk::up(options().max_inflight_commands(2).command_timeout(Some(second)));
    desk.hold_sent = true;
    let writing = desk.call("a");
    let buffered = desk.call("b");
    let waiting = desk.call("c");
    assert_eq!(desk.sent(), "a");
    desk.wait(second - Duration::from_nanos(1));
    assert!(!is_over(&mut desk, writing));
    desk.wait(Duration::from_nanos(1));
    let expected = [
        (writing, Stage::Writing, Delivery::MaybeExecuted),
        (buffered, Stage::Buffered, Delivery::NotExecuted),
        (waiting, Stage::WaitingForCapacity, Delivery::NotExecuted),
    ];
    for (ticket, stage, delivery) in expected {
        match desk.error(ticket) {
            Error::Timeout(error) => assert_eq!((error.stage, error.delivery), (stage, delivery)),
            other => panic!("{other:?}"),
        }
    }
    // What was withdrawn is never sent; the written one keeps its place (SYS-006, CONN-107).
    let id = desk.last();
    desk.tell(Completion::Sent { id, bytes: 1 });
    let next = desk.call("d");
    desk.tell(Completion::Sent { id, bytes: 1 });
    assert_eq!(desk.sent(), "ad");
    desk.receive(id, "+late\r\n+mine\r\n");
    assert_eq!(desk.text(next).as_deref(), Some("mine"));
    assert_eq!(desk.machine.replies_dropped(), 1);
}

#[test]
fn a_sent_command_awaits_its_reply() {
    let mut desk = Desk::up(options());
    let ticket = desk.call_within("GET k", Duration::from_millis(50));
    let patient = desk.call_within("GET l", Duration::MAX);
    desk.wait(Duration::from_millis(50));
    match desk.error(ticket) {
        Error::Timeout(error) => {
            assert_eq!(error.stage, Stage::AwaitingReply);
            assert_eq!(error.budget, Duration::from_millis(50));
            assert_eq!(error.endpoint.as_deref(), Some("127.0.0.1:6379"));
        }
        other => panic!("{other:?}"),
    }
    desk.wait(Duration::from_secs(100_000));
    assert!(!is_over(&mut desk, patient));
}

// RECON-007, RECON-011, RECON-033, SYS-005: the replacement starts at once; what the kernel had is not sent again, what
// it never saw is, in order.
#[test]
fn a_lost_connection() {
    let mut desk = Desk::up(options());
    desk.hold_sent = true;
    let id = desk.last();
    let sent = desk.call("one.");
    let cut = desk.call("two.");
    desk.tell(Completion::Sent { id, bytes: 4 });
    let queued = desk.call("three.");
    desk.lose(id, Some(2));
    assert_eq!(desk.dials.len(), 2, "at once, without a command");
    let maybe = desk.error(sent);
    assert!(maybe.is_connection());
    assert_eq!(maybe.delivery(), Delivery::MaybeExecuted);
    assert_eq!(desk.error(cut).delivery(), Delivery::NotExecuted);
    assert!(!is_over(&mut desk, queued));
    desk.sends.clear();
    desk.hold_sent = false;
    let id = desk.last();
    desk.tell(Completion::Connected { id });
    assert_eq!(desk.sent(), "three.");
    desk.receive(id, "+3\r\n");
    assert_eq!(desk.text(queued).as_deref(), Some("3"));
}

// RECON-011, RECON-015: a failed replacement waits for the next use; callers share one attempt.
#[test]
fn a_failed_replacement_is_tried_again_on_demand() {
    let mut desk = Desk::up(options());
    let id = desk.last();
    desk.lose(id, None);
    let waiting: Vec<TicketId> = (0..100).map(|_| desk.call("GET k")).collect();
    assert_eq!(desk.dials.len(), 2);
    let id = desk.last();
    desk.lose(id, None);
    for ticket in waiting {
        let error = desk.error(ticket);
        assert!(error.is_connection());
        assert_eq!(error.delivery(), Delivery::NotExecuted);
    }
    desk.wait(Duration::from_secs(60));
    assert_eq!(desk.dials.len(), 2);
    let ticket = desk.call("GET k");
    assert_eq!(desk.dials.len(), 3);
    let id = desk.last();
    desk.tell(Completion::Connected { id });
    assert!(desk.machine.is_granted(ticket));
}

// RECON-030: a waiting caller's own deadline counts.
#[test]
fn waiting_for_a_connection_has_the_calls_deadline() {
    let mut desk = Desk::new(options());
    let ticket = desk.call_within("GET k", Duration::from_millis(50));
    desk.wait(Duration::from_millis(50));
    match desk.error(ticket) {
        Error::Timeout(error) => assert_eq!(error.stage, Stage::WaitingForCapacity),
        other => panic!("{other:?}"),
    }
    assert_eq!(desk.machine.held(), (0, 0, 0));
}

// SYS-012, F-07: the end of everything, in every stage, each with its delivery.
#[test]
fn close_ends_every_call() {
    let mut desk = Desk::up(options().max_inflight_commands(2));
    desk.hold_sent = true;
    let sent = desk.call("a");
    let queued = desk.call("b");
    let waiting = desk.call("c");
    desk.machine.close();
    desk.machine.close();
    desk.pump();
    assert!(!desk.machine.is_closed());
    let id = desk.last();
    desk.machine.handle(desk.now, Completion::Sent { id, bytes: 1 });
    desk.tell(Completion::Closed { id });
    assert!(desk.machine.is_closed());
    assert_eq!(desk.error(sent), Error::Closed(Delivery::MaybeExecuted));
    assert_eq!(desk.error(queued), Error::Closed(Delivery::NotExecuted));
    assert_eq!(desk.error(waiting), Error::Closed(Delivery::NotExecuted));
    let late = desk.machine.submit(Duration::MAX, Waker::noop(), |_| unreachable!("nothing is encoded"));
    assert_eq!(late.map(|_| ()), None);
    assert_eq!(desk.machine.held(), (0, 0, 0));
    assert_eq!(desk.closes.len(), 1);
}

// The pool spreads calls by what is in flight.
#[test]
fn the_least_busy_connection_gets_the_call() {
    let mut desk = Desk::up(options().connections(3));
    for _ in 0..30 {
        desk.call("x");
    }
    for id in desk.dials.clone() {
        assert_eq!(desk.sends.iter().filter(|(to, _)| *to == id).count(), 10);
    }
}

#[test]
fn connections_that_hang_are_left_alone() {
    let mut desk = Desk::up(options().connections(3));
    let lively = desk.dials[1];
    let mut answered = 0;
    let sent = |desk: &Desk, id| desk.sends.iter().filter(|(to, _)| *to == id).count();
    for _ in 0..200 {
        desk.call("x");
        while answered < sent(&desk, lively) {
            answered += 1;
            desk.receive(lively, "+v\r\n");
        }
    }
    for id in desk.dials.clone() {
        assert!(id == lively || sent(&desk, id) < 5, "{} calls to one that hangs", sent(&desk, id));
    }
}

// A user's argument may panic while a waiting call is let in: its place goes to the next, and nobody else's is lost.
#[test]
fn a_panic_while_a_call_is_admitted_costs_only_that_call() {
    let mut desk = Desk::up(options().max_inflight_commands(2));
    let id = desk.last();
    desk.call("a");
    desk.call("b");
    let (torn, good, behind) = (desk.call("c"), desk.call("d"), desk.call("e"));
    desk.receive(id, "+1\r\n+2\r\n");
    assert!(desk.machine.is_granted(torn) && desk.machine.is_granted(good));
    let admit = || desk.machine.admit(torn, |_| panic!("this panic belongs to the test"));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(admit)).unwrap_err();
    drop(desk.machine.cancel(torn));
    assert_eq!(desk.machine.held().2, 2);
    for ticket in [good, behind] {
        assert!(desk.machine.is_granted(ticket));
        assert_eq!(desk.machine.admit(ticket, |log| log.append(b"x")), Admission::Entered);
    }
    assert_eq!((desk.machine.held().1, desk.machine.held().2), (0, 0));
}

// A frame without bytes leaves no gap that hides a later one.
#[test]
fn an_empty_frame_is_taken_back_without_a_trace() {
    let mut desk = Desk::up(options());
    desk.hold_sent = true;
    let id = desk.last();
    let mut submit = |text: &str| {
        let encode = |log: &mut crate::buf::Log| log.append(text.as_bytes());
        desk.machine.submit(Duration::MAX, Waker::noop(), encode).unwrap().0
    };
    submit("aaaaa");
    let (empty, second) = (submit(""), submit("bbbbb"));
    drop(desk.machine.cancel(empty));
    drop(desk.machine.cancel(second));
    desk.pump();
    desk.tell(Completion::Sent { id, bytes: 5 });
    desk.call("ccccc");
    assert_eq!(desk.sent(), "aaaaaccccc");
}

// H18: when the reply has arrived, it wins over a deadline that has passed.
#[test]
fn a_late_turn_prefers_the_reply() {
    let mut desk = Desk::up(options());
    let ticket = desk.call_within("GET k", Duration::from_millis(5));
    desk.now += Duration::from_secs(1);
    desk.receive(desk.last(), "+v\r\n");
    desk.wait(Duration::ZERO);
    assert_eq!(desk.text(ticket).as_deref(), Some("v"));
}

// A future that has its turn and is not polled (in a `select!` that is busy elsewhere) holds up nobody, and keeps its
// place in the order.
#[test]
fn an_absent_caller_is_passed_over() {
    let mut desk = Desk::up(options().max_inflight_commands(1));
    let id = desk.last();
    desk.call("a");
    let absent = desk.call("b");
    let present = desk.call("c");
    desk.receive(id, "+1\r\n");
    assert!(desk.machine.is_granted(absent) && !desk.machine.is_granted(present));
    assert!(desk.machine.needs_turn());
    desk.machine.pass_absent();
    desk.pump();
    assert!(desk.machine.is_granted(present));
    assert_eq!(desk.machine.admit(present, |log| log.append(b"c")), Admission::Entered);
    // It comes at last: there is no room, and it stands where it stood, before those who came later.
    let later = desk.call("d");
    assert_eq!(desk.machine.admit(absent, |log| log.append(b"b")), Admission::Waiting);
    desk.pump();
    desk.receive(id, "+2\r\n");
    assert!(desk.machine.is_granted(absent) && !desk.machine.is_granted(later));
    drop(desk.machine.cancel(absent));
    drop(desk.machine.cancel(later));
    desk.machine.pass_absent();
    assert_eq!(desk.machine.held(), (2, 0, 0), "two replies that nobody took");
}

// A pool that lost a connection, and whose replacement failed, is whole again after a while, given traffic.
#[test]
fn a_pool_heals() {
    let mut desk = Desk::up(options().connections(2));
    desk.now += Duration::from_secs(5);
    let lost = desk.dials[1];
    desk.lose(lost, None);
    let id = desk.last();
    desk.lose(id, None);
    assert_eq!(desk.dials.len(), 3);
    desk.call("a");
    assert_eq!(desk.dials.len(), 3, "not with every command");
    desk.wait(Duration::from_secs(1));
    desk.call("b");
    assert_eq!(desk.dials.len(), 4);
}

// H40: a client of many connections dials some at a time, at first and when it has lost them all; and when they all fail,
// it leaves the rest to the next call.
#[test]
fn h40_many_are_dialled_within_a_cap() {
    const MANY: usize = 1000;
    const CAP: usize = 128;
    let mut desk = Desk::new(options().connections(MANY as u32));
    let all_up = |desk: &mut Desk| desk.machine.poll_connected(u64::MAX, Waker::noop()).is_ready();
    let accept_rest = |desk: &mut Desk, mut up: usize, end: usize| {
        while up < end {
            assert_eq!(desk.dials.len(), (up + CAP).min(end), "as one comes up, another is dialled");
            let id = desk.dials[up];
            up += 1;
            desk.tell(Completion::Connected { id });
        }
    };
    desk.machine.connect();
    desk.pump();
    accept_rest(&mut desk, 0, MANY);
    assert!(all_up(&mut desk));

    // The server goes: all are lost at once, and it is back.
    desk.now += Duration::from_secs(5);
    let lost = desk.dials.clone();
    lost.iter().for_each(|id| desk.fail(*id));
    assert_eq!(desk.dials.len(), MANY);
    lost.iter().for_each(|id| desk.tell(Completion::Closed { id: *id }));
    assert_eq!(desk.dials.len(), MANY + CAP);
    let call = desk.call("a");
    assert_eq!(desk.dials.len(), MANY + CAP, "a call that waits does not raise the cap");
    accept_rest(&mut desk, MANY, 2 * MANY);
    assert!(all_up(&mut desk) && desk.machine.is_granted(call));
    drop(desk.machine.cancel(call));

    // It goes for good: a failure ends the wave, and with its last dial the calls in line.
    desk.now += Duration::from_secs(5);
    let lost = desk.dials.split_off(MANY);
    lost.iter().for_each(|id| desk.fail(*id));
    lost.iter().for_each(|id| desk.tell(Completion::Closed { id: *id }));
    let wave = desk.dials.split_off(MANY);
    let call = desk.call("a");
    for id in &wave {
        assert!(!is_over(&mut desk, call));
        desk.lose(*id, None);
    }
    assert_eq!((wave.len(), desk.dials.len()), (CAP, MANY), "nobody dials on");
    assert_eq!(desk.error(call).delivery(), Delivery::NotExecuted);
    desk.call("b");
    assert_eq!(desk.dials.len(), MANY + CAP);
}

// Ten thousand connections cost a turn nothing: only what was touched is looked at. It must not be overlooked either.
#[test]
fn each_of_many_connections_is_seen() {
    const MANY: usize = 3000;
    let mut desk = Desk::new(options().connections(MANY as u32).idle_read_timeout(Duration::from_secs(60)));
    desk.machine.connect();
    desk.pump();
    assert!(desk.machine.next_deadline().is_some(), "connecting has an end");
    desk.accept_all();
    assert_eq!(desk.dials.len(), MANY);
    assert!(desk.machine.poll_connected(0, Waker::noop()).is_ready());
    assert_eq!(desk.machine.next_deadline(), None, "an idle connection has no timer");

    let calls: Vec<TicketId> = (0..MANY).map(|_| desk.call_within("x", Duration::MAX)).collect();
    let busy: std::collections::HashSet<u16> = desk.sends.iter().map(|(id, _)| id.index).collect();
    assert_eq!(busy.len(), MANY, "idle connections are taken first");
    let silent = desk.sends[MANY / 2].0;
    for id in desk.sends.iter().map(|(id, _)| *id).filter(|id| *id != silent).collect::<Vec<_>>() {
        desk.receive(id, "+y\r\n");
    }
    assert!(calls.iter().enumerate().all(|(i, call)| desk.machine.is_over(*call) == (i != MANY / 2)));
    desk.wait(Duration::from_secs(61));
    assert_eq!(desk.closes, [silent], "its silence has an end, and it alone is closed");
    desk.machine.close();
    desk.pump();
    let dials = desk.dials.clone();
    dials.into_iter().for_each(|id| desk.tell(Completion::Closed { id }));
    assert!(desk.machine.is_closed());
}

// A forked child ends what its parent has sent, without an engine.
#[test]
fn abandoned_calls_are_told_how_far_they_came() {
    let mut desk = Desk::up(options());
    desk.hold_sent = true;
    let (sent, queued) = (desk.call("<sent>"), desk.call("<queued>"));
    desk.machine.abandon();
    assert_eq!(desk.error(sent), Error::Closed(Delivery::MaybeExecuted));
    assert_eq!(desk.error(queued), Error::Closed(Delivery::NotExecuted));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(choice: u8, text in "([a-zA-Z0-9:@/?&=%. ]{0,12}|.{0,6}){0,5}") {
        super::fuzzing::text(&[&[choice], text.as_bytes()].concat());
    }

    #[test]
    fn any_operations_leave_nothing_behind(choices in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..1200)) {
        super::fuzzing::operations(&choices, Instant::now());
    }
}

#[test]
fn what_fuzzing_has_kept() {
    crate::resp::fuzzing::replay("client", |choices| super::fuzzing::operations(choices, Instant::now()));
    crate::resp::fuzzing::replay("text", super::fuzzing::text);
    crate::resp::fuzzing::replay("decode", crate::command::fuzzing::decode);
}
