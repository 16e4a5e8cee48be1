//! Callers that go away, at every stage (F-07), and a storm of them.

use crate::host::{Host, spawn};
use crate::kit::{Kit, Rng, count_from_env, inside, pause, poll_once};
use respiral::{Client, ConnectOptions, Delivery, EngineKind, Error};
use respiral_testkit::{Accept, Action};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

async fn b_is_b<H: Host>(kit: &Kit<H>, client: &Client) {
    let b: String = client.get("b").await.unwrap();
    assert_eq!(b, "b");
    assert_eq!(kit.server.stats().connections_open, 1);
}

/// F-07: before the first poll, while connecting, waiting for room, queued: never sent.
pub fn f07_dropped_before_it_is_sent<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.execute(["SET", "b", "b"]);
        kit.server.accept(Accept::Silent).unwrap();
        let client = kit.lazy(kit.options().max_inflight_commands(1));
        // Before the first poll; then while the connection is made.
        drop(client.get::<String, _>("a"));
        let mut call = client.get::<String, _>("a");
        assert!(poll_once(&mut call).is_pending());
        kit.until("the connection", |stats| stats.connections_accepted == 1).await;
        drop(call);
        kit.server.open_connections().resume();
        b_is_b(&kit, &client).await;
        // Waiting for room.
        kit.server.on("INCR").withhold();
        let mut first = client.incr("n");
        assert!(poll_once(&mut first).is_pending());
        kit.until("it is sent", |stats| stats.withheld == 1).await;
        let mut call = client.get::<String, _>("a");
        assert!(poll_once(&mut call).is_pending());
        pause::<H>(Duration::from_millis(5)).await;
        drop(call);
        kit.server.release();
        assert_eq!(first.await.unwrap(), 1);
        b_is_b(&kit, &client).await;
        // Queued, before the driver's turn.
        let mut call = client.get::<String, _>("a");
        assert!(poll_once(&mut call).is_pending());
        drop(call);
        b_is_b(&kit, &client).await;
        assert_eq!(kit.count("GET a"), 0, "{:?}", kit.server.commands());
        client.close().await;
    });
}

/// F-07: half written, written, the reply half received, received: the reply is consumed in order and thrown away.
pub fn f07_dropped_after_it_is_sent<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.execute(["SET", "b", "b"]);
        kit.server.execute(["SET", "a", "secretA"]);
        let client = kit.connect().await;
        // Half written.
        kit.server.open_connections().stall();
        let mut call = client.set("big", vec![1_u8; 32 << 20]);
        assert!(poll_once(&mut call).is_pending());
        pause::<H>(Duration::from_millis(20)).await;
        drop(call);
        kit.server.open_connections().resume();
        b_is_b(&kit, &client).await;
        assert_eq!(client.cmd::<usize>("STRLEN").arg("big").await.unwrap(), 32 << 20);
        // Written.
        kit.server.on("GET").argument("a").withhold();
        let mut call = client.get::<String, _>("a");
        assert!(poll_once(&mut call).is_pending());
        kit.until("it is sent", |stats| stats.withheld == 1).await;
        drop(call);
        kit.server.release();
        kit.server.remove_rules();
        b_is_b(&kit, &client).await;
        // Half received: at every byte.
        let reply = b"$7\r\nsecretA\r\n";
        for at in 1..reply.len() {
            let rule = kit.server.on("GET").argument("a").act(Action::raw(&reply[..at]));
            let sent = kit.server.stats().bytes_sent;
            let mut call = client.get::<String, _>("a");
            assert!(poll_once(&mut call).is_pending());
            kit.until("half of it", |stats| stats.bytes_sent == sent + at as u64).await;
            pause::<H>(Duration::from_millis(2)).await;
            assert!(poll_once(&mut call).is_pending());
            drop(call);
            assert!(kit.server.push(1, &reply[at..]));
            kit.server.remove(rule);
            b_is_b(&kit, &client).await;
        }
        // Received, and not looked at.
        let mut call = client.get::<String, _>("a");
        assert!(poll_once(&mut call).is_pending());
        b_is_b(&kit, &client).await;
        drop(call);
        b_is_b(&kit, &client).await;
        assert_eq!(kit.server.connections_accepted(), 1);
        client.close().await;
    });
}

