//! Sorted sets.

use crate::command::typed::sorted_set::*;
use crate::command::typed::string::Condition;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg, ToArgs};

impl Client {
    /// Adds members and sets scores, given as pairs of *score and member*, and gives how many are new. A missing set is
    /// made.
    /// [ZADD](https://redis.io/docs/latest/commands/zadd/)
    pub fn zadd<K: ToArg, P: ToArgs>(&self, key: K, pairs: P) -> Call<Zadd<K, P>, u64> {
        self.call(Zadd::new(key, pairs))
    }

    /// Removes members, and gives how many of them there were.
    /// [ZREM](https://redis.io/docs/latest/commands/zrem/)
    pub fn zrem<K: ToArg, M: ToArgs>(&self, key: K, members: M) -> Call<Zrem<K, M>, u64> {
        self.call(Zrem { key, members })
    }

    /// The score of `member`; `None` when there is no such key or member.
    /// [ZSCORE](https://redis.io/docs/latest/commands/zscore/)
    pub fn zscore<K: ToArg, M: ToArg>(&self, key: K, member: M) -> Call<Zscore<K, M>, Option<f64>> {
        self.call(Zscore { key, member })
    }

    /// How many members have a lower place than `member`; `None` when there is no such key or member.
    /// [ZRANK](https://redis.io/docs/latest/commands/zrank/)
    pub fn zrank<K: ToArg, M: ToArg>(&self, key: K, member: M) -> Call<Zrank<K, M>, Option<u64>> {
        self.call(Zrank { key, member })
    }

    /// How many members there are; 0 when there is no such key.
    /// [ZCARD](https://redis.io/docs/latest/commands/zcard/)
    pub fn zcard<K: ToArg>(&self, key: K) -> Call<Zcard<K>, u64> {
        self.call(Zcard { key })
    }

    /// Adds to the score of `member`, and gives the sum; a missing one counts as 0.
    /// [ZINCRBY](https://redis.io/docs/latest/commands/zincrby/)
    pub fn zincrby<K: ToArg, M: ToArg>(&self, key: K, increment: f64, member: M) -> Call<Zincrby<K, M>, f64> {
        self.call(Zincrby { key, increment, member })
    }

    /// The members from place `start` to place `stop`, both included, lowest score first; -1 is the last. Empty when
    /// there is no such key.
    /// [ZRANGE](https://redis.io/docs/latest/commands/zrange/)
    ///
    /// With [`byscore`](Call::byscore) the bounds are scores: `1.5`, `"(1.5"` without 1.5 itself, `f64::INFINITY`.
    ///
    /// ```
    /// # async fn best(client: respiral::Client) -> respiral::Result<()> {
    /// let best: Vec<(String, f64)> = client.zrange("board", 0, 9).rev().withscores().await?;
    /// let good: Vec<String> = client.zrange("board", "(100", f64::INFINITY).byscore().limit(0, 10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn zrange<T, K, B, E>(&self, key: K, start: B, stop: E) -> Call<Zrange<K, B, E>, T>
    where
        T: FromReply,
        K: ToArg,
        B: ToArg,
        E: ToArg,
    {
        self.call(Zrange::new(key, start, stop))
    }
}

impl<K: ToArg, P: ToArgs, T> Call<Zadd<K, P>, T> {
    /// Only new members; scores stay as they are.
    pub fn nx(self) -> Self {
        self.with(|zadd| Zadd { condition: Some(Condition::Nx), ..zadd })
    }

    /// Only members that are there.
    pub fn xx(self) -> Self {
        self.with(|zadd| Zadd { condition: Some(Condition::Xx), ..zadd })
    }

    /// Of members that are there, only those whose score grows (Redis 6.2).
    pub fn gt(self) -> Self {
        self.with(|zadd| Zadd { comparison: Some(Comparison::Gt), ..zadd })
    }

    /// Of members that are there, only those whose score shrinks (Redis 6.2).
    pub fn lt(self) -> Self {
        self.with(|zadd| Zadd { comparison: Some(Comparison::Lt), ..zadd })
    }

    /// The reply counts members with a changed score too, not only new ones.
    pub fn ch(self) -> Self {
        self.with(|zadd| Zadd { ch: true, ..zadd })
    }
}

impl<K: ToArg, B: ToArg, E: ToArg, T> Call<Zrange<K, B, E>, T> {
    /// The bounds are scores (Redis 6.2).
    pub fn byscore(self) -> Self {
        self.with(|zrange| Zrange { byscore: true, ..zrange })
    }

    /// Highest score first: `start` counts from there, or is the higher score (Redis 6.2).
    pub fn rev(self) -> Self {
        self.with(|zrange| Zrange { rev: true, ..zrange })
    }

    /// Passes over `offset` members, and gives `count` at most, all when it is negative; with `byscore` only (Redis
    /// 6.2).
    pub fn limit(self, offset: u64, count: i64) -> Self {
        self.with(|zrange| Zrange { limit: Some((offset, count)), ..zrange })
    }

    /// The reply is a list of pairs of member and score, such as `Vec<(String, f64)>`, or a map.
    pub fn withscores(self) -> Self {
        self.with(|zrange| Zrange { withscores: true, ..zrange })
    }
}
