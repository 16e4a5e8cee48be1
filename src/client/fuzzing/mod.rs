//! The client's machine under any legal sequence of operations: callers that come, wait, leave and are late to be polled;
//! connections that are made, cut and lied to. After each step the line, the loads, the wake-ups and the ends of calls
//! are looked at; at the end everything must be given back.

mod network;
mod text;

pub use text::text;

use super::machine::{Admission, ClientMachine, Reply};
use super::options::ConnectOptions;
use super::pushes::PushListener;
use crate::buf::{BufferPool, Log, Payload, Returns};
use crate::connection::Protocol;
use crate::connection::fuzzing::{Socket, head, names};
use crate::error::{Delivery, Error, Stage};
use crate::id::{ConnectionId, TicketId};
use crate::resp::fuzzing::{Input, rules};
use crate::resp::{Decoder, Value};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Waits,
    Entered,
    Over,
}

struct Call {
    ticket: TicketId,
    place: Place,
    padding: usize,
    timeout: Duration,
    /// When its clock began to run.
    stamped: Option<Instant>,
    bell: Arc<Bell>,
    /// It ended so: it must never run.
    is_void: bool,
}

struct World<'a> {
    input: Input<'a>,
    now: Instant,
    machine: ClientMachine,
    pool: BufferPool,
    returns: Returns,
    lent: usize,
    limits: (usize, u64),
    /// Bytes of the longest frame.
    longest: u64,
    /// One per connection.
    sockets: Vec<Option<Socket>>,
    used: BTreeSet<ConnectionId>,
    /// A call's place here is its number.
    calls: Vec<Call>,
    /// Those that are not over, in order.
    live: Vec<usize>,
    executed: BTreeSet<usize>,
    kept: Vec<Payload>,
    listener: Option<PushListener>,
    connecting: Option<(u64, Arc<Bell>)>,
    /// A server has lied.
    is_hostile: bool,
    /// At the end the engine is gone, instead of being asked to close.
    abandons: bool,
}

/// Choices, out of which options and a sequence of operations are made.
pub fn operations(data: &[u8], now: Instant) {
    let mut world = World::new(Input::new(data), now);
    while !world.input.is_over() {
        let before = world.line();
        world.step();
        world.check(&before);
    }
    world.finish();
}

fn write(number: usize, padding: usize, log: &mut Log) {
    static ZEROS: [u8; 700_000] = [0; 700_000];
    log.append(head(number as u32, padding).as_bytes());
    match padding {
        0..20_000 => log.append(&ZEROS[..padding]),
        _ => log.lend(Bytes::from_static(&ZEROS[..padding])),
    }
    log.append(b"\r\n");
}

impl<'a> World<'a> {
    fn new(mut input: Input<'a>, now: Instant) -> Self {
        let times = [Duration::from_millis(5), Duration::from_secs(1), Duration::from_secs(3600)];
        let limits = (input.pick(&[64, 1, 2, 5]), input.pick(&[1 << 24, 1, 100, 4000]));
        let options = match input.below(8) {
            0 => ConnectOptions::unix("/run/server"),
            1 => ConnectOptions::tcp("cache", 6379),
            _ => ConnectOptions::tcp("127.0.0.1", 6379),
        };
        let options = options
            .protocol(input.pick(&[Protocol::Resp2, Protocol::Auto, Protocol::Auto, Protocol::Resp3]))
            .set_info(input.below(8) == 1)
            .connections(1 + input.below(4) as u32)
            .connect_timeout(input.pick(&times))
            .command_timeout(input.flag().then(|| input.pick(&times)))
            .idle_read_timeout((input.below(4) == 1).then(|| input.pick(&times)))
            .max_inflight_commands(limits.0)
            .max_queued_bytes(limits.1)
            .write_buffer(input.pick(&[256, 1, 4096]))
            .limits(rules(input.pick(&[0, 0, 0, 0, 0x02, 0x20])).0);
        let pool = BufferPool::new(input.pick(&[8, 2, 1]), input.pick(&[4096, 64, 16_384]));
        let machine = ClientMachine::new(&options, Some(pool.clone())).expect("valid options");
        let abandons = input.below(8) == 1;
        Self {
            input,
            now,
            returns: machine.returns().clone(),
            sockets: machine.loads().map(|_| None).collect(),
            machine,
            pool,
            lent: 0,
            limits,
            longest: 0,
            used: BTreeSet::new(),
            calls: Vec::new(),
            live: Vec::new(),
            executed: BTreeSet::new(),
            kept: Vec::new(),
            listener: None,
            connecting: None,
            is_hostile: false,
            abandons,
        }
    }