/// F-07: what is dropped gives its place back: a limit of one is never used up.
pub fn f07_places_are_given_back<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect_with(kit.options().max_inflight_commands(2)).await;
        let mut rng = Rng::new(7);
        for _ in 0..1000 {
            let mut calls: Vec<_> = (0..1 + rng.below(5)).map(|_| client.incr("n")).collect();
            for call in &mut calls {
                assert!(poll_once(call).is_pending());
            }
            if rng.below(3) == 0 {
                pause::<H>(Duration::from_micros(50)).await;
            }
            while !calls.is_empty() {
                drop(calls.swap_remove(rng.below(calls.len() as u64) as usize));
            }
        }
        client.incr("n").timeout(Duration::from_secs(20)).await.unwrap();
        client.close().await;
    });
}

const TASKS: u64 = 256;
const TAGS: u64 = 512;
const COUNTERS: u64 = 16;

/// What became of the counters.
#[derive(Clone, Copy, Default)]
struct Count {
    acknowledged: i64,
    maybe: i64,
}

struct Storm {
    client: Client,
    left: Cell<u64>,
    counts: RefCell<[Count; COUNTERS as usize]>,
    /// Calls that were given up may stay alive: they are dropped by others, at any later moment.
    keeps: bool,
    bin: RefCell<Vec<Pin<Box<dyn Future<Output = ()>>>>>,
    timeouts: Cell<u64>,
    dropped: Cell<u64>,
}

impl Storm {
    async fn task(self: Rc<Self>, mut rng: Rng) {
        while self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            if rng.below(2) == 0 {
                self.get(&mut rng).await;
            } else {
                self.incr(&mut rng).await;
            }
        }
    }

    async fn get(&self, rng: &mut Rng) {
        let tag = rng.below(TAGS);
        let call = self.client.get::<String, _>(format!("tag:{tag}"));
        match rng.below(8) {
            0 => self.give_up(call, rng),
            1 => {
                let short = Duration::from_millis(1 + rng.below(3));
                self.check(tag, call.timeout(short).await);
            }
            _ => self.check(tag, call.await),
        }
    }

    fn check(&self, tag: u64, reply: respiral::Result<String>) {
        match reply {
            Ok(value) => assert_eq!(value, format!("value of {tag}"), "another caller's reply"),
            Err(Error::Timeout(_)) => self.timeouts.set(self.timeouts.get() + 1),
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn incr(&self, rng: &mut Rng) {
        let counter = rng.below(COUNTERS);
        let note = |outcome: respiral::Result<i64>| {
            let mut counts = self.counts.borrow_mut();
            let count = &mut counts[counter as usize];
            match outcome {
                Ok(sum) => {
                    count.acknowledged += 1;
                    assert!(sum >= count.acknowledged, "another caller's reply");
                }
                Err(Error::Timeout(error)) => {
                    self.timeouts.set(self.timeouts.get() + 1);
                    count.maybe += i64::from(error.delivery == Delivery::MaybeExecuted);
                }
                Err(error) => panic!("{error:?}"),
            }
        };
        let call = self.client.incr(format!("counter:{counter}"));
        match rng.below(8) {
            0 => {
                self.counts.borrow_mut()[counter as usize].maybe += 1;
                self.give_up(call, rng);
            }
            1 => note(call.timeout(Duration::from_millis(1 + rng.below(3))).await),
            _ => note(call.await),
        }
    }

    /// Drops a call unpolled, at once, or later.
    fn give_up<T: 'static>(
        &self,
        call: impl Future<Output = respiral::Result<T>> + Unpin + 'static,
        rng: &mut Rng,
    ) {
        self.dropped.set(self.dropped.get() + 1);
        let mut call = call;
        match rng.below(4) {
            0 => drop(call),
            1 => {
                let _ = poll_once(&mut call);
            }
            _ => {
                if poll_once(&mut call).is_ready() || !self.keeps {
                    return;
                }
                let mut bin = self.bin.borrow_mut();
                let call: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move { drop(call.await) });
                let old = if bin.len() < 64 {
                    bin.push(call);
                    None
                } else {
                    let at = rng.below(64) as usize;
                    Some(std::mem::replace(&mut bin[at], call))
                };
                drop(bin);
                drop(old);
            }
        }
    }
}

