//! Commands that ask whether the server is there.

use crate::command::typed::connection::*;
use crate::driver::{Call, Client};
use crate::resp::{FromReply, ToArg};

impl Client {
    /// Asks whether the server answers; with [`message`](Call::message) it sends that back.
    /// [PING](https://redis.io/docs/latest/commands/ping/)
    pub fn ping(&self) -> Call<Ping, ()> {
        self.call(Ping { message: () })
    }

    /// Gives `message` back.
    /// [ECHO](https://redis.io/docs/latest/commands/echo/)
    pub fn echo<T: FromReply, M: ToArg>(&self, message: M) -> Call<Echo<M>, T> {
        self.call(Echo { message })
    }
}

impl Call<Ping, ()> {
    /// The reply is this message.
    pub fn message<T: FromReply, M: ToArg>(self, message: M) -> Call<Ping<M>, T> {
        self.with(|_| Ping { message })
    }
}
