//! The model servers of one deployment: a primary, perhaps a replica that lags behind it, and their sessions. They run
//! whole frames only, in order, and tell the ledger of every execution. What they can do is in [`parts`](crate::parts).

mod session;

use crate::answer::Dialect;
use crate::checkers::Context;
use crate::parts::{self, Asked, Kind, Store};
use crate::plan::{ClientPlan, Plan, ServerPlan};
use crate::wire;
use session::Session;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Primary,
    Replica,
}

/// What no server says.
pub const GARBAGE: &[&str] = &[
    "?what\r\n",
    "$-5\r\n",
    "$3\r\nabcd\r\n",
    ":12x\r\n",
    "*1\r\n$99999999999\r\n",
    ":1\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
];

struct Node {
    up: bool,
    role: Role,
    store: Store,
    /// Writes of the primary that it has not run yet, and when it will.
    behind: VecDeque<(u64, Write)>,
}

struct Write {
    id: u64,
    database: i64,
    words: Vec<Vec<u8>>,
}

impl Node {
    fn new(role: Role) -> Self {
        Self { up: true, role, store: Store::default(), behind: VecDeque::new() }
    }

    fn run(&mut self, id: u64, database: i64, words: &[&[u8]]) -> crate::answer::Answer {
        let asked = Asked { id, database, role: self.role, args: &words[2..] };
        (parts::row(words[0]).2)(&mut self.store, &asked)
    }

    fn catch_up(&mut self, now: u64) {
        while let Some((_, write)) = self.behind.pop_front_if(|(at, _)| *at <= now) {
            let words: Vec<&[u8]> = write.words.iter().map(Vec::as_slice).collect();
            self.run(write.id, write.database, &words);
        }
    }
}

pub struct Servers {
    pub plan: ServerPlan,
    /// What the sessions of each client must have set up before a command of a caller.
    clients: Vec<ClientPlan>,
    nodes: BTreeMap<u8, Node>,
    sessions: BTreeMap<u64, Session>,
    opened: u64,
    /// Push messages sent to each client; the number is in the message.
    pub pushes: Vec<u64>,
    /// What is said instead of the next reply, or after it.
    pub instead: Option<Vec<u8>>,
    pub after: Option<Vec<u8>>,
    /// Names of commands that nobody may run.
    pub denied: BTreeSet<&'static str>,
    /// Every command that came, for scenarios.
    pub log: Vec<String>,
}

impl Servers {
    /// Where the first primary is, and where nobody is.
    pub const FIRST: u8 = 1;
    pub const DEAD: u8 = 2;
    pub const SECOND: u8 = 3;

