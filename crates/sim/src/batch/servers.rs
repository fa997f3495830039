//! The servers, their messages to each other, and a message's cost and effects.

use super::inbox::Queued;
use super::profile::{Messages, Profile};
pub use super::server::{SERVERS, SERVERS_MAX, Server, TCPS};
use super::transport::Streams;
use crate::hardware::Work;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    Write {
        stream: usize,
    },
    Written {
        stream: usize,
    },
    Segment {
        stream: usize,
        bytes: u64,
    },
    Acknowledgement {
        stream: usize,
        bytes: u64,
    },
    /// A receipt, which wakes nobody who sleeps on a doorbell.
    Sent,
    /// As much: a received frame's buffer is given back, which is part of what the frame costs.
    Done,
    /// ip asks the filter about a packet of this many bytes, and gets it back.
    Question {
        stream: usize,
        bytes: u64,
        outbound: bool,
    },
    /// tcp's timer: a stream has waited long enough for room for a larger piece.
    Piece {
        stream: usize,
        wait: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Server(Server),
    Program,
    Wire,
}

/// Streams that begin to wait for a larger piece, and the number of each wait.
pub type Waits = Vec<(usize, u64)>;

impl Message {
    pub fn is_receipt(self) -> bool {
        matches!(self, Self::Sent | Self::Done)
    }
}

impl Queued for Message {
    fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }
}

/// A batch's cost, and what leaves the server when it ends.
#[derive(Debug, Default)]
pub struct Turn {
    pub work: Work,
    /// The part of the work that copies.
    pub copying: Work,
    /// What tcp sends is charged after it has left, as in tier 1.
    pub owed: Work,
    pub out: Vec<(Target, Message)>,
    /// tcp's streams that may have something to send.
    touched: Vec<usize>,
    pub waits: Waits,
}

impl Turn {
    /// Nothing, with the memory of one that is over.
    pub fn anew(mut self) -> Self {
        self.out.clear();
        self.waits.clear();
        Self { work: Work::default(), copying: Work::default(), owed: Work::default(), ..self }
    }

    pub fn has_memory(&self) -> bool {
        self.out.capacity() > 0
    }
}

/// The work for `bytes`.
pub fn scaled(per_kib: Work, bytes: u64) -> Work {
    Work { cycles: per_kib.cycles * bytes / 1024, stall_ps: per_kib.stall_ps * bytes / 1024 }
}

fn of(costs: &Messages, message: Message) -> Work {
    match message {
        Message::Segment { .. } => costs.segment,
        Message::Acknowledgement { .. } => costs.acknowledgement,
        Message::Sent => costs.sent,
        Message::Write { .. }
        | Message::Written { .. }
        | Message::Done
        | Message::Piece { .. }
        | Message::Question { .. } => Work::default(),
    }
}

/// One message of a batch.
fn handle(profile: &Profile, streams: &mut Streams, server: Server, message: Message, turn: &mut Turn) {
    match server {
        Server::Front => {
            turn.work += profile.call.unwrap_or_default();
            let to = if matches!(message, Message::Write { .. }) {
                Target::Server(Server::Tcp)
            } else {
                Target::Program
            };
            turn.out.push((to, message));
        }
        Server::Ip => {
            turn.work += of(&profile.ip, message);
            ip(profile, message, turn);
        }
        Server::Filter => {
            turn.work += profile.filter.map_or(Work::default(), |filter| filter.question);
            turn.out.push((Target::Server(Server::Ip), message));
        }
        Server::Driver => {
            turn.work += of(&profile.driver, message);
            match message {
                Message::Segment { .. } => {
                    // The device takes it at once; cleaning its descriptor up belongs to it.
                    turn.work += profile.driver.sent;
                    turn.out.push((Target::Wire, message));
                    turn.out.push((Target::Server(Server::Ip), Message::Sent));
                }
                Message::Done => {}
                _ => turn.out.push((Target::Server(Server::Ip), message)),
            }
        }
        _ => tcp(profile, streams, message, turn),
    }
}

/// With a filter that grants nothing, ip asks it about each packet before it passes the packet on.
fn ip(profile: &Profile, message: Message, turn: &mut Turn) {
    let (to, message) = match (message, profile.questions()) {
        (Message::Segment { stream, bytes }, Some(_)) => {
            (Server::Filter, Message::Question { stream, bytes, outbound: true })
        }
        (Message::Acknowledgement { stream, bytes }, Some(_)) => {
            (Server::Filter, Message::Question { stream, bytes, outbound: false })
        }
        (Message::Question { stream, bytes, outbound }, filter) => {
            turn.work += filter.map_or(Work::default(), |filter| filter.verdict);
            if outbound {
                (Server::Driver, Message::Segment { stream, bytes })
            } else {
                (Server::Tcp, Message::Acknowledgement { stream, bytes })
            }
        }
        (Message::Segment { .. }, None) | (Message::Done, _) => (Server::Driver, message),
        _ => (Server::Tcp, message),
    };
    turn.out.push((Target::Server(to), message));
}

fn tcp(profile: &Profile, streams: &mut Streams, message: Message, turn: &mut Turn) {
    let stream = match message {
        Message::Write { stream } => {
            read_ring(profile, streams, stream, turn);
            stream
        }
        Message::Acknowledgement { stream, bytes } => {
            turn.work += profile.tcp.acknowledgement;
            turn.out.push((Target::Server(Server::Ip), Message::Done));
            if streams.acknowledge(profile, stream, bytes) {
                // The rest of a write comes as another mark.
                let by_call = (Target::Server(Server::Tcp), Message::Write { stream });
                let by_ring = (Target::Program, Message::Written { stream });
                turn.out.push(if profile.call.is_some() { by_call } else { by_ring });
            }
            stream
        }
        Message::Piece { stream, wait } => {
            streams.lose_patience(stream, wait);
            stream
        }
        _ => {
            turn.work += of(&profile.tcp, message);
            return;
        }
    };
    turn.touched.push(stream);
    // tcp sees a turn's writes of programs before messages.
    if !profile.flushes && !matches!(message, Message::Write { .. }) {
        send_touched(profile, streams, turn);
    }
}

/// What a program has written, itself or by a call, which is answered when all of it is in the ring.
fn read_ring(profile: &Profile, streams: &mut Streams, stream: usize, turn: &mut Turn) {
    turn.work += profile.write;
    let is_over = profile.call.is_some() && streams.write(profile, stream).1;
    let copying = scaled(profile.copy_kib, streams.see(stream));
    turn.copying += copying;
    turn.work += copying;
    if is_over {
        turn.out.push((Target::Server(Server::Front), Message::Written { stream }));
    }
}

fn send_touched(profile: &Profile, streams: &mut Streams, turn: &mut Turn) {
    for stream in turn.touched.drain(..) {
        for bytes in streams.emit(profile, stream) {
            turn.owed += profile.tcp.segment;
            turn.out.push((Target::Server(Server::Ip), Message::Segment { stream, bytes }));
        }
        turn.waits.extend(streams.begins_to_wait(profile, stream).map(|wait| (stream, wait)));
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
    send_touched(profile, streams, turn);
}
