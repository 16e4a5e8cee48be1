//! The end of a client, of its driver and of its runtime, in any order and at any moment.

use crate::host::{Host, spawn, spawn_with};
use crate::kit::{Kit, descriptors, descriptors_at_rest, expect_leak, inside, pause, poll_once, until};
use respiral::{Blob, Client, Delivery, EngineKind, Error, Runtime, Watch};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn closed(delivery: Delivery) -> Error {
    Error::Closed(delivery)
}

/// Three calls that wait: one in line, one sent; and their runtime.
struct Pending {
    client: Client,
    sent: Pin<Box<dyn Future<Output = respiral::Result<i64>>>>,
    in_line: Vec<Pin<Box<dyn Future<Output = respiral::Result<i64>>>>>,
}

impl Pending {
    async fn new<H: Host>(kit: &Kit<H>, client: Client) -> Self {
        client.connected().await.unwrap();
        kit.server.on("INCR").withhold();
        let incr = |key: &'static str| {
            let client = client.clone();
            let call: Pin<Box<dyn Future<Output = _>>> = Box::pin(async move { client.incr(key).await });
            call
        };
        let (mut sent, mut in_line) = (incr("n"), vec![incr("m"), incr("m")]);
        let withheld = kit.server.stats().withheld;
        assert!(poll_once(&mut sent).is_pending());
        kit.until("it is sent", |stats| stats.withheld == withheld + 1).await;
        for call in &mut in_line {
            assert!(poll_once(call).is_pending());
        }
        Self { client, sent, in_line }
    }

    /// All are over, with what is known of each; later calls too.
    fn check(mut self) {
        let over = |call: &mut Pin<Box<dyn Future<Output = _>>>| match poll_once(call) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("a call waits for ever"),
        };
        assert_eq!(over(&mut self.sent), Err(closed(Delivery::MaybeExecuted)));
        for mut call in self.in_line {
            assert_eq!(over(&mut call), Err(closed(Delivery::NotExecuted)));
        }
        let mut late = self.client.incr("n");
        assert_eq!(poll_once(&mut late), Poll::Ready(Err(closed(Delivery::NotExecuted))));
        assert!(!self.client.is_connected());
    }
}

fn one_in_flight<H: Host>(kit: &Kit<H>) -> respiral::ConnectOptions {
    kit.options().max_inflight_commands(1)
}

/// H1: client, then runtime: no descriptor is left and the peer sees the end.
pub fn h01_client_then_runtime<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    let before = descriptors_at_rest();
    for explicit in [true, false] {
        let mut host = H::start();
        H::block_on(&mut host, async {
            let client = kit.connect_with(kit.options().connections(3)).await;
            client.set("k", vec![0; 100_000]).await.unwrap();
            if explicit {
                client.close().await;
            }
        });
        drop(host);
        assert!(kit.server.wait_for(|stats| stats.connections_open == 0), "no end of stream");
        assert!(descriptors_at_rest() <= before);
    }
    // The runtime first, the client later.
    let mut host = H::start();
    let client = H::block_on(&mut host, kit.connect());
    if H::DROPS_TASKS {
        drop(host);
        assert_eq!(
            poll_once(&mut client.incr("n")),
            Poll::Ready(Err(closed(Delivery::NotExecuted))),
            "the driver is gone"
        );
        drop(client);
    } else {
        // monoio leaks what waits, and its own ring with it: the client has to be closed first.
        drop(client.close_on_drop());
        drop(client);
        drop(host);
    }
    assert!(kit.server.wait_for(|stats| stats.connections_open == 0), "no end of stream");
    assert!(descriptors_at_rest() <= before);
}

