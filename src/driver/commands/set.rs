//! Sets.

use crate::command::typed::set::*;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg, ToArgs};

impl Client {
    /// Adds members, and gives how many are new. A missing set is made.
    /// [SADD](https://redis.io/docs/latest/commands/sadd/)
    pub fn sadd<K: ToArg, M: ToArgs>(&self, key: K, members: M) -> Call<Sadd<K, M>, u64> {
        self.call(Sadd { key, members })
    }

    /// Removes members, and gives how many of them there were.
    /// [SREM](https://redis.io/docs/latest/commands/srem/)
    pub fn srem<K: ToArg, M: ToArgs>(&self, key: K, members: M) -> Call<Srem<K, M>, u64> {
        self.call(Srem { key, members })
    }

    /// All members, in no order; empty when there is no such key.
    /// [SMEMBERS](https://redis.io/docs/latest/commands/smembers/)
    pub fn smembers<T: FromReply, K: ToArg>(&self, key: K) -> Call<Smembers<K>, T> {
        self.call(Smembers { key })
    }

    /// Whether `member` is one; false when there is no such key.
    /// [SISMEMBER](https://redis.io/docs/latest/commands/sismember/)
    pub fn sismember<K: ToArg, M: ToArg>(&self, key: K, member: M) -> Call<Sismember<K, M>, bool> {
        self.call(Sismember { key, member })
    }

    /// How many members there are; 0 when there is no such key.
    /// [SCARD](https://redis.io/docs/latest/commands/scard/)
    pub fn scard<K: ToArg>(&self, key: K) -> Call<Scard<K>, u64> {
        self.call(Scard { key })
    }
}
