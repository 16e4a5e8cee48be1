//! From host names to addresses: the one part of connecting that the engine cannot do.

use std::net::SocketAddr;

/// Looks names up. The client asks at every attempt to connect, so a failover that changes a name is seen.
pub trait Resolver {
    /// Starts a look-up of `host`; `port` goes into the addresses. It must not block, and answers once, from any
    /// thread.
    fn resolve(&self, host: &str, port: u16, answer: Answer);
}

/// What is done with a result.
type Deliver = Box<dyn FnOnce(Result<Vec<SocketAddr>, String>) + Send>;

/// Where a resolver puts its result: the addresses in the order in which to try them, or what went wrong. Dropped
/// without one, it says so.
pub struct Answer(Option<Deliver>);

impl Answer {
    /// An answer that is given to `deliver`.
    pub fn new(deliver: impl FnOnce(Result<Vec<SocketAddr>, String>) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    /// Ends the look-up.
    pub fn send(mut self, result: Result<Vec<SocketAddr>, String>) {
        if let Some(deliver) = self.0.take() {
            deliver(result);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(Err("the resolver gave no answer".to_owned()));
        }
    }
}
