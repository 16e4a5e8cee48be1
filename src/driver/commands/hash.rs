//! Hashes.

use crate::command::typed::hash::*;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg, ToArgs};

impl Client {
    /// The value of one field; null when there is no such key or field.
    /// [HGET](https://redis.io/docs/latest/commands/hget/)
    pub fn hget<T: FromReply, K: ToArg, F: ToArg>(&self, key: K, field: F) -> Call<Hget<K, F>, T> {
        self.call(Hget { key, field })
    }

    /// Sets fields, given as pairs of field and value, and gives how many are new. Several pairs: Redis 4.0.
    /// [HSET](https://redis.io/docs/latest/commands/hset/)
    pub fn hset<K: ToArg, P: ToArgs>(&self, key: K, pairs: P) -> Call<Hset<K, P>, u64> {
        self.call(Hset { key, pairs })
    }

    /// The values of fields, in their order; null for each that is missing.
    /// [HMGET](https://redis.io/docs/latest/commands/hmget/)
    pub fn hmget<T: FromReply, K: ToArg, F: ToArgs>(&self, key: K, fields: F) -> Call<Hmget<K, F>, T> {
        self.call(Hmget { key, fields })
    }

    /// All fields with their values, as a map or a list of pairs; empty when there is no such key.
    /// [HGETALL](https://redis.io/docs/latest/commands/hgetall/)
    pub fn hgetall<T: FromReply, K: ToArg>(&self, key: K) -> Call<Hgetall<K>, T> {
        self.call(Hgetall { key })
    }

    /// Removes fields, and gives how many of them there were.
    /// [HDEL](https://redis.io/docs/latest/commands/hdel/)
    pub fn hdel<K: ToArg, F: ToArgs>(&self, key: K, fields: F) -> Call<Hdel<K, F>, u64> {
        self.call(Hdel { key, fields })
    }

    /// Whether there is such a field; false when there is no such key.
    /// [HEXISTS](https://redis.io/docs/latest/commands/hexists/)
    pub fn hexists<K: ToArg, F: ToArg>(&self, key: K, field: F) -> Call<Hexists<K, F>, bool> {
        self.call(Hexists { key, field })
    }

    /// How many fields there are; 0 when there is no such key.
    /// [HLEN](https://redis.io/docs/latest/commands/hlen/)
    pub fn hlen<K: ToArg>(&self, key: K) -> Call<Hlen<K>, u64> {
        self.call(Hlen { key })
    }

    /// All fields; empty when there is no such key.
    /// [HKEYS](https://redis.io/docs/latest/commands/hkeys/)
    pub fn hkeys<T: FromReply, K: ToArg>(&self, key: K) -> Call<Hkeys<K>, T> {
        self.call(Hkeys { key })
    }

    /// All values; empty when there is no such key.
    /// [HVALS](https://redis.io/docs/latest/commands/hvals/)
    pub fn hvals<T: FromReply, K: ToArg>(&self, key: K) -> Call<Hvals<K>, T> {
        self.call(Hvals { key })
    }

    /// Adds to the number in a field, and gives the sum; a missing one counts as 0.
    /// [HINCRBY](https://redis.io/docs/latest/commands/hincrby/)
    pub fn hincrby<K: ToArg, F: ToArg>(&self, key: K, field: F, increment: i64) -> Call<Hincrby<K, F>, i64> {
        self.call(Hincrby { key, field, increment })
    }
}
