//! The cost of a server's turn, by the messages that wait for it.

use eft_messages::nic::{IpToNic, NicToIp};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Encoded, Role};

use crate::batch::Profile;
use crate::batch::servers::Server;
use crate::hardware::Work;
use crate::stack::Stack;

pub const NIC: ComponentId = ComponentId::nic(0);

/// The servers of a stack on the data path.
pub const ON_THE_WAY: [(Server, ComponentId); 3] =
    [(Server::Tcp, ComponentId::TCP), (Server::Ip, ComponentId::IP), (Server::Driver, NIC)];

pub fn component(server: Server) -> Option<ComponentId> {
    ON_THE_WAY.into_iter().find(|(s, _)| *s == server).map(|(_, component)| component)
}

/// Costs of what waits, and how many messages the longest queue gives to a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    pub work: Work,
    pub messages: usize,
    pub longest: usize,
}

impl Charge {
    fn add(&mut self, count: usize, work: Work) {
        self.work += times(work, count as u64);
        self.messages += count;
        self.longest = self.longest.max(count);
    }
}

pub fn times(work: Work, count: u64) -> Work {
    Work { cycles: work.cycles * count, stall_ps: work.stall_ps * count }
}

/// Giving a received buffer back is part of what its message costs.
fn of_message(profile: &Profile, from: ComponentId, to: Server, line: &Encoded) -> Work {
    match (to, from.role) {
        (Server::Tcp, Role::Ip) => match IpToTransport::decode(line) {
            Some(IpToTransport::Deliver { .. }) => profile.tcp.acknowledgement,
            Some(IpToTransport::Sent { .. }) => profile.tcp.sent,
            _ => Work::default(),
        },
        (Server::Ip, Role::Tcp) => match TransportToIp::decode(line) {
            Some(TransportToIp::Send { .. }) => profile.ip.segment,
            _ => Work::default(),
        },
        (Server::Ip, Role::Nic) => match NicToIp::decode(line) {
            Some(NicToIp::Received { .. }) => profile.ip.acknowledgement,
            Some(NicToIp::Sent { .. }) => profile.ip.sent,
            _ => Work::default(),
        },
        (Server::Driver, Role::Ip) => match IpToNic::decode(line) {
            // The device takes it at once; cleaning its descriptor up belongs to it.
            Some(IpToNic::Send { .. }) => profile.driver.segment + profile.driver.sent,
            _ => Work::default(),
        },
        _ => Work::default(),
    }
}

/// At most `budget` messages of each neighbour, and frames of the device.
pub fn charge(profile: &Profile, stack: &Stack, server: Server, frames: usize, budget: usize) -> Charge {
    let mut charge = Charge::default();
    let Some(component) = component(server) else { return charge };
    for (from, lines) in stack.waiting(component) {
        let taken = &lines[..lines.len().min(budget)];
        charge.longest = charge.longest.max(taken.len());
        charge.messages += taken.len();
        for line in taken {
            charge.work += of_message(profile, from, server, line);
        }
    }
    if server == Server::Driver {
        charge.add(frames.min(budget), profile.driver.acknowledgement);
    }
    charge
}

/// Segments that tcp has given to ip, and ip has not taken.
pub fn segments_waiting(stack: &Stack) -> u64 {
    let queues = stack.waiting(ComponentId::IP);
    let of_tcp = queues.iter().filter(|(from, _)| *from == ComponentId::TCP).flat_map(|(_, lines)| lines);
    of_tcp.filter(|line| matches!(TransportToIp::decode(line), Some(TransportToIp::Send { .. }))).count()
        as u64
}
