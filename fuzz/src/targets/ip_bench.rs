//! ip with a NIC, a filter and transports played by the target.

use super::packets::{OUR_MAC, arp};
use crate::source::Source;
use eft_base::wire::ARP_REPLY;
use eft_base::{PacketRef, PoolId, RequestId};
use eft_channel::{Memory, Pool, Segment};
use eft_component::Configure;
use eft_harness::Host;
use eft_ip::{FromPeer, Ip, IpConfig, ToPeer};
use eft_messages::ComponentId;
use eft_messages::filter::{FilterToIp, IpToFilter, Judgement};
use eft_messages::nic::{FRAME_SLOT_LEN, FrameDescriptor, IpToNic, NicToIp, PACKET_SLOT_LEN};
use eft_messages::transport::{IpToTransport, SEND_SLOT_LEN, TransportToIp};
use std::collections::BTreeSet;
use std::time::Duration;

pub const HEADERS: PoolId = PoolId(4);
pub const PAYLOAD: PoolId = PoolId(5);
pub const SLOT: usize = 70000;
const PEERS: [ComponentId; 4] =
    [ComponentId::TCP, ComponentId::UDP, ComponentId::FILTER, ComponentId::nic(0)];
const CONFIG: &str = "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]\n\
    [[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.77.0.1\"\n\
    [[route]]\ndestination = \"::/0\"\ngateway = \"fd77::1\"\n";
/// A transmission may need a question to the filter, the neighbour and the device.
const ROUNDS: usize = 6;

pub struct IpBench {
    pub host: Host<Ip>,
    nic: Pool,
    /// Packets that a transport has and gives back later.
    kept: Vec<(ComponentId, PacketRef)>,
    /// `Send`s that were not answered.
    pub unanswered: BTreeSet<(ComponentId, RequestId)>,
}

impl IpBench {
    pub fn new(with_filter: bool, source: &mut Source) -> IpBench {
        let pool = |id, slots: usize, len: usize| Pool::new(PoolId(id), Segment::heap(slots * len), len);
        let (frames, packets) = (pool(1, 64, FRAME_SLOT_LEN), pool(2, 6, PACKET_SLOT_LEN));
        let nic = pool(3, 32, SLOT);
        let (headers, payload) = (pool(HEADERS.0, 64, SEND_SLOT_LEN), pool(PAYLOAD.0, 2, SLOT));
        let mut memory = Memory::new();
        for p in [&frames, &packets, &nic, &headers, &payload] {
            memory.insert(p.id(), p.view().clone());
        }
        let ip = Ip::new(frames, packets, IpConfig { with_filter, seed: source.generator().next_u64() });
        let host = Host::new(ip, memory, &PEERS, source.generator());
        let mut bench = IpBench { host, nic, kept: Vec::new(), unanswered: BTreeSet::new() };
        bench.host.event(Configure { key: "ip".into(), value: CONFIG.into() });
        bench.link(source);
        bench.settle(source, false);
        bench.arrive(&arp(ARP_REPLY), source);
        bench.settle(source, false);
        bench
    }

    fn link(&mut self, source: &mut Source) {
        let (checksum, segment_max) = (source.chance(0.7), if source.chance(0.7) { 60000 } else { 0 });
        let link = NicToIp::Link { mac: OUR_MAC, mtu: 1500, up: true, checksum, segment_max };
        self.nic_says(link);
    }

    pub fn nic_says(&mut self, m: NicToIp) {
        self.host.receive(ComponentId::nic(0), FromPeer::Nic(m));
    }

    pub fn transport_says(&mut self, peer: ComponentId, m: TransportToIp) {
        self.host.receive(peer, FromPeer::Transport(m));
    }

    /// A frame arrives, if the NIC has a slot for it.
    pub fn arrive(&mut self, frame: &[u8], source: &mut Source) {
        let Some(slot) = self.nic.allocate() else { return };
        let len = frame.len().min(SLOT);
        assert!(self.nic.write(slot, 0, &frame[..len]));
        let packet = PacketRef { len: len as u32, ..slot };
        let segment_size = if source.chance(0.1) { source.below(2000) as u16 } else { 0 };
        self.nic_says(NicToIp::Received { packet, checksum_ok: source.chance(0.9), segment_size });
    }

    /// The descriptor slots; a target that plays a transport writes them.
    pub fn headers(&self) -> &Segment {
        &self.host.memory.view(HEADERS).expect("made in new").segment
    }

