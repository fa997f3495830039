//! Texts and byte strings into parsers: rules, topologies, settings, name server answers, packets on
//! the supervisor's sockets.

use super::Target;
use crate::mutate::Examples;
use crate::source::Source;
use eft_base::{Cidr, PoolId};
use eft_channel::{Memory, Pool, Segment};
use eft_component::{Configure, Topology};
use eft_cores::description::Description;
use eft_cores::speed::Speed;
use eft_harness::Host;
use eft_host::sensors::trace;
use eft_ip::{Ip, IpConfig};
use eft_linux::devices::DeviceSpec;
use eft_linux::protocol::{FromServer, Role, ToServer, encode};
use eft_machine::CpuSet;
use eft_messages::ComponentId;
use eft_messages::nic::{FRAME_SLOT_LEN, PACKET_SLOT_LEN};
use eft_messages::sockets::SocketsToTransport;

/// Rule files.
pub fn pf_examples() -> Examples {
    Examples::of_texts(
        &[
            "block all\npass in quick on eft0 proto tcp from any to 10.77.0.2 port { 22, 80, 443 } keep state\n",
            "table <bad> { 10.0.0.0/8, 192.168.0.1 }\nblock in quick from <bad> to any\npass out all keep state\n",
            "# comment\nset skip on lo\nports = \"{ 80 443 }\"\npass in proto { tcp udp } to port $ports\n",
            "pass in inet proto icmp icmp-type echoreq\nblock return out log proto udp to ! 10.0.0.0/24 port 1:1024\n",
            "pass proto tcp from 2001:db8::/32 port >= 1024 to any port 100 >< 200 flags S/SA no state\n",
        ],
        1 << 16,
    )
}

pub struct PfRules {
    examples: Examples,
}

impl PfRules {
    pub fn new() -> PfRules {
        PfRules { examples: pf_examples() }
    }
}

impl Target for PfRules {
    fn feed(&mut self, source: &mut Source) {
        if let Err(e) = eft_filter::parser::parse(&self.examples.mutated_text(source)) {
            let message = e.to_string();
            assert!(!message.is_empty() && !message.contains('\n'), "an error is one line: {message:?}");
        }
    }
}

pub struct TopologyFile {
    examples: Examples,
}

impl TopologyFile {
    pub fn new() -> TopologyFile {
        let texts = [
            include_str!("../../../topologies/default.toml"),
            include_str!("../../../topologies/no-filter.toml"),
            "[memory]\nsend_ring_bytes = 65536\nnic_frames = 64\n[limits]\ndomains = 4\nconnections = 100\n",
        ];
        TopologyFile { examples: Examples::of_texts(&texts, 1 << 16) }
    }
}

impl Target for TopologyFile {
    fn feed(&mut self, source: &mut Source) {
        match Topology::parse(&self.examples.mutated_text(source)) {
            Ok(t) => {
                for peer in t.peers(2) {
                    assert!(t.spec(peer).is_some() || peer.role == eft_messages::Role::Nic);
                }
            }
            Err(e) => assert!(!e.to_string().contains('\n')),
        }
    }
}

/// Small texts: addresses, CPU lists, speeds, devices, machine descriptions, trace lines, ip's
/// configuration.
pub struct Settings {
    small: Examples,
    machines: Examples,
    ip: Examples,
    host: Host<Ip>,
}

impl Settings {
    pub fn new(source: &mut Source) -> Settings {
        let small = [
            "10.77.0.2/24",
            "2001:db8::1/64",
            "0-3,5,7-9",
            "0",
            "7/8",
            "42.1%",
            "1.2GHz",
            "full",
            "tap:eft0",
            "packet:eth0",
            "pair:/tmp/x",
            "0.421",
            "  nginx: w-1234  [001] d..2.  4242.123456: sched_switch: prev_pid=1 ==> next_comm=a next_pid=7",
        ];
        let machines = [
            include_str!("../../../topologies/machines/fast-and-slow.toml"),
            include_str!("../../../topologies/machines/wimpy-200mhz.toml"),
            include_str!("../../../topologies/machines/xeon-e5520.toml"),
        ];
        let ip = [
            "[[interface]]\nindex = 0\nname = \"eft0\"\naddresses = [\"10.77.0.2/24\", \"10.0.0.1/32\"]\n",
            "[[route]]\ndestination = \"0.0.0.0/0\"\ngateway = \"10.77.0.1\"\n",
        ];
        let pool = |id, slots: usize, len: usize| Pool::new(PoolId(id), Segment::heap(slots * len), len);
        let engine = Ip::new(
            pool(1, 4, FRAME_SLOT_LEN),
            pool(2, 2, PACKET_SLOT_LEN),
            IpConfig { with_filter: false, seed: 1 },
        );
        Settings {
            small: Examples::of_texts(&small, 200),
            machines: Examples::of_texts(&machines, 1 << 16),
            ip: Examples::of_texts(&ip, 1 << 14),
            host: Host::new(
                engine,
                Memory::new(),
                &[ComponentId::TCP, ComponentId::nic(0)],
                source.generator(),
            ),
        }
    }
}

