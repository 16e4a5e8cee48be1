//! The server itself.

use crate::command::typed::reply::ServerTime;
use crate::command::typed::server::*;
use crate::driver::{Call, Client};
use crate::resp::ToArgs;

impl Client {
    /// How many keys the database has.
    /// [DBSIZE](https://redis.io/docs/latest/commands/dbsize/)
    pub fn dbsize(&self) -> Call<Dbsize, u64> {
        self.call(Dbsize {})
    }

    /// Removes every key of the database; needs `allow_admin`.
    /// [FLUSHDB](https://redis.io/docs/latest/commands/flushdb/)
    pub fn flushdb(&self) -> Call<Flushdb, ()> {
        self.call(Flushdb { mode: None })
    }

    /// Removes every key of every database; needs `allow_admin`.
    /// [FLUSHALL](https://redis.io/docs/latest/commands/flushall/)
    pub fn flushall(&self) -> Call<Flushall, ()> {
        self.call(Flushall { mode: None })
    }

    /// What the server says of itself: lines of `name:value`, in sections.
    /// [INFO](https://redis.io/docs/latest/commands/info/)
    pub fn info(&self) -> Call<Info, String> {
        self.call(Info { sections: () })
    }

    /// The server's clock.
    /// [TIME](https://redis.io/docs/latest/commands/time/)
    pub fn time(&self) -> Call<Time, ServerTime> {
        self.call(Time {})
    }
}

impl Call<Flushdb, ()> {
    /// Answers before the memory is free (Redis 4.0).
    pub fn asynchronous(self) -> Self {
        self.with(|_| Flushdb { mode: Some(FlushMode::Async) })
    }

    /// Answers when the memory is free (Redis 6.2).
    pub fn synchronous(self) -> Self {
        self.with(|_| Flushdb { mode: Some(FlushMode::Sync) })
    }
}

impl Call<Flushall, ()> {
    /// Answers before the memory is free (Redis 4.0).
    pub fn asynchronous(self) -> Self {
        self.with(|_| Flushall { mode: Some(FlushMode::Async) })
    }

    /// Answers when the memory is free (Redis 6.2).
    pub fn synchronous(self) -> Self {
        self.with(|_| Flushall { mode: Some(FlushMode::Sync) })
    }
}

impl Call<Info, String> {
    /// Only these sections; none named means the default ones. Several: Redis 7.0.
    pub fn sections<S: ToArgs>(self, sections: S) -> Call<Info<S>, String> {
        self.with(|_| Info { sections })
    }
}
