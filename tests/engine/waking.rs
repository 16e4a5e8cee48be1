use crate::harness::*;
use respiral::engine::{Engine, EngineKind};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

pub fn h1_the_wake_descriptor_is_harmless(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let mut peer = host.pair(id(0, 0), &listener);
    let dup = host.engine.wake_fd().unwrap();
    let target =
        std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&dup))).unwrap();
    assert!(!target.to_string_lossy().contains("io_uring"), "{target:?}");
    drop(host);
    peer.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(std::io::Read::read(&mut peer, &mut [0; 8]).unwrap(), 0, "the peer sees the end");
}

fn all_ready_at_once(mut host: Host, count: u16) {
    let (listener, _) = listen();
    let mut peers = host.pairs(count, &listener);
    host.idle(5 * MS);
    assert!(host.engine.may_park().unwrap());
    for peer in &mut peers {
        peer.write_all(b"+PONG\r\n").unwrap();
    }
    // One await; what it cannot collect at once must be asked for by `more` and `may_park`, never by another wake-up.
    assert!(host.wait(LIMIT));
    let mut turns = 0;
    while host.turn() || !host.engine.may_park().unwrap() {
        turns += 1;
        assert!(turns < 5000, "spins");
    }
    let served = host.seen.values().filter(|seen| seen.received.len() == 7).count();
    assert_eq!(served, usize::from(count), "the engine would park with work left");
    host.finish();
}

pub fn h11_two_hundred_ready_at_once(kind: EngineKind) {
    all_ready_at_once(Host::new(kind).edge_triggered(), 200);
}

pub fn h11_with_a_small_completion_queue(kind: EngineKind) {
    let options = options(kind).entries(8).completion_entries(8);
    all_ready_at_once(Host::with(&options).edge_triggered(), 200);
}

pub fn h14_budget_one_under_an_edge_triggered_host(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind).edge_triggered();
    let mut peers = host.pairs(100, &listener);
    host.budget = 1;
    for round in 1..=3 {
        for peer in &mut peers {
            peer.write_all(b"+PONG\r\n").unwrap();
        }
        if round == 3 {
            // All is there: `more` alone must lead to the last of them.
            while host.turn() {}
            assert!(host.seen.values().all(|seen| seen.received.len() == 7 * round), "`more` was forgotten");
        }
        host.until(|host| host.seen.values().all(|seen| seen.received.len() == 7 * round));
    }
    host.finish();
}

/// Keeps this thread on one of the processors that it may use. (Two that take turns on one enter the kernel all the time.)
fn stay_on(place: usize) {
    let may = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    if let Some(processor) = (0..CpuSet::MAX_CPU).filter(|processor| may.is_set(*processor)).nth(place) {
        one.set(processor);
        sched_setaffinity(None, &one).unwrap();
    }
}

/// H12: what the kernel has received is seen by the next poll, without a wait: a thread that spins must look at more than
/// the completion queue, which is filled only when it enters the kernel.
pub fn h12_a_poll_sees_what_has_come(kind: EngineKind) {
    const ROUNDS: usize = 200;
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let a = id(0, 0);
    let mut peer = host.pair(a, &listener);
    let (wanted, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ask, done) = (wanted.clone(), written.clone());
    let writer = in_thread(move || {
        stay_on(1);
        for round in 1..=10 * ROUNDS {
            while ask.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
            if peer.write_all(b"x").is_err() {
                return;
            }
            done.store(round, Ordering::SeqCst);
        }
    });
    stay_on(0);
    let mut round = 0;
    // Packets may be late on a machine that is busy with others; seldom in ten attempts.
    let mut attempt = || {
        let mut seen = 0;
        for _ in 0..ROUNDS {
            round += 1;
            host.until(|host| host.seen[&a].received.len() == round - 1);
            while host.turn() {}
            wanted.store(round, Ordering::SeqCst);
            // No system call meanwhile: it would be the entry that is to be missed.
            while written.load(Ordering::SeqCst) < round {
                std::hint::spin_loop();
            }
            let mut told = Vec::new();
            host.engine.poll(8, &mut told).unwrap();
            seen += usize::from(!told.is_empty());
            host.note(told);
        }
        seen
    };
    let seen: Vec<_> = (0..10).map(|_| attempt()).take_while(|seen| seen * 10 <= ROUNDS * 9).collect();
    assert!(seen.len() < 10, "seen at once, of {ROUNDS}: {seen:?}");
    wanted.store(usize::MAX, Ordering::SeqCst);
    host.close_all();
    writer.join().unwrap();
    host.finish();
}

/// Many round trips of a lone caller: each one parks, and a single lost signal would hang.
pub fn h13_no_signal_is_lost(kind: EngineKind) {
    for edge in [false, true] {
        let (listener, _) = listen();
        let host = Host::new(kind);
        let mut host = if edge { host.edge_triggered() } else { host };
        let a = id(0, 0);
        let mut peer = host.pair(a, &listener);
        let echo = in_thread(move || {
            let mut message = [0; 16];
            while let Ok(16) = peer.read(&mut message) {
                peer.write_all(&message).unwrap();
            }
        });
        for round in 1..=10_000 {
            host.send(a, transmit(&[round as u8; 16], 16));
            host.until(|host| host.seen[&a].owed == 0 && host.seen[&a].received.len() == round * 16);
        }
        host.close_all();
        echo.join().unwrap();
        host.finish();
    }
}