/// H4: a hundred runtimes, each left with calls that wait in tasks; a guard in the main future closes the client.
pub fn h04_a_hundred_runtimes<H: Host>(engine: EngineKind) {
    const RUNTIMES: usize = 100;
    let kit = Kit::<H>::new(engine);
    // What the host leaks by itself for three tasks that wait for a descriptor.
    let run = |clients: bool| {
        let mut host = H::start();
        H::block_on(&mut host, async {
            if clients {
                kit.server.on("INCR").withhold();
                let client = kit.connect().await;
                let _guard = client.close_on_drop();
                let before = kit.server.stats().withheld;
                for _ in 0..3 {
                    let client = client.clone();
                    spawn::<H, _>(async move { client.incr("n").await });
                }
                kit.until("they wait", |stats| stats.withheld == before + 3).await;
            } else {
                for _ in 0..3 {
                    spawn::<H, _>(std::future::pending::<()>());
                }
                pause::<H>(Duration::from_millis(1)).await;
            }
        });
        drop(host);
        kit.server.remove_rules();
    };
    expect_leak();
    let start = descriptors_at_rest();
    for _ in 0..RUNTIMES {
        run(false);
    }
    let baseline = descriptors_at_rest().saturating_sub(start);
    let start = descriptors_at_rest();
    for _ in 0..RUNTIMES {
        run(true);
    }
    assert!(kit.server.wait_for(|stats| stats.connections_open == 0));
    // The server's sockets are closed by now, and so are ours.
    let grown = descriptors_at_rest().saturating_sub(start);
    assert!(grown <= baseline, "{grown} descriptors are left; the host alone leaves {baseline}");
    assert!(H::DROPS_TASKS || baseline <= RUNTIMES, "{baseline}");
    assert!(!H::DROPS_TASKS || baseline == 0, "{baseline}");
    assert_eq!(respiral::engine::leaked_engines(), 0);
}

/// A task that can be ended from outside, under every host.
struct Stoppable {
    task: Option<Pin<Box<dyn Future<Output = ()>>>>,
    stop: Rc<Stop>,
}

#[derive(Default)]
struct Stop {
    now: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Future for Stoppable {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.stop.now.get() {
            self.task = None;
            return Poll::Ready(());
        }
        *self.stop.waker.borrow_mut() = Some(cx.waker().clone());
        self.task.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(cx))
    }
}

/// H5: the driver is dropped while three calls wait.
pub fn h05_driver_dropped<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let (client, driver) = Client::with_driver(&H::runtime(), one_in_flight(&kit)).unwrap();
        let stop = Rc::new(Stop::default());
        let task = spawn::<H, _>(Stoppable { task: Some(Box::pin(driver)), stop: stop.clone() });
        let pending = Pending::new(&kit, client).await;
        stop.now.set(true);
        let waker = stop.waker.take().unwrap();
        waker.wake();
        task.result().await;
        let client = pending.client.clone();
        pending.check();
        client.close().await;
    });
}

/// H5: the host aborts the driver while three calls wait; and one that was never polled.
pub fn h05_driver_aborted<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let (client, driver) = Client::with_driver(&H::runtime(), one_in_flight(&kit)).unwrap();
        let (join, task) = spawn_with::<H, _>(driver);
        let pending = Pending::new(&kit, client).await;
        if H::abort(&task) {
            assert!(join.outcome().await.is_none());
            pending.check();
        } else {
            pending.client.close().await;
            pending.check();
        }

        let (client, driver) = Client::with_driver(&H::runtime(), kit.options()).unwrap();
        let mut call = client.incr("n");
        assert!(poll_once(&mut call).is_pending());
        drop(driver);
        assert_eq!(call.await, Err(closed(Delivery::NotExecuted)));
        client.close().await;
    });
}

/// H5: the runtime goes while three calls wait.
pub fn h05_runtime_dropped<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    let mut host = H::start();
    let pending = H::block_on(&mut host, async {
        let client = kit.lazy(one_in_flight(&kit));
        Pending::new(&kit, client).await
    });
    if !H::DROPS_TASKS {
        // What the documentation asks of those who use such a host.
        drop(pending.client.close_on_drop());
    }
    drop(host);
    pending.check();
    assert!(kit.server.wait_for(|stats| stats.connections_open == 0));
}

/// A runtime whose wait panics when it is told to.
#[derive(Clone)]
struct Panicking<R>(R, Rc<Cell<bool>>);

struct PanickingWatch<W>(W, Rc<Cell<bool>>);

impl<R: Runtime> Runtime for Panicking<R> {
    type Watch = PanickingWatch<R::Watch>;
    fn spawn_local(&self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn_local(task);
    }
    fn watch(&self, descriptor: std::os::fd::OwnedFd) -> std::io::Result<Self::Watch> {
        Ok(PanickingWatch(self.0.watch(descriptor)?, self.1.clone()))
    }
}

impl<W: Watch> Watch for PanickingWatch<W> {
    async fn ready(&self) -> std::io::Result<()> {
        let result = self.0.ready().await;
        assert!(!self.1.get(), "this panic belongs to the test");
        result
    }
}

