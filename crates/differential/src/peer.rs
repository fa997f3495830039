//! The scripted peer: sends what a program says, and remembers what comes.

use crate::connection::Connection;
use crate::observation::Observation;
use crate::packet::{self, Ends, Packet, Tcp};
use crate::program::{ACK, Acknowledgment, CONNECTIONS, Offer, PEER, RST, SYN, Segment, Sent, content};
use eft_packetdrill::wire::Wire;
use std::net::IpAddr;
use std::time::Duration;

/// The peer's port of the first connection.
pub const PORT: u16 = 5000;

/// Where a program runs: its addresses, and the first of its ports at the host. No other program has the same.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub host: IpAddr,
    pub peer: IpAddr,
    pub port: u16,
}

pub struct Peer<'a> {
    wire: &'a Wire,
    place: Place,
    connections: [Connection; CONNECTIONS],
    complaints: Vec<String>,
    /// Whether the peer's last greeting in a connection had timestamps.
    stamped: [bool; CONNECTIONS],
    /// The peer's timestamps count packets.
    clock: u32,
}

/// The peer's initial sequence number: near the end of the numbers, so that streams pass it.
fn initial(connection: usize) -> u32 {
    0xffff_f000 + connection as u32
}

impl<'a> Peer<'a> {
    pub fn new(wire: &'a Wire, place: Place) -> Peer<'a> {
        // What came late is of the program before.
        while wire.receive_within(Duration::ZERO).is_some() {}
        Peer {
            wire,
            place,
            connections: Default::default(),
            complaints: Vec::new(),
            stamped: [false; CONNECTIONS],
            clock: 1000,
        }
    }

    /// Takes what has come. Whether anything came in this time.
    pub fn take(&mut self, time: Duration) -> bool {
        let Some((bytes, _)) = self.wire.receive_within(time) else { return false };
        let mut next = Some(bytes);
        while let Some(bytes) = next {
            self.take_packet(bytes);
            next = self.wire.receive_within(Duration::ZERO).map(|(bytes, _)| bytes);
        }
        true
    }

    fn take_packet(&mut self, bytes: Vec<u8>) {
        let connection = |port: u16| usize::from(port.wrapping_sub(PORT));
        match packet::parse(&bytes) {
            Some(Packet::Tcp(ends, segment)) if ends.destination == self.place.peer => {
                let number = connection(ends.destination_port);
                if let Some(connection) = self.connections.get_mut(number) {
                    connection.segment(ends.source_port, &segment, initial(number));
                    connection.last = bytes;
                }
            }
            Some(Packet::Udp(ends, data)) if ends.destination == self.place.peer => {
                if let Some(connection) = self.connections.get_mut(connection(ends.destination_port)) {
                    connection.datagram(&data);
                    connection.last = bytes;
                }
            }
            Some(Packet::Icmp(kind, code)) => self.complaints.push(format!("{kind}.{code}")),
            _ => {}
        }
    }

    fn ends(&self, connection: usize, port: u16) -> Ends {
        Ends {
            source: self.place.peer,
            destination: self.place.host,
            source_port: PORT + connection as u16,
            destination_port: port,
        }
    }

    /// Sends it. `false`: it answers or quotes what has not come.
    pub fn send(&mut self, what: &Sent) -> bool {
        let packet = match what {
            Sent::Syn { connection, port, offer } => {
                // An attempt of its own: what was seen before is not of it.
                self.connections[*connection] = Connection::default();
                let segment = self.greeting(*connection, offer, SYN, 0);
                Some(packet::tcp(self.ends(*connection, self.place.port + u16::from(*port)), &segment, false))
            }
            Sent::SynAck { connection, offer } => self.connections[*connection].host.map(|(port, _)| {
                let everything = self.connections[*connection].everything();
                let segment = self.greeting(*connection, offer, SYN | ACK, everything);
                packet::tcp(self.ends(*connection, port), &segment, false)
            }),
            Sent::Segment(segment) => Some(self.segment(segment)),
            Sent::Complaint { connection, what } => {
                let about = &self.connections[*connection].last;
                (!about.is_empty()).then(|| packet::complaint(*what, about, self.place.peer, self.place.host))
            }
            Sent::Datagram { connection, port, len } => {
                let data: Vec<u8> = (0..u64::from(*len)).map(|at| content(PEER, at)).collect();
                let port = self.place.port + u16::from(*port);
                Some(packet::udp(self.ends(*connection, port), &data))
            }
        };
        packet.is_some_and(|packet| self.wire.send(&packet).is_ok())
    }

    fn greeting(&mut self, connection: usize, offer: &Offer, flags: u8, acknowledgment: u32) -> Tcp {
        let echo = self.connections[connection].time;
        let time = offer.timestamps.then_some((self.clock, echo.unwrap_or(0)));
        self.stamped[connection] = offer.timestamps;
        let sequence = initial(connection);
        let options = packet::options(offer, time);
        Tcp { sequence, acknowledgment, flags, window: 65535, options, data: Vec::new() }
    }

    fn segment(&mut self, segment: &Segment) -> Vec<u8> {
        self.clock += 1;
        let known = &self.connections[segment.connection];
        let everything = known.everything();
        let (acknowledgment, flag) = match segment.acknowledgment {
            Acknowledgment::All => (everything, ACK),
            Acknowledgment::None => (0, 0),
            Acknowledgment::Behind(bytes) => (everything.wrapping_sub(bytes), ACK),
            Acknowledgment::Ahead(bytes) => (everything.wrapping_add(bytes), ACK),
        };
        let at = |offset: u64| content(PEER, (segment.from as u64).wrapping_add(offset));
        let tcp = Tcp {
            sequence: initial(segment.connection).wrapping_add(1).wrapping_add(segment.from as u32),
            acknowledgment,
            flags: segment.flags | flag,
            window: segment.window,
            options: known
                .time
                .filter(|_| self.stamped[segment.connection])
                .map(|echo| packet::timestamp((self.clock, echo)))
                .unwrap_or_default(),
            data: (0..u64::from(segment.len)).map(at).collect(),
        };
        let port = known.host.map_or(self.place.port, |(port, _)| port);
        packet::tcp(self.ends(segment.connection, port), &tcp, segment.corrupt)
    }

    /// Ends every connection that it knows, by a reset in the window.
    pub fn hang_up(&mut self) {
        for (number, connection) in self.connections.iter().enumerate() {
            let Some((port, _)) = connection.host else { continue };
            let everything = connection.everything();
            let next = initial(number).wrapping_add(connection.acknowledged().unwrap_or(1));
            let reset =
                Tcp { sequence: next, acknowledgment: everything, flags: RST | ACK, ..Tcp::default() };
            let _ = self.wire.send(&packet::tcp(self.ends(number, port), &reset, false));
        }
    }

    pub fn observe(&self, settled: bool, into: &mut Observation) {
        for (number, connection) in self.connections.iter().enumerate() {
            connection.observe(&format!("wire {number}"), settled, into);
        }
        if !self.complaints.is_empty() {
            into.insert("wire complaints".into(), self.complaints.join(" "));
        }
    }
}
