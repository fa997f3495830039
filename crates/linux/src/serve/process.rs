//! The loop of a process: its servers take turns, and they sleep together.
//!
//! Servers of one process share a thread. Messages between them go through the same queues as between processes, but
//! nobody is woken for them: after each round every server that has an urgent message gets another turn, until none has. So a
//! packet goes all the way, and its answer comes back, while it is in the cache. Receipts wait for a turn that has other work, or
//! until there is none: half of the turns for a packet would be for them alone.

use super::hosted::Hosted;
use super::park::Parking;
use super::server::BUDGET;
use crate::Result;
use crate::scrub::Scrub;
use eft_base::{Instant, protection};
use eft_channel::account::Phase;
use eft_host::clock;
use eft_messages::{ComponentId, Role};

/// The most messages taken from each peer in a turn if other servers share the thread: what a batch touches must still
/// be in the cache when the next server has its turn, and one message may stand for 64 KB.
const BUDGET_TOGETHER: usize = 64;
/// The most rounds before the surroundings, the supervisor and the clock are checked again.
const ROUNDS: usize = 16;
/// After this many turns, a process that does not sleep asks the kernel which of its descriptors are ready.
const CHECK_AFTER: u32 = 32;

/// Servers that share a thread.
struct Process {
    servers: Vec<Box<dyn Hosted>>,
    parking: Parking,
    budget: usize,
    /// The server whose account gets the time.
    running: usize,
    /// Turns since the descriptors were checked.
    turns: u32,
    /// The next turn is also for what is not urgent.
    is_thorough: bool,
    scrub: Scrub,
}

/// Runs the servers of a process until the supervisor stops them. `landlock` is in force; some are `recorded`.
pub fn run(mut servers: Vec<Box<dyn Hosted>>, landlock: bool, recorded: bool) -> Result<()> {
    servers.sort_by_key(|server| inbound(server.peer()));
    servers.iter_mut().for_each(|server| server.settle());
    let sleepers = servers.iter_mut().map(|server| server.sleeper()).collect::<Result<Vec<_>>>()?;
    let parking = Parking::new(sleepers)?;
    if let Some(set) = parking.set() {
        servers.iter_mut().for_each(|server| server.sleeps_on(set));
    }
    let company: Vec<ComponentId> = servers.iter().map(|server| server.peer()).collect();
    for server in &mut servers {
        server.begin(&company, landlock)?;
    }
    let mut process = Process::new(parking, servers);
    while process.servers.iter().any(|server| !server.has_ended()) {
        process.turn()?;
    }
    // The kernel takes everything back at once when the process ends, and a successor waits for that end alone: closing a
    // thousand descriptors one by one takes longer than all that follows. But the end of a recording is written by its drop.
    if !recorded {
        std::mem::forget(process);
    }
    Ok(())
}

/// The order in which an arriving packet reaches the servers.
fn inbound(peer: ComponentId) -> (u8, ComponentId) {
    let place = match peer.role {
        Role::Nic => 0,
        Role::Ip => 1,
        Role::Filter => 2,
        Role::Tcp | Role::Udp => 3,
        Role::Sockets => 4,
        Role::Cores => 5,
    };
    (place, peer)
}

impl Process {
    fn new(parking: Parking, servers: Vec<Box<dyn Hosted>>) -> Process {
        let budget = if servers.len() > 1 { BUDGET_TOGETHER } else { BUDGET };
        let scrub = Scrub::of_program(clock::now());
        Process { servers, parking, budget, running: 0, turns: 0, is_thorough: true, scrub }
    }

