//! Giving the host time to park (H9).
//!
//! monoio fires timers, and tokio-uring submits, only when they park, and a driver that always finds something to do would
//! never let them. So when no park was noticed for a millisecond, it waits for one, when it yields the next time.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A host that is not seen to park for so long may fire no timers (H9).
const AWAKE_MAX: Duration = Duration::from_millis(1);
/// Quiet waits in a row that make a breath.
const QUIET_WAITS: u32 = 2;
/// A breath that takes longer ends early: the host has much to do besides, and would hold up what callers asked for.
const BREATH_MAX: Duration = Duration::from_micros(200);
/// It is then not taken again for so many times as long,
const BREATH_SHARE: u32 = 8;
/// and at most this.
const AWAKE_LIMIT: Duration = Duration::from_millis(100);

thread_local! {
    /// How often a driver of this thread did something.
    static STEPS: Cell<u64> = const { Cell::new(0) };
    /// When the host shall park again for this thread's drivers.
    static DUE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A driver of this thread does something.
pub(super) fn note_step() {
    STEPS.set(STEPS.get() + 1);
}

/// Whether the host must be given time to park.
pub(super) fn is_breath_due(now: Instant) -> bool {
    DUE.get().is_none_or(|due| due < now)
}

/// The host parked, or is not waited for any more, which took so long.
fn breathed(now: Instant, took: Duration) {
    DUE.set(Some(now + (BREATH_SHARE * took).clamp(AWAKE_MAX, AWAKE_LIMIT)));
}

/// The step of a driver's last look at what it waits for.
///
/// A descriptor that becomes ready does not show that the host parked: monoio looks at its descriptors between its tasks
/// as well, and fires no timers then. When no driver of the thread did anything from the look to the readiness, then the
/// host may have had nothing left to do, and parked.
pub(super) struct Looked(u64);

impl Looked {
    pub fn never() -> Self {
        Self(u64::MAX)
    }

    /// Whether nothing was done since the last look, which found nothing.
    fn look(&mut self, is_ready: bool) -> bool {
        let last = std::mem::replace(&mut self.0, if is_ready { u64::MAX } else { STEPS.get() });
        is_ready && last == STEPS.get()
    }

    /// As a park's end tells.
    pub fn park(&mut self, now: Instant, is_ready: bool) {
        if self.look(is_ready) {
            breathed(now, Duration::ZERO);
        }
    }
}

/// The driver waits for the host to park, with a descriptor that nobody else signals.
///
/// Tasks that hand on to others what callers were told run in between, and the host may look at its descriptors more
/// than once before the last of them waits for this client. So a breath is several quiet waits in a row.
pub(super) struct Breath {
    /// The first wait began.
    since: Option<Instant>,
    looked: Looked,
    quiet: u32,
}

impl Breath {
    pub fn new() -> Self {
        Self { since: None, looked: Looked::never(), quiet: 0 }
    }

    /// The descriptor was looked at. True when the driver may go on.
    pub fn look(&mut self, now: Instant, is_ready: bool) -> bool {
        let took = now - *self.since.get_or_insert(now);
        let is_quiet = self.looked.look(is_ready);
        if !is_ready {
            return false;
        }
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        let is_over = self.quiet == QUIET_WAITS || took > BREATH_MAX;
        if is_over {
            breathed(now, took);
        }
        // Another driver's breath may have come first.
        is_over || !is_breath_due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// Each test has a thread of its own, and so its own host.
    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "virtual time starts somewhere")]
        let now = Instant::now();
        assert!(is_breath_due(now), "nothing is known of a new thread's host");
        now
    }

    // H9: a wait during which another client did something was no park; two quiet ones in a row are.
    #[test]
    fn h09_two_quiet_waits_are_a_breath() {
        let now = start();
        let mut breath = Breath::new();
        note_step();
        assert!(!breath.look(now, false));
        note_step();
        assert!(!breath.look(now + US, true));
        assert!(!breath.look(now + US, false));
        assert!(!breath.look(now + 2 * US, true));
        assert!(!breath.look(now + 2 * US, false));
        assert!(is_breath_due(now + 2 * US));
        assert!(breath.look(now + 3 * US, true));
        assert!(!is_breath_due(now + 3 * US) && !is_breath_due(now + 1000 * US));
        assert!(is_breath_due(now + 1004 * US));
    }

    // H9: ready at once is no wait at all; and what another client noticed counts for all.
    #[test]
    fn h09_parks_are_the_threads() {
        let now = start();
        let (mut breath, mut other) = (Breath::new(), Looked::never());
        assert!(!breath.look(now, true) && !breath.look(now, true));
        assert!(!breath.look(now, false));
        other.park(now, true);
        assert!(is_breath_due(now));
        other.park(now, false);
        other.park(now + US, true);
        assert!(!is_breath_due(now + US));
        note_step();
        assert!(breath.look(now + US, true));
    }

    // A host with much else to do is not asked often.
    #[test]
    fn long_breaths_are_cut_short_and_rare() {
        let mut now = start();
        for (took, free) in [(250, 2_000), (50_000, 100_000)] {
            let mut breath = Breath::new();
            assert!(!breath.look(now, false));
            now += took * US;
            assert!(breath.look(now, true));
            assert!(!is_breath_due(now + free * US));
            now += (free + 1) * US;
            assert!(is_breath_due(now));
        }
    }
}
