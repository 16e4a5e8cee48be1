//! The default resolver, and how look-ups get back to the driver's thread.

use crate::error::ConnectionFailure;
use crate::id::ConnectionId;
use crate::io::{Answer, Completion, Resolver};
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::net::ToSocketAddrs;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Asks the system (`getaddrinfo`) on a helper thread that lives as long as the look-up.
struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16, answer: Answer) {
        let host = host.to_owned();
        let look_up = move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            answer.send(found.map_err(|error| error.to_string()));
        };
        // A thread that cannot be started drops the answer, and the connect deadline ends the attempt.
        // `getaddrinfo` blocks, and the driver's thread must not.
        drop(std::thread::Builder::new().name("respiral-resolve".into()).spawn(look_up));
    }
}

type Found = Vec<(ConnectionId, Result<Vec<std::net::SocketAddr>, String>)>;

/// Look-ups under way.
pub(super) struct LookUps {
    resolver: Rc<dyn Resolver>,
    found: Arc<Mutex<Found>>,
    /// `None` after the end.
    notifier: Option<Arc<File>>,
    /// How many have not been collected; the lock is taken only while there are some.
    pending: Cell<usize>,
}

impl LookUps {
    pub fn new(resolver: Option<Rc<dyn Resolver>>, notifier: OwnedFd) -> Self {
        Self {
            resolver: resolver.unwrap_or_else(|| Rc::new(SystemResolver)),
            found: Arc::default(),
            notifier: Some(Arc::new(File::from(notifier))),
            pending: Cell::new(0),
        }
    }

    /// What a look-up needs; it is started by the caller, since a resolver is user code.
    pub fn prepare(&self, id: ConnectionId) -> Option<(Rc<dyn Resolver>, Answer)> {
        let notifier = self.notifier.clone()?;
        self.pending.set(self.pending.get() + 1);
        let found = self.found.clone();
        let answer = Answer::new(move |result| {
            found.lock().unwrap_or_else(PoisonError::into_inner).push((id, result));
            // A full counter is readable as well.
            let _ = (&*notifier).write(&1u64.to_ne_bytes());
        });
        Some((self.resolver.clone(), answer))
    }

    /// Nothing is looked up and nobody is notified any more.
    pub fn close(&mut self) {
        self.notifier = None;
    }

    /// True when an answer waits to be collected.
    pub fn has_answer(&self) -> bool {
        self.pending.get() > 0 && !self.found.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn collect(&self, out: &mut Vec<Completion>) {
        if self.pending.get() == 0 {
            return;
        }
        for (id, result) in self.found.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.pending.set(self.pending.get() - 1);
            out.push(match result {
                Ok(addresses) if !addresses.is_empty() => Completion::Resolved { id, addresses },
                Ok(_) => failed(id, "no address"),
                Err(text) => failed(id, &text),
            });
        }
    }
}

fn failed(id: ConnectionId, text: &str) -> Completion {
    Completion::Failed { id, failure: ConnectionFailure::Resolve(text.into()) }
}
