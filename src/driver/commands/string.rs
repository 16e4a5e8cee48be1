//! Strings and counters.

use crate::command::typed::string::*;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg};

impl Client {
    /// The value of `key`; null when there is none.
    /// [GET](https://redis.io/docs/latest/commands/get/)
    pub fn get<T: FromReply, K: ToArg>(&self, key: K) -> Call<Get<K>, T> {
        self.call(Get { key })
    }

    /// Sets `key`; options by methods of the call: `client.set("k", "v").ex(10).nx()`.
    /// [SET](https://redis.io/docs/latest/commands/set/)
    pub fn set<K: ToArg, V: ToArg>(&self, key: K, value: V) -> Call<Set<K, V>, ()> {
        self.call(Set::new(key, value))
    }

    /// Adds one, and gives the sum.
    /// [INCR](https://redis.io/docs/latest/commands/incr/)
    pub fn incr<K: ToArg>(&self, key: K) -> Call<Incr<K>, i64> {
        self.call(Incr { key })
    }
}

impl<K: ToArg, V: ToArg, T> Call<Set<K, V>, T> {
    /// Expires after so many seconds; 1 at least.
    pub fn ex(self, seconds: u64) -> Self {
        self.expire(Expiry::Ex(seconds))
    }

    /// Expires after so many milliseconds; 1 at least.
    pub fn px(self, milliseconds: u64) -> Self {
        self.expire(Expiry::Px(milliseconds))
    }

    /// Expires at a Unix time in seconds (Redis 6.2).
    pub fn exat(self, seconds: u64) -> Self {
        self.expire(Expiry::ExAt(seconds))
    }

    /// Expires at a Unix time in milliseconds (Redis 6.2).
    pub fn pxat(self, milliseconds: u64) -> Self {
        self.expire(Expiry::PxAt(milliseconds))
    }

    /// Keeps the time to live that the key has (Redis 6.0).
    pub fn keepttl(self) -> Self {
        self.expire(Expiry::Keep)
    }

    fn expire(self, expiry: Expiry) -> Self {
        self.with(|set| Set { expiry: Some(expiry), ..set })
    }

    /// Only when the key does not exist; the reply says whether it was set.
    pub fn nx(self) -> Call<Set<K, V>, bool> {
        self.with(|set| Set { condition: Some(Condition::Nx), ..set })
    }

    /// Only when the key exists; the reply says whether it was set.
    pub fn xx(self) -> Call<Set<K, V>, bool> {
        self.with(|set| Set { condition: Some(Condition::Xx), ..set })
    }

    /// The reply is the old value, null when there was none (Redis 6.2; with `nx`, 7.0).
    pub fn get<U: FromReply>(self) -> Call<Set<K, V>, U> {
        self.with(|set| Set { get: true, ..set })
    }
}
