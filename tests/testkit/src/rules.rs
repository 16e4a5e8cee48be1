//! Scripted answers: what the server does instead of, or in addition to, the truth.
//!
//! **Problem.** A test wants "the third GET on the second connection is answered late", in one line, without a loop of its
//! own around a socket.
//!
//! **Idea.** An [`Action`] says what to answer, when, and whether the connection ends afterwards. It comes from a script
//! (a closure that sees each command) or, when that has no opinion, from the first [`Rule`] that matches.
//!
//! **Invariant.** Whatever an action does, replies stay in the order of the commands: a reply that is late or withheld
//! holds back all that follow on its connection. Only [`Action::ignore`] breaks the pairing, and that is its purpose.

use crate::record::Request;
use crate::{Hangup, Server};
use std::time::Duration;

/// What to do with one command.
#[derive(Clone, Debug)]
#[must_use]
pub struct Action {
    pub(crate) answer: Answer,
    pub(crate) moment: Moment,
    pub(crate) hangup: Option<Hangup>,
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Normal,
    Raw(Vec<u8>),
    Error(String),
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    Now,
    Released,
    After(Duration),
}

impl Action {
    const fn of(answer: Answer) -> Self {
        Self { answer, moment: Moment::Now, hangup: None }
    }

    /// Executes the command and answers as usual.
    pub const fn normal() -> Self {
        Self::of(Answer::Normal)
    }

    /// Answers with these bytes, whatever they are; the command is not executed.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(Answer::Raw(bytes.into()))
    }

    /// Answers with an error; `text` starts with its code, as in `LOADING Redis is loading`. The command is not executed.
    ///
    /// # Panics
    /// When the text is no error's: empty, or with the `-` of the wire before it. [`raw`](Self::raw) sends anything.
    pub fn error(text: impl Into<String>) -> Self {
        let text = text.into();
        let is_text = !text.is_empty() && !text.starts_with('-');
        assert!(is_text, "{text:?} is not the text of an error");
        Self::of(Answer::Error(text))
    }

    /// Neither executes nor answers. Replies to later commands are sent, and so are off by one.
    pub const fn ignore() -> Self {
        Self::of(Answer::Nothing)
    }

    /// Ends the connection instead of answering. Earlier replies are sent first; the command is not executed.
    pub const fn hang_up(how: Hangup) -> Self {
        Self::ignore().then(how)
    }

    /// The reply, and those behind it, wait for [`Server::release`]. The command is executed at once.
    pub const fn withheld(mut self) -> Self {
        self.moment = Moment::Released;
        self
    }

    /// The reply, and those behind it, wait for so long. The command is executed at once.
    pub const fn delayed(mut self, delay: Duration) -> Self {
        self.moment = Moment::After(delay);
        self
    }

    /// The connection ends after the reply was sent; later commands are not executed.
    pub const fn then(mut self, how: Hangup) -> Self {
        self.hangup = Some(how);
        self
    }
}

/// Names a rule, so that it can be removed or asked how often it acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

/// A rule that is being written; see [`Server::on`]. It is in force from the last call, which names the action.
#[derive(Debug)]
#[must_use = "a rule does nothing until its action is named"]
pub struct Rule<'a> {
    server: &'a Server,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// The command's name and perhaps its subcommand; none for every command.
    words: Vec<Vec<u8>>,
    argument: Option<Vec<u8>>,
    connection: Option<u64>,
    skip: u64,
    times: u64,
}

impl Pattern {
    pub(crate) fn new(name: &str) -> Self {
        let words = name.split_ascii_whitespace().filter(|word| *word != "*");
        let words = words.map(|word| word.as_bytes().to_vec()).collect();
        Self { words, argument: None, connection: None, skip: 0, times: u64::MAX }
    }

    pub(crate) fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    fn matches(&self, connection: u64, request: &Request<'_>) -> bool {
        let mut found = std::iter::once(request.name()).chain(request.args());
        let same = |word: &Vec<u8>| found.next().is_some_and(|found| found.eq_ignore_ascii_case(word));
        if !self.words.iter().all(same) || self.connection.is_some_and(|wanted| wanted != connection) {
            return false;
        }
        match &self.argument {
            None => true,
            Some(argument) => request.arg(self.words.len().max(1) - 1) == Some(argument),
        }
    }
}

impl<'a> Rule<'a> {
    pub(crate) fn new(server: &'a Server, pattern: Pattern) -> Self {
        Self { server, pattern }
    }

