//! Keys, whatever they hold.

use crate::command::typed::generic::*;
use crate::command::typed::reply::{Cursor, KeyType, Milliseconds, Seconds, TimeToLive};
use crate::command::typed::sorted_set::Comparison;
use crate::command::typed::string::Condition;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg, ToArgs};

impl Client {
    /// Removes keys, and gives how many of them there were.
    /// [DEL](https://redis.io/docs/latest/commands/del/)
    pub fn del<K: ToArgs>(&self, keys: K) -> Call<Del<K>, u64> {
        self.call(Del { keys })
    }

    /// Removes keys, frees their memory later in another thread, and gives how many of them there were.
    /// [UNLINK](https://redis.io/docs/latest/commands/unlink/)
    pub fn unlink<K: ToArgs>(&self, keys: K) -> Call<Unlink<K>, u64> {
        self.call(Unlink { keys })
    }

    /// How many of the keys exist; one named twice counts twice.
    /// [EXISTS](https://redis.io/docs/latest/commands/exists/)
    pub fn exists<K: ToArgs>(&self, keys: K) -> Call<Exists<K>, u64> {
        self.call(Exists { keys })
    }

    /// Lets `key` expire after so many seconds, at once when that is not above 0; false when there is no such key, or an
    /// option kept its time.
    /// [EXPIRE](https://redis.io/docs/latest/commands/expire/)
    pub fn expire<K: ToArg>(&self, key: K, seconds: i64) -> Call<Expire<K>, bool> {
        self.call(Expire::new(key, seconds))
    }

    /// Lets `key` expire after so many milliseconds, at once when that is not above 0; false when there is no such key,
    /// or an option kept its time.
    /// [PEXPIRE](https://redis.io/docs/latest/commands/pexpire/)
    pub fn pexpire<K: ToArg>(&self, key: K, milliseconds: i64) -> Call<Pexpire<K>, bool> {
        self.call(Pexpire::new(key, milliseconds))
    }

    /// Lets `key` expire at a Unix time in seconds, at once when that is past; false when there is no such key, or an
    /// option kept its time.
    /// [EXPIREAT](https://redis.io/docs/latest/commands/expireat/)
    pub fn expireat<K: ToArg>(&self, key: K, seconds: i64) -> Call<Expireat<K>, bool> {
        self.call(Expireat::new(key, seconds))
    }

    /// Lets `key` expire at a Unix time in milliseconds, at once when that is past; false when there is no such key, or
    /// an option kept its time.
    /// [PEXPIREAT](https://redis.io/docs/latest/commands/pexpireat/)
    pub fn pexpireat<K: ToArg>(&self, key: K, milliseconds: i64) -> Call<Pexpireat<K>, bool> {
        self.call(Pexpireat::new(key, milliseconds))
    }

    /// How long `key` has to live, rounded to seconds; [`TimeToLive::NoKey`] when there is no such key.
    /// [TTL](https://redis.io/docs/latest/commands/ttl/)
    pub fn ttl<K: ToArg>(&self, key: K) -> Call<Ttl<K>, TimeToLive<Seconds>> {
        self.call(Ttl { key })
    }

    /// How long `key` has to live, in milliseconds; [`TimeToLive::NoKey`] when there is no such key.
    /// [PTTL](https://redis.io/docs/latest/commands/pttl/)
    pub fn pttl<K: ToArg>(&self, key: K) -> Call<Pttl<K>, TimeToLive<Milliseconds>> {
        self.call(Pttl { key })
    }

    /// Takes the time to live from `key`; false when it had none, or there is no such key.
    /// [PERSIST](https://redis.io/docs/latest/commands/persist/)
    pub fn persist<K: ToArg>(&self, key: K) -> Call<Persist<K>, bool> {
        self.call(Persist { key })
    }

    /// What `key` holds; [`KeyType::NoKey`] when there is no such key.
    /// [TYPE](https://redis.io/docs/latest/commands/type/)
    pub fn key_type<K: ToArg>(&self, key: K) -> Call<Type<K>, KeyType> {
        self.call(Type { key })
    }

    /// Names `key` anew, in place of what `new_key` held; a server error when there is no such key.
    /// [RENAME](https://redis.io/docs/latest/commands/rename/)
    pub fn rename<K: ToArg, N: ToArg>(&self, key: K, new_key: N) -> Call<Rename<K, N>, ()> {
        self.call(Rename { key, new_key })
    }

    /// Some of the keys, and the cursor for the next call, until it [is done](Cursor::is_done). A key that is there all
    /// the time is given at least once.
    /// [SCAN](https://redis.io/docs/latest/commands/scan/)
    ///
    /// ```
    /// # async fn keys(client: respiral::Client) -> respiral::Result<()> {
    /// use respiral::command::typed::reply::Cursor;
    /// let mut cursor = Cursor::START;
    /// while !cursor.is_done() {
    ///     let (next, keys): (_, Vec<String>) = client.scan(cursor).matching("user:*").count(100).await?;
    ///     println!("{keys:?}");
    ///     cursor = next;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan<T: FromReply>(&self, cursor: Cursor) -> Call<Scan, (Cursor, T)> {
        self.call(Scan::new(cursor))
    }
}

/// The options that all commands with a time to live share.
macro_rules! expiring {
    ($($type:ident),*) => {$(
        impl<K: ToArg, T> Call<$type<K>, T> {
            /// Only when the key has no time to live (Redis 7.0).
            pub fn nx(self) -> Self {
                self.with(|command| $type { condition: Some(Condition::Nx), ..command })
            }

            /// Only when the key has a time to live (Redis 7.0).
            pub fn xx(self) -> Self {
                self.with(|command| $type { condition: Some(Condition::Xx), ..command })
            }

            /// Only when it lives longer so; a key without a time to live counts as living forever (Redis 7.0).
            pub fn gt(self) -> Self {
                self.with(|command| $type { comparison: Some(Comparison::Gt), ..command })
            }

            /// Only when it lives shorter so; a key without a time to live counts as living forever (Redis 7.0).
            pub fn lt(self) -> Self {
                self.with(|command| $type { comparison: Some(Comparison::Lt), ..command })
            }
        }
    )*};
}

expiring!(Expire, Pexpire, Expireat, Pexpireat);

impl<P: ToArgs, T> Call<Scan<P>, T> {
    /// Only keys that match this glob pattern, such as `user:*`. A reply may be empty before the scan is done.
    pub fn matching<Q: ToArg>(self, pattern: Q) -> Call<Scan<Q>, T> {
        self.with(|Scan { cursor, count, key_type, .. }| Scan {
            cursor,
            pattern: Some(pattern),
            count,
            key_type,
        })
    }

    /// About so many keys are looked at; 1 at least, 10 without it.
    pub fn count(self, count: u64) -> Self {
        self.with(|scan| Scan { count: Some(count), ..scan })
    }

    /// Only keys that hold this (Redis 6.0).
    pub fn key_type(self, key_type: KeyType) -> Self {
        self.with(|scan| Scan { key_type: Some(key_type), ..scan })
    }
}