    /// Everybody answers what ip said; a transport keeps some packets for a while unless told not to.
    pub fn settle(&mut self, source: &mut Source, may_keep: bool) {
        for _ in 0..ROUNDS {
            let out = self.host.take();
            if out.is_empty() {
                break;
            }
            for m in out {
                self.answer(m, source, may_keep);
            }
        }
        while !self.kept.is_empty() && (!may_keep || self.kept.len() > 8) {
            let (peer, packet) = self.kept.swap_remove(source.below(self.kept.len() as u64) as usize);
            self.give_back(peer, packet, source);
        }
    }

    fn give_back(&mut self, peer: ComponentId, packet: PacketRef, source: &mut Source) {
        let m = match source.below(4) {
            0 => TransportToIp::Refuse { packet },
            _ => TransportToIp::Done { packet },
        };
        self.transport_says(peer, m);
    }

    fn answer(&mut self, m: ToPeer, source: &mut Source, may_keep: bool) {
        match m {
            ToPeer::Nic(_, IpToNic::Done { packet }) => {
                assert!(self.nic.free(packet), "ip gave {packet:?} back twice");
            }
            ToPeer::Nic(_, IpToNic::Send { request, descriptor }) => {
                self.check_frame(descriptor);
                let errno = if source.chance(0.05) { 105 } else { 0 };
                self.nic_says(NicToIp::Sent { request, errno });
            }
            ToPeer::Transport(peer, IpToTransport::Sent { request, .. }) => {
                assert!(self.unanswered.remove(&(peer, request)), "{request:?} was answered twice");
            }
            ToPeer::Transport(peer, IpToTransport::Deliver { packet, header_len, .. })
            | ToPeer::Transport(peer, IpToTransport::Error { packet, header_len, .. }) => {
                assert!(header_len as u32 <= packet.len, "a header longer than its packet");
                assert!(self.host.memory.resolve(packet).is_some(), "{packet:?} was delivered");
                match may_keep && source.chance(0.3) {
                    true => self.kept.push((peer, packet)),
                    false => self.give_back(peer, packet, source),
                }
            }
            ToPeer::Transport(_, IpToTransport::Routed { .. } | IpToTransport::Grouped { .. }) => {}
            ToPeer::Filter(IpToFilter::Ask { request, .. }) => {
                use Judgement::*;
                let all = [Pass, Pass, Pass, Pass, Pass, Pass, Drop, Reset, Unreachable];
                let m = match source.below(12) {
                    n @ 0..9 => FilterToIp::Verdict { request, judgement: all[n as usize] },
                    n => FilterToIp::Grant { request, by_rules: n == 9 },
                };
                self.host.receive(ComponentId::FILTER, FromPeer::Filter(m));
                if source.chance(0.02) {
                    self.host.receive(ComponentId::FILTER, FromPeer::Filter(FilterToIp::RecallByRules {}));
                }
            }
            ToPeer::Filter(IpToFilter::Used { flow, .. }) => {
                // One that is recalled twice.
                if source.chance(0.3) {
                    self.host.receive(ComponentId::FILTER, FromPeer::Filter(FilterToIp::Recall { flow }));
                }
            }
            ToPeer::Filter(IpToFilter::Quote { .. } | IpToFilter::Passed { .. }) => {}
            ToPeer::Answer(_) => {}
        }
    }

    /// What ip promises the NIC.
    fn check_frame(&self, descriptor: PacketRef) {
        let d: FrameDescriptor = self.host.memory.read_value(descriptor).expect("descriptor resolves");
        assert!(d.header_len as usize <= d.header.len() && d.payload_count as usize <= d.payload.len());
        for r in &d.payload[..d.payload_count as usize] {
            assert!(self.host.memory.resolve(*r).is_some(), "a frame refers to {r:?}");
        }
    }

    /// Time passes until nothing is held; then every frame must be back.
    pub fn finish(&mut self, source: &mut Source) {
        self.host.set_room(1024);
        self.settle(source, false);
        for _ in 0..30 {
            self.host.pass(Duration::from_secs(5));
            self.settle(source, false);
        }
        assert_eq!(self.nic.available(), self.nic.slots(), "ip kept a frame");
        assert!(self.unanswered.is_empty(), "not answered: {:?}", self.unanswered);
    }
}
