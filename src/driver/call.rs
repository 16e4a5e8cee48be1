//! A call: one command on its way, which is itself the future of its reply.

use super::shared::Shared;
use crate::buf::Log;
use crate::client::Admission;
use crate::command::{Command, Raw};
use crate::error::{ApiMisuse, Delivery, Error, Result};
use crate::id::TicketId;
use crate::resp::{Encoder, FromReply, ToArgs};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// One command, sent when it is first polled, and the future of its reply as a `T`.
///
/// Dropping it before its bytes went to the kernel withdraws it; dropping it later only drops the reply. Either way no
/// other call is disturbed. See [`Error::delivery`] for what a failure says about the command.
#[must_use = "nothing is sent until the call is awaited"]
pub struct Call<C, T> {
    entry: Entry,
    command: C,
    /// [`Duration::MAX`] is none; `None` is the client's.
    timeout: Option<Duration>,
    reply: PhantomData<fn() -> T>,
}

/// What is withdrawn when a call is dropped.
struct Entry {
    shared: Rc<Shared>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    New,
    Waiting(TicketId),
    Entered(TicketId),
    Over,
}

/// Writes the frame; true when it is what it announced.
#[inline(always)]
fn encode(command: &impl Command, log: &mut Log) -> bool {
    let mut encoder = Encoder::new(log);
    command.encode(&mut encoder);
    encoder.is_whole()
}

impl<C, T> Call<C, T> {
    pub(super) fn new(shared: Rc<Shared>, command: C) -> Self {
        Self { entry: Entry { shared, state: State::New }, command, timeout: None, reply: PhantomData }
    }

    /// Bounds this call instead of the client's `command_timeout`: from the first poll to the reply; below 1 ms counts
    /// as 1 ms. `None`: no bound. The client's driver task keeps it: while the runtime that made the client does not run,
    /// no deadline passes.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into().unwrap_or(Duration::MAX).max(Duration::from_millis(1)));
        self
    }

    /// The same call with options of its command set, and another type of reply where they change it.
    pub(super) fn with<D, U>(self, change: impl FnOnce(C) -> D) -> Call<D, U> {
        Call { entry: self.entry, command: change(self.command), timeout: self.timeout, reply: PhantomData }
    }
}

impl<T> Call<Raw, T> {
    /// Appends an argument, or several when the value stands for several (slices, maps, tuples).
    pub fn arg(mut self, value: impl ToArgs) -> Self {
        self.command.arg(value);
        self
    }
}

impl<C: Command, T: FromReply> Call<C, T> {
    /// The command goes out, or stands in line.
    #[inline(always)]
    fn start(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let (command, own) = (&self.command, self.timeout);
        let shared = &self.entry.shared;
        command.check(shared.look(|machine| machine.allow_admin()))?;
        let mut is_whole = true;
        let submitted = shared.with(|machine| {
            let timeout = own.unwrap_or(machine.default_timeout());
            machine.submit(timeout, cx.waker(), |log| is_whole = encode(command, log))
        });
        self.entry.state = match submitted {
            Some((ticket, Admission::Entered)) if is_whole => State::Entered(ticket),
            Some((ticket, Admission::Waiting)) => State::Waiting(ticket),
            Some((ticket, Admission::Entered)) => return Err(self.take_back(ticket)),
            None => return Err(Error::Closed(Delivery::NotExecuted)),
        };
        Ok(())
    }

    /// A frame that is not what it announced would swallow what follows it. Nothing was sent yet, and nothing will be.
    #[cold]
    fn take_back(&mut self, ticket: TicketId) -> Error {
        self.entry.state = State::Over;
        self.entry.withdraw(ticket);
        Error::invalid("command", "it did not write the arguments that it announced")
    }