    pub fn new(plan: &Plan) -> Self {
        let mut nodes = BTreeMap::from([(Self::FIRST, Node::new(Role::Primary))]);
        if plan.server.replica_lag.is_some() {
            nodes.insert(Self::SECOND, Node::new(Role::Replica));
        }
        let clients: Vec<ClientPlan> = plan.clients().cloned().collect();
        Self {
            plan: plan.server.clone(),
            nodes,
            sessions: BTreeMap::new(),
            opened: 0,
            pushes: vec![0; clients.len()],
            clients,
            instead: None,
            after: None,
            denied: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    // --- what is where

    pub fn is_up(&self, host: u8) -> bool {
        self.nodes.get(&host).is_some_and(|node| node.up)
    }

    /// Where the primary is.
    pub fn primary(&self) -> u8 {
        self.nodes.iter().find(|(_, node)| node.role == Role::Primary).map_or(Self::FIRST, |(host, _)| *host)
    }

    pub fn hosts(&self) -> Vec<u8> {
        self.nodes.keys().copied().collect()
    }

    /// A process is gone; whether its data comes back with it is chance.
    pub fn kill(&mut self, host: u8, keeps_data: bool) {
        self.sessions.retain(|_, session| session.host != host);
        let Some(node) = self.nodes.get_mut(&host) else { return };
        node.up = false;
        if !keeps_data {
            node.store.clear();
        }
    }

    pub fn revive(&mut self) {
        self.nodes.values_mut().for_each(|node| node.up = true);
    }

    /// Faults end.
    pub fn heal(&mut self) {
        self.revive();
        self.instead = None;
        self.after = None;
        self.plan.refuses_login = false;
        self.denied.clear();
        self.plan.loading_until = 0;
        self.plan.holds_info_until = 0;
    }

    /// The replica becomes the primary with what it has; the old one stays, as its replica.
    pub fn fail_over(&mut self) {
        if self.nodes.len() < 2 {
            return;
        }
        for node in self.nodes.values_mut() {
            node.behind.clear();
            node.role = match node.role {
                Role::Primary => Role::Replica,
                Role::Replica => Role::Primary,
            };
        }
        let store = self.nodes[&self.primary()].store.clone();
        self.nodes.values_mut().for_each(|node| node.store = store.clone());
    }

    pub fn stored(&self, database: i64, key: &str) -> Option<&[u8]> {
        self.nodes[&self.primary()].store.text(database, key)
    }

    // --- sessions

    pub fn open(&mut self, client: usize, host: u8) -> u64 {
        self.opened += 1;
        self.sessions.insert(self.opened, Session::new(client, host));
        self.opened
    }

    pub fn end(&mut self, session: u64) {
        self.sessions.remove(&session);
    }

    /// Until when the replies of a session are held back.
    pub fn held_until(&self, session: u64) -> u64 {
        self.sessions.get(&session).map_or(0, |session| session.held_until)
    }

    /// A push message, if the session may get one.
    pub fn push(&mut self, session: u64, out: &mut Vec<u8>) {
        let Some(session) = self.sessions.get(&session).filter(|session| session.is_up) else { return };
        push(session, &mut self.pushes, out);
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
                let text: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
                self.log.push(text.join(" "));
                let answer = session.set_up(&words, &self.clients[session.client], &self.plan, context);
                if answer.starts_with("-WRONGPASS") && context.rng.per_mille(100) {
                    self.after = Some(context.rng.pick(GARBAGE).into());
                }
                self.say(answer.into(), context, out);
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

    fn call(&mut self, session: &mut Session, words: &[&[u8]], context: &mut Context, out: &mut Vec<u8>) {
        let Some(id) = wire::call_of(words) else { panic!("a command without a call: {words:?}") };
        let complete = session.is_complete(&self.clients[session.client]);
        assert!(complete, "call {id} arrived before set-up was over (CONN-012)");
        session.is_up = true;
        if context.rng.per_mille(self.plan.pushes / 2) {
            push(session, &mut self.pushes, out);
        }
        let row = parts::row(words[0]);
        let (name, kind) = (row.0, row.1);
        self.log.push(format!("{name} {id}"));
        let Some(node) = self.nodes.get_mut(&session.host) else { return };
        node.catch_up(context.now);
        let refusal = if context.now < self.plan.loading_until {
            Some(format!("LOADING the dataset is in the way ({id})"))
        } else if self.denied.contains(name) {
            Some(format!("NOPERM this user has no permissions to run the command ({id})"))
        } else if kind == Kind::Writes && node.role == Role::Replica {
            Some(format!("READONLY You can't write against a read only replica. ({id})"))
        } else {
            None
        };
        if let Some(text) = refusal {
            out.extend_from_slice(format!("-{text}\r\n").as_bytes());
            return context.ledger.refused(id, text);
        }
        context.trace.note(context.now, || format!("server {} runs {name} {id}", session.host));
        let answer = node.run(id, session.database, words);
        context.ledger.executed(id, &answer, session.resp3);
        if kind == Kind::Writes {
            self.replicate(id, session, words, context);
        }
        let mut bytes = Vec::new();
        let mut dialect = Dialect { resp3: session.resp3, twists: self.plan.twists, rng: &mut context.rng };
        answer.encode(&mut dialect, &mut bytes);
        self.say(bytes, context, out);
    }

    /// A reply, or what a server says that has lost its mind.
    fn say(&mut self, reply: Vec<u8>, context: &mut Context, out: &mut Vec<u8>) {
        context.ledger.garbage_sent += u64::from(self.instead.is_some()) + u64::from(self.after.is_some());
        out.extend(self.instead.take().unwrap_or(reply));
        out.extend(self.after.take().unwrap_or_default());
    }

    fn replicate(&mut self, id: u64, session: &Session, words: &[&[u8]], context: &mut Context) {
        let Some(lag) = self.plan.replica_lag else { return };
        let at = context.now + context.rng.range(0..=lag);
        for node in self.nodes.values_mut().filter(|node| node.role == Role::Replica && node.up) {
            // In order.
            let at = node.behind.back().map_or(at, |(last, _)| at.max(*last));
            let words = words.iter().map(|word| word.to_vec()).collect();
            node.behind.push_back((at, Write { id, database: session.database, words }));
        }
    }
}

fn push(session: &Session, pushes: &mut [u64], out: &mut Vec<u8>) {
    if session.resp3 {
        pushes[session.client] += 1;
        let number = pushes[session.client];
        // Of a known kind and of others, some with an attribute.
        let kind = if number.is_multiple_of(3) { "whatever" } else { "invalidate" };
        let note = if number.is_multiple_of(5) { "|1\r\n+note\r\n:1\r\n" } else { "" };
        out.extend_from_slice(format!("{note}>2\r\n+{kind}\r\n:{number}\r\n").as_bytes());
    }
}