impl Target for Settings {
    fn feed(&mut self, source: &mut Source) {
        let text = self.small.mutated_text(source);
        if let Ok(c) = text.parse::<Cidr>() {
            assert_eq!(c.to_string().parse::<Cidr>(), Ok(c), "{text:?}");
            assert!(c.contains(c.address), "{text:?}");
            let _ = c.broadcast();
        }
        if let Ok(cpus) = text.parse::<CpuSet>() {
            assert_eq!(cpus.to_string().parse::<CpuSet>().ok(), Some(cpus), "{text:?}");
        }
        let _ = text.parse::<Speed>();
        let _ = text.parse::<DeviceSpec>();
        if let Some(event) = trace::parse(&text) {
            let _ = trace::next_pid(&event);
        }
        let _ = Description::parse(&self.machines.mutated_text(source));
        let value = self.ip.mutated_text(source).into_bytes();
        self.host.event(Configure { key: "ip".into(), value });
        if let Some(e) = self.host.engine.last_error() {
            assert!(!e.contains('\n'), "an error is one line: {e:?}");
        }
        self.host.take();
    }
}

/// The shim's reader of name server answers: a private module of it, compiled in here.
#[allow(dead_code)]
#[path = "../../../crates/shim/src/names/message.rs"]
mod message;

pub struct Names {
    query: Vec<u8>,
    examples: Examples,
}

impl Names {
    pub fn new() -> Names {
        let query = message::query(7, "www.example.org", message::TYPE_A, message::CLASS_IN);
        let query = query.expect("it is a name");
        let mut answer = query.clone();
        (answer[2], answer[3], answer[7]) = (0x81, 0x80, 3);
        // An alias, what it stands for, and a pointer that refers to itself.
        answer.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 6, 3, b'w', b'w', b'3', 0xc0, 16]);
        answer.extend([0xc0, 45, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 0, 0, 1]);
        answer.extend([0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 9, 0, 2, 0xc0, 80]);
        let examples = Examples::new(vec![query.clone(), answer], 2000);
        Names { query, examples }
    }
}

impl Target for Names {
    fn feed(&mut self, source: &mut Source) {
        let bytes = self.examples.mutated(source);
        let _ = message::answers(&bytes, &self.query);
        if let Some(response) = message::parse(&bytes, &self.query) {
            let _ = (response.addresses(), response.names());
        }
    }
}

/// What a server that went mad could send to the supervisor, and the other way round.
pub struct SupervisorPackets {
    examples: Examples,
}

impl SupervisorPackets {
    pub fn new() -> SupervisorPackets {
        let from = [
            FromServer::Ready { landlock: true },
            FromServer::Keep { domain: eft_base::DomainId(3), slot: 9, transport: ComponentId::UDP },
            FromServer::KeepConnection { id: 4, domain: None, role: Role::Root },
            FromServer::Answer { key: "filter.show:rules:1".into(), value: vec![65; 100] },
            FromServer::Dying { reason: "it said so".into() },
        ];
        let to = [
            ToServer::Run,
            ToServer::Configure { key: "ip".into(), value: vec![1; 50] },
            ToServer::Connect { peer: ComponentId::nic(3) },
        ];
        let entries = from.iter().map(encode).chain(to.iter().map(encode)).collect();
        SupervisorPackets { examples: Examples::new(entries, 4096) }
    }
}

impl Target for SupervisorPackets {
    fn feed(&mut self, source: &mut Source) {
        let bytes = self.examples.mutated(source);
        if let Ok(m) = postcard::from_bytes::<FromServer>(&bytes) {
            assert!(!encode(&m).is_empty());
        }
        if let Ok(m) = postcard::from_bytes::<ToServer>(&bytes) {
            assert!(!encode(&m).is_empty());
        }
        // Lines of a queue decode to a message that encodes to a line that decodes to the same.
        let line = core::array::from_fn(|i| source.next_u64() & if i == 0 { 0xff07 } else { u64::MAX });
        if let Some(m) = SocketsToTransport::decode(&line) {
            assert_eq!(SocketsToTransport::decode(&m.encode()), Some(m));
        }
    }
}
