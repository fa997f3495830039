//! Which servers hear of a turn's messages, and what telling them costs.

use super::charge::{ON_THE_WAY, component};
use crate::batch::machine::Machine;
use crate::batch::servers::{SERVERS, Server};
use crate::hardware::Costs;
use crate::stack::Stack;

/// What waits for each server.
pub struct Backlog {
    pub has_work: [bool; SERVERS.len()],
    /// Where each one costs a call.
    pub messages: [u64; SERVERS.len()],
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
    let queues = component(server).into_iter().flat_map(|component| stack.waiting(component));
    queues.map(|(_, lines)| lines.count() as u64).sum()
}

/// Tells the machine which servers have work `now` and had none `before`; one that sleeps only if its doorbell was rung.
pub fn tell<W: Ord + Copy, O: Default>(
    machine: &mut Machine<W, O>,
    (stack, costs): (&Stack, &Costs),
    from: Option<Server>,
    (before, now): (&Backlog, &Backlog),
) {
    for (server, component) in ON_THE_WAY.into_iter().filter(|(server, _)| Some(*server) != from) {
        let i = server as usize;
        let had_work = before.has_work[i];
        let is_new = machine.sleeps(server) || !had_work;
        let was_rung = costs.receipts_wake() || !stack.is_asleep(component);
        let mut messages = now.messages[i] - before.messages[i];
        if is_new && was_rung && now.has_work[i] {
            machine.tell(costs, from, server, !had_work);
            messages = messages.saturating_sub(1);
        }
        machine.notify(costs, from, server, messages);
    }
}
