//! The sides that are compared: each drives the same load and tells what it cost.

use super::steps::{self, Kind};
use respiral_monoio::{Blob, Client, ConnectOptions};
use respiral_testkit::alloc_count;
use std::cell::Cell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Instant;

/// What a run does.
pub struct Load<'a> {
    pub url: &'a str,
    /// Callers in a closed loop.
    pub callers: usize,
    pub operations: u64,
    pub command: Kind,
    pub connections: u32,
}

/// What it cost, per operation.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub user_ns: f64,
    pub system_ns: f64,
    pub allocations: f64,
    pub per_second: f64,
}

impl Cost {
    pub fn cpu(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Floor,
    Monoio,
    MonoioEpoll,
    MonoioLegacy,
    Tokio,
    TokioEpoll,
    TokioUring,
}

impl Side {
    pub const ALL: [Side; 7] = [
        Side::Floor,
        Side::Monoio,
        Side::MonoioEpoll,
        Side::MonoioLegacy,
        Side::Tokio,
        Side::TokioEpoll,
        Side::TokioUring,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Side::Floor => "floor",
            Side::Monoio => "monoio",
            Side::MonoioEpoll => "monoio-epoll",
            Side::MonoioLegacy => "monoio-legacy",
            Side::Tokio => "tokio",
            Side::TokioEpoll => "tokio-epoll",
            Side::TokioUring => "tokio-uring",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.name() == name)
    }

    pub fn names() -> String {
        Self::ALL.map(Side::name).join(", ")
    }

    pub fn run(self, load: &Load<'_>) -> Cost {
        match self {
            Side::Floor => floor(load),
            Side::Monoio | Side::MonoioEpoll => {
                let mut runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().build().expect("monoio");
                runtime.block_on(async {
                    let client = respiral_monoio::connect(self.options(load)).await.expect("connects");
                    drive(load, client, |task| drop(monoio::spawn(task))).await
                })
            }
            Side::MonoioLegacy => {
                let mut runtime = monoio::RuntimeBuilder::<monoio::LegacyDriver>::new().build().expect("monoio");
                runtime.block_on(async {
                    let client = respiral_monoio::connect(self.options(load)).await.expect("connects");
                    drive(load, client, |task| drop(monoio::spawn(task))).await
                })
            }
            Side::Tokio | Side::TokioEpoll => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("tokio");
                tokio::task::LocalSet::new().block_on(&runtime, async {
                    let client = respiral_tokio::connect(self.options(load)).await.expect("connects");
                    drive(load, client, |task| drop(tokio::task::spawn_local(task))).await
                })
            }
            Side::TokioUring => tokio_uring::start(async {
                let client = respiral_tokio_uring::connect(self.options(load)).await.expect("connects");
                drive(load, client, |task| drop(tokio_uring::spawn(task))).await
            }),
        }
    }

    fn options(self, load: &Load<'_>) -> ConnectOptions {
        let kind = match self {
            Side::MonoioEpoll | Side::TokioEpoll => respiral_monoio::EngineKind::Epoll,
            _ => respiral_monoio::EngineKind::Uring,
        };
        let options = ConnectOptions::try_from(load.url).expect("a valid URL");
        options.connections(load.connections).engine(respiral_monoio::EngineOptions::new().kind(kind))
    }
}

/// Writes all callers' commands at once, over all connections, then reads until all replies are there.
fn floor(load: &Load<'_>) -> Cost {
    let address = load.url.trim_start_matches("redis://");
    let mut buffer = vec![0; 64 * 1024];
    let connect = |_| {
        let mut stream = TcpStream::connect(address).expect("connects");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.write_all(&Kind::set_up()).expect("writes");
        stream.read_exact(&mut buffer[..b"+OK\r\n+OK\r\n".len()]).expect("reads");
        stream
    };
    let mut streams: Vec<TcpStream> = (0..load.connections).map(connect).collect();
    let share = load.callers.div_ceil(streams.len());
    let wave = load.command.frame().repeat(share);
    let rounds = load.operations.div_ceil((share * streams.len()) as u64);
    let meter = Meter::start();
    for _ in 0..rounds {
        for stream in &mut streams {
            stream.write_all(&wave).expect("writes");
        }
        for stream in &mut streams {
            let mut left = load.command.reply_len() * share;
            while left > 0 {
                left -= stream.read(&mut buffer).expect("reads");
            }
        }
    }
    meter.stop(rounds * (share * streams.len()) as u64)
}

/// Callers in a closed loop on one client.
async fn drive(load: &Load<'_>, client: Client, spawn: impl Fn(std::pin::Pin<Box<dyn Future<Output = ()>>>)) -> Cost {
    client.set(steps::KEY, &steps::VALUE).await.expect("sets");
    client.set(steps::COUNTER, 1_000_000_000).await.expect("sets");
    let done = Rc::new(Cell::new(0));
    let left = Rc::new(Cell::new(load.callers));
    let over = Rc::new(Gate::default());
    let (operations, command) = (load.operations, load.command);
    let meter = Meter::start();
    for _ in 0..load.callers {
        let (client, done, left, over) = (client.clone(), done.clone(), left.clone(), over.clone());
        spawn(Box::pin(async move {
            while done.get() < operations {
                done.set(done.get() + 1);
                match command {
                    Kind::Get => {
                        let value: Option<Blob> = client.get(steps::KEY).await.expect("a reply");
                        assert_eq!(value.map(|value| value.len()), Some(64));
                    }
                    Kind::Set => client.set(steps::KEY, &steps::VALUE).await.expect("a reply"),
                    Kind::Incr => assert!(client.incr(steps::COUNTER).await.expect("a reply") > 0),
                }
            }
            left.set(left.get() - 1);
            if left.get() == 0 {
                over.open();
            }
        }));
    }
    over.wait().await;
    let cost = meter.stop(done.get());
    client.close().await;
    cost
}

/// Opens once.
#[derive(Default)]
struct Gate {
    is_open: Cell<bool>,
    waker: std::cell::RefCell<Option<std::task::Waker>>,
}

impl Gate {
    fn open(&self) {
        self.is_open.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn wait(&self) {
        std::future::poll_fn(|cx| {
            if self.is_open.get() {
                return std::task::Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            std::task::Poll::Pending
        })
        .await;
    }
}

struct Meter {
    started: Instant,
    cpu: (f64, f64),
    allocations: u64,
}

impl Meter {
    fn start() -> Self {
        let allocations = alloc_count::snapshot().allocations;
        Self { allocations, cpu: cpu_ns(), started: Instant::now() }
    }

    fn stop(self, operations: u64) -> Cost {
        let seconds = self.started.elapsed().as_secs_f64();
        let (user, system) = cpu_ns();
        let n = operations as f64;
        Cost {
            user_ns: (user - self.cpu.0) / n,
            system_ns: (system - self.cpu.1) / n,
            allocations: (alloc_count::snapshot().allocations - self.allocations) as f64 / n,
            per_second: n / seconds,
        }
    }
}

/// CPU time of this thread in user and kernel, in nanoseconds. The sum is exact; the kernel divides it by samples.
fn cpu_ns() -> (f64, f64) {
    let usage = |field: usize, text: &str| -> f64 { text.split(' ').nth(field).and_then(|t| t.parse().ok()).unwrap_or(0.0) };
    let exact = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let total = usage(0, &exact);
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // Fields after the name in parentheses: utime and stime are the 14th and 15th of all.
    let after = stat.rsplit(") ").next().unwrap_or_default().to_owned();
    let (user, system) = (usage(11, &after), usage(12, &after));
    let share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
    (total * share, total * (1.0 - share))
}