/// H5: the driver panics, which some hosts swallow and others let through; no call waits for ever.
pub fn h05_driver_panics<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    let mut host = H::start();
    let panics = Rc::new(Cell::new(false));
    let runtime = Panicking(H::runtime(), panics.clone());
    let pending = H::block_on(&mut host, async {
        let client = Client::lazy_on(runtime, one_in_flight(&kit)).unwrap();
        Pending::new(&kit, client).await
    });
    panics.set(true);
    let client = pending.client.clone();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let gone = || {
            // The driver may take one without a wait.
            kit.server.push(1, b">1\r\n+wake\r\n");
            !client.is_connected()
        };
        H::block_on(&mut host, until::<H>("the driver is gone", gone));
    }));
    assert!(H::DROPS_TASKS || unwound.is_err(), "who swallowed it?");
    pending.check();
    drop(client);
    if H::DROPS_TASKS {
        drop(host);
    } else {
        // A loop that unwound is of no use; it keeps what it had.
        expect_leak();
        drop(catch_unwind(AssertUnwindSafe(|| drop(host))));
    }
    assert!(kit.server.wait_for(|stats| stats.connections_open == 0));
}

/// How a client comes to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Close,
    Guard,
    Driver,
    Runtime,
}

/// Callers that go on until their client is closed, and what they know.
#[derive(Default)]
struct Load {
    acknowledged: Cell<i64>,
    maybe: Cell<i64>,
    over: Cell<usize>,
}

impl Load {
    async fn call(self: Rc<Self>, client: Client, key: String) {
        loop {
            match client.incr(&key).await {
                Ok(_) => self.acknowledged.set(self.acknowledged.get() + 1),
                Err(Error::Closed(delivery)) => {
                    let maybe = i64::from(delivery == Delivery::MaybeExecuted);
                    self.maybe.set(self.maybe.get() + maybe);
                    return self.over.set(self.over.get() + 1);
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

/// Closed, guarded, left by its driver or by its runtime, at any moment under load: every call ends with `Closed`, the
/// server has counted what was acknowledged and at most what may have run besides, and nothing is left.
pub fn ended_at_any_moment<H: Host>(engine: EngineKind) {
    const CALLERS: usize = 64;
    let kit = Kit::<H>::new(engine);
    kit.server.record(false);
    let before = descriptors_at_rest();
    for round in 0..60_i64 {
        let end = [End::Close, End::Guard, End::Driver, End::Runtime][round as usize % 4];
        if end == End::Runtime && !H::DROPS_TASKS {
            // Such a host keeps what waits, and H4 has the rule for it.
            continue;
        }
        let key = format!("n:{round}");
        let load = Rc::new(Load::default());
        let mut host = H::start();
        let client = H::block_on(&mut host, async {
            let options = kit.options().connections(2);
            let (client, driver) = Client::with_driver(&H::runtime(), options).unwrap();
            let stop = Rc::new(Stop::default());
            drop(spawn::<H, _>(Stoppable { task: Some(Box::pin(driver)), stop: stop.clone() }));
            client.connected().await.unwrap();
            let guard = client.close_on_drop();
            for _ in 0..CALLERS {
                drop(spawn::<H, _>(load.clone().call(client.clone(), key.clone())));
            }
            let enough = 1 + round * round % 997;
            until::<H>("some are acknowledged", || load.acknowledged.get() >= enough).await;
            match end {
                End::Guard => drop(guard),
                End::Close => client.close().await,
                End::Driver => {
                    guard.disarm();
                    stop.now.set(true);
                    stop.waker.take().unwrap().wake();
                }
                End::Runtime => {
                    guard.disarm();
                    return client;
                }
            }
            until::<H>("all calls are over", || load.over.get() == CALLERS).await;
            client
        });
        drop(host);
        assert_eq!(
            poll_once(&mut client.incr("n")),
            Poll::Ready(Err(closed(Delivery::NotExecuted))),
            "{end:?}"
        );
        drop(client);
        assert!(kit.server.wait_for(|stats| stats.connections_open == 0), "{end:?}");
        // A dropped call of a runtime that is gone tells nobody what it knew.
        let unknown = if end == End::Runtime { CALLERS as i64 } else { load.maybe.get() };
        let reply = String::from_utf8(kit.server.execute(["GET", &key])).unwrap();
        let sum: i64 = reply.lines().nth(1).unwrap().parse().unwrap();
        let bounds = load.acknowledged.get()..=load.acknowledged.get() + unknown;
        assert!(bounds.contains(&sum), "{end:?}: {sum} is not in {bounds:?}");
    }
    assert!(descriptors_at_rest() <= before);
    assert_eq!(respiral::engine::leaked_engines(), 0);
}

thread_local! {
    static KEPT: RefCell<Option<Last>> = const { RefCell::new(None) };
}

static READ_IN_DESTRUCTOR: AtomicUsize = AtomicUsize::new(0);

struct Last(Blob);

impl Drop for Last {
    fn drop(&mut self) {
        let sum = self.0.chunks().flatten().map(|byte| usize::from(*byte)).sum();
        READ_IN_DESTRUCTOR.store(sum, Ordering::SeqCst);
    }
}

/// H6: a kept reply outlives client and runtime, and even the thread's other values.
pub fn h06_kept_replies_outlive_everything<H: Host>(engine: EngineKind) {
    const LEN: usize = 200_000;
    READ_IN_DESTRUCTOR.store(0, Ordering::SeqCst);
    let thread = std::thread::spawn(move || {
        let kit = Kit::<H>::new(engine);
        let mut host = H::start();
        let (kept, other) = H::block_on(&mut host, async {
            let client = kit.connect().await;
            client.set("k", vec![3_u8; LEN]).await.unwrap();
            let kept: Blob = client.get("k").await.unwrap();
            let other: Blob = client.get("k").await.unwrap();
            client.close().await;
            (kept, other)
        });
        drop(host);
        drop(kit);
        assert_eq!(other.len(), LEN);
        assert!(other.chunks().flatten().all(|byte| *byte == 3));
        drop(other);
        KEPT.with(|place| *place.borrow_mut() = Some(Last(kept)));
    });
    thread.join().unwrap();
    assert_eq!(READ_IN_DESTRUCTOR.load(Ordering::SeqCst), 3 * LEN);
}

/// `close`: every call ends, the peer sees it, and it may be asked for again, by anyone.
pub fn close_ends_everything<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        // monoio closes what a pause waited for a little later.
        pause::<H>(Duration::from_millis(1)).await;
        let before = descriptors_at_rest();
        let client = kit.lazy(one_in_flight(&kit));
        let pending = Pending::new(&kit, client).await;
        let client = pending.client.clone();
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move { client.close().await })
            })
            .collect();
        client.close().await;
        for task in tasks {
            task.result().await;
        }
        client.close().await;
        pending.check();
        assert_eq!(client.incr("n").await, Err(closed(Delivery::NotExecuted)));
        assert_eq!(client.connected().await, Err(closed(Delivery::NotExecuted)));
        kit.until("the end of the stream", |stats| stats.connections_open == 0).await;
        until::<H>("descriptors are closed", || descriptors() <= before).await;
    });
}

