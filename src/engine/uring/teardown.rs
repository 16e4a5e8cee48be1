//! The end of an engine, always in this order: stop submitting; cancel each operation by its `user_data`, in batches;
//! reap every last completion; unregister; close; free.
//!
//! Closing a ring is asynchronous in the kernel, and any other holder of it would keep it going: "drop the ring, then
//! the buffers" is no barrier (H1, H2). Only completions prove that the kernel is done with our memory. When they do
//! not all come within a bound, that memory is leaked and the leak is counted.

use super::connection::{Connection, Phase};
use super::{Counters, Live};
use crate::engine::socket;
use crate::io::{Completion, ConnectionId};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
        if self.pid != std::process::id() {
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