    /// Only when the first argument (behind the subcommand, if the rule names one) is this one.
    pub fn argument(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.pattern.argument = Some(argument.as_ref().to_vec());
        self
    }

    /// Only on the connection with this number.
    pub fn connection(mut self, number: u64) -> Self {
        self.pattern.connection = Some(number);
        self
    }

    /// Not for the first `count` commands that match.
    pub fn skip(mut self, count: u64) -> Self {
        self.pattern.skip = count;
        self
    }

    /// For so many commands only; afterwards later rules, or the usual answer, apply.
    pub fn times(mut self, count: u64) -> Self {
        self.pattern.times = count;
        self
    }

    /// Only for the n-th command that matches, counted from 1.
    ///
    /// # Panics
    /// When `n` is 0.
    pub fn nth(self, n: u64) -> Self {
        assert!(n > 0, "the first command is number 1");
        self.skip(n - 1).times(1)
    }

    /// Puts the rule in force with this action.
    pub fn act(self, action: Action) -> RuleId {
        self.server.with_core(|core| core.parts.rules.add(self.pattern, action))
    }

    /// [`Action::raw`].
    pub fn reply_raw(self, bytes: impl Into<Vec<u8>>) -> RuleId {
        self.act(Action::raw(bytes))
    }

    /// [`Action::error`].
    ///
    /// # Panics
    /// As there.
    pub fn reply_error(self, text: impl Into<String>) -> RuleId {
        self.act(Action::error(text))
    }

    /// The usual answer, [withheld](Action::withheld).
    pub fn withhold(self) -> RuleId {
        self.act(Action::normal().withheld())
    }

    /// The usual answer, [delayed](Action::delayed).
    pub fn delay(self, delay: Duration) -> RuleId {
        self.act(Action::normal().delayed(delay))
    }

    /// [`Action::ignore`].
    pub fn ignore(self) -> RuleId {
        self.act(Action::ignore())
    }

    /// [`Action::hang_up`] with [`Hangup::Fin`].
    pub fn close(self) -> RuleId {
        self.act(Action::hang_up(Hangup::Fin))
    }

    /// [`Action::hang_up`] with [`Hangup::Reset`].
    pub fn reset(self) -> RuleId {
        self.act(Action::hang_up(Hangup::Reset))
    }
}

/// A closure that decides upon each command.
pub(crate) type Script = Box<dyn FnMut(u64, &Request<'_>) -> Option<Action> + Send>;

struct Standing {
    id: RuleId,
    pattern: Pattern,
    action: Action,
    matched: u64,
}

impl Standing {
    fn acted(&self) -> u64 {
        self.matched.saturating_sub(self.pattern.skip).min(self.pattern.times)
    }
}

/// The script and the rules of one server.
#[derive(Default)]
pub(crate) struct Rules {
    script: Option<Script>,
    standing: Vec<Standing>,
    added: u64,
}

impl Rules {
    /// Whether there is anything to ask; if not, a command costs nothing here.
    pub(crate) fn is_empty(&self) -> bool {
        self.script.is_none() && self.standing.is_empty()
    }

    pub(crate) fn set_script(&mut self, script: Option<Script>) {
        self.script = script;
    }

    pub(crate) fn add(&mut self, pattern: Pattern, action: Action) -> RuleId {
        self.added += 1;
        let id = RuleId(self.added);
        self.standing.push(Standing { id, pattern, action, matched: 0 });
        id
    }

    pub(crate) fn remove(&mut self, id: RuleId) {
        self.standing.retain(|rule| rule.id != id);
    }

    pub(crate) fn clear(&mut self) {
        self.standing.clear();
    }

    pub(crate) fn acted(&self, id: RuleId) -> u64 {
        self.standing.iter().find(|rule| rule.id == id).map_or(0, Standing::acted)
    }

    /// What to do with this command; `None` means the usual.
    pub(crate) fn decide(&mut self, connection: u64, request: &Request<'_>) -> Option<Action> {
        if let Some(script) = &mut self.script
            && let Some(action) = script(connection, request)
        {
            return Some(action);
        }
        for rule in &mut self.standing {
            if !rule.pattern.matches(connection, request) {
                continue;
            }
            rule.matched += 1;
            if rule.matched > rule.pattern.skip && rule.matched - rule.pattern.skip <= rule.pattern.times {
                return Some(rule.action.clone());
            }
        }
        None
    }
}