    fn step(&mut self) {
        match self.input.below(24) {
            0..4 => self.begin(),
            4 => self.drop_call(),
            5 => self.wait(),
            6 | 7 => self.poll_rung(),
            8 => self.look_around(),
            9 => self.fail(),
            10..13 => self.take(),
            13..15 => self.end_send(),
            15..19 => self.receive(),
            19 => self.end_socket(),
            20 => self.machine.pass_absent(),
            _ => self.go_on(),
        }
        if self.input.below(4) != 0 {
            self.flush();
        }
    }

    // --- callers

    fn begin(&mut self) {
        let number = self.calls.len();
        let padding = match self.input.byte() {
            255 => 700_000,
            choice => [0, 0, 0, 10, 100, 3000, 0, 20_000][usize::from(choice % 8)],
        };
        let times =
            [Duration::MAX, Duration::from_millis(3), Duration::from_millis(20), Duration::from_secs(2)];
        let timeout = match self.input.below(5) {
            4 => self.machine.default_timeout(),
            time => times[time],
        };
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let submitted = self.machine.submit(timeout, &waker, |log| write(number, padding, log));
        let Some((ticket, admission)) = submitted else {
            return assert!(self.machine.poll_connected(0, &waker).is_ready(), "refused while it is open");
        };
        let call =
            Call { ticket, place: Place::Waits, padding, timeout, stamped: None, bell, is_void: false };
        self.calls.push(call);
        self.live.push(number);
        self.admitted(number, admission);
    }

    fn admitted(&mut self, number: usize, admission: Admission) {
        if admission == Admission::Entered {
            let call = &mut self.calls[number];
            call.place = Place::Entered;
            self.lent += usize::from(call.padding >= 20_000);
            self.longest =
                self.longest.max((head(number as u32, call.padding).len() + call.padding + 2) as u64);
        }
    }

    fn some_call(&mut self) -> Option<usize> {
        let at = self.input.below(self.live.len().clamp(1, 256));
        self.live.get(at).copied()
    }

    fn drop_call(&mut self) {
        let Some(number) = self.some_call() else { return };
        self.calls[number].place = Place::Over;
        self.live.retain(|live| *live != number);
        assert!(self.machine.cancel(self.calls[number].ticket).is_some(), "a call that is lost");
        assert!(self.machine.cancel(self.calls[number].ticket).is_none(), "a call that ends twice");
    }

    /// Those who were woken run, or one who was not.
    fn poll_rung(&mut self) {
        let is_rung = |number: &usize| self.calls[*number].bell.0.load(Ordering::Relaxed);
        let rung: Vec<usize> = self.live.iter().copied().filter(is_rung).collect();
        let most = 1 + self.input.below(8);
        match self.input.below(4) {
            0 => self.some_call().into_iter().for_each(|number| self.poll(number)),
            _ => rung.into_iter().take(most).for_each(|number| self.poll(number)),
        }
    }

    /// As `Call::poll` does.
    fn poll(&mut self, number: usize) {
        let Call { ticket, padding, .. } = self.calls[number];
        self.calls[number].bell.0.store(false, Ordering::Relaxed);
        if self.calls[number].place == Place::Waits && self.machine.is_granted(ticket) {
            let admission = self.machine.admit(ticket, |log| write(number, padding, log));
            self.admitted(number, admission);
        }
        match self.machine.take(ticket) {
            Some(outcome) => self.end_call(number, outcome),
            None => drop(self.machine.set_waker(ticket, &Waker::from(self.calls[number].bell.clone()))),
        }
    }

    /// Is this outcome true?
    fn end_call(&mut self, number: usize, outcome: Reply) {
        let ran = self.executed.contains(&number);
        let call = &mut self.calls[number];
        call.place = Place::Over;
        self.live.retain(|live| *live != number);
        match outcome {
            Ok(payload) if self.is_hostile => self.kept.push(payload),
            Ok(payload) => {
                assert!(ran, "call {number} has a reply and was not run");
                let value = Value::decode(&mut Decoder::from(&payload)).expect("a whole frame");
                assert!(names(&value, number as u32), "call {number} has another's reply: {value:?}");
            }
            Err(error) => {
                call.is_void = error.delivery() == Delivery::NotExecuted;
                assert!(!call.is_void || !ran, "call {number} was run and is told it was not: {error}");
                let is_writing = matches!(&error, Error::Timeout(error) if error.stage == Stage::Writing);
                assert!(
                    call.is_void || ran || is_writing || self.abandons,
                    "call {number} cannot have run: {error}"
                );
                if let Error::Timeout(error) = &error
                    && error.command.is_none()
                {
                    let due = call.stamped.expect("its clock runs") + call.timeout;
                    assert!(due <= self.now && error.budget == call.timeout, "call {number} ends early");
                }
            }
        }
    }

