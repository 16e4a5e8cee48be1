//! When the engine's one timer has to be set.
//!
//! The client asks for its earliest deadline each turn, and that deadline mostly moves later: setting a kernel timer
//! each time would cost a system call per turn. So the timer is moved only *earlier*; when it fires early, it is set
//! again for what is wanted by then. Invariant: while a deadline is wanted, a timer is set at or before it, or
//! [`due`](Alarm::due) says that one must be set.

use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Alarm {
    wanted: Option<Instant>,
    set: Option<Instant>,
    now: Option<Instant>,
}

impl Alarm {
    /// The latest word of the client.
    pub(super) fn want(&mut self, now: Instant, at: Option<Instant>) {
        self.wanted = at;
        self.now = Some(now);
    }

    /// Longer times are reached by way of early alarms; kernels refuse absurd ones.
    const LONGEST: Duration = Duration::from_secs(24 * 3600);

    /// How far away the timer must be set, if it must. Never zero, since zero disarms a timerfd.
    pub(super) fn due(&self) -> Option<Duration> {
        let (wanted, now) = (self.wanted?, self.now?);
        if self.set.is_some_and(|set| set <= wanted) {
            return None;
        }
        Some(wanted.saturating_duration_since(now).clamp(Duration::from_nanos(1), Self::LONGEST))
    }

    /// What was due is done.
    pub(super) fn mark_set(&mut self) {
        self.set = self.wanted;
    }

    /// The timer fired; a later deadline becomes due again.
    pub(super) fn on_fired(&mut self, now: Instant) {
        self.set = None;
        self.now = Some(now);
        if self.wanted.is_some_and(|wanted| wanted <= now) {
            self.wanted = None;
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any instant will do as an origin")]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn it_moves_only_earlier() {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        assert_eq!(alarm.due(), None);
        alarm.want(start, Some(start + 10 * MS));
        assert_eq!(alarm.due(), Some(10 * MS));
        alarm.mark_set();
        alarm.want(start, Some(start + 20 * MS));
        assert_eq!(alarm.due(), None);
        alarm.want(start + MS, Some(start + 5 * MS));
        assert_eq!(alarm.due(), Some(4 * MS));
        alarm.mark_set();
        alarm.want(start, None);
        assert_eq!(alarm.due(), None);
    }

    #[test]
    fn an_early_alarm_is_set_again_for_what_is_wanted_by_then() {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        alarm.want(start, Some(start + 10 * MS));
        alarm.mark_set();
        alarm.want(start, Some(start + 30 * MS));
        alarm.on_fired(start + 10 * MS);
        assert_eq!(alarm.due(), Some(20 * MS));
        alarm.mark_set();
        alarm.on_fired(start + 30 * MS);
        assert_eq!(alarm.due(), None);
    }

    // H36: calls come and go every 50 µs and each has a deadline: the timer is set once per timeout, not per call.
    #[test]
    fn h36_the_timer_is_set_once_per_timeout() {
        const TIMEOUT: u32 = 5;
        let start = Instant::now();
        let (mut alarm, mut fires, mut sets) = (Alarm::default(), None, 0);
        for turn in 0..40_000 {
            let now = start + turn * Duration::from_micros(50);
            if fires.is_some_and(|at| at <= now) {
                fires = None;
                alarm.on_fired(now);
            }
            // The call that was made in this turn is the oldest that is not answered.
            alarm.want(now, Some(now + TIMEOUT * MS));
            if let Some(after) = alarm.due() {
                sets += 1;
                fires = Some(now + after);
                alarm.mark_set();
            }
        }
        let elapsed = 40_000 / 20;
        assert!(sets <= elapsed / TIMEOUT + 1, "{sets} in {elapsed} ms");
    }

    #[test]
    fn a_past_deadline_is_as_near_as_can_be() {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        alarm.want(start + MS, Some(start));
        assert_eq!(alarm.due(), Some(Duration::from_nanos(1)));
        alarm.want(start, Some(start + 1_000_000_000 * MS));
        assert_eq!(alarm.due(), Some(Alarm::LONGEST));
    }
}
