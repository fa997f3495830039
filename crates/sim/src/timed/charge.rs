//! The cost of a server's turn, by the messages that wait for it.

use eft_component::server::Budget;
use eft_messages::filter::{FilterToIp, IpToFilter};
use eft_messages::nic::{IpToNic, NicToIp};
use eft_messages::transport::{IpToTransport, TransportToIp};
use eft_messages::{ComponentId, Encoded, Role};

use crate::batch::Profile;
use crate::batch::servers::{Server, TCPS};
use crate::hardware::Work;
use crate::stack::Stack;

pub const NIC: ComponentId = ComponentId::nic(0);

/// The server's name in a stack; that in front of tcp has none.
pub fn component(server: Server) -> Option<ComponentId> {
    match server {
        Server::Front => None,
        Server::Ip => Some(ComponentId::IP),
        Server::Driver => Some(NIC),
        Server::Filter => Some(ComponentId::FILTER),
        tcp => {
            let instance = TCPS.into_iter().position(|known| known == tcp)?;
            Some(ComponentId::new(Role::Tcp, instance as u8))
        }
    }
}

/// The servers of a stack on the data path.
pub fn on_the_way(stack: &Stack) -> Vec<Server> {
    let all = TCPS.into_iter().chain([Server::Ip, Server::Driver, Server::Filter]);
    all.filter(|server| component(*server).is_some_and(|peer| stack.is_alive(peer))).collect()
}

/// What waits when a turn begins, which is what the turn takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Messages of each neighbour.
    of: Vec<(ComponentId, usize)>,
    /// Of the device.
    frames: usize,
}

impl Taken {
    pub fn messages(&self) -> usize {
        self.of.iter().map(|(_, count)| count).sum::<usize>() + self.frames
    }

    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The same in steps of one message of each neighbour; one step at least.
    pub fn one_by_one(&self) -> impl Iterator<Item = Taken> {
        let longest = self.of.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
        (0..longest).map(|step| Taken {
            of: self.of.iter().map(|(from, count)| (*from, usize::from(step < *count))).collect(),
            frames: self.frames,
        })
    }
}

impl Budget for Taken {
    fn messages(&self, from: ComponentId) -> usize {
        self.of.iter().find(|(neighbour, _)| *neighbour == from).map_or(0, |(_, count)| *count)
    }

    fn polled(&self) -> usize {
        self.frames
    }
}

/// Costs of what a turn takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    pub work: Work,
    pub taken: Taken,
}

pub fn times(work: Work, count: u64) -> Work {
    Work { cycles: work.cycles * count, stall_ps: work.stall_ps * count }
}

/// Giving a received buffer back is part of what its message costs.
fn of_message(profile: &Profile, from: ComponentId, to: Server, line: &Encoded) -> Work {
    let filter = profile.filter.unwrap_or_default();
    match (to.kind(), from.role) {
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
        (Server::Ip, Role::Filter) => match FilterToIp::decode(line) {
            Some(FilterToIp::Verdict { .. } | FilterToIp::Grant { .. }) => filter.verdict,
            _ => Work::default(),
        },
        (Server::Filter, Role::Ip) => match IpToFilter::decode(line) {
            Some(IpToFilter::Ask { .. }) => filter.question,
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
        let mut count = 0;
        for line in lines.take(budget) {
            count += 1;
            charge.work += of_message(profile, from, server, &line);
        }
        charge.taken.of.push((from, count));
    }
    if server == Server::Driver {
        charge.taken.frames = frames.min(budget);
        charge.work += times(profile.driver.acknowledgement, charge.taken.frames as u64);
    }
    charge
}

/// Segments that a tcp has given to ip, and ip has not taken, behind so many messages.
pub fn segments_waiting(stack: &Stack, tcp: ComponentId, behind: usize) -> u64 {
    let lines = stack.queue(tcp, ComponentId::IP).into_iter().flat_map(|queue| queue.waiting_behind(behind));
    let is_segment = |line: &Encoded| matches!(TransportToIp::decode(line), Some(TransportToIp::Send { .. }));
    lines.filter(is_segment).count() as u64
}

#[cfg(test)]
mod tests;
