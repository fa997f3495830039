//! Clients: how much of its answer each has, and what it sends next.

use super::profile::{Group, Web};

/// What a client sends. With an amount: so much of the answer it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frame {
    Syn,
    /// The third one of the handshake; a request comes with the next frame.
    Established,
    Request(u64),
    Acknowledgement(u64),
    Fin(u64),
    /// Of the server's FIN.
    Closed,
}

/// Segments that a host acknowledges at once where a connection begins, until it says something after it has heard something, as
/// eft's tcp does.
const QUICK: u64 = 16;

#[derive(Clone, Copy, Debug)]
struct Client {
    of: Group,
    group: usize,
    /// Requests of this connection so far.
    asked: u64,
    /// Of the present answer.
    has: u64,
    is_connected: bool,
    /// Segments still to be acknowledged at once.
    quick: u64,
}

impl Client {
    fn new(of: Group, group: usize) -> Self {
        Self { of, group, asked: 0, has: 0, is_connected: false, quick: QUICK }
    }
}

pub struct Clients {
    all: Vec<Client>,
    /// What each group has got.
    pub bytes: Vec<u64>,
    pub answers: u64,
    pub connections: u64,
}

impl Clients {
    pub fn new(web: &Web) -> Self {
        let client = |client| Client::new(web.of_client(client), web.group_of(client));
        let all = (0..web.stack.streams).map(client).collect();
        Self { all, bytes: vec![0; web.groups.len()], answers: 0, connections: 0 }
    }

    /// A part of an answer; whether this completes it.
    pub fn receive(&mut self, stream: usize, bytes: u64) -> bool {
        let client = &mut self.all[stream];
        client.has += bytes;
        self.bytes[client.group] += bytes;
        let is_complete = client.has >= client.of.answer_bytes;
        if is_complete {
            client.has -= client.of.answer_bytes;
            self.answers += 1;
        }
        is_complete
    }

    /// A client's next action after its pause: it connects, asks, or closes. `unacknowledged`: of its received bytes.
    pub fn act(&mut self, stream: usize, unacknowledged: u64) -> Frame {
        let client = &mut self.all[stream];
        if !client.is_connected {
            return Frame::Syn;
        }
        if client.asked == client.of.requests {
            *client = Client::new(client.of, client.group);
            self.connections += 1;
            return Frame::Fin(unacknowledged);
        }
        if client.asked > 0 {
            client.quick = 0;
        }
        client.asked += 1;
        Frame::Request(unacknowledged)
    }

    /// Whether so many received segments are acknowledged at once.
    pub fn acknowledges(&mut self, stream: usize, segments: u64) -> bool {
        let quick = &mut self.all[stream].quick;
        let is_quick = *quick > 0;
        *quick = quick.saturating_sub(segments);
        is_quick
    }

    pub fn connected(&mut self, stream: usize) {
        self.all[stream].is_connected = true;
    }
}