/// 256 tasks that randomly drop, time out or await: no reply reaches another caller, and every counter lies between what
/// was acknowledged and that plus what may have run. `keeps`: calls that are given up stay alive for a while.
/// Tells how many deadlines have passed.
pub async fn storm<H: Host>(options: ConnectOptions, operations: u64, seed: u64, keeps: bool) -> u64 {
    let client = Client::connect_on(H::runtime(), options).await.unwrap();
    for tag in 0..TAGS {
        client.set(format!("tag:{tag}"), format!("value of {tag}")).await.unwrap();
    }
    for counter in 0..COUNTERS {
        client.set(format!("counter:{counter}"), 0).await.unwrap();
    }
    let storm = Rc::new(Storm {
        client: client.clone(),
        left: Cell::new(operations),
        counts: RefCell::default(),
        keeps,
        bin: RefCell::default(),
        timeouts: Cell::default(),
        dropped: Cell::default(),
    });
    let tasks: Vec<_> =
        (0..TASKS).map(|task| spawn::<H, _>(storm.clone().task(Rng::new(seed + task)))).collect();
    for task in tasks {
        task.result().await;
    }
    let bin = std::mem::take(&mut *storm.bin.borrow_mut());
    drop(bin);
    // Whatever was sent is answered before this.
    client.cmd::<()>("PING").await.unwrap();
    for (counter, count) in storm.counts.take().into_iter().enumerate() {
        let sum: i64 = client.get(format!("counter:{counter}")).timeout(None).await.unwrap();
        let bounds = count.acknowledged..=count.acknowledged + count.maybe;
        assert!(bounds.contains(&sum), "counter {counter}: {sum} is not in {bounds:?}; seed {seed}");
    }
    println!(
        "storm: {operations} operations, {} dropped, {} timed out, seed {seed}",
        storm.dropped.get(),
        storm.timeouts.get()
    );
    client.close().await;
    storm.timeouts.get()
}

/// The storm, against the test kit's server. `STORM` says how many operations, `SEED` which.
pub fn cancel_storm<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let operations = count_from_env("STORM", 40_000);
        storm::<H>(kit.options(), operations, count_from_env("SEED", 1), true).await;
    });
}

/// A call that has its turn and is not polled (in a `select!` that is busy elsewhere) holds up nobody.
pub fn unpolled_calls_hold_up_nobody<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect_with(kit.options().max_inflight_commands(2)).await;
        kit.server.on("INCR").times(2).withhold();
        let mut first = [client.incr("n"), client.incr("n")];
        let mut unpolled: Vec<_> = (0..5).map(|_| client.incr("n")).collect();
        for call in first.iter_mut().chain(&mut unpolled) {
            assert!(poll_once(call).is_pending());
        }
        kit.until("two are sent", |stats| stats.withheld == 2).await;
        let other = client.clone();
        let polled = spawn::<H, _>(async move { other.incr("n").timeout(None).await.unwrap() });
        pause::<H>(Duration::from_millis(5)).await;
        kit.server.release();
        let start = std::time::Instant::now();
        polled.result().await;
        assert!(start.elapsed() < Duration::from_secs(8), "held up for {:?}", start.elapsed());
        // They have not lost their place.
        for call in unpolled {
            call.await.unwrap();
        }
        client.close().await;
    });
}

/// The storm with few places, a slow server and replies in pieces.
pub fn cancel_storm_in_narrow_places<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        kit.server.all_connections().split(13);
        let operations = count_from_env("STORM", 40_000) / 4;
        let options = kit.options().max_inflight_commands(32);
        storm::<H>(options, operations, count_from_env("SEED", 2), false).await;
    });
}
