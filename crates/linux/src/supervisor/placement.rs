//! Where components run: requests are checked, `alone` is derived for each CPU, and every move ends with one wake more
//! than needed.
//!
//! `dedicated` is a wish. It is granted while no other component of the stack is on the same CPU: then the component
//! may poll and wait there. Beside a neighbour it blocks and is notified. The wish stays when neighbours come and go.

use super::Supervisor;
use super::member::{Life, Member};
use super::say::say;
use crate::error::error;
use crate::protocol::ToServer;
use crate::{Error, Result, futex};
use eft_cores::member::{MemberView, Place};
use eft_host::sensors::{Tree, topology};
use eft_machine::CpuId;
use eft_messages::ComponentId;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// An operator's move that waits for the component's answer.
pub struct PendingMove {
    ticket: u64,
    member: usize,
    client: u64,
}

impl Member {
    /// How it waits, as it was last told.
    pub fn place(&self) -> Place {
        Place { cpu: self.cpu, dedicated: self.alone }
    }

    /// Whether a component on the same CPU would disturb others. The scheduler itself runs only for microseconds.
    fn is_neighbour(&self) -> bool {
        self.peer != ComponentId::CORES
    }

    fn wake(&self) {
        self.bell.word().fetch_add(1, Ordering::Release);
        futex::wake(self.bell.word());
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    pub fn view(&self) -> MemberView {
        MemberView {
            peer: self.peer,
            name: self.name.clone(),
            generation: self.generation,
            pid: self.pid(),
            running: self.life == Life::Running,
            cpu: self.cpu,
            dedicated: self.dedicated,
            alone: self.alone,
            moving: self.moving > 0,
        }
    }
}

/// Whether a component may be moved to this CPU.
pub fn check_cpu(cpu: CpuId) -> Result<()> {
    let sets = topology::cpu_sets(&Tree::live())?;
    if !sets.present.contains(cpu) {
        return Err(error!(Missing, "there is no CPU {cpu}; this machine has {}", sets.present));
    }
    if !sets.online.contains(cpu) {
        return Err(error!(Missing, "CPU {cpu} is offline; online are {}", sets.online));
    }
    Ok(())
}

impl Supervisor {
    /// An operator's `eft move`. The answer comes when the component has moved, or cannot.
    pub(super) fn operator_moves(
        &mut self,
        client: u64,
        component: &str,
        cpu: Option<CpuId>,
        dedicated: bool,
    ) -> Result<Option<Value>> {
        let i = self.find(component)?;
        if dedicated && cpu.is_none() {
            return Err(Error::Invalid("a dedicated component needs a CPU".into()));
        }
        cpu.map_or(Ok(()), check_cpu)?;
        let ticket = self.assign(i, cpu, dedicated);
        if self.members[i].life != Life::Running {
            return Ok(Some(self.describe_place(i)));
        }
        self.moves.push(PendingMove { ticket, member: i, client });
        Ok(None)
    }

    fn describe_place(&self, i: usize) -> Value {
        let m = &self.members[i];
        json!({ "placed": m.name, "cpu": m.cpu, "dedicated": m.dedicated, "alone": m.alone })
    }

    /// Carries out what `cores` wants. If one part is impossible, all of it is refused: the last plan stays in force.
    pub(super) fn arrange(&mut self, wishes: Vec<(ComponentId, Place)>) {
        match self.check_arrangement(&wishes) {
            Ok(places) => {
                for (i, place) in places {
                    let m = &self.members[i];
                    if (m.cpu, m.dedicated) != (place.cpu, place.dedicated) {
                        self.assign(i, place.cpu, place.dedicated);
                    }
                }
            }
            Err(reason) => self.refuse_plan(&reason.to_string()),
        }
    }

    fn check_arrangement(&self, wishes: &[(ComponentId, Place)]) -> Result<Vec<(usize, Place)>> {
        let one = |(peer, place): &(ComponentId, Place)| {
            let i = self.index(*peer).filter(|_| *peer != ComponentId::CORES);
            let i = i.ok_or_else(|| error!(Missing, "there is no component {peer} to be placed"))?;
            place
                .cpu
                .map_or(Ok(()), check_cpu)
                .map_err(|e| error!(Invalid, "{}: {e}", self.members[i].name))?;
            Ok((i, *place))
        };
        wishes.iter().map(one).collect()
    }

    fn refuse_plan(&mut self, reason: &str) {
        say!("eft {}: cores made a plan that cannot be: {reason}; the last one stays", self.config.name);
        let message = ToServer::Configure { key: "cores.refused".into(), value: reason.as_bytes().to_vec() };
        self.tell(ComponentId::CORES, &message, &[]);
    }