/// H36: a deadline that moves later each turn costs nothing.
pub fn h36_the_alarm_is_moved_only_earlier(kind: EngineKind) {
    let mut host = Host::new(kind);
    host.idle(2 * MS);
    let start = now();
    host.engine.wake_at(start, Some(start + 5000 * MS));
    host.engine.flush().unwrap();
    let calls = host.engine.counters().kernel_entries;
    for turn in 0..1000 {
        host.engine.wake_at(start, Some(start + (5000 + turn) * MS));
        host.engine.flush().unwrap();
    }
    host.engine.wake_at(start, None);
    host.engine.flush().unwrap();
    assert_eq!(host.engine.counters().kernel_entries, calls);
    host.finish();
}

pub fn an_alarm_fires(kind: EngineKind) {
    let mut host = Host::new(kind);
    for _ in 0..3 {
        host.idle(MS);
        let start = now();
        host.engine.wake_at(start, Some(start + 15 * MS));
        host.engine.flush().unwrap();
        while start.elapsed() < 15 * MS {
            assert!(host.park(LIMIT), "the alarm is lost");
            host.turn();
        }
    }
    host.finish();
}

pub fn an_earlier_alarm_replaces_a_later_one(kind: EngineKind) {
    let mut host = Host::new(kind);
    let start = now();
    for after in [Duration::from_secs(3600), Duration::from_secs(60), 10 * MS] {
        host.engine.wake_at(start, Some(start + after));
        host.turn();
    }
    while start.elapsed() < 10 * MS {
        assert!(host.park(LIMIT), "the alarm is lost");
        host.turn();
    }
    assert!(start.elapsed() < LIMIT);
    host.finish();
}

pub fn a_later_alarm_follows_an_early_one(kind: EngineKind) {
    let mut host = Host::new(kind);
    let start = now();
    host.engine.wake_at(start, Some(start + 5 * MS));
    host.turn();
    host.engine.wake_at(start, Some(start + 40 * MS));
    host.turn();
    while start.elapsed() < 40 * MS {
        assert!(host.park(LIMIT), "the later alarm is lost");
        host.turn();
    }
    assert!(host.turns < 20, "{} turns for two alarms", host.turns);
    host.engine.wake_at(now(), None);
    assert!(host.idle(20 * MS) <= 3);
    host.finish();
}

pub fn an_alarm_can_be_in_the_past(kind: EngineKind) {
    let mut host = Host::new(kind);
    host.idle(2 * MS);
    let start = now();
    host.engine.wake_at(start, Some(start - MS));
    host.engine.flush().unwrap();
    assert!(host.park(LIMIT));
    host.finish();
}

pub fn a_notifier_wakes_from_another_thread(kind: EngineKind) {
    let mut host = Host::new(kind).edge_triggered();
    for value in [1u64, 1 << 40, 1] {
        while !host.engine.may_park().unwrap() {
            host.turn();
        }
        assert!(!host.wait(MS), "nobody wrote");
        let mut notifier = std::fs::File::from(host.engine.notifier().unwrap());
        let writer = in_thread(move || {
            pause(5 * MS);
            notifier.write_all(&value.to_ne_bytes()).unwrap();
        });
        assert!(host.wait(LIMIT), "the notification is lost");
        host.turn();
        writer.join().unwrap();
    }
    host.finish();
}

/// A thread that notifies while the host is about to park: the notification must not be cleared unseen.
pub fn a_notification_is_not_lost_while_parking(kind: EngineKind) {
    let mut host = Host::new(kind);
    let mut notifier = std::fs::File::from(host.engine.notifier().unwrap());
    for _ in 0..100 {
        while host.turn() || !host.engine.may_park().unwrap() {}
        notifier.write_all(&1u64.to_ne_bytes()).unwrap();
        assert!(!host.engine.may_park().unwrap(), "the notification was not seen");
        host.turn();
    }
    // Many notifications are one.
    (0..1000).for_each(|_| notifier.write_all(&1u64.to_ne_bytes()).unwrap());
    host.turn();
    assert!(host.idle(20 * MS) < 5);
    host.finish();
}

pub fn an_idle_engine_is_silent(kind: EngineKind) {
    let (listener, _) = listen();
    let mut host = Host::new(kind);
    let _peers = host.pairs(20, &listener);
    host.idle(5 * MS);
    let calls = host.engine.counters().kernel_entries;
    let turns = host.idle(50 * MS);
    let calls = host.engine.counters().kernel_entries - calls;
    assert!(turns <= 2 && calls <= 2 * turns as u64 + 2, "{turns} turns and {calls} calls");
    if kind == EngineKind::Uring {
        assert_eq!(calls, 0, "never enter with nothing to submit");
    }
    host.finish();
}
