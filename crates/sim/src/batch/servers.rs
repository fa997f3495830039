//! The servers, what they say to each other, and what a message costs and causes.

use super::profile::{Messages, Profile};
use super::transport::{Done, Streams};
use crate::hardware::Work;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// The syscall server, where programs make calls.
    Calls,
    Tcp,
    Ip,
    Driver,
}

pub const SERVERS: [Server; 4] = [Server::Calls, Server::Tcp, Server::Ip, Server::Driver];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    Write { stream: usize },
    Written { stream: usize },
    Segment { stream: usize, bytes: u64 },
    Acknowledgement { stream: usize, bytes: u64 },
    Sent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Server(Server),
    Program,
    Wire,
}

/// What a batch costs, and what leaves the server when it ends.
#[derive(Debug, Default)]
pub struct Turn {
    pub work: Work,
    /// The part of the work that copies.
    pub copying: Work,
    pub out: Vec<(Target, Message)>,
}

fn scaled(per_kib: Work, bytes: u64) -> Work {
    Work { cycles: per_kib.cycles * bytes / 1024, stall_ps: per_kib.stall_ps * bytes / 1024 }
}

fn of(costs: &Messages, message: Message) -> Work {
    match message {
        Message::Segment { .. } => costs.segment,
        Message::Acknowledgement { .. } => costs.acknowledgement,
        Message::Sent => costs.sent,
        Message::Write { .. } | Message::Written { .. } => Work::default(),
    }
}

/// One message of a batch.
fn handle(profile: &Profile, streams: &mut Streams, server: Server, message: Message, turn: &mut Turn) {
    match server {
        Server::Calls => {
            turn.work += profile.call.unwrap_or_default();
            let to = if matches!(message, Message::Write { .. }) {
                Target::Server(Server::Tcp)
            } else {
                Target::Program
            };
            turn.out.push((to, message));
        }
        Server::Tcp => tcp(profile, streams, message, turn),
        Server::Ip => {
            turn.work += of(&profile.ip, message);
            let is_outbound = matches!(message, Message::Segment { .. });
            let to = if is_outbound { Server::Driver } else { Server::Tcp };
            turn.out.push((Target::Server(to), message));
        }
        Server::Driver => {
            turn.work += of(&profile.driver, message);
            let is_outbound = matches!(message, Message::Segment { .. });
            let to = if is_outbound { Target::Wire } else { Target::Server(Server::Ip) };
            turn.out.push((to, message));
        }
    }
}

fn tcp(profile: &Profile, streams: &mut Streams, message: Message, turn: &mut Turn) {
    let (stream, done) = match message {
        Message::Write { stream } => {
            turn.work += profile.write;
            (stream, streams.write(profile, stream))
        }
        Message::Acknowledgement { stream, bytes } => {
            turn.work += profile.tcp.acknowledgement;
            (stream, streams.acknowledge(profile, stream, bytes))
        }
        _ => {
            turn.work += of(&profile.tcp, message);
            return;
        }
    };
    let Done { copied_bytes, accepted, segments } = done;
    let copying = scaled(profile.copy_kib, copied_bytes);
    turn.copying += copying;
    turn.work += copying;
    if accepted {
        let to = if profile.call.is_some() { Target::Server(Server::Calls) } else { Target::Program };
        turn.out.push((to, Message::Written { stream }));
    }
    send(profile, stream, segments, turn);
}

fn send(profile: &Profile, stream: usize, segments: Vec<u64>, turn: &mut Turn) {
    for bytes in segments {
        turn.work += profile.tcp.segment;
        turn.out.push((Target::Server(Server::Ip), Message::Segment { stream, bytes }));
    }
}

/// The end of a batch.
fn flush(profile: &Profile, streams: &mut Streams, server: Server, turn: &mut Turn) {
    if server == Server::Tcp && profile.flushes {
        for stream in 0..streams.count() {
            send(profile, stream, streams.emit(profile, stream), turn);
        }
    }
}

/// A whole batch.
pub fn serve(
    profile: &Profile,
    streams: &mut Streams,
    server: Server,
    batch: impl Iterator<Item = Message>,
    turn: &mut Turn,
) {
    batch.for_each(|message| handle(profile, streams, server, message, turn));
    flush(profile, streams, server, turn);
}
