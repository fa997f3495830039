//! What a component is.

use crate::Outbox;
use crate::events::FromWorld;
use eft_base::{Instant, Random};
use eft_channel::Memory;
use eft_channel::status::Status;
use eft_messages::{ComponentId, Encoded};

/// What an engine may use besides its own state.
pub struct Context<'a> {
    /// The time of this batch. Engines read no clock.
    pub now: Instant,
    /// Seeded by the world.
    pub random: &'a mut Random,
    /// The mapped pools and arenas, by id.
    pub memory: &'a Memory,
    /// Counters.
    pub status: &'a Status,
}

impl Context<'_> {
    /// Adds 1 to a counter of [`counters!`](crate::counters).
    pub fn count(&self, counter: impl Into<usize>) {
        self.add(counter, 1);
    }

    pub fn add(&self, counter: impl Into<usize>, n: u64) {
        self.status.add(crate::frame_counters::FRAME_COUNTERS.len() + counter.into(), n);
    }

    /// Reports progress in work on many things: called once for each.
    pub fn advance(&self) {
        self.status.advance();
    }

    /// Sets a counter that is a gauge.
    pub fn gauge(&self, counter: impl Into<usize>, value: u64) {
        self.status.set(crate::frame_counters::FRAME_COUNTERS.len() + counter.into(), value);
    }
}

/// What leaves an engine: a message to a peer or an effect in the world.
pub trait Output: Sized {
    /// See [`Component::Effect`].
    type Effect;

    /// The peer that a message goes to; `None` for an effect.
    fn peer(&self) -> Option<ComponentId>;
    /// The message. Only called when [`Output::peer`] is `Some`.
    fn encode(&self) -> Encoded;
    /// Whether the peer must be woken for it if it sleeps. Receipts are not urgent: they only give memory back, and go along
    /// with the next message, in a handful, or after half a millisecond.
    fn is_urgent(&self) -> bool {
        true
    }
    /// The effect. Only called when [`Output::peer`] is `None`.
    fn into_effect(self) -> Option<Self::Effect>;
}

/// What is about to run in an engine, identified by content: positions in queues mean nothing to a successor.
pub enum Occasion<'a, E> {
    /// [`Component::receive`] of the message in this line.
    Message {
        from: ComponentId,
        line: &'a Encoded,
    },
    Event(&'a E),
    Poll,
    Expire,
    /// [`Component::peer_reborn`].
    Reborn(ComponentId),
    Flush,
}

/// A pure engine: messages, events and time in, messages and effects out.
///
/// It performs no I/O, reads no clock, and never panics on what a peer sends.
///
/// Calls come in turns. Each call is preceded by [`Component::begin`]. After the last call of a turn comes
/// [`Component::commit`], and only then does anything leave: the outbox is published after it, and an engine that shares
/// memory with applications writes to it in its commit. So the world never sees half a turn.
pub trait Component {
    type In;
    type Out: Output<Effect = Self::Effect>;
    /// What the world tells it besides messages.
    type Event: FromWorld;
    /// What it asks of its world. [`core::convert::Infallible`]: nothing.
    type Effect;

    /// Names of the counters that this engine keeps, in order of their index.
    const COUNTERS: &'static [&'static str];

    /// Makes a message of 56 bytes from `peer`. `None`: not a message of that edge (counted; its
    /// sender is replaced).
    fn decode(peer: ComponentId, line: &Encoded) -> Option<Self::In>;

    /// The call that `occasion` names comes next. Must be cheap.
    fn begin(&mut self, _occasion: Occasion<Self::Event>) {}

    /// Asserts the invariants that hold between calls, whatever peers say: called at the begin and at the end of each turn,
    /// in release builds too, so it takes a few nanoseconds and walks no list. A broken invariant means a stray write or a
    /// bug of this engine, and a successor that begins with what was committed is better than going on.
    ///
    /// # Panics
    /// If an invariant does not hold.
    fn check(&self) {}

    /// The turn is over: its changes are valid from now on. Only what was decided before may be pushed or changed here.
    fn commit(&mut self, _cx: &mut Context) {}

    fn receive(
        &mut self,
        cx: &mut Context,
        from: ComponentId,
        message: Self::In,
        out: &mut Outbox<Self::Out>,
    );

    /// Something from the world: a domain, a socket's change, a configuration.
    fn event(&mut self, cx: &mut Context, event: Self::Event, out: &mut Outbox<Self::Out>);

    /// Called once per turn, for devices. Returns how much was done; at most `budget`.
    fn poll(&mut self, _cx: &mut Context, _budget: usize, _out: &mut Outbox<Self::Out>) -> usize {
        0
    }

    /// Whether [`Component::poll`] would take something from the device now. While it is false the world does not wait for
    /// the device, which may have frames that nothing would read.
    fn wants_device(&self) -> bool {
        true
    }

    /// Handles every deadline that has passed.
    fn expire(&mut self, cx: &mut Context, out: &mut Outbox<Self::Out>);

    /// When [`Component::expire`] wants to be called next.
    fn deadline(&self) -> Option<Instant>;

    /// `peer` died and a successor is connected (fresh queues, nothing of the old ones survives):
    /// resubmit or give up what it had not answered, forget what it had asked. Also called when a
    /// peer is connected for the first time.
    fn peer_reborn(&mut self, cx: &mut Context, peer: ComponentId, out: &mut Outbox<Self::Out>);

    /// Called at the end of every turn in which something happened, with a fresh view of the room in
    /// the queues: send what waited for room, batch what should go out together.
    fn flush(&mut self, _cx: &mut Context, _out: &mut Outbox<Self::Out>) {}
}

/// Defines an engine's counters: an enum, for [`Context::count`], and, in the same order, their names for
/// [`Component::COUNTERS`].
#[macro_export]
macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident => $name:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[$doc])* $variant),*
        }

        impl From<Counter> for usize {
            fn from(counter: Counter) -> usize {
                counter as usize
            }
        }

        /// Names, in order of their index.
        pub const COUNTERS: &[&str] = &[$($name),*];
    };
}
