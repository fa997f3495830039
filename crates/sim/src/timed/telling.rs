//! Which servers hear of a turn's messages, and what telling them costs.

use super::charge::component;
use super::servers::Servers;
use crate::batch::machine::Machine;
use crate::batch::servers::{SERVERS_MAX, Server};
use crate::hardware::Costs;
use crate::stack::Stack;

/// What waits for each server.
pub struct Backlog {
    has_work: [bool; SERVERS_MAX],
    /// Where each one costs a call.
    messages: [u64; SERVERS_MAX],
}

impl Backlog {
    pub fn of(
        servers: &[Server],
        has_work: impl Fn(Server) -> bool,
        messages: impl Fn(Server) -> u64,
    ) -> Self {
        let mut backlog = Self { has_work: [false; SERVERS_MAX], messages: [0; SERVERS_MAX] };
        for server in servers {
            backlog.has_work[*server as usize] = has_work(*server);
            backlog.messages[*server as usize] = messages(*server);
        }
        backlog
    }
}

/// Whether each message to a server costs a call of the kernel: it shares its thread.
pub fn costs_calls<W: Ord + Copy, O: Default>(
    machine: &Machine<W, O>,
    costs: &Costs,
    server: Server,
) -> bool {
    costs.notifies_each && machine.on_thread_of(server).len() > 1
}

/// Messages in a server's queues.
pub fn queued(stack: &Stack, server: Server) -> u64 {
    component(server).map_or(0, |component| stack.queued(component)) as u64
}

/// Tells the machine which servers have work `now` and had none `before`; one that sleeps only if its doorbell was rung.
pub fn tell<W: Ord + Copy, O: Default>(
    machine: &mut Machine<W, O>,
    (servers, costs): (&Servers, &Costs),
    from: Option<Server>,
    (before, now): (&Backlog, &Backlog),
) {
    for server in servers.all.iter().copied().filter(|server| Some(*server) != from) {
        let Some(component) = component(server) else { continue };
        let i = server as usize;
        let had_work = before.has_work[i];
        let is_new = machine.sleeps(server) || !had_work;
        let was_rung = costs.receipts_wake() || !servers.stack.is_asleep(component);
        let mut messages = now.messages[i] - before.messages[i];
        if is_new && was_rung && now.has_work[i] {
            machine.tell(costs, from, server, !had_work);
            messages = messages.saturating_sub(1);
        }
        machine.notify(costs, from, server, messages);
    }
}
