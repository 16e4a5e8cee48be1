//! The driver among the host's other tasks: it yields, it parks, it needs no timers, it is never lost.

use crate::host::{Host, spawn};
use crate::kit::{Kit, apart, count_from_env, inside, pause, poll_once, until};
use crate::sharing::reply_to_gets;
use respiral::{
    Client, ConnectOptions, Delivery, EngineKind, EngineOptions, Error, Protocol, Runtime, Watch,
};
use std::cell::Cell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Counts how often the descriptor was waited for.
#[derive(Clone)]
struct Counting<R> {
    runtime: R,
    waits: Rc<Cell<usize>>,
}

struct CountingWatch<W> {
    watch: W,
    waits: Rc<Cell<usize>>,
}

impl<R: Runtime> Runtime for Counting<R> {
    type Watch = CountingWatch<R::Watch>;
    fn spawn_local(&self, task: impl Future<Output = ()> + 'static) {
        self.runtime.spawn_local(task);
    }
    fn watch(&self, descriptor: std::os::fd::OwnedFd) -> std::io::Result<Self::Watch> {
        Ok(CountingWatch { watch: self.runtime.watch(descriptor)?, waits: self.waits.clone() })
    }
}

impl<W: Watch> Watch for CountingWatch<W> {
    async fn ready(&self) -> std::io::Result<()> {
        let result = self.watch.ready().await;
        self.waits.set(self.waits.get() + 1);
        result
    }
}

/// H8, H13: the driver parks when there is nothing to do and wakes when there is: no more waits than the server sent
/// batches, but for a few.
pub fn h08_few_empty_parks<H: Host>(engine: EngineKind) {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 200;
    let (port, server) = reply_to_gets();
    let waits = Rc::new(Cell::new(0));
    let mut host = H::start();
    H::block_on(&mut host, async {
        let runtime = Counting { runtime: H::runtime(), waits: waits.clone() };
        let options = ConnectOptions::tcp("127.0.0.1", port).protocol(Protocol::Resp2).set_info(false);
        let options = options.engine(EngineOptions::new().kind(engine));
        let client = Client::connect_on(runtime, options).await.unwrap();
        let tasks: Vec<_> = (0..CALLERS)
            .map(|_| {
                let client = client.clone();
                spawn::<H, _>(async move {
                    for _ in 0..ROUNDS {
                        assert_eq!(client.get::<i64, _>("k").await.unwrap(), 1);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.result().await;
        }
        client.close().await;
    });
    drop(host);
    let (commands, reads) = server.join().unwrap();
    assert_eq!(commands, CALLERS * ROUNDS);
    // Besides: connecting, closing, and a breath per millisecond without a park (H9).
    let bound = reads + reads / 20 + 100;
    assert!(waits.get() <= bound, "{} waits for {reads} batches of the server", waits.get());
    assert!(waits.get() < commands / 4, "{} waits for {commands} commands", waits.get());
}

/// H8: a task that asks for nothing runs while the client is busy.
pub fn h08_other_tasks_run<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect().await;
        let busy = Rc::new(Cell::new(true));
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let (client, busy) = (client.clone(), busy.clone());
                spawn::<H, _>(async move {
                    while busy.get() {
                        client.incr("n").await.unwrap();
                    }
                })
            })
            .collect();
        let turns = Rc::new(Cell::new(0));
        let (counted, flag) = (turns.clone(), busy.clone());
        let other = spawn::<H, _>(async move {
            while flag.get() {
                pause::<H>(Duration::from_millis(1)).await;
                counted.set(counted.get() + 1);
            }
        });
        let start = Instant::now();
        until::<H>("the other task runs", || turns.get() >= 50).await;
        busy.set(false);
        for task in tasks {
            task.result().await;
        }
        other.result().await;
        // 50 pauses of 1 ms: far more time only when the busy client kept the others from running.
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        client.close().await;
    });
}

/// H9: the host's timers fire under a flood, from one client and from two.
pub fn h09_timers_fire_under_flood<H: Host>(engine: EngineKind) {
    timers_fire::<H>(engine, Duration::ZERO, &[(1, 128, 0), (2, 64, 0), (1, 64, 3)]);
}

