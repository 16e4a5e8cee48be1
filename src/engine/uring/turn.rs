//! One turn: hand over what is queued, take what has happened, and say whether the host may sleep.
//!
//! No system call without something to submit, except when the ring's flags say that completions wait for one. The
//! eventfd is cleared before the last look, so whatever comes after that look signals it anew (H11, H13).

use super::{Live, ring};
use crate::engine::token::{Kind, Token};
use crate::io::Completion;
use io_uring::opcode;
use io_uring::types::{Fd, Timespec};
use std::io;
use std::mem::MaybeUninit;

impl Live {
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.buffers.provide(self.window());
        // Those that find no buffer are starved, of which the next step tells the pool (H16).
        self.arm_due();
        self.feed_starved();
        self.set_alarm();
        self.watch_notified();
        if self.ring.has_queued() {
            self.ring.submit()?;
        }
        self.arming = 0;
        Ok(())
    }

    pub(super) fn set_alarm(&mut self) {
        let Some(after) = self.alarm.due() else { return };
        self.alarm.mark_set();
        let alarm = Token::of_engine(Kind::Alarm).pack();
        let time = Timespec::from(after);
        let entry = if self.alarm_in_flight {
            self.times.update = time;
            let update = opcode::TimeoutUpdate::new(alarm, &self.times.update).build();
            update.user_data(Token::of_engine(Kind::AlarmUpdate).pack())
        } else {
            self.times.set = time;
            self.alarm_in_flight = true;
            opcode::Timeout::new(&self.times.set).build().user_data(alarm)
        };
        // SAFETY: the timespecs are boxed and live as long as the ring. They are written again only for a later entry
        // of their kind; should the earlier one still be queued, it merely gets the newer time.
        unsafe { self.ring.push(entry) };
    }

    /// Polls the notifier's descriptor, until closed: a multishot that the kernel ends only when the completion queue
    /// is full, and then another one.
    pub(super) fn watch_notified(&mut self) {
        if !self.notified_in_flight {
            self.notified_in_flight = true;
            let entry =
                opcode::PollAdd::new(Fd(self.notified.raw()), libc::POLLIN as u32).multi(true).build();
            // SAFETY: it points to nothing, and the descriptor is closed after everything is reaped.
            unsafe { self.ring.push(entry.user_data(Token::of_engine(Kind::Wake).pack())) };
        }
    }

    pub(super) fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool> {
        let end = out.len() + budget.max(1);
        let told = self.ready.len().min(end - out.len());
        out.extend(self.ready.drain(..told));
        let mut entered = false;
        while self.ready.is_empty() && out.len() < end {
            let mut batch = [const { MaybeUninit::uninit() }; ring::BATCH];
            let room = ring::BATCH.min(end - out.len());
            let reaped = self.ring.reap(&mut batch[..room]);
            for entry in reaped {
                self.on_completion(entry, out);
            }
            self.counters.completions += reaped.len() as u64;
            if reaped.is_empty() {
                if entered || !self.ring.needs_entry() {
                    break;
                }
                entered = true;
                self.ring.take_events()?;
            }
        }
        self.buffers.provide(self.window());
        self.feed_starved();
        Ok(!self.ready.is_empty() || self.ring.has_completions() || self.ring.needs_entry())
    }

    pub(super) fn may_park(&mut self) -> io::Result<bool> {
        self.wake.drain()?;
        // Only now: what comes after this look signals the eventfd anew.
        if self.ring.needs_entry() {
            self.ring.take_events()?;
            return Ok(false);
        }
        Ok(self.ready.is_empty()
            && !self.ring.has_completions()
            && !self.ring.has_queued()
            && self.alarm.due().is_none()
            && self.notified_in_flight
            && self.due.is_empty()
            && !self.can_feed_starved())
    }
}
