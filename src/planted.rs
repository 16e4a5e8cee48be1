//! Faults on purpose. A checker that has never failed proves nothing: the simulation has to catch each of these.
//!
//! They exist with the feature `planted-faults` alone, and one at a time, on the thread that asked for it. Without the
//! feature `planted!` is `false`, and nothing of this is left in the program.

/// True when this fault is planted.
macro_rules! planted {
    ($fault:ident) => {{
        #[cfg(feature = "planted-faults")]
        {
            $crate::planted::is($crate::planted::Planted::$fault)
        }
        #[cfg(not(feature = "planted-faults"))]
        {
            false
        }
    }};
}

#[cfg(feature = "planted-faults")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    /// Plants a fault in all clients of this thread, or takes it back.
    pub fn plant(fault: Option<Planted>) {
        NOW.set(fault);
    }

    pub(crate) fn is(fault: Planted) -> bool {
        NOW.get() == Some(fault)
    }

    macro_rules! faults {
        ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
            /// What can be planted.
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub enum Planted {
                $($(#[doc = $doc])+ $name,)+
            }

            impl Planted {
                /// All of them, and what each is.
                pub const ALL: &[(Planted, &str)] = &[$((Planted::$name, concat!($($doc),+)),)+];
            }
        };
    }

    faults! {
        /// Two callers get each other's replies.
        RepliesSwapped,
        /// A push message counts as a reply.
        PushIsReply,
        /// A caller that left takes its reply's place along.
        PlaceLost,
        /// What a socket that is gone left of a reply is read before the next one's.
        OldBytesKept,
        /// News of an earlier socket is taken for the present one's.
        StaleNewsHeard,
        /// A received block is put together one byte off.
        BlockOneOff,
        /// Commands that the kernel had accepted go out again on the next socket.
        AcceptedSentAgain,
        /// After a send that was cut the rest follows, from the wrong byte.
        CutSendGoesOn,
        /// A command whose caller left before it was sent is sent.
        CancelledIsSent,
        /// What a send had taken is not counted once the socket is being closed.
        LateCountIgnored,
        /// A command that lacks its last byte counts as sent.
        OneByteOff,
        /// A command that was cut is told to have run, perhaps.
        CutIsMaybe,
        /// Memory is written again while the kernel may read it.
        MemoryReused,
        /// A command goes out before set-up is over.
        CommandInSetUp,
        /// A socket that failed is not closed.
        CloseForgotten,
        /// The limit of queued bytes is ignored.
        ByteLimitIgnored,
        /// One command more than the limit is in flight.
        OneTooMany,
        /// The bytes of a cancelled command are never given back.
        BytesKept,
        /// A place that was promised to a caller who did not come is never given back.
        PlaceKept,
        /// A caller who left the line while its turn had come takes the turn along.
        TurnLost,
        /// A caller that was let in and found no room goes to the end of the line.
        LineDisordered,
        /// Those who wait in line are not told that no connection can be had.
        LineForgotten,
        /// A ticket is given to the next call while the last one's reply is on its way.
        TicketReused,
        /// The second reply of a batch does not wake its caller.
        WakeLost,
        /// With three calls or more the timer is not set.
        TimerLost,
        /// Deadlines are served a turn late.
        DeadlineLate,
        /// Calls end before their time.
        DeadlineEarly,
        /// The last of several calls that share a deadline has none.
        DeadlineForgotten,
        /// A connect that is never answered is never given up.
        ConnectForEver,
        /// A server that is silent in set-up is never given up.
        SetUpForEver,
        /// A silent connection is never given up.
        SilenceForEver,
        /// A connection that is lost is not replaced.
        NotReplaced,
        /// More connections are made at a time than the limit.
        ManyDials,
        /// An attempt that failed is repeated at once, without end.
        DialsForEver,
        /// An eager connect is over when the first of several connections is up.
        EagerTooEarly,
        /// A push message is told twice.
        PushTwice,
        /// A large reply keeps its buffer for ever.
        HoldLeaked,
        /// Beginnings of replies take all receive buffers.
        BuffersUsedUp,
        /// A client that is closed forgets its callers.
        CallersForgotten,
    }
}

#[cfg(feature = "planted-faults")]
pub(crate) use switch::is;
#[cfg(feature = "planted-faults")]
pub use switch::{Planted, plant};