/// H9: and while drivers spin, for a lone caller and for many, who call themselves or hand on to other tasks.
pub fn h09_timers_fire_while_spinning<H: Host>(engine: EngineKind) {
    let loads = [(1, 1, 0), (1, 128, 0), (2, 1, 0), (2, 64, 0), (1, 1, 3), (1, 16, 3)];
    timers_fire::<H>(engine, Duration::from_millis(1), &loads);
}

/// How late a timer is depends on the machine, so what is bounded is what the thread does in the meantime. Without the
/// rule a timer fires by luck, or never. A load: clients, callers of each, tasks that they hand on to between two calls.
fn timers_fire<H: Host>(engine: EngineKind, spin: Duration, loads: &[(usize, usize, usize)]) {
    let kit = Kit::<H>::new(engine);
    kit.server.record(false);
    let mut host = H::start_with_timers();
    H::block_on(&mut host, async {
        for load @ (clients, callers, tasks_between) in loads {
            let busy = Rc::new(Cell::new(true));
            let (mut connected, mut tasks) = (Vec::new(), Vec::new());
            for _ in 0..*clients {
                let client = kit.connect_with(kit.options().engine(kit.engine_options().spin(spin))).await;
                tasks.extend((0..*callers).map(|_| {
                    let (client, busy, tasks_between) = (client.clone(), busy.clone(), *tasks_between);
                    spawn::<H, _>(async move {
                        while busy.get() {
                            client.incr("n").await.unwrap();
                            for _ in 0..tasks_between {
                                spawn::<H, _>(async {}).result().await;
                            }
                        }
                    })
                }));
                connected.push(client);
            }
            let before = cpu_time();
            for _ in 0..40 {
                H::sleep(Duration::from_millis(5)).await;
            }
            let took = cpu_time() - before;
            busy.set(false);
            for task in tasks {
                task.result().await;
            }
            for client in connected {
                client.close().await;
            }
            assert!(took < Duration::from_secs(2), "{load:?}: {took:?} of CPU in 40 sleeps of 5 ms");
        }
    });
}

/// H9: while a driver that spins is busy with one long reply, which wakes nobody until its end, the host has its turns.
pub fn h09_timers_fire_within_a_reply<H: Host>(engine: EngineKind) {
    const PIECES: usize = 500;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        assert!(socket.read(&mut [0; 100]).unwrap() > 0);
        write!(socket, "*{PIECES}\r\n").unwrap();
        for _ in 0..PIECES {
            // In less than the driver looks for.
            std::thread::sleep(Duration::from_micros(200));
            socket.write_all(b"+element\r\n").unwrap();
        }
        let _ = socket.read(&mut [0]);
    });
    let mut host = H::start_with_timers();
    H::block_on(&mut host, async {
        let options = ConnectOptions::tcp("127.0.0.1", port).protocol(Protocol::Resp2).set_info(false);
        let options = options.engine(EngineOptions::new().kind(engine).spin(Duration::from_millis(1)));
        let client = Client::connect_on(H::runtime(), options).await.unwrap();
        let (is_over, fired) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let (stop, count) = (is_over.clone(), fired.clone());
        let timers = spawn::<H, _>(async move {
            while !stop.get() {
                H::sleep(Duration::from_millis(5)).await;
                count.set(count.get() + 1);
            }
        });
        let list: Vec<String> = client.lrange("list", 0, -1).await.unwrap();
        assert_eq!(list.len(), PIECES);
        // It took 100 ms at least.
        assert!(fired.get() >= 5, "{} times", fired.get());
        is_over.set(true);
        timers.result().await;
        client.close().await;
    });
    server.join().unwrap();
}

