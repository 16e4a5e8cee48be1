//! What servers can do, by parts: for each the commands that callers make up, and the model that runs them exactly.
//! A new part is one file and one line of [`PARTS`].
//!
//! Every command has its call's number as its first argument, and every answer tells it: so a reply, an execution or a
//! byte is known to belong to a call.

mod counters;
mod hashes;
mod lists;
mod roles;
mod shapes;
mod strings;

use crate::answer::Answer;
use crate::plan::CrowdPlan;
use crate::rng::Rng;
use crate::servers::Role;
use bytes::Bytes;
use respiral::buf::Log;
use respiral::resp::Encoder;
use std::collections::{BTreeMap, VecDeque};

/// One part. Its order in the list and these tables decide what a seed does.
pub struct Part {
    /// What a caller may ask for; `size` is for values, `reply` for replies.
    pub asks: &'static [fn(&mut Rng, Sizes) -> Command],
    pub commands: &'static [Row],
}

/// A command: its name, whether it writes, and what it does.
pub struct Row(pub &'static str, pub Kind, pub fn(&mut Store, &Asked<'_>) -> Answer);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Reads,
    Writes,
}

const PARTS: &[&Part] =
    &[&shapes::PART, &strings::PART, &counters::PART, &lists::PART, &hashes::PART, &roles::PART];

#[derive(Clone, Copy)]
pub struct Sizes {
    pub reply_max: usize,
    pub value_max: usize,
}

impl From<&CrowdPlan> for Sizes {
    fn from(plan: &CrowdPlan) -> Self {
        Self { reply_max: plan.reply_max, value_max: plan.value_max }
    }
}

/// Something that a caller asks for.
#[derive(Clone, PartialEq)]
pub struct Command {
    pub name: &'static str,
    args: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        for arg in &self.args {
            let text = String::from_utf8_lossy(&arg[..arg.len().min(12)]);
            write!(f, " {text}")?;
            if arg.len() > 12 {
                write!(f, "… ({} bytes)", arg.len())?;
            }
        }
        Ok(())
    }
}

impl Command {
    pub fn new(name: &'static str, args: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { name, args: args.into_iter().collect() }
    }

    /// One of them, by chance.
    pub fn random(rng: &mut Rng, sizes: Sizes) -> Self {
        let asks = rng.pick(PARTS).asks;
        rng.pick(asks)(rng, sizes)
    }

    pub fn encode(&self, id: u64, log: &mut Log) {
        let mut encoder = Encoder::new(log);
        encoder.begin(2 + self.args.len());
        encoder.arg(self.name.as_bytes());
        encoder.uint(id);
        for arg in &self.args {
            // Large ones by reference, some of them.
            match id % 2 {
                0 => encoder.shared(&Bytes::copy_from_slice(arg)),
                _ => encoder.arg(arg),
            }
        }
        assert!(encoder.is_whole());
    }

    // --- those that scenarios use

    pub fn get(key: u8) -> Self {
        Self::new("GET", [key_of(key)])
    }

    pub fn set(key: u8, size: usize) -> Self {
        Self::new("SET", [key_of(key), vec![b'v'; size]])
    }

    pub fn incr(key: u8) -> Self {
        Self::new("INCR", [[b"n", &key_of(key)[..]].concat()])
    }

    pub fn echo(size: usize) -> Self {
        Self::new("ECHO", [number(size)])
    }

    pub fn fail() -> Self {
        Self::new("FAIL", [])
    }
}

/// Few keys, so that callers meet.
fn any_key(rng: &mut Rng) -> Vec<u8> {
    key_of(rng.index(5) as u8)
}

fn key_of(index: u8) -> Vec<u8> {
    vec![b'a' + index]
}

fn number(value: usize) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn some(rng: &mut Rng, most: usize) -> usize {
    rng.range(0..=most as u64) as usize
}

fn word(rng: &mut Rng, most: usize) -> Vec<u8> {
    filler(some(rng, most))
}

/// A text of which no two neighbouring pieces look alike.
pub fn filler(size: usize) -> Vec<u8> {
    (0..size).map(|at| b'a' + (at % 23) as u8).collect()
}

/// A command as it came.
pub struct Asked<'a> {
    pub id: u64,
    pub database: i64,
    pub role: Role,
    pub args: &'a [&'a [u8]],
}

impl Asked<'_> {
    fn number(&self, index: usize) -> usize {
        String::from_utf8_lossy(self.args[index]).parse().unwrap_or(0)
    }

    fn key(&self) -> (i64, Vec<u8>) {
        (self.database, self.args[0].to_vec())
    }

    fn wrong_type(&self) -> Answer {
        Answer::Error(format!(
            "WRONGTYPE Operation against a key holding the wrong kind of value ({})",
            self.id
        ))
    }

    fn answer(&self, answer: Answer) -> Answer {
        Answer::to(self.id, answer)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Thing {
    Text(Vec<u8>),
    List(VecDeque<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
}

/// The data of one server.
#[derive(Clone, Default)]
pub struct Store {
    things: BTreeMap<(i64, Vec<u8>), Thing>,
}

impl Store {
    pub fn clear(&mut self) {
        self.things.clear();
    }

    pub fn text(&self, database: i64, key: &str) -> Option<&[u8]> {
        match self.things.get(&(database, key.as_bytes().to_vec()))? {
            Thing::Text(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The row of a command.
pub fn row(name: &[u8]) -> &'static Row {
    let mut rows = PARTS.iter().flat_map(|part| part.commands);
    rows.find(|row| row.0.as_bytes() == name)
        .unwrap_or_else(|| panic!("the model servers do not know {:?}", String::from_utf8_lossy(name)))
}

/// The names of all commands.
pub fn names() -> Vec<&'static str> {
    PARTS.iter().flat_map(|part| part.commands).map(|row| row.0).collect()
}
