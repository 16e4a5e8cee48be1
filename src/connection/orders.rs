//! H34, every order of events for a few commands: cancelled at each position and moment, with each count of bytes that the
//! kernel took and of replies that came, before or after the send's end, and then the end of the socket.

use super::Pipeline;
use crate::buf::Returns;
use crate::error::Delivery;
use crate::id::TicketId;

const COUNT: usize = 4;

/// When callers leave: before the send is made, while it is on its way, or when its end is told. Those whose commands are
/// not given to the engine by then leave unsent.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Leave {
    Before,
    During,
    After,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    /// Commands that are there when the send is made; the others come while it is on its way.
    given: usize,
    /// Whose callers leave, one bit each, and when.
    leavers: usize,
    leave: Leave,
    /// Bytes that the kernel takes of the send.
    taken: usize,
    /// Replies that come, and whether before the send's end is told.
    replies: usize,
    early: bool,
}

/// What becomes of a command on this socket.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Replied,
    Ended(Delivery),
    /// Its caller has left; nobody is told.
    Silent,
    /// It goes out on the next socket.
    Kept,
}

fn frame(index: usize) -> Vec<u8> {
    vec![b'a' + index as u8; index + 2]
}

fn gather(pipeline: &mut Pipeline) -> Vec<u8> {
    if !pipeline.has_transmit() {
        return Vec::new();
    }
    pipeline.transmit().iter().flat_map(|slice| slice.to_vec()).collect()
}

impl Order {
    fn leaves(&self, index: usize) -> bool {
        self.leavers >> index & 1 == 1
    }

    /// Commands of the send, with where they end in it.
    fn sent(&self) -> impl Iterator<Item = (usize, usize)> {
        let is_sent = |index: &usize| self.leave != Leave::Before || !self.leaves(*index);
        (0..self.given).filter(is_sent).scan(0, |end, index| {
            *end += frame(index).len();
            Some((index, *end))
        })
    }

    fn fates(&self) -> [Fate; COUNT] {
        let mut fates = [Fate::Silent; COUNT];
        for (index, fate) in fates.iter_mut().enumerate().filter(|(index, _)| *index >= self.given) {
            *fate = if self.leaves(index) { Fate::Silent } else { Fate::Kept };
        }
        for (place, (index, end)) in self.sent().enumerate() {
            let left_first = self.leaves(index) && !(self.leave == Leave::After && self.early);
            let (is_replied, is_touched) = (place < self.replies, end - frame(index).len() < self.taken);
            fates[index] = match () {
                () if is_replied && !left_first => Fate::Replied,
                () if self.leaves(index) => Fate::Silent,
                () if end <= self.taken => Fate::Ended(Delivery::MaybeExecuted),
                () if is_touched => Fate::Ended(Delivery::NotExecuted),
                () => Fate::Kept,
            };
        }
        fates
    }

    fn play(&self) {
        let mut pipeline = Pipeline::new(16, Returns::default());
        let mut numbers = [0; COUNT];
        let mut fates = [Fate::Silent; COUNT];
        let push = |pipeline: &mut Pipeline, index: usize| {
            let ticket = TicketId { index: index as u32, generation: 0 };
            pipeline.push(ticket, |log| log.append(&frame(index)))
        };
        let cancel = |pipeline: &mut Pipeline, numbers: &[u64; COUNT], of: std::ops::Range<usize>| {
            of.filter(|index| self.leaves(*index)).for_each(|index| pipeline.cancel(numbers[index]));
        };
        let reply = |pipeline: &mut Pipeline, fates: &mut [Fate; COUNT]| {
            for _ in 0..self.replies {
                if let Some(ticket) = pipeline.pop().expect("a reply is owed") {
                    fates[ticket.index as usize] = Fate::Replied;
                }
            }
            pipeline.release();
        };

        (0..self.given).for_each(|index| numbers[index] = push(&mut pipeline, index));
        if self.leave == Leave::Before {
            cancel(&mut pipeline, &numbers, 0..self.given);
        }
        let sent: Vec<u8> = self.sent().flat_map(|(index, _)| frame(index)).collect();
        assert_eq!(gather(&mut pipeline), sent, "what had left is not sent");
        (self.given..COUNT).for_each(|index| numbers[index] = push(&mut pipeline, index));
        match self.leave {
            Leave::Before => cancel(&mut pipeline, &numbers, self.given..COUNT),
            Leave::During => cancel(&mut pipeline, &numbers, 0..COUNT),
            Leave::After => {}
        }
        if self.early {
            reply(&mut pipeline, &mut fates);
        }
        if !sent.is_empty() {
            assert_eq!(pipeline.handle_sent(self.taken), self.taken == sent.len());
        }
        if self.leave == Leave::After {
            cancel(&mut pipeline, &numbers, 0..COUNT);
        }
        if !self.early {
            reply(&mut pipeline, &mut fates);
        }
        pipeline.handle_closed(|ticket, delivery, _| {
            let told = std::mem::replace(&mut fates[ticket.index as usize], Fate::Ended(delivery));
            assert_eq!(told, Fate::Silent, "a command ends once");
        });

        // The next socket carries the rest, once and in order.
        let expected = self.fates();
        let kept: Vec<usize> = (0..COUNT).filter(|index| expected[*index] == Fate::Kept).collect();
        let rest = gather(&mut pipeline);
        assert_eq!(rest, kept.iter().flat_map(|index| frame(*index)).collect::<Vec<_>>());
        // A gap between two that are kept is memory until the first of them is over.
        assert!(pipeline.bytes() >= rest.len() as u64 && (!rest.is_empty() || pipeline.bytes() == 0));
        assert_eq!(pipeline.in_flight(), kept.len());
        if !rest.is_empty() {
            assert!(pipeline.handle_sent(rest.len()));
        }
        for index in kept {
            assert_eq!(pipeline.pop().flatten().map(|ticket| ticket.index), Some(index as u32));
            fates[index] = Fate::Kept;
        }
        pipeline.release();
        assert_eq!((pipeline.pop(), pipeline.bytes(), pipeline.in_flight()), (None, 0, 0));
        assert_eq!(fates, expected);
    }
}

#[test]
fn h34_cancelled_at_each_position_and_moment() {
    let mut played = 0;
    for (given, leavers) in (0..=COUNT).flat_map(|given| (0..1 << COUNT).map(move |leavers| (given, leavers)))
    {
        for leave in [Leave::Before, Leave::During, Leave::After] {
            let order = Order { given, leavers, leave, taken: 0, replies: 0, early: false };
            let ends: Vec<usize> = order.sent().map(|(_, end)| end).collect();
            for taken in 0..=ends.last().copied().unwrap_or_default() {
                let whole = ends.iter().filter(|end| **end <= taken).count();
                for (replies, early) in (0..=whole).flat_map(|replies| [(replies, false), (replies, true)]) {
                    let order = Order { taken, replies, early, ..order };
                    let result = std::panic::catch_unwind(|| order.play());
                    assert!(result.is_ok(), "{order:?}");
                    played += 1;
                }
            }
        }
    }
    assert!(played > 5_000, "{played}");
}
