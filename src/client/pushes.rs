//! Push messages (RESP3) on their way to those who listen.
//!
//! A push may come at any moment, between any two replies. Without a listener it is counted and dropped; with one it
//! waits in a bounded queue, where the oldest message gives way.

use crate::buf::Payload;
use crate::resp::{FromReply, Value};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

struct Queue {
    messages: VecDeque<Value>,
    capacity: usize,
    dropped: u64,
    waker: Option<Waker>,
    closed: bool,
}

/// The listeners of one client.
#[derive(Default)]
pub struct Pushes {
    listeners: Vec<Weak<RefCell<Queue>>>,
    seen: u64,
    closed: bool,
}

impl Pushes {
    /// A new listener with room for `capacity` messages (at least one).
    pub fn listen(&mut self, capacity: usize) -> PushListener {
        let queue = Rc::new(RefCell::new(Queue {
            messages: VecDeque::new(),
            capacity: capacity.max(1),
            dropped: 0,
            waker: None,
            closed: self.closed,
        }));
        self.listeners.retain(|listener| listener.strong_count() > 0);
        self.listeners.push(Rc::downgrade(&queue));
        PushListener { queue, has_ended: None }
    }

    /// Push messages that have arrived, listened to or not.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub(super) fn deliver(&mut self, payload: Payload, wakers: &mut Vec<Waker>) {
        self.seen += 1;
        self.listeners.retain(|listener| listener.strong_count() > 0);
        if self.listeners.is_empty() {
            return;
        }
        let Ok(message) = Value::from_payload(payload) else { return };
        for queue in self.listeners.iter().filter_map(Weak::upgrade) {
            let mut queue = queue.borrow_mut();
            if queue.messages.len() == queue.capacity {
                queue.messages.pop_front();
                queue.dropped += 1;
            }
            queue.messages.push_back(message.clone());
            if planted!(PushTwice) {
                queue.messages.push_back(message.clone());
            }
            wakers.extend(queue.waker.take());
        }
    }

    pub(super) fn close(&mut self, wakers: &mut Vec<Waker>) {
        self.closed = true;
        for queue in self.listeners.drain(..).filter_map(|listener| listener.upgrade()) {
            let mut queue = queue.borrow_mut();
            queue.closed = true;
            wakers.extend(queue.waker.take());
        }
    }
}

/// Receives the push messages of a client's connections, oldest first.
pub struct PushListener {
    queue: Rc<RefCell<Queue>>,
    /// Asked where nobody is left to close the queue: in a forked child (H7).
    has_ended: Option<Box<dyn Fn() -> bool>>,
}

impl PushListener {
    #[cfg(feature = "engine")]
    pub(crate) fn ends_when(self, has_ended: impl Fn() -> bool + 'static) -> Self {
        Self { has_ended: Some(Box::new(has_ended)), ..self }
    }

    /// The next message; `None` when the client is closed and the queue is empty.
    pub async fn next(&mut self) -> Option<Value> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`next`](Self::next), for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Value>> {
        let mut queue = self.queue.borrow_mut();
        if let Some(message) = queue.messages.pop_front() {
            return Poll::Ready(Some(message));
        }
        if queue.closed || self.has_ended.as_ref().is_some_and(|has_ended| has_ended()) {
            return Poll::Ready(None);
        }
        let old = queue.waker.replace(cx.waker().clone());
        drop(queue);
        drop(old);
        Poll::Pending
    }

    /// A message that waits already.
    pub fn try_next(&mut self) -> Option<Value> {
        self.queue.borrow_mut().messages.pop_front()
    }

    /// Messages that gave way because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.queue.borrow().dropped
    }
}

impl futures_core::Stream for PushListener {
    type Item = Value;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Value>> {
        PushListener::poll_next(self.get_mut(), cx)
    }
}