/// Closing at any moment while much is under way: every call ends once, with its own reply or an error that is true.
pub fn close_under_load<H: Host>(engine: EngineKind) {
    for at in [0, 1, 7, 100, 2000] {
        inside::<H>(engine, async |kit| {
            kit.server.record(false);
            let client = kit.connect_with(kit.options().connections(2)).await;
            let done = Rc::new(Cell::new(0_i64));
            let tasks: Vec<_> = (0..64)
                .map(|_| {
                    let (client, done) = (client.clone(), done.clone());
                    spawn::<H, _>(async move {
                        loop {
                            match client.incr("n").await {
                                Ok(_) => done.set(done.get() + 1),
                                Err(Error::Closed(delivery)) => return delivery,
                                Err(other) => panic!("{other:?}"),
                            }
                        }
                    })
                })
                .collect();
            until::<H>("so many are done", || done.get() >= at).await;
            client.close().await;
            let mut maybe = 0;
            for task in tasks {
                maybe += i64::from(task.result().await == Delivery::MaybeExecuted);
            }
            kit.until("the end of the stream", |stats| stats.connections_open == 0).await;
            let reply = String::from_utf8(kit.server.execute(["INCRBY", "n", "0"])).unwrap();
            let sum: i64 = reply.trim_start_matches(':').trim_end().parse().unwrap();
            assert!((done.get()..=done.get() + maybe).contains(&sum), "{sum} of {}..+{maybe}", done.get());
        });
    }
}

/// Dropping the last handle ends the driver and closes the sockets.
pub fn last_handle_dropped<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let (client, driver) = Client::with_driver(&H::runtime(), kit.options()).unwrap();
        let driver = spawn::<H, _>(driver);
        client.connected().await.unwrap();
        let blob_owner = client.clone();
        drop(client);
        assert_eq!(blob_owner.incr("n").await.unwrap(), 1);
        drop(blob_owner);
        driver.result().await;
        kit.until("the end of the stream", |stats| stats.connections_open == 0).await;
    });
}
