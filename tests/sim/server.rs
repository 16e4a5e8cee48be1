//! The model server: one data set, any number of sessions, RESP2 and RESP3. It runs whole frames only, in order, and
//! tells the ledger of every execution. A new command is one arm of [`Server::run`].

use crate::checkers::Context;
use crate::plan::{Plan, ServerPlan};
use crate::wire;
use std::collections::BTreeMap;

pub struct Server {
    pub plan: ServerPlan,
    /// What every session must have set up before a command of a caller.
    database: i64,
    password: bool,
    name: bool,
    set_info: bool,
    pub up: bool,
    data: BTreeMap<(i64, Vec<u8>), Vec<u8>>,
    sessions: BTreeMap<u64, Session>,
    opened: u64,
    /// Push messages sent; the number is in the message.
    pub pushes: u64,
    /// The next reply is not RESP.
    pub garbage: bool,
    /// Every command that came, for scenarios.
    pub log: Vec<String>,
}

#[derive(Default)]
struct Session {
    input: Vec<u8>,
    resp3: bool,
    logged_in: bool,
    database: i64,
    names: u32,
    infos: u32,
    /// It has run a command of a caller, so it is set up.
    is_up: bool,
    held_until: u64,
}

impl Server {
    pub fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.server.clone(),
            database: plan.client.database,
            password: plan.client.password,
            name: plan.client.name,
            set_info: plan.client.set_info,
            up: true,
            data: BTreeMap::new(),
            sessions: BTreeMap::new(),
            opened: 0,
            pushes: 0,
            garbage: false,
            log: Vec::new(),
        }
    }

    pub fn open(&mut self) -> u64 {
        self.opened += 1;
        self.sessions.insert(self.opened, Session::default());
        self.opened
    }

    pub fn end(&mut self, session: u64) {
        self.sessions.remove(&session);
    }

    /// The process is gone; whether its data comes back with it is chance.
    pub fn kill(&mut self, keeps_data: bool) {
        self.up = false;
        self.sessions.clear();
        if !keeps_data {
            self.data.clear();
        }
    }

    /// Until when the replies of a session are held back.
    pub fn held_until(&self, session: u64) -> u64 {
        self.sessions.get(&session).map_or(0, |session| session.held_until)
    }

    pub fn stored(&self, database: i64, key: &str) -> Option<&[u8]> {
        self.data.get(&(database, key.as_bytes().to_vec())).map(Vec::as_slice)
    }

    /// A push message, if the session may get one.
    pub fn push(&mut self, session: u64, out: &mut Vec<u8>) {
        if self.sessions.get(&session).is_some_and(|session| session.resp3 && session.is_up) {
            self.pushes += 1;
            out.extend_from_slice(format!(">2\r\n+invalidate\r\n:{}\r\n", self.pushes).as_bytes());
        }
    }

    /// Bytes of a client; what is answered goes to `out`.
    pub fn receive(&mut self, id: u64, bytes: &[u8], context: &mut Context, out: &mut Vec<u8>) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        session.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut session.input);
        let mut at = 0;
        while let Some((length, words)) = wire::parse(&input[at..]) {
            at += length;
            if wire::is_setup(&words) {
                self.set_up(&mut session, &words, context, out);
            } else {
                self.call(&mut session, &words, context, out);
            }
        }
        session.input = input[at..].to_vec();
        self.sessions.insert(id, session);
        if context.rng.per_mille(self.plan.pushes) {
            self.push(id, out);
        }
    }

    fn set_up(&mut self, session: &mut Session, words: &[&[u8]], context: &mut Context, out: &mut Vec<u8>) {
        let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        self.log.push(text.join(" "));
        context.ledger.require(!session.is_up, || "set-up after a command (CONN-012)".into());
        let loading = context.now < self.plan.loading_until;
        let optional = self.plan.refuses_optional;
        let answer = match words {
            [b"HELLO", ..] if !self.plan.knows_hello => {
                "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n".into()
            }
            [b"HELLO", b"3", rest @ ..] => {
                session.resp3 = true;
                session.logged_in = !self.password || matches!(rest, [b"AUTH", _, b"swordfish"]);
                if session.logged_in {
                    "%2\r\n+server\r\n+sim\r\n+proto\r\n:3\r\n".into()
                } else {
                    "-NOAUTH HELLO must be called with the client already authenticated\r\n".to_owned()
                }
            }
            [b"AUTH", .., b"swordfish"] => {
                session.logged_in = true;
                "+OK\r\n".into()
            }
            [b"SELECT", _] if loading => "-LOADING the dataset is in the way\r\n".into(),
            [b"SELECT", database] => {
                session.database = String::from_utf8_lossy(database).parse().unwrap_or(-1);
                "+OK\r\n".into()
            }
            [b"CLIENT", what, ..] => {
                match *what {
                    b"SETNAME" => session.names += 1,
                    _ => {
                        session.infos += 1;
                        session.held_until = session.held_until.max(self.plan.holds_info_until);
                    }
                }
                if optional { "-NOPERM not for you\r\n" } else { "+OK\r\n" }.into()
            }
            _ => "-ERR unknown set-up\r\n".into(),
        };
        out.extend_from_slice(answer.as_bytes());
    }

    fn call(&mut self, session: &mut Session, words: &[&[u8]], context: &mut Context, out: &mut Vec<u8>) {
        let Some(id) = wire::call_of(words) else { panic!("a command without a call: {words:?}") };
        let complete = session.logged_in | !self.password
            && session.database == self.database
            && session.names == u32::from(self.name)
            && session.infos == 2 * u32::from(self.set_info);
        context.ledger.require(complete, || format!("call {id} arrived before set-up was over (CONN-012)"));
        session.is_up = true;
        if context.rng.per_mille(self.plan.pushes / 2) && session.resp3 {
            self.pushes += 1;
            out.extend_from_slice(format!(">2\r\n+invalidate\r\n:{}\r\n", self.pushes).as_bytes());
        }
        self.log.push(format!("{} {id}", String::from_utf8_lossy(words[0])));
        if context.now < self.plan.loading_until {
            context.ledger.refused(id);
            out.extend_from_slice(b"-LOADING the dataset is in the way\r\n");
            return;
        }
        context.ledger.executed(id);
        context.trace.note(context.now, || format!("server runs {} {id}", String::from_utf8_lossy(words[0])));
        if std::mem::take(&mut self.garbage) {
            out.extend_from_slice(b"?what\r\n");
            return;
        }
        self.run(session, id, words, context, out);
    }

    fn run(&mut self, session: &Session, id: u64, words: &[&[u8]], context: &mut Context, out: &mut Vec<u8>) {
        let size = |word: &[u8]| String::from_utf8_lossy(word).parse::<usize>().unwrap_or(0);
        let mut say = |text: String| out.extend_from_slice(text.as_bytes());
        match words {
            [b"ECHO", _, n] => {
                let text = format!("{id}:{}", crate::wire::filler(size(n)));
                say(format!("${}\r\n{text}\r\n", text.len()));
            }
            [b"LIST", _, n] => {
                say(format!("*{}\r\n+{id}\r\n", size(n) + 1));
                (0..size(n)).for_each(|index| say(format!(":{index}\r\n")));
            }
            [b"MAP", _, n] => {
                let head =
                    if session.resp3 { format!("%{}", size(n) + 1) } else { format!("*{}", 2 * size(n) + 2) };
                say(format!("{head}\r\n+id\r\n+{id}\r\n"));
                (0..size(n)).for_each(|index| {
                    say(format!("${}\r\n{index}\r\n:{index}\r\n", index.to_string().len()))
                });
            }
            [b"GET", _, key] => {
                say(format!("*2\r\n+{id}\r\n"));
                match self.data.get(&(session.database, key.to_vec())) {
                    None => say(if session.resp3 { "_\r\n" } else { "$-1\r\n" }.into()),
                    Some(value) => say(format!("${}\r\n{}\r\n", value.len(), String::from_utf8_lossy(value))),
                }
            }
            [b"SET", _, key, value] => {
                self.data.insert((session.database, key.to_vec()), value.to_vec());
                say(format!("+OK {id}\r\n"));
            }
            [b"INCR", _, key] => {
                let value = self.data.entry((session.database, [b"n", *key].concat())).or_default();
                *value = (size(value) + 1).to_string().into_bytes();
                say(format!("*2\r\n+{id}\r\n:{}\r\n", size(value)));
            }
            [b"FAIL", _] => {
                context.ledger.answered_error(id);
                say(format!("-ERR failed {id}\r\n"));
            }
            _ => panic!("the model server does not know {words:?}"),
        }
    }
}