    /// Records a place and sends it to the component and those that share its process; also informs others whose way of
    /// waiting changes by it.
    fn assign(&mut self, i: usize, cpu: Option<CpuId>, dedicated: bool) -> u64 {
        for j in self.company(i) {
            self.members[j].cpu = cpu;
            self.members[j].dedicated = dedicated;
        }
        self.settle_modes(Some(i));
        self.next_ticket
    }

    /// Grants and withdraws dedicated CPUs after neighbours came or went. `moved` is sent its place in any case.
    pub(super) fn settle_modes(&mut self, moved: Option<usize>) {
        // Components that lose their CPU go first, so that none polls where another has already arrived.
        let moved = moved.map_or_else(Vec::new, |i| self.company(i));
        let mut changed: Vec<(bool, usize)> = (0..self.members.len())
            .map(|i| (self.is_alone(i), i))
            .filter(|(alone, i)| moved.contains(i) || *alone != self.members[*i].alone)
            .collect();
        changed.sort_by_key(|(alone, i)| (*alone, moved.contains(i)));
        for (alone, i) in changed {
            self.members[i].alone = alone;
            if !moved.contains(&i) {
                self.send_place(i);
            }
        }
        if !moved.is_empty() {
            self.next_ticket += 1;
            moved.into_iter().for_each(|i| self.send_place(i));
        }
    }

    fn is_alone(&self, i: usize) -> bool {
        let m = &self.members[i];
        let company = self.company(i);
        let shares = |(j, other): (usize, &Member)| {
            !company.contains(&j) && other.is_neighbour() && other.cpu == m.cpu
        };
        m.dedicated && m.cpu.is_some() && !self.members.iter().enumerate().any(shares)
    }

    fn send_place(&mut self, i: usize) {
        let place = self.members[i].place();
        if self.members[i].control.is_some() {
            self.members[i].moving += 1;
        }
        let ticket = self.next_ticket;
        self.tell_index(i, &ToServer::Place { place, ticket }, &[]);
        self.keep_server(i);
        self.show_member(i);
    }

    /// A component reports where it runs now.
    pub(super) fn placed(&mut self, i: usize, ticket: u64, at: Place, refusal: Option<String>) {
        // It may have gone to sleep while it moved: it checks once more.
        self.members[i].wake();
        self.members[i].moving = self.members[i].moving.saturating_sub(1);
        if let Some(reason) = &refusal {
            let name = &self.members[i].name;
            say!("eft {}: {name} stays where it is: {reason}", self.config.name);
            if self.members[i].cpu != at.cpu {
                self.members[i].cpu = at.cpu;
                self.keep_server(i);
                self.settle_modes(None);
            }
        }
        self.show_member(i);
        let answer = match refusal {
            None => self.describe_place(i),
            Some(reason) => {
                json!({ "error": format!("{} stays where it is: {reason}", self.members[i].name) })
            }
        };
        // A later place can overtake an earlier one's answer only if the component was reborn meanwhile.
        let done = self.take_moves(|m| m.member == i && m.ticket <= ticket);
        done.into_iter().for_each(|client| self.answer_client(client, &answer, &[]));
    }

    /// A component died: operators that wait for its move get an answer.
    pub(super) fn moves_ended(&mut self, i: usize) {
        let waiting = self.take_moves(|m| m.member == i);
        let answer = self.describe_place(i);
        waiting.into_iter().for_each(|client| self.answer_client(client, &answer, &[]));
    }

    pub(super) fn forget_moves_of(&mut self, client: u64) {
        self.moves.retain(|m| m.client != client);
    }

    fn take_moves(&mut self, done: impl Fn(&PendingMove) -> bool) -> Vec<u64> {
        let clients = self.moves.iter().filter(|m| done(m)).map(|m| m.client).collect();
        self.moves.retain(|m| !done(m));
        clients
    }

    /// Sends `cores` the state of a component, with its status page.
    pub(super) fn show_member(&mut self, i: usize) {
        let Some(cores) = self.index(ComponentId::CORES).filter(|c| *c != i) else { return };
        let member = &self.members[i];
        let page = member.status_page.shown.clone();
        let view = ToServer::Member(member.view());
        self.tell_index(cores, &view, &[&page]);
    }

    /// Sends a newborn `cores` the state of all components.
    pub(super) fn show_all_members(&mut self, i: usize) {
        if self.members[i].peer == ComponentId::CORES {
            (0..self.members.len()).for_each(|j| self.show_member(j));
        }
    }
}