/// H12: a lone caller's replies are found by spinning, nine of ten: not at its end, and without a wait of the host's.
pub fn h12_spinning_finds_replies<H: Host>(engine: EngineKind) {
    const CALLS: usize = 100;
    // On a busy machine the server would be woken where the client spins.
    let (port, server) = apart(reply_to_gets);
    let waits = Rc::new(Cell::new(0));
    let mut host = H::start();
    H::block_on(&mut host, async {
        let runtime = Counting { runtime: H::runtime(), waits: waits.clone() };
        let spin = Duration::from_micros(500);
        let options = ConnectOptions::tcp("127.0.0.1", port).protocol(Protocol::Resp2).set_info(false);
        let options = options.engine(EngineOptions::new().kind(engine).spin(spin));
        let client = Client::connect_on(runtime, options).await.unwrap();
        // Until the machine has time for client and server at once.
        let (start, mut misses) = (Instant::now(), Vec::new());
        while misses.last().is_none_or(|misses| *misses >= CALLS / 10) {
            assert!(start.elapsed() < Duration::from_secs(30), "of {CALLS} calls each: {misses:?}");
            let (start, before, mut late) = (Instant::now(), waits.get(), 0);
            for _ in 0..CALLS {
                let start = Instant::now();
                assert_eq!(client.get::<i64, _>("k").await.unwrap(), 1);
                late += usize::from(start.elapsed() >= spin);
            }
            // A driver that finds what it looks for waits all the same for a breath, once per millisecond (H9).
            let breaths = start.elapsed().as_millis() as usize + 1;
            misses.push(late.max((waits.get() - before).saturating_sub(breaths)));
        }
        client.close().await;
    });
    drop(host);
    assert!(server.join().unwrap().0 >= CALLS);
}

/// A driver that spins serves its callers, gives the host its turns, notices deadlines and losses, and sleeps when nothing
/// is awaited.
pub fn spinning<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    let mut host = H::start_with_timers();
    H::block_on(&mut host, async {
        let spin = Duration::from_millis(1);
        let client = kit.connect_with(kit.options().engine(kit.engine_options().spin(spin))).await;
        let busy = Rc::new(Cell::new(true));
        let (caller, stop) = (client.clone(), busy.clone());
        let lone = spawn::<H, _>(async move {
            let mut count = 0;
            while stop.get() {
                count += 1;
                assert_eq!(caller.incr("n").await.unwrap(), count);
            }
        });
        for _ in 0..20 {
            H::sleep(Duration::from_millis(2)).await;
        }
        busy.set(false);
        lone.result().await;
        // A reply that does not come: the deadline passes, and the loss is told.
        kit.server.on("GET").withhold();
        let late = client.get::<Option<i64>, _>("k").timeout(Duration::from_millis(5)).await.unwrap_err();
        assert_eq!(late.delivery(), Delivery::MaybeExecuted);
        let mut lost = client.get::<Option<i64>, _>("k");
        assert!(poll_once(&mut lost).is_pending());
        kit.until("it is withheld", |stats| stats.withheld == 2).await;
        kit.server.open_connections().close();
        assert!(lost.await.unwrap_err().is_connection());
        kit.server.remove_rules();
        assert!(client.incr("n").await.unwrap() > 0);
        // At rest the thread sleeps.
        let before = cpu_time();
        H::sleep(Duration::from_millis(200)).await;
        let spent = cpu_time() - before;
        assert!(spent < Duration::from_millis(100), "{spent:?} of CPU in 200 ms of rest");
        client.close().await;
    });
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// H10: calls are made, polled and dropped outside of the loop, before, between and after.
pub fn h10_calls_outside_of_the_loop<H: Host>(engine: EngineKind) {
    let kit = Kit::<H>::new(engine);
    let mut host = H::start();
    let client = H::block_on(&mut host, kit.connect());
    let call = client.incr("n");
    assert_eq!(H::block_on(&mut host, call).unwrap(), 1);

    // Polled between two runs of the loop: it is sent in the next one.
    let mut call = client.incr("n");
    assert!(poll_once(&mut call).is_pending());
    assert_eq!(H::block_on(&mut host, call).unwrap(), 2);

    // Dropped between two runs, unsent and sent.
    let mut unsent = client.incr("unsent");
    assert!(poll_once(&mut unsent).is_pending());
    drop(unsent);
    kit.server.on("INCR").argument("sent").withhold();
    let mut sent = client.incr("sent");
    assert!(poll_once(&mut sent).is_pending());
    H::block_on(&mut host, kit.until("it is sent", |stats| stats.withheld == 1));
    drop(sent);
    kit.server.release();
    kit.server.remove_rules();
    assert_eq!(H::block_on(&mut host, client.incr("n")).unwrap(), 3);
    assert_eq!(kit.count("INCR unsent"), 0);

    // Dropped after the loop.
    kit.server.on("INCR").withhold();
    let never = client.incr("n");
    let mut pending = client.incr("n");
    assert!(poll_once(&mut pending).is_pending());
    H::block_on(&mut host, kit.until("it is sent", |stats| stats.withheld == 1));
    H::block_on(&mut host, client.close());
    drop(host);
    let std::task::Poll::Ready(Err(error)) = poll_once(&mut pending) else { panic!("pending for ever") };
    assert_eq!(error, Error::Closed(respiral::Delivery::MaybeExecuted));
    drop((never, pending, client));
}

