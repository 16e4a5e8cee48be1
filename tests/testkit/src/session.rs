//! What the server knows about one client, as far as commands see it.
//!
//! **Idea.** The session is apart from the socket, so that commands can be tested without one, and `CLIENT LIST` can look
//! at the other sessions while one of them is being served.

use std::time::Instant;

/// One client's state between commands.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) peer: String,
    pub(crate) local: String,
    pub(crate) connected: Instant,
    pub(crate) db: usize,
    pub(crate) resp3: bool,
    pub(crate) authenticated: bool,
    pub(crate) user: String,
    pub(crate) name: String,
    pub(crate) library_name: String,
    pub(crate) library_version: String,
    /// Set by `QUIT`: the connection ends after the replies so far.
    pub(crate) quits: bool,
    /// The name of the last command, for `CLIENT LIST`.
    pub(crate) last_command: &'static str,
}

impl Session {
    pub(crate) fn new(id: u64, peer: String, local: String, authenticated: bool) -> Self {
        Self {
            id,
            peer,
            local,
            connected: Instant::now(),
            db: 0,
            resp3: false,
            authenticated,
            user: "default".to_owned(),
            name: String::new(),
            library_name: String::new(),
            library_version: String::new(),
            quits: false,
            last_command: "NULL",
        }
    }

    /// The line of `CLIENT LIST`, in the format of the real server as far as the facts exist here.
    pub(crate) fn describe(&self) -> String {
        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle=0 flags=N db={} sub=0 psub=0 ssub=0 multi=-1 cmd={} user={} \
             lib-name={} lib-ver={} resp={}\n",
            self.id,
            self.peer,
            self.local,
            self.name,
            self.connected.elapsed().as_secs(),
            self.db,
            self.last_command,
            self.user,
            self.library_name,
            self.library_version,
            if self.resp3 { 3 } else { 2 },
        )
    }
}

/// The other sessions, in the order of their numbers.
pub(crate) trait Peers {
    fn each(&self, visit: &mut dyn FnMut(&Session));
}

/// Nobody else is connected.
pub(crate) struct NoPeers;

impl Peers for NoPeers {
    fn each(&self, _visit: &mut dyn FnMut(&Session)) {}
}
