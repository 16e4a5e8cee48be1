//! Strings and counters.

use crate::command::typed::string::*;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg, ToArgs};

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

    /// The value of `key`, which is removed; null when there is none (Redis 6.2).
    /// [GETDEL](https://redis.io/docs/latest/commands/getdel/)
    pub fn getdel<T: FromReply, K: ToArg>(&self, key: K) -> Call<Getdel<K>, T> {
        self.call(Getdel { key })
    }

    /// The value of `key`, whose time to live an option changes; null when there is none (Redis 6.2).
    /// [GETEX](https://redis.io/docs/latest/commands/getex/)
    pub fn getex<T: FromReply, K: ToArg>(&self, key: K) -> Call<Getex<K>, T> {
        self.call(Getex::new(key))
    }

    /// The bytes from `start` to `end`, both included; -1 is the last. Empty when there is no such key.
    /// [GETRANGE](https://redis.io/docs/latest/commands/getrange/)
    pub fn getrange<T: FromReply, K: ToArg>(&self, key: K, start: i64, end: i64) -> Call<Getrange<K>, T> {
        self.call(Getrange { key, start, end })
    }

    /// Overwrites from byte `offset` on, and gives the length then. What is missing before it is filled with zero bytes.
    /// [SETRANGE](https://redis.io/docs/latest/commands/setrange/)
    pub fn setrange<K: ToArg, V: ToArg>(&self, key: K, offset: u64, value: V) -> Call<Setrange<K, V>, u64> {
        self.call(Setrange { key, offset, value })
    }

    /// Puts `value` behind what `key` holds, and gives the length then, in bytes. A missing string is made.
    /// [APPEND](https://redis.io/docs/latest/commands/append/)
    pub fn append<K: ToArg, V: ToArg>(&self, key: K, value: V) -> Call<Append<K, V>, u64> {
        self.call(Append { key, value })
    }

    /// The length in bytes; 0 when there is no such key.
    /// [STRLEN](https://redis.io/docs/latest/commands/strlen/)
    pub fn strlen<K: ToArg>(&self, key: K) -> Call<Strlen<K>, u64> {
        self.call(Strlen { key })
    }

    /// The values of keys, in their order; null for each that is missing or holds no string.
    /// [MGET](https://redis.io/docs/latest/commands/mget/)
    pub fn mget<T: FromReply, K: ToArgs>(&self, keys: K) -> Call<Mget<K>, T> {
        self.call(Mget { keys })
    }

    /// Sets keys, given as pairs of key and value, all at once.
    /// [MSET](https://redis.io/docs/latest/commands/mset/)
    pub fn mset<P: ToArgs>(&self, pairs: P) -> Call<Mset<P>, ()> {
        self.call(Mset { pairs })
    }

    /// Sets keys, given as pairs of key and value, when none of them exists; false when one does, and none is set.
    /// [MSETNX](https://redis.io/docs/latest/commands/msetnx/)
    pub fn msetnx<P: ToArgs>(&self, pairs: P) -> Call<Msetnx<P>, bool> {
        self.call(Msetnx { pairs })
    }

    /// Adds one, and gives the sum; a missing number counts as 0.
    /// [INCR](https://redis.io/docs/latest/commands/incr/)
    pub fn incr<K: ToArg>(&self, key: K) -> Call<Incr<K>, i64> {
        self.call(Incr { key })
    }

    /// Adds `increment`, and gives the sum; a missing number counts as 0.
    /// [INCRBY](https://redis.io/docs/latest/commands/incrby/)
    pub fn incrby<K: ToArg>(&self, key: K, increment: i64) -> Call<Incrby<K>, i64> {
        self.call(Incrby { key, increment })
    }

    /// Adds `increment`, and gives the sum; a missing number counts as 0.
    /// [INCRBYFLOAT](https://redis.io/docs/latest/commands/incrbyfloat/)
    pub fn incrbyfloat<K: ToArg>(&self, key: K, increment: f64) -> Call<Incrbyfloat<K>, f64> {
        self.call(Incrbyfloat { key, increment })
    }

    /// Takes one away, and gives the difference; a missing number counts as 0.
    /// [DECR](https://redis.io/docs/latest/commands/decr/)
    pub fn decr<K: ToArg>(&self, key: K) -> Call<Decr<K>, i64> {
        self.call(Decr { key })
    }

    /// Takes `decrement` away, and gives the difference; a missing number counts as 0.
    /// [DECRBY](https://redis.io/docs/latest/commands/decrby/)
    pub fn decrby<K: ToArg>(&self, key: K, decrement: i64) -> Call<Decrby<K>, i64> {
        self.call(Decrby { key, decrement })
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

    /// The reply is the old value, null when there was none (Redis 6.2; with `nx`, 7.0).
    pub fn get<U: FromReply>(self) -> Call<Set<K, V>, U> {
        self.with(|set| Set { get: true, ..set })
    }
}

/// One condition at most, and before `get`, which decides upon the reply.
impl<K: ToArg, V: ToArg> Call<Set<K, V>, ()> {
    /// Only when the key does not exist; the reply says whether it was set.
    pub fn nx(self) -> Call<Set<K, V>, bool> {
        self.with(|set| Set { condition: Some(Condition::Nx), ..set })
    }

    /// Only when the key exists; the reply says whether it was set.
    pub fn xx(self) -> Call<Set<K, V>, bool> {
        self.with(|set| Set { condition: Some(Condition::Xx), ..set })
    }
}

impl<K: ToArg, T> Call<Getex<K>, T> {
    /// Expires after so many seconds; 1 at least.
    pub fn ex(self, seconds: u64) -> Self {
        self.expire(Expiry::Ex(seconds))
    }

    /// Expires after so many milliseconds; 1 at least.
    pub fn px(self, milliseconds: u64) -> Self {
        self.expire(Expiry::Px(milliseconds))
    }

    /// Expires at a Unix time in seconds.
    pub fn exat(self, seconds: u64) -> Self {
        self.expire(Expiry::ExAt(seconds))
    }

    /// Expires at a Unix time in milliseconds.
    pub fn pxat(self, milliseconds: u64) -> Self {
        self.expire(Expiry::PxAt(milliseconds))
    }

    /// Stays until it is removed.
    pub fn persist(self) -> Self {
        self.expire(Expiry::Persist)
    }

    fn expire(self, expiry: Expiry) -> Self {
        self.with(|getex| Getex { expiry: Some(expiry), ..getex })
    }
}