    fn turn(&mut self) -> Result<()> {
        let mut work = 0;
        let now = (self.servers.len() > 1).then(clock::now);
        for i in 0..self.servers.len() {
            if self.servers[i].has_ended() {
                continue;
            }
            self.servers[i].hear(self.parking.control_is_readable())?;
            if self.servers[i].is_alone() {
                self.parking.forget_control(i);
            }
            if self.servers[i].has_ended() {
                self.end(i);
                continue;
            }
            if now.is_some_and(|now| !self.has_turn(i, now)) {
                self.servers[i].status().beat();
                continue;
            }
            self.hand_over(i);
            work += self.servers[i].turn(self.parking.is_ready(i), self.budget);
        }
        if protection::is_on() {
            self.scrub.worked(work);
        }
        self.is_thorough = false;
        if self.servers.len() > 1 {
            self.go_on();
        }
        if self.servers.iter().all(|server| server.has_ended()) {
            // Return now: nothing would end another sleep.
            return Ok(());
        }
        // A single server sleeps after a turn that found nothing. With several, such a turn would check every queue and
        // the devices, so they ask whether there is work.
        if work == 0 || self.servers.len() > 1 && !self.has_urgent_work() {
            self.park();
        } else {
            self.check_descriptors();
        }
        Ok(())
    }

    /// Whether a server has something to do: of several, most have nothing after a packet that concerns two or three of them. Only
    /// a read tells whether a device has a frame.
    fn has_turn(&self, i: usize, now: Instant) -> bool {
        let server = &self.servers[i];
        server.has_urgent_work()
            || self.is_thorough && server.has_work()
            || self.parking.has_devices(i) && server.wants_device()
            || server.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Handles the messages that the servers have sent each other.
    fn go_on(&mut self) {
        for _ in 0..ROUNDS {
            let mut any = false;
            for i in 0..self.servers.len() {
                if !self.servers[i].has_ended() && self.servers[i].has_urgent_message() {
                    self.hand_over(i);
                    self.servers[i].answer(self.budget);
                    any = true;
                }
            }
            if !any {
                return;
            }
        }
    }

    /// From now on the time goes to another server's account.
    fn hand_over(&mut self, to: usize) {
        if to == self.running {
            return;
        }
        // While another server of its thread runs, a server counts as asleep.
        let account = self.servers[self.running].status().account();
        account.leave(Phase::Sleeping);
        account.enter(Phase::Sleeping, clock::now());
        self.running = to;
    }

    fn has_urgent_work(&self) -> bool {
        self.servers.iter().any(|server| !server.has_ended() && server.has_urgent_work())
    }

    /// A server that ends before the others of its process counts as asleep from then on.
    fn end(&mut self, i: usize) {
        self.servers[i].end();
        self.parking.retire(i);
    }

    /// A process that never sleeps has to ask which of its descriptors are ready.
    fn check_descriptors(&mut self) {
        self.turns += 1;
        if self.turns >= CHECK_AFTER {
            self.turns = 0;
            self.is_thorough = true;
            self.parking.check_descriptors();
            self.look_at_code();
            self.look_around();
        }
    }

    /// If a neighbour knows that nobody is left who could start it again, so may this process: it does not look by itself while it
    /// works, since that costs a call.
    fn look_around(&mut self) {
        if self.servers.iter().any(|server| !server.has_ended() && server.hears_of_the_end()) {
            self.parking.look_at_control();
        }
    }

    /// If the code of this process has changed, the supervisor replaces it.
    fn look_at_code(&mut self) {
        if protection::is_on()
            && self.scrub.look(clock::now())
            && let Some(server) = self.servers.iter().find(|server| !server.has_ended())
        {
            server.tell_of_change();
        }
    }

    /// Announces the sleep, checks once more, and sleeps.
    fn park(&mut self) {
        self.turns = 0;
        self.look_at_code();
        let awake = || self.servers.iter().filter(|server| !server.has_ended());
        let deadline = awake().filter_map(|server| server.deadline()).chain(self.scrub.deadline()).min();
        for (i, server) in self.servers.iter().enumerate() {
            self.parking.watch_devices(i, !server.has_ended() && server.wants_device());
        }
        self.parking.set_dedicated(awake().all(|server| server.is_dedicated()));
        let account = self.servers[self.running].status().account();
        self.parking.park(
            account,
            deadline,
            |watch| awake().for_each(|server| server.bells(&mut *watch)),
            || awake().any(|server| server.has_urgent_work()),
            || awake().any(|server| server.has_work()),
        );
        self.is_thorough = self.servers.len() > 1 && !self.has_urgent_work();
        self.look_around();
    }
}

#[cfg(test)]
mod tests;
