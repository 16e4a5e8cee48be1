//! The end of an engine, always in this order: stop submitting; cancel each operation by its `user_data`, in batches;
//! reap every last completion; unregister; close; free.
//!
//! Closing a ring is asynchronous in the kernel, and any other holder of it would keep it going: "drop the ring, then
//! the buffers" is no barrier (H1, H2). Only completions prove that the kernel is done with our memory. When they do
//! not all come within a bound, that memory is leaked and the leak is counted.

use super::connection::{Connection, Phase};
use super::{Counters, Live, ring};
use crate::engine::socket;
use crate::engine::token::{Kind, Token};
use crate::io::{Completion, ConnectionId};
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Cancelled operations end at once; this is for a kernel in trouble.
const BOUND: Duration = Duration::from_secs(1);

static LEAKED: AtomicUsize = AtomicUsize::new(0);

/// How many engines of this process had to leak their buffers, because the kernel did not let go of them within a
/// second. Zero on a working kernel.
pub fn leaked_engines() -> usize {
    LEAKED.load(Ordering::Relaxed)
}

impl Live {
    /// Ends everything. After it returns the kernel reads and writes nothing of ours, and peers receive nothing more.
    pub(super) fn close(mut self, out: &mut Vec<Completion>) -> Counters {
        self.pool.on_return(None);
        if !self.process.is_surely_current() {
            // A forked child: the ring, its queues and what is in flight are the parent's. Only descriptors go (H7).
            return self.counters();
        }
        let ended = matches!(self.quiesce(BOUND, out), Ok(true));
        self.ring.unregister();
        let counters = self.counters();
        // Entries that never left the queue (no call was allowed) are not the kernel's.
        if ended || self.ring.in_kernel() == 0 {
            self.answer_the_rest(out);
            self.buffers.reclaim();
        } else {
            LEAKED.fetch_add(1, Ordering::Relaxed);
            let outstanding = self.ring.in_kernel();
            tracing::error!(outstanding, "io_uring did not end its operations; their memory is leaked");
            std::mem::forget(self.answer_the_rest(out));
            self.buffers.leak();
            std::mem::forget(std::mem::take(&mut self.times));
        }
        // The ring is the first field, so it is closed before the memory of `buffers` is freed.
        counters
    }

    /// Cancels everything that is in flight, in batches, and waits for the ends, up to `bound`. True when the kernel
    /// has nothing left.
    #[expect(clippy::disallowed_methods, reason = "closing is bounded in time")]
    fn quiesce(&mut self, bound: Duration, out: &mut Vec<Completion>) -> io::Result<bool> {
        out.append(&mut self.ready);
        let deadline = Instant::now() + bound;
        for (in_flight, kind) in [(self.alarm_in_flight, Kind::Alarm), (self.notified_in_flight, Kind::Wake)]
        {
            if in_flight {
                self.push_cancel(Token::of_engine(kind));
            }
        }
        // The last first: the kernel looks for an operation from the newest on, among many of one bucket.
        for index in (0..self.connections.len()).rev() {
            match self.connections[index].phase {
                Phase::Vacant => continue,
                Phase::Closing => {}
                _ => self.begin_close(index),
            }
            self.finish_close(index, out);
            if index % ring::BATCH == 0 {
                self.reap_all(out)?;
            }
        }
        loop {
            self.reap_all(out)?;
            if self.ring.outstanding() == 0 {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.ring.wait(left)?;
        }
    }

    fn reap_all(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        self.ring.submit()?;
        let mut batch = [const { MaybeUninit::uninit() }; ring::BATCH];
        loop {
            let reaped = self.ring.reap(&mut batch);
            for entry in reaped {
                self.on_completion(entry, out);
            }
            self.counters.completions += reaped.len() as u64;
            if !reaped.is_empty() {
                continue;
            }
            if !self.ring.needs_entry() {
                return Ok(());
            }
            self.ring.take_events()?;
        }
    }

    /// Ends the sockets that are left, and tells what is owed about them. What is returned holds all that the kernel
    /// may still read.
    fn answer_the_rest(&mut self, out: &mut Vec<Completion>) -> Vec<Connection> {
        let mut connections = std::mem::take(&mut self.connections);
        for (index, connection) in connections.iter_mut().enumerate() {
            if connection.phase == Phase::Vacant {
                continue;
            }
            let id = ConnectionId { index: index as u16, generation: connection.generation };
            if let Some(socket) = connection.socket.take() {
                socket::close(socket);
            }
            if let Some(send) = &connection.send
                && send.progress.is_owed()
            {
                out.push(Completion::Sent { id, bytes: send.progress.taken() });
            }
            out.push(Completion::Closed { id });
        }
        connections
    }
}

#[cfg(test)]
mod tests {
    use super::super::UringEngine;
    use crate::engine::{Engine, EngineKind, EngineOptions};
    use crate::io::{Address, Completion, ConnectionId, Op, SocketOptions};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    // H7: a child that drops what it inherited leaves the parent's connections alone.
    #[test]
    fn a_forked_child_only_closes_descriptors() {
        let Ok(mut engine) = UringEngine::new(&EngineOptions::new().kind(EngineKind::Uring)) else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let id = ConnectionId { index: 0, generation: 0 };
        engine.submit(Op::Connect { id, address, options: SocketOptions::default() });
        engine.flush().unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let mut told = Vec::new();
        while told.is_empty() {
            engine.poll(8, &mut told).unwrap();
            engine.flush().unwrap();
        }

        // SAFETY: the child calls nothing that could wait for a lock of another thread but the allocator, which the C
        // library makes safe to use after fork; it ends with _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(engine);
            // SAFETY: always safe; nothing of the parent's is flushed or destroyed.
            unsafe { libc::_exit(0) }
        }
        let mut status = 0;
        // SAFETY: one valid int, for the length of the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");

        peer.write_all(b"still here").unwrap();
        told.clear();
        while told.is_empty() {
            engine.poll(8, &mut told).unwrap();
            engine.flush().unwrap();
        }
        assert!(matches!(&told[..], [Completion::Received { segment, .. }] if segment[..] == *b"still here"));
        drop(engine);
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
    }
}
