//! The default resolver, and how look-ups get back to the driver's thread.

use crate::error::ConnectionFailure;
use crate::id::ConnectionId;
use crate::io::{Answer, Completion, Resolver};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
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
        // A thread that cannot be started drops the answer, which says so.
        // `getaddrinfo` blocks, and the driver's thread must not.
        drop(std::thread::Builder::new().name("respiral-resolve".into()).spawn(look_up));
    }
}

type Addresses = Result<Vec<SocketAddr>, String>;

/// One question, and the connections that wait for its answer.
struct LookUp {
    serial: u64,
    host: Rc<str>,
    port: u16,
    askers: Vec<ConnectionId>,
}

/// Look-ups under way: one per name, however many connections ask.
pub(super) struct LookUps {
    resolver: Rc<dyn Resolver>,
    /// Serial numbers and their answers.
    found: Arc<Mutex<Vec<(u64, Addresses)>>>,
    /// `None` after the end.
    notifier: Option<Arc<File>>,
    /// Those that have not been collected; the lock is taken only while there are some.
    pending: RefCell<Vec<LookUp>>,
    serial: Cell<u64>,
}

impl LookUps {
    pub fn new(resolver: Option<Rc<dyn Resolver>>, notifier: OwnedFd) -> Self {
        Self {
            resolver: resolver.unwrap_or_else(|| Rc::new(SystemResolver)),
            found: Arc::default(),
            notifier: Some(Arc::new(File::from(notifier))),
            pending: RefCell::default(),
            serial: Cell::new(0),
        }
    }

    /// What a look-up needs; it is started by the caller, since a resolver is user code. `None`: it is under way, or
    /// everything is over.
    pub fn prepare(&self, id: ConnectionId, host: &Rc<str>, port: u16) -> Option<(Rc<dyn Resolver>, Answer)> {
        let notifier = self.notifier.clone()?;
        let mut pending = self.pending.borrow_mut();
        // A connection that asks again has given the last answer up: nobody waits for it but those who asked with it.
        let same = |known: &&mut LookUp| known.host == *host && known.port == port;
        let newest = pending.iter_mut().rev().find(same);
        let joined = newest.is_some_and(|known| {
            let is_new = known.askers.iter().all(|asker| asker.index != id.index);
            known.askers.extend(is_new.then_some(id));
            is_new
        });
        for known in pending.iter_mut() {
            known.askers.retain(|asker| asker.index != id.index || *asker == id);
        }
        pending.retain(|known| !known.askers.is_empty());
        if joined {
            return None;
        }
        let serial = self.serial.get();
        self.serial.set(serial + 1);
        pending.push(LookUp { serial, host: host.clone(), port, askers: vec![id] });
        let found = self.found.clone();
        let answer = Answer::new(move |result| {
            found.lock().unwrap_or_else(PoisonError::into_inner).push((serial, result));
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
        !self.pending.borrow().is_empty()
            && !self.found.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub fn collect(&self, out: &mut Vec<Completion>) {
        let mut pending = self.pending.borrow_mut();
        if pending.is_empty() {
            return;
        }
        for (serial, result) in self.found.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let Some(at) = pending.iter().position(|known| known.serial == serial) else { continue };
            for id in pending.remove(at).askers {
                out.push(match &result {
                    Ok(addresses) if !addresses.is_empty() => {
                        Completion::Resolved { id, addresses: addresses.clone() }
                    }
                    Ok(_) => failed(id, "no address"),
                    Err(text) => failed(id, text),
                });
            }
        }
    }
}

fn failed(id: ConnectionId, text: &str) -> Completion {
    Completion::Failed { id, failure: ConnectionFailure::Resolve(text.into()) }
}
