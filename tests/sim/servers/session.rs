//! One connection of a client, as a server sees it: what it has set up.

use crate::checkers::Context;
use crate::plan::{ClientPlan, ServerPlan};

pub struct Session {
    /// Whose it is.
    pub client: usize,
    /// Which server it is with.
    pub host: u8,
    pub input: Vec<u8>,
    pub resp3: bool,
    pub database: i64,
    /// It has run a command of a caller, so it is set up.
    pub is_up: bool,
    pub held_until: u64,
    logged_in: bool,
    names: u32,
    infos: u32,
}

impl Session {
    pub fn new(client: usize, host: u8) -> Self {
        Self {
            client,
            host,
            input: Vec::new(),
            resp3: false,
            database: 0,
            is_up: false,
            held_until: 0,
            logged_in: false,
            names: 0,
            infos: 0,
        }
    }

    /// Everything that the client's options ask for is set up.
    pub fn is_complete(&self, client: &ClientPlan) -> bool {
        (self.logged_in || !client.password)
            && self.database == client.database
            && self.names == u32::from(client.name)
            && self.infos == 2 * u32::from(client.set_info)
    }

    pub fn set_up(
        &mut self,
        words: &[&[u8]],
        client: &ClientPlan,
        server: &ServerPlan,
        context: &Context,
    ) -> &'static str {
        assert!(!self.is_up, "set-up after a command (CONN-012)");
        let loading = context.now < server.loading_until;
        match words {
            [b"HELLO", _, b"AUTH", ..] | [b"AUTH", ..] if server.refuses_login && server.knows_hello => {
                "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
            }
            [b"HELLO", ..] if !server.knows_hello => {
                "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n"
            }
            [b"HELLO", b"3", rest @ ..] => {
                self.logged_in = !client.password || matches!(rest, [b"AUTH", _, b"swordfish"]);
                self.resp3 = self.logged_in;
                match self.logged_in {
                    true => "%2\r\n+server\r\n+sim\r\n+proto\r\n:3\r\n",
                    false => "-NOAUTH HELLO must be called with the client already authenticated\r\n",
                }
            }
            [b"AUTH", .., b"swordfish"] => {
                self.logged_in = true;
                "+OK\r\n"
            }
            [b"SELECT", _] if loading => "-LOADING the dataset is in the way\r\n",
            [b"SELECT", database] => {
                self.database = String::from_utf8_lossy(database).parse().unwrap_or(-1);
                "+OK\r\n"
            }
            [b"CLIENT", what, ..] => {
                match *what {
                    b"SETNAME" => self.names += 1,
                    _ => {
                        self.infos += 1;
                        self.held_until = self.held_until.max(server.holds_info_until);
                    }
                }
                if server.refuses_optional { "-NOPERM not for you\r\n" } else { "+OK\r\n" }
            }
            _ => "-ERR unknown set-up\r\n",
        }
    }
}
