//! The server's thread.
//!
//! **Problem.** The loop takes the lock thousands of times per second; a test that wants it for one change must not wait
//! behind a busy client.
//!
//! **Idea.** Whoever wants the lock from outside announces it; the loop stands back until nobody does. It waits in epoll
//! without the lock, for events, for the next deadline, or for the event counter that wakes it.
//!
//! **Invariant.** When the loop ends, also by a panic in a script, all sockets are closed, so no client waits for ever.

use crate::state::{Core, Stats, WAKE};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

const EVENTS_PER_TURN: usize = 256;

/// What the server's thread and the test share.
pub(crate) struct Shared {
    core: Mutex<Core>,
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

impl Shared {
    pub(crate) fn new(make_core: impl FnOnce(Arc<OwnedFd>) -> io::Result<Core>) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&*epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self {
            core: Mutex::new(make_core(Arc::clone(&epoll))?),
            epoll,
            wake,
            wanted_outside: AtomicUsize::new(0),
            watchers: AtomicUsize::new(0),
            turns: Mutex::new(0),
            turned: Condvar::new(),
            thread: OnceLock::new(),
        })
    }

    /// Runs `work` with the lock, from any thread but the server's own; the loop then looks at its deadlines again.
    pub(crate) fn with_core<R>(&self, work: impl FnOnce(&mut Core) -> R) -> R {
        let result = self.peek(work);
        // A full counter is non-zero, so the loop wakes all the same.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        result
    }

    /// Like `with_core`, for work that changes nothing that the loop waits for: it is not woken.
    pub(crate) fn peek<R>(&self, work: impl FnOnce(&mut Core) -> R) -> R {
        assert!(
            self.thread.get() != Some(&thread::current().id()),
            "a script runs inside the server and cannot call its methods; return an action instead"
        );
        self.wanted_outside.fetch_add(1, Ordering::SeqCst);
        let mut core = lock(&self.core);
        self.wanted_outside.fetch_sub(1, Ordering::SeqCst);
        work(&mut core)
    }

    /// Waits until the numbers satisfy `reached`; false when they do not within `limit`.
    pub(crate) fn wait_for(&self, limit: Duration, mut reached: impl FnMut(&Stats) -> bool) -> bool {
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
    pub(crate) fn run(&self) {
        struct Abandon<'a>(&'a Shared);
        impl Drop for Abandon<'_> {
            fn drop(&mut self) {
                lock(&self.0.core).abandon();
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
            let mut core = lock(&self.core);
            if core.stopping {
                return;
            }
            core.turn(&events, Instant::now());
            deadline = core.next_deadline();
            drop(core);
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
