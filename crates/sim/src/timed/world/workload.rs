//! What the programs of a modelled stack do, and the host at the other end, as the world drives them.

use eft_messages::ComponentId;

use super::{Turn, World};
use crate::batch::Profile;
use crate::batch::servers::Server;
use crate::hardware::Work;
use crate::stack::Stack;
use crate::timed::charge::{segments_waiting, times};
use crate::timed::peer::Peer;

pub trait Workload: Sized {
    /// What happens to programs, and on the way from the other end.
    type Event: Copy + Ord;
    /// What a turn takes of programs, or does as one.
    type Taken: Default;

    /// The other end takes what arrives after a pause at once, and else as often as its interrupts allow; without this each
    /// arrival that is the first one waits as long.
    const LOOKS_AT_ONCE: bool = false;

    fn peer(&self) -> &Peer;

    fn peer_mut(&mut self) -> &mut Peer;

    /// Whether programs have something for a server.
    fn has_work(&self, server: Server) -> bool;

    /// What programs have for a server, where each message to it costs a call.
    fn messages(&self, _server: Server) -> u64 {
        0
    }

    /// Adds to a turn that begins what it takes of programs.
    fn begin(&self, profile: &Profile, stack: &Stack, server: Server, turn: &mut Turn<Self>);

    /// A turn of an engine is executed now: what it has taken of programs is there for it.
    fn show(&mut self, stack: &Stack, server: Server, taken: &Self::Taken);

    /// What the segments cost that wait in a tcp's queue to ip behind so many messages: those of its last turn.
    fn sent(&self, profile: &Profile, stack: &Stack, tcp: ComponentId, behind: usize) -> Work {
        times(profile.tcp.segment, segments_waiting(stack, tcp, behind))
    }

    /// An engine's turn is over: programs hear what it tells them.
    fn hear(world: &mut World<Self>);

    /// A turn of the server in front of tcp is over, which has no engine.
    fn end_of_front(_world: &mut World<Self>, _taken: &Self::Taken) {}

    /// Payload that has come to those for whom it is, as their host or their peer's tcp knows it.
    fn delivered(&self, stack: &Stack) -> u64;

    /// The same of each part of a load that has several.
    fn parts(&self, stack: &Stack) -> Vec<u64> {
        vec![self.delivered(stack)]
    }

    /// How long each answer took, in nanoseconds, in the order in which they came.
    fn latencies(&self) -> &[u32] {
        &[]
    }

    fn happened(world: &mut World<Self>, event: Self::Event);

    /// A frame with so much payload has left the wire to the other end.
    fn crossed(&mut self, _payload: u64) {}

    /// The other end does what it has to do now.
    fn run_peer(world: &mut World<Self>);
}
