//! What must be known before a server starts.

use crate::Server;
use crate::listener::{Listener, Place};
use crate::state::Parts;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Options of a server; see [`Server::builder`].
#[must_use = "the server exists only after start"]
pub struct Builder {
    place: Place,
    parts: Parts,
    buffer_bytes: Option<usize>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let place = Place::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Self { place, parts: Parts::default(), buffer_bytes: None }
    }

    /// Listens at this address instead of a free port of 127.0.0.1.
    pub fn bind(mut self, addr: impl Into<SocketAddr>) -> Self {
        self.place = Place::Tcp(addr.into());
        self
    }

    /// Listens at this path, which must not exist; it is removed when the server stops.
    pub fn bind_unix(mut self, path: impl AsRef<Path>) -> Self {
        self.place = Place::Unix(path.as_ref().to_owned());
        self
    }

    /// Refuses `HELLO` as a server before version 6 does: `ERR unknown command 'HELLO'`.
    pub fn resp2_only(mut self) -> Self {
        self.parts.world.settings.resp2_only = true;
        self
    }

    /// Answers `HELLO 3` with `NOPROTO`.
    pub fn refuse_resp3(mut self) -> Self {
        self.parts.world.settings.refuses_resp3 = true;
        self
    }

    /// Adds a user; with any user, clients must authenticate. The user of `AUTH password` is `default`.
    pub fn password(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.parts.world.settings.users.push((user.into(), password.into()));
        self
    }

    /// Records commands from the start; see [`Server::commands`].
    pub fn record(mut self) -> Self {
        self.parts.recording = true;
        self
    }

    /// Gives every accepted socket kernel buffers of about this size, before any window is offered.
    pub fn socket_buffers(mut self, bytes: usize) -> Self {
        self.buffer_bytes = Some(bytes);
        self
    }

    /// Starts the server on a thread of its own.
    pub fn start(mut self) -> io::Result<Server> {
        let listener = Listener::open(self.place, self.buffer_bytes)?;
        if let Place::Tcp(addr) = listener.place() {
            self.parts.world.settings.port = addr.port();
        }
        Server::launch(listener, self.parts)
    }
}