/// H13: as many commands as a watchdog allows; a lost wake-up would hang. `GETS=10000000 LIMIT=900` for the design's ten
/// million.
pub fn h13_no_wake_up_is_lost<H: Host>(engine: EngineKind) {
    let total = count_from_env("GETS", 100_000);
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect().await;
        client.set("k", 5).await.unwrap();
        // From one caller, who parks after every command, to many.
        for callers in [1, 2, 7, 128] {
            let count = match callers {
                1 => total / 100,
                128 => total - total / 3,
                _ => total / 3,
            };
            let left = Rc::new(Cell::new(count));
            let tasks: Vec<_> = (0..callers)
                .map(|_| {
                    let (client, left) = (client.clone(), left.clone());
                    spawn::<H, _>(async move {
                        while left.get() > 0 {
                            left.set(left.get() - 1);
                            assert_eq!(client.get::<i64, _>("k").await.unwrap(), 5);
                            if callers == 2 && left.get() < total / 4 {
                                return;
                            }
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.result().await;
            }
        }
        client.close().await;
    });
}

/// H14: more connections become ready at once than a turn takes.
pub fn h14_many_ready_at_once<H: Host>(engine: EngineKind) {
    const CONNECTIONS: u32 = 200;
    inside::<H>(engine, async |kit| {
        kit.server.record(false);
        let client = kit.connect_with(kit.options().connections(CONNECTIONS)).await;
        for _ in 0..5 {
            kit.server.on("INCR").withhold();
            let tasks: Vec<_> = (0..2 * CONNECTIONS)
                .map(|_| {
                    let client = client.clone();
                    spawn::<H, _>(async move { client.incr("n").await.unwrap() })
                })
                .collect();
            kit.until("all arrived", |stats| stats.withheld == 2 * CONNECTIONS as usize).await;
            kit.server.remove_rules();
            kit.server.release();
            for task in tasks {
                task.result().await;
            }
        }
        client.close().await;
    });
}

/// H18: a task blocks its thread for twice the timeout; the reply that has arrived meanwhile wins.
pub fn h18_a_late_host_fails_no_call<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        let timeout = Duration::from_millis(300);
        // A machine so busy that the call runs out of time before the thread blocks proves nothing.
        for _ in 0..10 {
            kit.server.on("INCR").withhold();
            let start = Instant::now();
            let mut call = client.incr("n").timeout(timeout);
            assert!(poll_once(&mut call).is_pending());
            kit.until("it arrived", |stats| stats.withheld == 1).await;
            kit.server.remove_rules();
            kit.server.release();
            if start.elapsed() > timeout / 2 {
                drop(call);
                continue;
            }
            std::thread::sleep(timeout * 2);
            call.await.unwrap();
            return client.close().await;
        }
        panic!("the machine is too busy for this test");
    });
}

/// H18: who blocks the thread on a call waits in vain, since the driver needs the thread (so the documentation forbids it);
/// the call goes on when the thread is free. Nothing tells such a caller from one whose thread is merely late, so nothing
/// is asserted about it.
pub fn h18_a_blocking_wait_is_in_vain<H: Host>(engine: EngineKind) {
    inside::<H>(engine, async |kit| {
        let client = kit.connect().await;
        let mut call = client.incr("n");
        for _ in 0..20 {
            assert!(poll_once(&mut call).is_pending());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(call.await.unwrap(), 1);
        client.close().await;
    });
}
