//! Sorted sets.

use super::string::Condition;
use super::{fixed, variadic, whole_pairs, write};
use crate::command::Command;
use crate::error::{CommandName, Error};
use crate::resp::{Encoder, ToArg, ToArgs};

/// [ZADD](https://redis.io/docs/latest/commands/zadd/)
#[derive(Clone, Debug)]
pub struct Zadd<K, P> {
    pub(crate) key: K,
    pub(crate) condition: Option<Condition>,
    pub(crate) comparison: Option<Comparison>,
    pub(crate) ch: bool,
    pub(crate) pairs: P,
}

impl<K, P> Zadd<K, P> {
    pub(crate) fn new(key: K, pairs: P) -> Self {
        Self { key, condition: None, comparison: None, ch: false, pairs }
    }
}

impl<K: ToArg, P: ToArgs> Command for Zadd<K, P> {
    fn name(&self) -> CommandName {
        "ZADD".into()
    }

    fn check(&self, _allow_admin: bool) -> Result<(), Error> {
        whole_pairs("ZADD", "pairs", self.pairs.count())
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        let options = (self.condition, self.comparison, self.ch.then_some("CH"));
        write(encoder, "ZADD", (&self.key, options, &self.pairs));
    }
}

/// Which new score, or time, is taken in place of an old one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Only a greater one.
    Gt,
    /// Only a lesser one.
    Lt,
}

impl ToArgs for Comparison {
    fn count(&self) -> usize {
        1
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        encoder.arg(match self {
            Comparison::Gt => b"GT",
            Comparison::Lt => b"LT",
        });
    }
}

variadic! {
    /// [ZREM](https://redis.io/docs/latest/commands/zrem/)
    Zrem, "ZREM", (key: K), members: M, at_least_one
}

fixed! {
    /// [ZSCORE](https://redis.io/docs/latest/commands/zscore/)
    Zscore<K, M>, "ZSCORE", b"*3\r\n$6\r\nZSCORE\r\n", key: K, member: M
}

fixed! {
    /// [ZRANK](https://redis.io/docs/latest/commands/zrank/)
    Zrank<K, M>, "ZRANK", b"*3\r\n$5\r\nZRANK\r\n", key: K, member: M
}

fixed! {
    /// [ZCARD](https://redis.io/docs/latest/commands/zcard/)
    Zcard<K>, "ZCARD", b"*2\r\n$5\r\nZCARD\r\n", key: K
}

fixed! {
    /// [ZINCRBY](https://redis.io/docs/latest/commands/zincrby/)
    Zincrby<K, M>, "ZINCRBY", b"*4\r\n$7\r\nZINCRBY\r\n", key: K, increment: f64, member: M
}

/// [ZRANGE](https://redis.io/docs/latest/commands/zrange/)
#[derive(Clone, Debug)]
pub struct Zrange<K, B, E> {
    pub(crate) key: K,
    pub(crate) start: B,
    pub(crate) stop: E,
    pub(crate) byscore: bool,
    pub(crate) rev: bool,
    pub(crate) limit: Option<(u64, i64)>,
    pub(crate) withscores: bool,
}

impl<K, B, E> Zrange<K, B, E> {
    pub(crate) fn new(key: K, start: B, stop: E) -> Self {
        Self { key, start, stop, byscore: false, rev: false, limit: None, withscores: false }
    }
}

impl<K: ToArg, B: ToArg, E: ToArg> Command for Zrange<K, B, E> {
    fn name(&self) -> CommandName {
        "ZRANGE".into()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) {
        let options = (
            self.byscore.then_some("BYSCORE"),
            self.rev.then_some("REV"),
            self.limit.map(|limit| ("LIMIT", limit)),
            self.withscores.then_some("WITHSCORES"),
        );
        write(encoder, "ZRANGE", (&self.key, &self.start, &self.stop, options));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_frame, assert_refused};
    use super::*;

    #[test]
    fn frames_of_fixed_commands() {
        assert_frame(&Zscore { key: "z", member: "a" }, &["ZSCORE", "z", "a"]);
        assert_frame(&Zrank { key: "z", member: "a" }, &["ZRANK", "z", "a"]);
        assert_frame(&Zcard { key: "z" }, &["ZCARD", "z"]);
        assert_frame(&Zincrby { key: "z", increment: -1.5, member: "a" }, &["ZINCRBY", "z", "-1.5", "a"]);
    }

    #[test]
    fn frames_of_zadd_and_zrem() {
        let zadd = || Zadd::new("z", [(1.5, "a"), (f64::INFINITY, "b")]);
        let pairs = ["1.5", "a", "inf", "b"];
        assert_frame(&zadd(), &[&["ZADD", "z"][..], &pairs].concat());
        let nx = Zadd { condition: Some(Condition::Nx), ..zadd() };
        assert_frame(&nx, &[&["ZADD", "z", "NX"][..], &pairs].concat());
        let gt = Zadd { comparison: Some(Comparison::Gt), ..zadd() };
        assert_frame(&gt, &[&["ZADD", "z", "GT"][..], &pairs].concat());
        assert_frame(&Zadd { ch: true, ..zadd() }, &[&["ZADD", "z", "CH"][..], &pairs].concat());
        let all = Zadd {
            condition: Some(Condition::Xx),
            comparison: Some(Comparison::Lt),
            ch: true,
            ..Zadd::new("z", (2, "a"))
        };
        assert_frame(&all, &["ZADD", "z", "XX", "LT", "CH", "2", "a"]);
        assert_refused(&Zadd::new("z", ()), "pairs");
        assert_refused(&Zadd::new("z", 1.5), "pairs");
        assert_frame(&Zrem { key: "z", members: ["a", "b"] }, &["ZREM", "z", "a", "b"]);
        assert_refused(&Zrem { key: "z", members: () }, "members");
    }

    #[test]
    fn frames_of_zrange() {
        assert_frame(&Zrange::new("z", 0, -1), &["ZRANGE", "z", "0", "-1"]);
        let byscore = Zrange { byscore: true, ..Zrange::new("z", "(1", f64::INFINITY) };
        assert_frame(&byscore, &["ZRANGE", "z", "(1", "inf", "BYSCORE"]);
        assert_frame(&Zrange { rev: true, ..Zrange::new("z", 0, 1) }, &["ZRANGE", "z", "0", "1", "REV"]);
        let scores = Zrange { withscores: true, ..Zrange::new("z", 0, 1) };
        assert_frame(&scores, &["ZRANGE", "z", "0", "1", "WITHSCORES"]);
        let all = Zrange {
            byscore: true,
            rev: true,
            limit: Some((1, -1)),
            withscores: true,
            ..Zrange::new("z", 9, 0)
        };
        assert_frame(&all, &["ZRANGE", "z", "9", "0", "BYSCORE", "REV", "LIMIT", "1", "-1", "WITHSCORES"]);
    }
}
