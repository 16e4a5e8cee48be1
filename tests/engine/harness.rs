//! A host that does what a runtime does, and checks what every engine must keep.

use respiral::buf::{Block, Log, Segment, Transmit};
use respiral::engine::{AnyEngine, Engine, EngineKind, EngineOptions, leaked_engines};
use respiral::io::{Address, Completion, ConnectionFailure, ConnectionId, Op, SocketOptions};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A test that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Descriptors are counted, so tests of one process take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one test alone, and checks that the process is as before.
pub fn run(kind: EngineKind, test: fn(EngineKind)) {
    let _alone = alone();
    let before = settled(descriptors);
    test(kind);
    let after = settled(descriptors);
    assert_eq!(after, before, "descriptors are left open");
    assert_eq!(leaked_engines(), 0, "an engine was leaked");
    assert_eq!(kernel_threads(), 0, "the kernel started a thread (H30)");
}

/// The test runner's own threads open a file now and then: the least of a few looks counts.
pub fn settled(count: impl Fn() -> usize) -> usize {
    let look = |_| {
        pause(Duration::from_micros(500));
        count()
    };
    (0..4).map(look).min().unwrap()
}

pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Threads that the kernel started in this process for a ring; the test runner's own come and go.
pub fn kernel_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("iou-")).count()
}

pub fn options(kind: EngineKind) -> EngineOptions {
    EngineOptions::new().kind(kind)
}

pub fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "tests run in real time")]
    Instant::now()
}

pub fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "tests run in real time")]
    std::thread::sleep(time);
}

pub fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    #[expect(clippy::disallowed_methods, reason = "a peer lives in its own thread")]
    std::thread::spawn(work)
}

pub fn id(index: u16, generation: u32) -> ConnectionId {
    ConnectionId { index, generation }
}

pub fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Bytes that tell their position.
pub fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

pub fn transmit(bytes: &[u8], chunk: usize) -> Transmit {
    let mut log = Log::new(chunk);
    bytes.chunks(chunk).for_each(|part| log.append(part));
    let mut data = Transmit::new();
    log.slices(0, log.end(), &mut data);
    data
}

/// What was told about one connection.
#[derive(Default, Debug)]
pub struct Seen {
    pub connected: bool,
    pub received: Vec<u8>,
    pub segments: usize,
    /// A block is with the engine.
    pub filling: bool,
    /// Blocks that came back.
    pub filled: usize,
    /// Sends that are not answered.
    pub owed: usize,
    /// How many bytes each ended send took.
    pub sent: Vec<usize>,
    pub failed: Option<ConnectionFailure>,
    pub closing: bool,
    pub closed: bool,
}

enum Waiting {
    /// As monoio and a plain poll(2).
    Level,
    /// As tokio.
    Edge(OwnedFd),
}

/// An engine and its host.
pub struct Host {
    pub engine: AnyEngine,
    pub seen: BTreeMap<ConnectionId, Seen>,
    /// Segments are kept here instead of being copied and dropped.
    pub hold: bool,
    pub held: Vec<Segment>,
    pub budget: usize,
    pub turns: usize,
    /// What was told, in order.
    pub order: Vec<(ConnectionId, &'static str)>,
    /// Waits that a signal ended.
    pub interrupted: usize,
    wake: OwnedFd,
    waiting: Waiting,
}

impl Host {
    pub fn new(kind: EngineKind) -> Self {
        Self::with(&options(kind))
    }

    pub fn with(options: &EngineOptions) -> Self {
        let (engine, _) = AnyEngine::new(options).unwrap();
        let wake = engine.wake_fd().unwrap();
        Self {
            engine,
            seen: BTreeMap::new(),
            hold: false,
            held: Vec::new(),
            budget: 64,
            turns: 0,
            order: Vec::new(),
            interrupted: 0,
            wake,
            waiting: Waiting::Level,
        }
    }

    /// Waits as an edge-triggered host does: each readiness is told once.
    pub fn edge_triggered(mut self) -> Self {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&set, &self.wake, epoll::EventData::new_u64(0), flags).unwrap();
        self.waiting = Waiting::Edge(set);
        self
    }

    pub fn connect(&mut self, id: ConnectionId, address: SocketAddr) {
        self.connect_to(id, Address::Tcp(address), SocketOptions::default());
    }

    pub fn connect_to(&mut self, id: ConnectionId, address: Address, options: SocketOptions) {
        self.seen.insert(id, Seen::default());
        self.engine.submit(Op::Connect { id, address, options });
    }

    /// A connection, and the peer's end of it.
    pub fn pair(&mut self, id: ConnectionId, listener: &TcpListener) -> TcpStream {
        self.connect(id, listener.local_addr().unwrap());
        self.engine.flush().unwrap();
        let (peer, _) = listener.accept().unwrap();
        self.until(|host| host.seen[&id].connected);
        peer
    }

    /// Connections `0..count`, and the peer's ends of them in that order.
    pub fn pairs(&mut self, count: u16, listener: &TcpListener) -> Vec<TcpStream> {
        (0..count).map(|index| self.pair(id(index, 0), listener)).collect()
    }

    pub fn send(&mut self, id: ConnectionId, data: Transmit) {
        self.seen.get_mut(&id).unwrap().owed += 1;
        self.engine.submit(Op::Send { id, data });
    }

