//! What a server is: primary or replica.

use super::{Command, Kind, Part, Row};
use crate::answer::Answer;
use crate::servers::Role;

pub const PART: Part = Part {
    asks: &[|_, _| Command::new("ROLE", [])],
    commands: &[Row("ROLE", Kind::Reads, |_, asked| {
        let name = match asked.role {
            Role::Primary => "master",
            Role::Replica => "slave",
        };
        asked.answer(Answer::Array(vec![Answer::text(name), Answer::Integer(0), Answer::Array(Vec::new())]))
    })],
};
