//! From host names to addresses: the one part of connecting that the engine cannot do.

use std::net::SocketAddr;

/// Looks names up. The client asks at every attempt to connect, so a failover that changes a name is seen.
pub trait Resolver {
    /// Starts a look-up of `host`; `port` goes into the addresses. It must not block, and answers once, from any
    /// thread.
    fn resolve(&self, host: &str, port: u16, answer: Answer);
}

/// Where a resolver puts its result: the addresses in the order in which to try them, or what went wrong.
pub struct Answer {
    #[allow(clippy::type_complexity)]
    deliver: Box<dyn FnOnce(Result<Vec<SocketAddr>, String>) + Send>,
}

impl Answer {
    /// An answer that is given to `deliver`.
    pub fn new(deliver: impl FnOnce(Result<Vec<SocketAddr>, String>) + Send + 'static) -> Self {
        Self { deliver: Box::new(deliver) }
    }

    /// Ends the look-up.
    pub fn send(self, result: Result<Vec<SocketAddr>, String>) {
        (self.deliver)(result);
    }
}
