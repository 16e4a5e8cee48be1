//! The self-test: does all that the engine needs work here?
//!
//! A kernel can answer every question about itself and still refuse the work: a seccomp filter that denies only
//! `io_uring_enter` lets setup, registration and the opcode probe succeed (H38). So the new engine does once, over a
//! socket pair, what it is for: a timeout, a notification, a multishot receive into provided buffers, a send, a cancelled
//! close, each told through the eventfd.

use super::refusal::UringRefusal;
use super::{Live, Phase};
use crate::buf::{Log, Transmit};
use crate::io::{Completion, ConnectionFailure, ConnectionId, Op};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A working kernel needs microseconds.
const BOUND: Duration = Duration::from_millis(250);

pub(super) fn self_test(live: &mut Live) -> Result<(), UringRefusal> {
    let id = ConnectionId { index: 0, generation: u32::MAX };
    let (ours, theirs) = UnixStream::pair().map_err(|e| UringRefusal::of("socketpair", &e))?;
    theirs.set_nonblocking(true).map_err(|e| UringRefusal::of("fcntl", &e))?;
    let mut test = Test::new(live, theirs);
    let mut told = Vec::new();
    test.live.adopt(id, Socket::from(std::os::fd::OwnedFd::from(ours)), &mut told);

    // An idle receive, armed before there is anything to receive; and the timeout.
    let now = test.start;
    test.live.alarm.want(now, Some(now + Duration::from_micros(1)));
    test.flush()?;
    test.until("a timeout did not fire", |live, _| !live.alarm_in_flight)?;
    if test.live.alarm_refused {
        return Err(UringRefusal::Misbehaved { what: "a timeout was refused" });
    }

    test.live.notified.signal();
    test.until("a notification was not seen", |live, _| !live.notified.is_readable())?;

    // Two messages for one receive.
    for message in [b"ping", b"pong"] {
        test.write(message)?;
        test.until("a multishot receive brought nothing", |_, told| !told.is_empty())?;
        match &test.told[..] {
            [Completion::Received { segment, .. }] if segment[..] == message[..] => test.told.clear(),
            [
                Completion::Failed {
                    failure: ConnectionFailure::Io { errno: Some(libc::EINVAL), .. }, ..
                },
            ] => {
                return Err(UringRefusal::KernelTooOld { what: "no multishot receive" });
            }
            _ => return Err(UringRefusal::Misbehaved { what: "a multishot receive brought something else" }),
        }
        // Provides the buffer again: it may be the only one.
        test.flush()?;
    }
    if test.live.counters.receives_armed != 1 {
        return Err(UringRefusal::KernelTooOld { what: "no multishot receive" });
    }

    let mut log = Log::new(16);
    log.append(b"hello");
    let mut data = Transmit::new();
    log.slices(0, 5, &mut data);
    test.live.submit(Op::Send { id, data });
    test.flush()?;
    test.until("a send did not end", |_, told| !told.is_empty())?;
    let mut heard = [0; 8];
    match (&test.told[..], test.theirs.read(&mut heard)) {
        ([Completion::Sent { bytes: 5, .. }], Ok(5)) if heard[..5] == *b"hello" => test.told.clear(),
        _ => return Err(UringRefusal::Misbehaved { what: "a send did not arrive" }),
    }

    test.live.submit(Op::Close { id });
    test.flush()?;
    test.until("a cancelled receive did not end", |live, _| live.connections[0].phase == Phase::Vacant)?;
    match test.theirs.read(&mut heard) {
        Ok(0) => Ok(()),
        _ => Err(UringRefusal::Misbehaved { what: "a closed socket is still open" }),
    }
}

struct Test<'a> {
    live: &'a mut Live,
    theirs: UnixStream,
    told: Vec<Completion>,
    start: Instant,
}

impl<'a> Test<'a> {
    #[expect(clippy::disallowed_methods, reason = "the self-test is bounded in time")]
    fn new(live: &'a mut Live, theirs: UnixStream) -> Self {
        Self { live, theirs, told: Vec::new(), start: Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn write(&mut self, message: &[u8]) -> Result<(), UringRefusal> {
        self.theirs.write_all(message).map_err(|e| UringRefusal::of("write", &e))
    }

    fn flush(&mut self) -> Result<(), UringRefusal> {
        self.live.flush().map_err(|e| UringRefusal::of("io_uring_enter", &e))
    }

    /// Polls and waits for the eventfd, as a host does, until `done`.
    fn until(
        &mut self,
        otherwise: &'static str,
        done: impl Fn(&Live, &[Completion]) -> bool,
    ) -> Result<(), UringRefusal> {
        let enter = |e: io::Error| UringRefusal::of("io_uring_enter", &e);
        loop {
            self.live.poll(8, &mut self.told).map_err(enter)?;
            if done(self.live, &self.told) {
                return Ok(());
            }
            self.flush()?;
            let left = BOUND.saturating_sub(self.elapsed());
            // A kernel that refuses something may keep the engine busy with it.
            let may_park = self.live.may_park().map_err(enter)?;
            let go_on = match may_park && !left.is_zero() {
                true => self.live.wake.wait(left).map_err(|e| UringRefusal::of("poll", &e))?,
                false => !left.is_zero(),
            };
            if !go_on {
                return Err(UringRefusal::Misbehaved { what: otherwise });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::older_kernel::{Is, LACKS};
    use crate::engine::{AnyEngine, EngineKind, EngineOptions, EngineReason, RunningEngine, UringRefusal};
    use io_uring::opcode;

    // H39: each operation that an older kernel refuses leads to epoll, soon, with a reason that names it.
    #[test]
    fn h39_what_an_older_kernel_lacks() {
        let options = |kind| EngineOptions::new().kind(kind);
        if AnyEngine::new(&options(EngineKind::Uring)).is_err() {
            return;
        }
        let rungs: [(&str, Is); 5] = [
            ("no multishot receive", |code, flags| code == opcode::RecvMulti::CODE && flags != 0),
            ("no multishot receive", |code, _| code == opcode::Recv::CODE),
            ("a notification was not seen", |code, _| code == opcode::PollAdd::CODE),
            ("a timeout was refused", |code, _| code == opcode::Timeout::CODE),
            ("a send did not arrive", |code, _| code == opcode::Send::CODE),
        ];
        for (reason, lacks) in rungs {
            LACKS.set(Some(lacks));
            let (_, info) = AnyEngine::new(&options(EngineKind::Auto)).unwrap();
            let forced = AnyEngine::new(&options(EngineKind::Uring)).err().unwrap();
            LACKS.set(None);
            assert_eq!(info.kind, RunningEngine::Epoll, "{reason}");
            let EngineReason::Refused(refusal) = &info.reason else { panic!("{info:?}") };
            let is_old = matches!(refusal, UringRefusal::KernelTooOld { .. });
            assert_eq!(is_old, reason.starts_with("no "), "{refusal}");
            assert!(refusal.to_string().contains(reason), "{refusal}");
            assert!(forced.to_string().contains(&refusal.to_string()), "{forced}");
        }
        assert_eq!(
            AnyEngine::new(&options(EngineKind::Auto)).unwrap().1.reason,
            EngineReason::SelfTestPassed
        );
        assert_eq!(crate::engine::leaked_engines(), 0);
    }
}
