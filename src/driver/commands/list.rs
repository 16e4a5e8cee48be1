//! Lists.

use crate::command::typed::list::*;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg, ToArgs};

impl Client {
    /// Puts values before the first, one after the other, and gives the length then. A missing list is made.
    /// [LPUSH](https://redis.io/docs/latest/commands/lpush/)
    pub fn lpush<K: ToArg, V: ToArgs>(&self, key: K, values: V) -> Call<Lpush<K, V>, u64> {
        self.call(Lpush { key, values })
    }

    /// Puts values behind the last, one after the other, and gives the length then. A missing list is made.
    /// [RPUSH](https://redis.io/docs/latest/commands/rpush/)
    pub fn rpush<K: ToArg, V: ToArgs>(&self, key: K, values: V) -> Call<Rpush<K, V>, u64> {
        self.call(Rpush { key, values })
    }

    /// Takes the first value; null when there is no such key. For several, see its option `count`.
    /// [LPOP](https://redis.io/docs/latest/commands/lpop/)
    pub fn lpop<T: FromReply, K: ToArg>(&self, key: K) -> Call<Lpop<K>, T> {
        self.call(Lpop::new(key))
    }

    /// Takes the last value; null when there is no such key. For several, see its option `count`.
    /// [RPOP](https://redis.io/docs/latest/commands/rpop/)
    pub fn rpop<T: FromReply, K: ToArg>(&self, key: K) -> Call<Rpop<K>, T> {
        self.call(Rpop::new(key))
    }

    /// The length; 0 when there is no such key.
    /// [LLEN](https://redis.io/docs/latest/commands/llen/)
    pub fn llen<K: ToArg>(&self, key: K) -> Call<Llen<K>, u64> {
        self.call(Llen { key })
    }

    /// The values from `start` to `stop`, both included; -1 is the last. Empty when there is no such key.
    /// [LRANGE](https://redis.io/docs/latest/commands/lrange/)
    pub fn lrange<T: FromReply, K: ToArg>(&self, key: K, start: i64, stop: i64) -> Call<Lrange<K>, T> {
        self.call(Lrange { key, start, stop })
    }

    /// The value at `index`; -1 is the last. Null when there is no such key or index.
    /// [LINDEX](https://redis.io/docs/latest/commands/lindex/)
    pub fn lindex<T: FromReply, K: ToArg>(&self, key: K, index: i64) -> Call<Lindex<K>, T> {
        self.call(Lindex { key, index })
    }

    /// Removes the first `count` values equal to `value`, the last ones when it is negative, all when it is 0, and gives
    /// how many there were.
    /// [LREM](https://redis.io/docs/latest/commands/lrem/)
    pub fn lrem<K: ToArg, V: ToArg>(&self, key: K, count: i64, value: V) -> Call<Lrem<K, V>, u64> {
        self.call(Lrem { key, count, value })
    }

    /// Keeps only the values from `start` to `stop`, both included; -1 is the last. A missing key stays missing.
    /// [LTRIM](https://redis.io/docs/latest/commands/ltrim/)
    pub fn ltrim<K: ToArg>(&self, key: K, start: i64, stop: i64) -> Call<Ltrim<K>, ()> {
        self.call(Ltrim { key, start, stop })
    }
}

impl<K: ToArg, T> Call<Lpop<K>, T> {
    /// Takes so many values, as a list, shorter when there are fewer; null when there is no such key (Redis 6.2).
    pub fn count(self, count: u64) -> Self {
        self.with(|lpop| Lpop { count: Some(count), ..lpop })
    }
}

impl<K: ToArg, T> Call<Rpop<K>, T> {
    /// Takes so many values, as a list, the last first, shorter when there are fewer; null when there is no such key
    /// (Redis 6.2).
    pub fn count(self, count: u64) -> Self {
        self.with(|rpop| Rpop { count: Some(count), ..rpop })
    }
}
