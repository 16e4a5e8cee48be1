//! The thread of a server or a proxy.
//!
//! **Problem.** The loop takes the lock thousands of times per second; a test that wants it for one change must not wait
//! behind a busy client.
//!
//! **Idea.** Whoever wants the lock from outside announces it; the loop stands back until nobody does. It waits in epoll
//! without the lock, for events, for the next deadline, or for the event counter that wakes it.
//!
//! **Invariant.** When the loop ends, also by a panic in a script, all sockets are closed, so no client waits for ever.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

const EVENTS_PER_TURN: usize = 256;

/// Epoll's names for what is not a connection.
pub(crate) const LISTENER: u64 = 0;
pub(crate) const WAKE: u64 = u64::MAX;

/// What a loop turns: a server, or a proxy, behind one lock.
pub(crate) trait Looped: Send + 'static {
    /// Its numbers.
    type Stats;

    /// What epoll reported, then what is due.
    fn turn(&mut self, events: &[Event], now: Instant);

    /// The earliest moment at which the loop must turn without an event.
    fn next_deadline(&self) -> Option<Instant>;

    fn stats(&self) -> Self::Stats;

    /// Lets go of everything, when the loop is over.
    fn abandon(&mut self);
}

struct Guarded<C> {
    core: C,
    stopping: bool,
}

/// What the thread and the test share.
pub(crate) struct Shared<C> {
    guarded: Mutex<Guarded<C>>,
    epoll: Arc<OwnedFd>,
    wake: OwnedFd,
    /// How many outside the loop want the lock.
    wanted_outside: AtomicUsize,
    /// How many wait for the loop to make progress; and the count of turns that they watch.
    watchers: AtomicUsize,
    turns: Mutex<u64>,
    turned: Condvar,
    thread: OnceLock<ThreadId>,
}

impl<C: Looped> Shared<C> {
    pub(crate) fn new(make_core: impl FnOnce(Arc<OwnedFd>) -> io::Result<C>) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&*epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self {
            guarded: Mutex::new(Guarded { core: make_core(Arc::clone(&epoll))?, stopping: false }),
            epoll,
            wake,
            wanted_outside: AtomicUsize::new(0),
            watchers: AtomicUsize::new(0),
            turns: Mutex::new(0),
            turned: Condvar::new(),
            thread: OnceLock::new(),
        })
    }

    /// Starts the thread.
    pub(crate) fn launch(self: &Arc<Self>) -> io::Result<JoinHandle<()>> {
        let running = Arc::clone(self);
        thread::Builder::new().name("respiral-testkit".to_owned()).spawn(move || running.run())
    }

    /// Runs `work` with the lock, from any thread but the server's own; the loop then looks at its deadlines again.
    pub(crate) fn with_core<R>(&self, work: impl FnOnce(&mut C) -> R) -> R {
        let result = self.peek(work);
        self.wake();
        result
    }

    /// Ends the loop, at its next turn.
    pub(crate) fn stop(&self) {
        self.outside().stopping = true;
        self.wake();
    }

    fn wake(&self) {
        // A full counter is non-zero, so the loop wakes all the same.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Like `with_core`, for work that changes nothing that the loop waits for: it is not woken.
    pub(crate) fn peek<R>(&self, work: impl FnOnce(&mut C) -> R) -> R {
        work(&mut self.outside().core)
    }

    fn outside(&self) -> MutexGuard<'_, Guarded<C>> {
        assert!(
            self.thread.get() != Some(&thread::current().id()),
            "a script runs inside the server and cannot call its methods; return an action instead"
        );
        self.wanted_outside.fetch_add(1, Ordering::SeqCst);
        let guard = lock(&self.guarded);
        self.wanted_outside.fetch_sub(1, Ordering::SeqCst);
        guard
    }

    /// Waits until the numbers satisfy `reached`; false when they do not within `limit`.
    pub(crate) fn wait_for(&self, limit: Duration, mut reached: impl FnMut(&C::Stats) -> bool) -> bool {
        let end = Instant::now() + limit;
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let reached = loop {
            // The count is read before the numbers: a turn in between changes it, and the wait below ends at once.
            let turns = *lock(&self.turns);
            // Asked without the lock, so that the closure may call the server.
            let stats = self.peek(|core| core.stats());
            if reached(&stats) {
                break true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break false;
            }
            drop(self.turned.wait_timeout_while(lock(&self.turns), left, |current| *current == turns));
        };
        self.watchers.fetch_sub(1, Ordering::SeqCst);
        reached
    }

    /// The thread's body.
    fn run(&self) {
        struct Abandon<'a, C: Looped>(&'a Shared<C>);
        impl<C: Looped> Drop for Abandon<'_, C> {
            fn drop(&mut self) {
                lock(&self.0.guarded).core.abandon();
            }
        }
        let _ = self.thread.set(thread::current().id());
        let _abandon = Abandon(self);
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        let mut deadline = None;
        loop {
            let timeout = deadline
                .map(|deadline: Instant| timespec(deadline.saturating_duration_since(Instant::now())));
            events.clear();
            match epoll::wait(&*self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            if events.iter().any(|event| event.data.u64() == WAKE) {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            }
            while self.wanted_outside.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
            let mut guard = lock(&self.guarded);
            if guard.stopping {
                return;
            }
            guard.core.turn(&events, Instant::now());
            deadline = guard.core.next_deadline();
            drop(guard);
            if self.watchers.load(Ordering::SeqCst) > 0 {
                *lock(&self.turns) += 1;
                self.turned.notify_all();
            }
        }
    }
}

/// A panic elsewhere is reported by its own test; the data here is consistent between commands.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
