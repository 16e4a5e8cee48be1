//! A network between a client and a real server, as bad as a test wants it.
//!
//! **Invariant.** As of the server: every method may be called from any thread, its effect is complete when it returns, and
//! nothing is left when the handle is dropped.

mod flow;
mod link;
mod relay;

use crate::event_loop::{Looped, Shared};
use crate::faults::{Connections, Faults, Hangup, Owner, Selection, Target};
use crate::listener::{Accept, Listener, Place};
use crate::server::WAIT_LIMIT;
use relay::Relay;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{fmt, io};

/// Numbers about a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Connections accepted from clients since the start.
    pub connections_accepted: u64,
    /// Connections that are open now. One whose ends have both gone counts until the proxy sees it: a stalled one does not
    /// look.
    pub connections_open: usize,
    /// Connects to the server that failed.
    pub connects_failed: u64,
    /// Bytes passed on to the server: its kernel has them.
    pub bytes_to_server: u64,
    /// Bytes passed on to clients.
    pub bytes_to_client: u64,
    /// Bytes read and thrown away.
    pub bytes_discarded: u64,
    /// Bytes that the proxy holds now, over all connections.
    pub bytes_held: usize,
}

/// A proxy on a port of 127.0.0.1, in front of any server. It is stopped when it is dropped.
///
/// ```
/// use respiral_testkit::{Proxy, Server};
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// let server = Server::start()?; // or a real one
/// let proxy = Proxy::start(server.addr())?;
/// // … your service connects to proxy.url() …
/// proxy.all_connections().delay(Duration::from_millis(5)); // a far server
/// proxy.open_connections().to_client().stall(); // half-open: replies no longer come
/// proxy.open_connections().reset();
/// # Ok(())
/// # }
/// ```
///
/// A connection to it makes one to the server; when that fails, the client sees the end of the stream. An end of stream and
/// a reset are passed on, behind the bytes before them. What one side does not read is held up to 256 KiB per direction;
/// beyond that the proxy does not read from the other side either.
///
/// What it does is named as on the [`Server`](crate::Server): by [`Connections`], [`accept`](Self::accept),
/// [`stop`](Self::stop) and [`restart`](Self::restart).
pub struct Proxy {
    shared: Arc<Shared<Relay>>,
    thread: Option<JoinHandle<()>>,
    addr: SocketAddr,
}

impl Proxy {
    /// Starts a proxy before the server at `target`, with nothing wrong yet.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = Listener::open(Place::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), None)?;
        let Place::Tcp(addr) = *listener.place() else { unreachable!("it was opened at a TCP address") };
        let shared = Arc::new(Shared::new(|epoll| Relay::new(epoll, listener, target))?);
        let thread = Some(shared.launch()?);
        Ok(Self { shared, thread, addr })
    }

    /// The address for clients. It stays the same over a restart.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    // What it saw.

    /// All numbers at this moment.
    pub fn stats(&self) -> ProxyStats {
        self.shared.peek(|relay| relay.stats())
    }

    /// Connections accepted since the start. The last one has this number.
    pub fn connections_accepted(&self) -> u64 {
        self.stats().connections_accepted
    }

    /// Waits until the numbers satisfy `reached`. False when they do not within 30 seconds. It blocks the thread: see
    /// [`Server::wait_for`](crate::Server::wait_for).
    #[must_use = "false means that it did not happen"]
    pub fn wait_for(&self, reached: impl FnMut(&ProxyStats) -> bool) -> bool {
        self.shared.wait_for(WAIT_LIMIT, reached)
    }

    // What goes wrong.

    /// The connection with this number; numbers count accepted connections from 1.
    pub fn connection(&self, number: u64) -> Connections<'_, Self> {
        Connections::new(self, Selection::One(number))
    }

    /// All connections that are open now.
    pub fn open_connections(&self) -> Connections<'_, Self> {
        Connections::new(self, Selection::Open)
    }

    /// All connections that are not accepted yet.
    pub fn new_connections(&self) -> Connections<'_, Self> {
        Connections::new(self, Selection::New)
    }

    /// All connections, now and later.
    pub fn all_connections(&self) -> Connections<'_, Self> {
        Connections::new(self, Selection::All)
    }

    /// What happens to clients that connect from now on.
    pub fn accept(&self, accept: Accept) -> io::Result<()> {
        self.shared.with_core(|relay| relay.listener.set_accept(accept))
    }

    /// Connections to come go to the server at `target`; those that exist stay where they are.
    pub fn retarget(&self, target: SocketAddr) {
        self.shared.with_core(|relay| relay.target = target);
    }

    /// Goes away, and the server with it: connections end with an end of stream on both sides, connects are refused. The
    /// port stays reserved.
    pub fn stop(&self) -> io::Result<()> {
        self.shared.with_core(Relay::close)
    }

    /// Stops, if it runs, and comes back at the same address.
    pub fn restart(&self) -> io::Result<()> {
        self.shared.with_core(|relay| relay.close().and_then(|()| relay.listener.reopen()))
    }
}

impl Owner for Proxy {
    fn change_faults(&self, target: Target, change: &dyn Fn(&mut Faults)) {
        self.shared.with_core(|relay| relay.change_faults(target, change));
    }

    fn hang_up(&self, target: Target, how: Hangup) {
        self.shared.with_core(|relay| relay.hang_up(target, how));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("addr", &self.addr).finish_non_exhaustive()
    }
}