    /// The error of a call that failed; otherwise the caller will be woken.
    #[inline(never)]
    fn ask(&mut self, ticket: TicketId, cx: &mut Context<'_>) -> Poll<Error> {
        if let Some(error) = self.entry.shared.look(|machine| machine.take_error(ticket)) {
            self.entry.state = State::Over;
            return Poll::Ready(error);
        }
        let old = self.entry.shared.look(|machine| machine.set_waker(ticket, cx.waker()));
        drop(old);
        Poll::Pending
    }

    /// The command goes out when its turn has come.
    #[inline(never)]
    fn poll_in_line(&mut self, ticket: TicketId, cx: &mut Context<'_>) -> Poll<Error> {
        let command = &self.command;
        if self.entry.shared.look(|machine| machine.is_granted(ticket)) {
            let mut is_whole = true;
            let encode = |log: &mut _| is_whole = encode(command, log);
            if self.entry.shared.with(|machine| machine.admit(ticket, encode)) == Admission::Entered {
                self.entry.state = State::Entered(ticket);
            }
            if !is_whole {
                return Poll::Ready(self.take_back(ticket));
            }
        }
        self.ask(ticket, cx)
    }

    /// Every poll but the one that finds a reply. (Apart, so that an `await` in the user's code has just that one in line,
    /// where the compiler keeps the value in registers. Boxed for the same reason: of an enum in memory the caller loads
    /// eight bytes where one was just written, and the processor waits.)
    #[inline(never)]
    fn poll_slowly(&mut self, cx: &mut Context<'_>) -> Poll<Box<Error>> {
        if self.entry.shared.is_forked() {
            return Poll::Ready(Box::new(self.give_up()));
        }
        let result = match self.entry.state {
            State::Entered(ticket) => self.ask(ticket, cx),
            State::New => match self.start(cx) {
                Ok(()) => Poll::Pending,
                Err(error) => {
                    self.entry.state = State::Over;
                    Poll::Ready(error)
                }
            },
            State::Waiting(ticket) => self.poll_in_line(ticket, cx),
            State::Over => panic!("a call is polled after it is over"),
        };
        result.map(|error| Box::new(self.named(error)))
    }

    /// This is a forked child, and the parent has the same call: if it had begun, it goes on there.
    #[cold]
    fn give_up(&mut self) -> Error {
        let delivery = match std::mem::replace(&mut self.entry.state, State::Over) {
            State::New => Delivery::NotExecuted,
            State::Waiting(_) | State::Entered(_) => Delivery::MaybeExecuted,
            State::Over => panic!("a call is polled after it is over"),
        };
        Error::ApiMisuse(ApiMisuse::Forked(delivery))
    }

    #[cold]
    fn named(&self, error: Error) -> Error {
        error.with_command(|| self.command.name())
    }
}

impl<C: Command, T: FromReply> Future for Call<C, T> {
    type Output = Result<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Entered(ticket) = self.entry.state
            && let Some(payload) = self.entry.shared.look(|machine| machine.take_reply(ticket))
        {
            self.entry.state = State::Over;
            // Decoding runs here, in the caller's task, with nothing borrowed.
            return Poll::Ready(T::from_payload(payload).map_err(|error| self.named(error)));
        }
        match self.poll_slowly(cx) {
            Poll::Ready(error) => Poll::Ready(Err(*error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Nothing in a call is pinned: arguments are only read, and the ticket is an index.
impl<C, T> Unpin for Call<C, T> {}

impl Drop for Entry {
    #[inline(always)]
    fn drop(&mut self) {
        if let State::Waiting(ticket) | State::Entered(ticket) = self.state {
            self.withdraw(ticket);
        }
    }
}

impl Entry {
    #[inline(never)]
    fn withdraw(&self, ticket: TicketId) {
        if self.shared.is_forked() {
            return;
        }
        let left = self.shared.with(|machine| machine.cancel(ticket));
        drop(left);
    }
}

impl<C: Command, T> fmt::Debug for Call<C, T> {
    /// The command's name; arguments may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("command", &self.command.name()).finish_non_exhaustive()
    }
}
