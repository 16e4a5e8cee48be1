//! Giving the host time to park (H9).
//!
//! monoio fires timers, and tokio-uring submits, only when they park, and a driver that always finds something to do would
//! never let them. A descriptor that becomes ready does not show a park: monoio looks at its descriptors between its tasks as
//! well. That the thread has slept shows it. So when the thread has not slept for some milliseconds, the driver waits for a
//! timer of a few microseconds: tasks that are left run meanwhile, down to the last one that waits for this client, and then
//! the host has nothing to do but to park until the timer fires.

use crate::engine::times_slept;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread that has not slept for so long is made to.
const AWAKE_MAX: Duration = Duration::from_millis(4);
/// How often to ask the system.
const ASK: Duration = Duration::from_millis(1);
/// The first wait: longer than a host takes to park. Each further one is twice as long.
const WAIT: Duration = Duration::from_micros(20);
/// A breath is not longer, by much: the host has no time to park, and it is not this client that takes it.
const BREATH_MAX: Duration = Duration::from_millis(2);
/// The next one comes so much later then.
const GIVEN_UP: Duration = Duration::from_millis(100);

thread_local! {
    static THREAD: Cell<Thread> = const { Cell::new(Thread { ask_at: None, slept: (0, None) }) };
}

/// What is known of the thread, by all its clients.
#[derive(Clone, Copy)]
struct Thread {
    /// When to ask again whether it has slept.
    ask_at: Option<Instant>,
    /// How often it had slept when asked, and when that was found to be more than before.
    slept: (i64, Option<Instant>),
}

impl Thread {
    /// Whether it has not slept for too long. `slept` asks how often it has.
    fn is_breath_due(&mut self, now: Instant, slept: impl FnOnce() -> i64) -> bool {
        if self.ask_at.is_some_and(|at| now < at) {
            return false;
        }
        let count = slept();
        let since = match self.slept {
            (before, Some(since)) if before == count => since,
            _ => now,
        };
        self.slept = (count, Some(since));
        let is_due = now - since >= AWAKE_MAX;
        if !is_due {
            self.ask_at = Some(now + ASK);
        }
        is_due
    }
}

/// Whether the thread must sleep before this client does more. All its clients are told so until it has.
pub(super) fn is_breath_due(now: Instant) -> bool {
    let mut thread = THREAD.get();
    #[cfg(not(test))]
    let slept = times_slept;
    #[cfg(test)]
    let slept = || tests::SLEPT.get().unwrap_or_else(times_slept);
    let is_due = thread.is_breath_due(now, slept);
    THREAD.set(thread);
    is_due
}

/// The driver waits until the thread has slept.
pub(super) struct Breath {
    began: Option<Instant>,
    wait: Duration,
    waits: bool,
}

impl Breath {
    pub fn new() -> Self {
        Self { began: None, wait: WAIT, waits: false }
    }

    /// A wait begins, unless it has: when it shall end.
    pub fn begin_wait(&mut self, now: Instant) -> Option<Duration> {
        self.began.get_or_insert(now);
        (!std::mem::replace(&mut self.waits, true)).then_some(self.wait)
    }

    /// The timer has fired. True when the driver may go on.
    pub fn is_over(&mut self, now: Instant) -> bool {
        if !is_breath_due(now) {
            return true;
        }
        self.waits = false;
        self.wait = (2 * self.wait).min(BREATH_MAX);
        let is_given_up = now - *self.began.get_or_insert(now) > BREATH_MAX;
        if is_given_up {
            let thread = THREAD.get();
            THREAD.set(Thread { ask_at: Some(now + GIVEN_UP), ..thread });
        }
        is_given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    thread_local! {
        pub(super) static SLEPT: Cell<Option<i64>> = const { Cell::new(None) };
    }

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "virtual time starts somewhere")]
        Instant::now()
    }

    // H9: a thread that never sleeps is made to, and asked once a millisecond at most.
    #[test]
    fn h09_a_breath_is_due_when_the_thread_has_not_slept() {
        let now = start();
        let mut thread = Thread { ask_at: None, slept: (0, None) };
        let mut asked = 0;
        let mut due = |at: Duration, slept: i64| {
            thread.is_breath_due(now + at, || {
                asked += 1;
                slept
            })
        };
        let all = (0..4000).map(|us| due(us * MS / 1000, 7));
        assert!(!all.fold(false, |any, is_due| any | is_due));
        assert!(due(4 * MS, 7) && due(5 * MS, 7), "until it has slept");
        assert!(!due(6 * MS, 8));
        assert!(!due(7 * MS, 9) && !due(8 * MS, 9) && !due(10 * MS, 9));
        assert!(due(11 * MS, 9));
        assert_eq!(asked, 4 + 2 + 1 + 3 + 1);
    }

    // H9: it ends when the thread has slept, whoever saw it; and where it never does, soon and for long.
    #[test]
    fn h09_a_breath_ends() {
        let mut now = start();
        SLEPT.set(Some(7));
        assert!(!is_breath_due(now));
        now += 5 * MS;
        assert!(is_breath_due(now));
        let mut breath = Breath::new();
        let mut waits = Vec::new();
        loop {
            let wait = breath.begin_wait(now).expect("a new wait");
            assert_eq!(breath.begin_wait(now), None, "one timer a wait");
            waits.push(wait.as_micros());
            now += wait;
            if breath.is_over(now) {
                break;
            }
        }
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1280]);
        assert!(!is_breath_due(now + 99 * MS) && is_breath_due(now + 100 * MS));

        now += 100 * MS;
        let mut breath = Breath::new();
        assert!((0..10_000).all(|_| !breath.is_over(now)), "whoever tells too early gains nothing");
        let mut breath = Breath::new();
        breath.begin_wait(now);
        SLEPT.set(Some(8));
        assert!(breath.is_over(now + MS) && !is_breath_due(now + 4 * MS));
    }
}
