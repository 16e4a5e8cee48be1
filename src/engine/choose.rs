//! Which engine runs, and why.

use super::epoll::EpollEngine;
use super::uring::{UringEngine, UringRefusal};
use super::{Counters, Engine};
use crate::Error;
use crate::buf::BufferPool;
use crate::io::{Completion, Op};
use crate::io::{EngineKind, EngineOptions};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Once;
use std::time::Instant;

/// The engine that runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunningEngine {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

/// Why it is this one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EngineReason {
    /// It passed its self-test.
    SelfTestPassed,
    /// The options ask for it.
    Forced,
    /// The other one is refused here.
    Refused(UringRefusal),
}

/// Which engine runs, and why. `Display` is one line for an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EngineInfo {
    /// Which one.
    pub kind: RunningEngine,
    /// Why.
    pub reason: EngineReason,
}

impl fmt::Display for EngineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            RunningEngine::Uring => "io_uring",
            RunningEngine::Epoll => "epoll",
        })?;
        match &self.reason {
            EngineReason::SelfTestPassed => Ok(()),
            EngineReason::Forced => f.write_str(": forced by options"),
            EngineReason::Refused(refusal) => write!(f, ": {refusal}"),
        }
    }
}

/// One of the engines. Both keep the same contract.
#[expect(clippy::large_enum_variant, reason = "there is one per client")]
pub enum AnyEngine {
    /// io_uring.
    Uring(UringEngine),
    /// epoll.
    Epoll(EpollEngine),
}

impl AnyEngine {
    /// Checks the options, tries io_uring unless they say otherwise, and falls back to epoll if they allow it; the first
    /// fallback of a process is logged as a warning, with the cause and the remedy.
    ///
    /// # Errors
    /// [`Error::Config`] naming the option: one without a valid value; `engine` when the engine that is asked for (or
    /// both) cannot be had.
    pub fn new(options: &EngineOptions) -> Result<(Self, EngineInfo), Error> {
        options.validate()?;
        let refusal = match options.kind {
            EngineKind::Epoll => None,
            kind => match UringEngine::new(options) {
                Ok(engine) => {
                    let reason = match kind {
                        EngineKind::Auto => EngineReason::SelfTestPassed,
                        _ => EngineReason::Forced,
                    };
                    return Ok((AnyEngine::Uring(engine), EngineInfo { kind: RunningEngine::Uring, reason }));
                }
                Err(refusal) if kind == EngineKind::Uring => {
                    return Err(Error::config("engine", refusal.to_string()));
                }
                Err(refusal) => Some(refusal),
            },
        };
        let engine = EpollEngine::new(options).map_err(|e| Error::config("engine", format!("epoll: {e}")))?;
        let reason = match refusal {
            None => EngineReason::Forced,
            Some(refusal) => {
                static WARNED: Once = Once::new();
                WARNED.call_once(|| tracing::warn!("using epoll: {refusal}"));
                EngineReason::Refused(refusal)
            }
        };
        Ok((AnyEngine::Epoll(engine), EngineInfo { kind: RunningEngine::Epoll, reason }))
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        match self {
            AnyEngine::Uring(engine) => engine.counters(),
            AnyEngine::Epoll(engine) => engine.counters(),
        }
    }
}

macro_rules! either {
    ($self:expr, $engine:ident => $body:expr) => {
        match $self {
            AnyEngine::Uring($engine) => $body,
            AnyEngine::Epoll($engine) => $body,
        }
    };
}

impl Engine for AnyEngine {
    #[inline]
    fn submit(&mut self, op: Op) {
        either!(self, engine => engine.submit(op))
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        either!(self, engine => engine.flush())
    }

    #[inline]
    fn poll(&mut self, budget: usize, out: &mut Vec<Completion>) -> io::Result<bool> {
        either!(self, engine => engine.poll(budget, out))
    }

    #[inline]
    fn may_park(&mut self) -> io::Result<bool> {
        either!(self, engine => engine.may_park())
    }

    #[inline]
    fn wake_at(&mut self, now: Instant, at: Option<Instant>) {
        either!(self, engine => engine.wake_at(now, at))
    }

    fn wake_fd(&self) -> io::Result<OwnedFd> {
        either!(self, engine => engine.wake_fd())
    }

    fn notifier(&self) -> io::Result<OwnedFd> {
        either!(self, engine => engine.notifier())
    }

    fn pool(&self) -> &BufferPool {
        either!(self, engine => engine.pool())
    }

    fn close(&mut self, out: &mut Vec<Completion>) {
        either!(self, engine => engine.close(out))
    }
}
