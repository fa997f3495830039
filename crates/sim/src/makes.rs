//! What the replay oracle must know of ip and of the filter, and how they are made, then and again.

use crate::file::Head;
use crate::replay::{Divergence, Make, Recording, replay};
use eft_base::PacketRef;
use eft_channel::{Memory, Pool, Segment};
use eft_filter::{Filter, FilterConfig};
use eft_ip::{FromPeer, Ip, IpConfig, ToPeer};
use eft_messages::Peer;
use eft_messages::nic::{IpToNic, NicToIp};
use eft_messages::transport::{SendDescriptor, TransportToIp};
use std::cell::RefCell;
use std::rc::Rc;

/// Capacity of every queue in the topologies that the simulator uses.
const CAPACITY: usize = 1024;

/// NICs that a recorded ip may have; the queues of those that are not there have no room.
const NICS: u8 = 16;

/// What a message to ip names: a received frame, or a descriptor and the payload it names.
fn ip_reads(memory: &Memory, message: &FromPeer) -> Vec<PacketRef> {
    match message {
        FromPeer::Nic(NicToIp::Received { packet, .. }) => vec![*packet],
        FromPeer::Transport(TransportToIp::Send { descriptor, .. }) => {
            let mut refs = vec![*descriptor];
            if let Some(d) = memory.read_value::<SendDescriptor>(*descriptor) {
                refs.extend(d.payload.iter().take(d.payload_count as usize));
            }
            refs
        }
        _ => Vec::new(),
    }
}

/// The frame descriptor of what goes to a NIC.
fn ip_shows(out: &ToPeer) -> Option<PacketRef> {
    match out {
        ToPeer::Nic(_, IpToNic::Send { descriptor, .. }) => Some(*descriptor),
        _ => None,
    }
}

/// ip, and what to record of it.
pub fn ip(frames: Pool, packets: Pool, config: IpConfig) -> (Ip, Make<Ip>) {
    let mut own = Memory::new();
    own.insert(frames.id(), frames.view().clone());
    let make = Make {
        peers: [Peer::Tcp, Peer::Udp, Peer::Filter].into_iter().chain((0..NICS).map(Peer::Nic)).collect(),
        capacity: CAPACITY,
        own,
        reads: ip_reads,
        shows: ip_shows,
    };
    (Ip::new(frames, packets, config), make)
}

/// The filter, and what to record of it. It reads nobody's memory.
pub fn filter(arena: Segment, config: FilterConfig) -> (Filter, Make<Filter>) {
    let make = Make {
        peers: vec![Peer::Ip],
        capacity: CAPACITY,
        own: Memory::new(),
        reads: |_, _| Vec::new(),
        shows: |_| None,
    };
    (Filter::open(arena, config), make)
}

/// One life of a server: what it was made of, and all that it was told.
pub struct Life {
    pub head: Head,
    pub recording: Rc<RefCell<Recording>>,
}

impl Life {
    /// Lives `recording` (this life's, perhaps changed) again.
    pub fn again(&self, recording: &Recording) -> Result<(), Box<Divergence>> {
        self.again_in(recording, Segment::heap)
    }

    /// As [`Life::again`], in memory of the caller's.
    pub fn again_in(
        &self,
        recording: &Recording,
        segments: impl Fn(usize) -> Segment,
    ) -> Result<(), Box<Divergence>> {
        let head = &self.head;
        match head.peer {
            Peer::Ip => {
                let mut pools = head
                    .pools
                    .iter()
                    .map(|(id, slots, len)| Pool::new(*id, Segment::heap(slots * len), *len));
                let mut pool = || pools.next().expect("ip has two pools");
                let (with_filter, seed) = (head.with_filter, head.seed);
                let (ip, make) = ip(pool(), pool(), IpConfig { with_filter, seed });
                replay(recording, ip, &make, segments)
            }
            Peer::Filter => {
                let arena = Segment::heap(head.arena.len());
                arena.write(0, &head.arena).expect("as long");
                let (filter, make) = filter(arena, FilterConfig { states: head.states, seed: head.seed });
                replay(recording, filter, &make, segments)
            }
            peer => panic!("{peer} is not recorded"),
        }
    }
}