    fn look_around(&mut self) {
        match self.input.below(8) {
            0 => self.kept.clear(),
            1 => self.listener = Some(self.machine.listen(3)),
            2 => self.listener = None,
            3 if self.input.below(8) == 0 => {
                self.machine.close();
                self.machine.close();
            }
            4 => self.connecting = Some((self.machine.connect(), Arc::default())),
            5 => self.lie(),
            6 => self.say_stale(),
            _ => {}
        }
        if let Some(listener) = &mut self.listener {
            let heard = std::iter::from_fn(|| listener.try_next()).count() as u64;
            assert!(heard <= 3 && heard + listener.dropped() <= self.machine.pushes_seen());
        }
        if let Some((since, bell)) = &self.connecting
            && let Poll::Ready(result) = self.machine.poll_connected(*since, &Waker::from(bell.clone()))
        {
            let all = self.machine.loads().all(|load| load.is_ready);
            assert!(result.is_err() || all, "connected, but not every connection is");
            self.connecting = None;
        }
    }

    fn wait(&mut self) {
        let deadline = self.machine.next_deadline();
        self.now += match (self.input.below(5), deadline) {
            (0, Some(deadline)) => deadline.saturating_duration_since(self.now),
            (1, _) => Duration::from_secs(1),
            (step, _) => Duration::from_millis(step as u64 * 3),
        };
        self.machine.handle_timeout(self.now);
        let next = self.machine.next_deadline();
        assert!(next.is_none_or(|next| next > self.now), "a deadline that passed is still there");
        for number in self.live.clone() {
            let call = &self.calls[number];
            let due = call.stamped.and_then(|stamped| stamped.checked_add(call.timeout));
            let is_late = due.is_some_and(|due| due <= self.now);
            assert!(!is_late || self.machine.is_over(call.ticket), "call {number} is past its deadline");
        }
    }

    // --- what must hold

    /// Calls in line without a promise, and those that have one or have entered.
    fn line(&mut self) -> (Vec<usize>, BTreeSet<usize>) {
        let (mut waiting, mut let_in) = (Vec::new(), BTreeSet::new());
        for number in self.live.clone() {
            let Call { ticket, place, .. } = self.calls[number];
            if place == Place::Entered || self.machine.is_granted(ticket) {
                let_in.insert(number);
            } else if !self.machine.is_over(ticket) {
                waiting.push(number);
            }
        }
        (waiting, let_in)
    }

    fn check(&mut self, before: &(Vec<usize>, BTreeSet<usize>)) {
        let (waiting, let_in) = self.line();
        for late in let_in.difference(&before.1) {
            let passed = before.0.iter().find(|number| *number < late && waiting.contains(number));
            assert_eq!(passed, None, "call {late} passed one that waits longer");
        }
        let (_, in_line, reserved) = self.machine.held();
        assert_eq!(in_line, waiting.len());
        let promised = let_in.iter().filter(|number| self.calls[**number].place == Place::Waits).count();
        assert!(reserved <= promised, "{reserved} places are kept for {promised} calls");
        for load in self.machine.loads() {
            assert!(load.in_flight <= self.limits.0, "too many commands: {load:?}");
            assert!(load.bytes < self.limits.1 + self.longest, "too many bytes: {load:?}");
            assert!(in_line == 0 || !load.has_room, "{in_line} calls wait and there is room: {load:?}");
        }
    }

    /// Everything ends, and is given back.
    fn finish(mut self) {
        if self.abandons {
            self.machine.abandon();
        } else {
            self.machine.close();
        }
        while !self.machine.is_closed() {
            self.flush();
            let mut told = Vec::new();
            for place in &mut self.sockets {
                told.extend(place.as_mut().and_then(|socket| socket.end_send(true)).map(|(_, told)| told));
                told.extend(place.as_ref().and_then(Socket::end));
                place.take_if(|socket| socket.end().is_some());
            }
            assert!(!told.is_empty(), "the machine waits for nothing");
            told.into_iter().for_each(|completion| self.tell(Some(completion)));
        }
        self.flush();
        for number in self.live.clone() {
            self.poll(number);
            assert!(self.calls[number].place == Place::Over, "call {number} never ends");
        }
        assert!(
            self.machine.submit(Duration::MAX, Waker::noop(), |_| ()).is_none(),
            "closed, it takes calls"
        );
        assert_eq!(self.machine.held(), (0, 0, 0), "tickets, calls in line, reservations");
        if !self.abandons {
            let idle = |load: super::machine::Load| (load.in_flight, load.bytes) == (0, 0);
            assert!(self.machine.loads().all(idle) && self.machine.poll_op(self.now).is_none());
            assert_eq!((self.machine.next_deadline(), self.lent), (None, 0));
        }
        self.kept.clear();
        self.sockets.clear();
        drop(self.machine);
        assert_eq!(
            (self.pool.lent(), self.returns.take().len()),
            (0, self.lent),
            "buffers and values that were lent"
        );
    }
}
