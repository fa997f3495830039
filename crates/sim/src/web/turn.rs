//! The servers' messages to each other, and tcp's handling of a frame, independent of the core.

use super::clients::Frame;
use super::profile::Web;
use super::program::{Notice, Program};
use crate::batch::inbox::Queued;
use crate::batch::servers::{Server, Waits};
use crate::batch::transport::Streams;
use crate::hardware::Work;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// From a client.
    Frame(Frame),
    /// To a client.
    Segment(u64),
    Control(Control),
    /// A receipt, which wakes nobody who sleeps on a doorbell.
    Sent,
    /// As much: a received frame's buffer is given back, which is part of what the frame costs.
    Done,
    /// From tcp to the program.
    Notice(Notice),
    /// From the program to tcp: there is something in the ring.
    Written,
    Close,
    /// tcp's timer: it has waited long enough for room for a larger piece.
    Piece(u64),
}

/// Segments without payload, beside acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    SynAck,
    /// Of a request. A client's FIN is acknowledged by what is sent next.
    Acknowledgement,
    Fin,
}

impl Message {
    pub fn is_receipt(self) -> bool {
        matches!(self, Self::Sent | Self::Done)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Server(Server),
    Wire,
}

pub type Of = (usize, Message);

/// What a batch costs, and what leaves the server when it ends.
#[derive(Debug, Default)]
pub struct Turn {
    pub work: Work,
    pub copying: Work,
    /// What tcp sends is charged after it has left, as in tier 1.
    pub owed: Work,
    pub out: Vec<(Target, Of)>,
    pub waits: Waits,
    touched: Vec<usize>,
}

/// What changes as messages are handled.
pub struct State {
    pub streams: Streams,
    pub program: Program,
    /// Connections whose first request has come.
    pub has_asked: Vec<bool>,
}

impl State {
    pub fn new(web: &Web) -> Self {
        let count = web.stack.streams;
        let (streams, program) = (Streams::new(&web.stack), Program::new(count));
        Self { streams, program, has_asked: vec![false; count] }
    }
}

impl Queued for Of {
    fn is_write(&self) -> bool {
        matches!(self.1, Message::Written | Message::Close)
    }
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

    pub fn say(&mut self, to: Server, stream: usize, message: Message) {
        self.out.push((Target::Server(to), (stream, message)));
    }

    pub fn touch(&mut self, stream: usize) {
        if !self.touched.contains(&stream) {
            self.touched.push(stream);
        }
    }
}

/// What a frame changes of tcp's own state.
pub fn receive(
    web: &Web,
    state: &mut State,
    stream: usize,
    frame: Frame,
    turn: &mut Turn,
) -> (Option<Control>, Option<Notice>) {
    turn.work += web.stack.tcp.acknowledgement;
    let mut room = |bytes: u64| state.streams.acknowledge(&web.stack, stream, bytes);
    match frame {
        Frame::Syn => {
            turn.work += web.handshake;
            state.streams.begin_anew(&web.stack, stream);
            state.has_asked[stream] = false;
            (Some(Control::SynAck), None)
        }
        Frame::Established => (None, Some(Notice::Accepted)),
        Frame::Request(bytes) => {
            room(bytes);
            let is_first = !std::mem::replace(&mut state.has_asked[stream], true);
            // Both tcps acknowledge the requests of a connection that has answered by the answers.
            (is_first.then_some(Control::Acknowledgement), Some(Notice::Request))
        }
        Frame::Acknowledgement(bytes) => {
            turn.touch(stream);
            let notice = room(bytes).then_some(Notice::Room);
            (None, notice)
        }
        Frame::Fin(bytes) => {
            room(bytes);
            turn.work += web.handshake;
            (None, Some(Notice::Closed))
        }
        Frame::Closed => (None, None),
    }
}

/// What the streams that were touched may send now.
pub fn send_touched(
    web: &Web,
    state: &mut State,
    turn: &mut Turn,
    mut send: impl FnMut(&mut Turn, usize, u64),
) {
    let mut touched = std::mem::take(&mut turn.touched);
    for stream in touched.drain(..) {
        for bytes in state.streams.emit(&web.stack, stream) {
            send(turn, stream, bytes);
        }
        turn.waits.extend(state.streams.begins_to_wait(&web.stack, stream).map(|wait| (stream, wait)));
    }
    turn.touched = touched;
}