    /// Has the engine receive into a block, unless it has one or the connection failed.
    pub fn fill(&mut self, id: ConnectionId, count: usize) {
        let seen = self.seen.get_mut(&id).unwrap();
        if seen.connected && !seen.filling && seen.failed.is_none() && !seen.closing {
            seen.filling = true;
            self.engine.submit(Op::Fill { id, block: Block::new(Vec::new(), count) });
        }
    }

    pub fn close(&mut self, id: ConnectionId) {
        self.seen.get_mut(&id).unwrap().closing = true;
        self.engine.submit(Op::Close { id });
    }

    pub fn close_all(&mut self) {
        let open: Vec<_> = self.seen.iter().filter(|(_, seen)| !seen.closing).map(|(id, _)| *id).collect();
        for id in open {
            self.close(id);
        }
        self.until(|host| host.seen.values().all(|seen| seen.closed));
    }

    /// One turn without waiting. True when more is left.
    pub fn turn(&mut self) -> bool {
        self.turns += 1;
        let mut told = Vec::new();
        let more = self.engine.poll(self.budget, &mut told).unwrap();
        // About the budget: a completion can bring a `Sent` and a `Failed` or `Closed` with it.
        assert!(told.len() <= self.budget + 2, "{} completions for a budget of {}", told.len(), self.budget);
        self.note(told);
        self.engine.flush().unwrap();
        more
    }

    /// Checks the order of what is told, and keeps it.
    pub fn note(&mut self, told: Vec<Completion>) {
        for completion in told {
            let id = completion.id();
            let seen = self.seen.get_mut(&id).expect("known");
            assert!(!seen.closed, "{completion:?} after Closed");
            match completion {
                Completion::Connected { .. } => {
                    self.order.push((id, "Connected"));
                    assert!(!seen.connected && seen.failed.is_none());
                    seen.connected = true;
                }
                Completion::Received { segment, .. } => {
                    self.order.push((id, "Received"));
                    assert!(seen.connected && seen.failed.is_none() && !segment.is_empty());
                    seen.received.extend_from_slice(&segment);
                    seen.segments += 1;
                    if self.hold {
                        self.held.push(segment);
                    }
                }
                Completion::Filled { block, .. } => {
                    self.order.push((id, "Received"));
                    assert!(seen.connected && seen.failed.is_none());
                    assert!(std::mem::take(&mut seen.filling), "a block that was not asked for");
                    let bytes = block.into_bytes();
                    assert!(!bytes.is_empty(), "a block comes back with something");
                    seen.received.extend_from_slice(&bytes);
                    seen.filled += 1;
                }
                Completion::Sent { bytes, .. } => {
                    self.order.push((id, "Sent"));
                    seen.owed = seen.owed.checked_sub(1).expect("each send is answered once");
                    seen.sent.push(bytes);
                }
                Completion::Failed { failure, .. } => {
                    self.order.push((id, "Failed"));
                    assert_eq!(seen.failed.replace(failure), None, "Failed is told once");
                }
                Completion::Closed { .. } => {
                    self.order.push((id, "Closed"));
                    assert_eq!(seen.owed, 0, "Sent before Closed");
                    seen.closing = true;
                    seen.closed = true;
                }
                Completion::Resolved { .. } => panic!("engines resolve nothing"),
            }
        }
    }

    /// Waits for the descriptor when the engine agrees; false when the time passed.
    pub fn park(&mut self, limit: Duration) -> bool {
        !self.engine.may_park().unwrap() || self.wait(limit)
    }

    /// Waits for the descriptor; false when the time passed.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).unwrap();
        let ready = match &self.waiting {
            Waiting::Level => poll(&mut [PollFd::new(&self.wake.as_fd(), PollFlags::IN)], Some(&limit)),
            Waiting::Edge(set) => {
                let mut events = Vec::with_capacity(4);
                epoll::wait(set, rustix::buffer::spare_capacity(&mut events), Some(&limit))
            }
        };
        match ready {
            Ok(count) => count > 0,
            // Completions interrupt system calls (H12).
            Err(rustix::io::Errno::INTR) => {
                self.interrupted += 1;
                true
            }
            Err(e) => panic!("{e}"),
        }
    }

    /// Turns until `done`, parking when there is nothing to do.
    pub fn until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        let start = now();
        loop {
            let more = self.turn();
            if done(self) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "hangs; seen: {:.2000}", format!("{:?}", self.seen));
            if !more {
                self.park(LIMIT);
            }
        }
    }

    /// Turns for this long, or rather waits: how many turns it took.
    pub fn idle(&mut self, time: Duration) -> usize {
        let (start, turns) = (now(), self.turns);
        while start.elapsed() < time {
            if !self.turn() {
                self.park(time.saturating_sub(start.elapsed()));
            }
        }
        self.turns - turns
    }

    /// All is given back.
    pub fn finish(mut self) {
        self.held.clear();
        self.close_all();
        let pool = self.engine.pool().clone();
        assert_eq!(pool.lent(), 0, "segments are left");
        drop(self);
        assert_eq!(pool.free(), pool.count(), "the kernel has buffers after the end");
    }
}
