//! Streams that send as fast as they can, as a workload: programs write, by calls or into rings, and the peer acknowledges.

use std::collections::VecDeque;

use eft_base::SocketId;
use eft_component::transport::Effect as RecordedEvent;

use super::charge::times;
use super::peer::Peer;
use super::programs::{Programs, Written};
use super::world::{Turn, Workload, World as Timed};
use crate::batch::Profile;
use crate::batch::servers::{Server, scaled};
use crate::device::WireFrame;
use crate::node::Effect;
use crate::stack::Stack;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Program {
        stream: usize,
    },
    /// The peer's response has arrived.
    Answered,
}

/// What a turn takes.
#[derive(Default)]
pub struct Taken {
    /// Of programs.
    writes: usize,
    /// Of the syscall server: programs' writes, and tcp's answers.
    calls: (usize, usize),
}

pub struct Bulk {
    pub programs: Programs,
    pub peer: Peer,
    /// The peer's responses on their way.
    coming: VecDeque<VecDeque<WireFrame>>,
    /// What tcp's present turn has seen of programs.
    seen: Vec<Written>,
}

pub type World<'a> = Timed<'a, Bulk>;

impl Bulk {
    pub fn new(programs: Programs, peer: Peer) -> Self {
        Self { programs, peer, coming: VecDeque::new(), seen: Vec::new() }
    }

    /// Writes that a turn of tcp begins with: a call is a message like others; in rings tcp sees all writes.
    fn begin_writes(&self, profile: &Profile, stack: &Stack, turn: &mut Turn<Self>) {
        let count = if profile.call.is_some() { profile.batch_max } else { usize::MAX };
        let writes = self.programs.unseen.len().min(count);
        turn.out.programs.writes = writes;
        turn.copying = scaled(profile.copy_kib, self.programs.bytes(stack, writes));
        let marks = self.programs.marks(writes);
        turn.messages += marks;
        turn.work += times(profile.write, marks as u64) + turn.copying;
    }
}

impl Workload for Bulk {
    type Event = Event;
    type Taken = Taken;

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn peer_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }

    fn has_work(&self, server: Server) -> bool {
        match server {
            Server::Front => !self.programs.calls.is_empty(),
            Server::Tcp => !self.programs.unseen.is_empty(),
            _ => false,
        }
    }

    fn messages(&self, server: Server) -> u64 {
        if server == Server::Tcp { self.programs.unseen.len() as u64 } else { 0 }
    }

    fn begin(&self, profile: &Profile, stack: &Stack, server: Server, turn: &mut Turn<Self>) {
        match server {
            Server::Front => {
                let (calls, budget) = (&self.programs.calls, profile.batch_max);
                let taken = (calls.writes.len().min(budget), calls.written.len().min(budget));
                turn.out.programs.calls = taken;
                turn.messages = taken.0 + taken.1;
                turn.work += times(profile.call.unwrap_or_default(), turn.messages as u64);
            }
            Server::Tcp => self.begin_writes(profile, stack, turn),
            _ => {}
        }
    }

    fn show(&mut self, stack: &Stack, _server: Server, taken: &Taken) {
        self.seen = self.programs.show(stack, taken.writes);
    }

    fn hear(world: &mut World) {
        answer(world);
        tell_of_room(world);
    }

    /// A turn of the syscall server.
    fn end_of_front(world: &mut World, taken: &Taken) {
        let (rest, (writes, written)) = (&mut world.rest, taken.calls);
        let programs = &mut rest.load.programs;
        for stream in programs.calls.writes.drain(..writes).collect::<Vec<_>>() {
            programs.write(&mut rest.servers.stack, stream);
        }
        for stream in programs.calls.written.drain(..written).collect::<Vec<_>>() {
            world.after(world.rest.profile.program_ps, Event::Program { stream });
        }
    }

    fn delivered(&self, stack: &Stack) -> u64 {
        self.programs.acknowledged(stack)
    }

    fn happened(world: &mut World, event: Event) {
        match event {
            Event::Program { stream } if world.rest.profile.call.is_some() => {
                let was_empty = world.rest.load.programs.calls.is_empty();
                world.rest.load.programs.calls.writes.push_back(stream);
                world.machine.tell(&world.rest.profile.costs, None, Server::Front, was_empty);
            }
            Event::Program { stream } => {
                let before = world.backlog();
                if world.rest.load.programs.write(&mut world.rest.servers.stack, stream) {
                    world.after(world.rest.profile.program_ps, event);
                }
                world.tell(None, &before);
            }
            Event::Answered => {
                let frames = world.rest.load.coming.pop_front().unwrap_or_default();
                world.receive(frames);
            }
        }
    }

    fn run_peer(world: &mut World) {
        let now = world.now();
        let answers = world.rest.load.peer.run(now);
        if !answers.is_empty() {
            world.rest.load.coming.push_back(answers);
            world.after(world.rest.profile.network.turnaround_ps, Event::Answered);
        }
    }
}

/// Writes that tcp has seen return to their programs by the syscall server.
fn answer(world: &mut World) {
    let seen = std::mem::take(&mut world.rest.load.seen);
    if world.rest.profile.call.is_none() {
        return;
    }
    for Written { stream, .. } in seen.iter().filter(|written| written.is_over) {
        let calls = &mut world.rest.load.programs.calls;
        let was_empty = calls.is_empty();
        calls.written.push_back(*stream);
        world.machine.tell(&world.rest.profile.costs, Some(Server::Tcp), Server::Front, was_empty);
    }
}

/// Tells programs of room.
fn tell_of_room(world: &mut World) {
    for effect in std::mem::take(&mut world.rest.servers.stack.effects) {
        let Effect::Transport(RecordedEvent::Writable(socket)) = effect else { continue };
        let (programs, stack) = (&mut world.rest.load.programs, &mut world.rest.servers.stack);
        let Some(stream) = programs.stream_of(SocketId { ..socket }) else { continue };
        if !programs.has_room(stack, stream) {
            continue;
        }
        programs.unplug(stack, stream);
        if !programs.is_waiting(stream) {
            continue;
        }
        let is_over = programs.go_on(stack, stream);
        if is_over && world.rest.profile.call.is_none() {
            world.after(world.rest.profile.program_ps, Event::Program { stream });
        }
    }
}
