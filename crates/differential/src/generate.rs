//! Makes a program from a seed: mostly what programs and peers do, at times what none should do.

use crate::program::{
    Acknowledgment, CONNECTIONS, Call, Complaint, FIN, Kind, Offer, PSH, Place, Program, RST, SLOTS, SYN,
    Segment, Sent, Step,
};
use eft_base::random::Random;

/// Where programs' sockets are: a listener or a first socket, then what comes from it.
const FIRST: usize = 0;
const ACCEPTED: usize = 1;

struct Generator {
    random: Random,
    steps: Vec<Step>,
    /// Where the peer's next data begin, by connection.
    next: [i64; CONNECTIONS],
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut generator = Generator { random: Random::new(seed), steps: Vec::new(), next: [0; CONNECTIONS] };
    let v6 = generator.random.chance(0.4);
    match generator.random.below(10) {
        0..4 => generator.server(),
        4..8 => generator.client(),
        8 => generator.datagrams(),
        _ => generator.chaos(),
    }
    Program { v6, steps: generator.steps }
}

impl Generator {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn call(&mut self, slot: usize, call: Call) {
        self.steps.push(Step::Call(slot, call));
    }

    fn peer(&mut self, sent: Sent) {
        self.steps.push(Step::Peer(sent));
    }

    fn server(&mut self) {
        let nonblocking = self.random.chance(0.7);
        self.call(FIRST, Call::Socket { kind: Kind::Stream, nonblocking });
        self.options(FIRST);
        let place = self.pick(&[Place::Own, Place::Own, Place::Any]);
        self.call(FIRST, Call::Bind { place, port: 0 });
        let backlog = self.pick(&[1, 5, 128]);
        self.call(FIRST, Call::Listen { backlog });
        let offer = self.offer();
        self.peer(Sent::Syn { connection: 0, port: 0, offer });
        self.plain_segment(0, 0);
        self.call(FIRST, Call::Accept { into: ACCEPTED, nonblocking });
        self.traffic(ACCEPTED);
    }

    fn client(&mut self) {
        let nonblocking = self.random.chance(0.7);
        self.call(FIRST, Call::Socket { kind: Kind::Stream, nonblocking });
        self.options(FIRST);
        if self.random.chance(0.2) {
            self.call(FIRST, Call::Bind { place: Place::Own, port: 1 });
        }
        self.call(FIRST, Call::Connect { port: 0 });
        match self.random.below(12) {
            0 => self.complaint(0),
            1 => self.segment(0, RST, 0),
            _ => {}
        }
        let offer = self.offer();
        self.peer(Sent::SynAck { connection: 0, offer });
        self.traffic(FIRST);
    }

    fn datagrams(&mut self) {
        self.call(FIRST, Call::Socket { kind: Kind::Datagram, nonblocking: true });
        if self.random.chance(0.7) {
            let place = self.pick(&[Place::Own, Place::Any]);
            self.call(FIRST, Call::Bind { place, port: 0 });
        }
        if self.random.chance(0.5) {
            self.call(FIRST, Call::Connect { port: 0 });
        }
        for _ in 0..4 + self.random.below(12) {
            match self.random.below(9) {
                0..3 => {
                    let connection = self.random.below(CONNECTIONS as u64) as usize;
                    let (port, len) = (self.pick(&[0, 0, 0, 2]), self.pick(&[0, 1, 100, 1400]));
                    self.peer(Sent::Datagram { connection, port, len });
                }
                3 => {
                    let (port, len) = (self.pick(&[0, 1]), self.pick(&[0, 10, 1400]));
                    self.call(FIRST, Call::SendTo { port, len });
                }
                4 => {
                    let len = self.pick(&[0, 10, 1400]);
                    self.call(FIRST, Call::Send { len, flags: 0 });
                }
                5 | 6 => self.receive(FIRST),
                7 => self.complaint(0),
                _ => self.question(FIRST),
            }
        }
    }

    /// Calls and packets that belong to nothing.
    fn chaos(&mut self) {
        let nonblocking = self.random.chance(0.8);
        self.call(FIRST, Call::Socket { kind: Kind::Stream, nonblocking });
        for _ in 0..8 + self.random.below(12) {
            match self.random.below(8) {
                0 => {
                    let place = self.pick(&[Place::Own, Place::Any, Place::Foreign]);
                    let port = self.pick(&[0, 1]);
                    self.call(FIRST, Call::Bind { place, port });
                }
                1 => self.call(FIRST, Call::Listen { backlog: 3 }),
                2 => {
                    let port = self.pick(&[0, 1]);
                    self.call(FIRST, Call::Connect { port });
                }
                3 => {
                    let (offer, port) = (self.offer(), self.pick(&[0, 1]));
                    self.peer(Sent::Syn { connection: 1, port, offer });
                }
                4 => self.call(FIRST, Call::Accept { into: ACCEPTED, nonblocking: true }),
                _ => self.step(FIRST),
            }
        }
    }

    fn traffic(&mut self, slot: usize) {
        for _ in 0..4 + self.random.below(16) {
            self.step(slot);
        }
        self.steps.push(Step::Settle);
    }

    /// A step of a connection that is there.
    fn step(&mut self, slot: usize) {
        match self.random.below(40) {
            0..9 => self.data(0),
            9..14 => self.receive(slot),
            14..20 => self.send(slot),
            20..24 => self.plain_segment(0, 0),
            24 => self.segment(0, FIN, 0),
            25 => self.segment(0, RST, 0),
            26..28 => self.strange_segment(0),
            28 => self.complaint(0),
            29..31 => {
                let how = self.pick(&[libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_WR, libc::SHUT_RDWR]);
                self.call(slot, Call::Shutdown { how });
            }
            31 => self.close(slot),
            32 => self.call(slot, Call::Duplicate { into: SLOTS - 1 }),
            33 => self.steps.push(Step::Settle),
            34 => self.options(slot),
            35 => {
                let on = self.random.chance(0.5);
                self.call(slot, Call::Nonblocking { on });
            }
            _ => self.question(slot),
        }
    }

    fn close(&mut self, slot: usize) {
        if self.random.chance(0.4) {
            let (on, seconds) = (self.random.chance(0.8), self.pick(&[0, 0, 1]));
            self.call(slot, Call::Linger { on, seconds });
        }
        self.call(slot, Call::Close);
    }

    fn offer(&mut self) -> Offer {
        let scale = self.pick(&[None, Some(0), Some(2), Some(7)]);
        Offer {
            mss: self.pick(&[1460, 1460, 1000, 536]),
            sack: self.random.chance(0.6),
            scale,
            timestamps: self.random.chance(0.4),
        }
    }

    /// The next data of the peer's stream, at times not in order, or again.
    fn data(&mut self, connection: usize) {
        let len = self.pick(&[1, 10, 100, 500, 500]);
        let next = self.next[connection];
        let (from, goes_on) = match self.random.below(10) {
            0 => (next + 100, false),
            1 => (next - 50, true),
            2 => (next - 500, false),
            _ => (next, true),
        };
        if goes_on {
            self.next[connection] = (from + i64::from(len)).max(next);
        }
        let window = self.window();
        let flags = self.pick(&[0, PSH, PSH, PSH, FIN]);
        let flags = if self.random.chance(0.7) { flags & !FIN } else { flags };
        self.sent(Segment { from, len, flags, window, ..plain(connection) });
    }

    fn window(&mut self) -> u16 {
        self.pick(&[65535, 65535, 65535, 65535, 1000, 100, 0])
    }

    fn sent(&mut self, segment: Segment) {
        self.peer(Sent::Segment(segment));
    }

    fn plain_segment(&mut self, connection: usize, len: u16) {
        let from = self.next[connection];
        self.sent(Segment { from, len, ..plain(connection) });
    }

    fn segment(&mut self, connection: usize, flags: u8, len: u16) {
        let from = self.next[connection];
        self.sent(Segment { from, flags, len, ..plain(connection) });
    }

    /// One that no peer should send.
    fn strange_segment(&mut self, connection: usize) {
        let from = self.next[connection] + self.pick(&[0, 1, -1, 1000, -5000, 1_000_000]);
        let flags = self.pick(&[0, RST, SYN, FIN, SYN | FIN, RST | SYN]);
        let acknowledgment = self.pick(&[
            Acknowledgment::All,
            Acknowledgment::None,
            Acknowledgment::Behind(1),
            Acknowledgment::Behind(1000),
            Acknowledgment::Ahead(1),
            Acknowledgment::Ahead(1_000_000),
        ]);
        let (window, len, corrupt) = (self.window(), self.pick(&[0, 0, 1, 100]), self.random.chance(0.2));
        self.sent(Segment { connection, from, len, flags, acknowledgment, window, corrupt });
    }

    fn complaint(&mut self, connection: usize) {
        let what = self.pick(&[
            Complaint::NetworkUnreachable,
            Complaint::HostUnreachable,
            Complaint::ProtocolUnreachable,
            Complaint::PortUnreachable,
            Complaint::Prohibited,
            Complaint::TimeExceeded,
            Complaint::TooBig { mtu: 1280 },
            Complaint::TooBig { mtu: 1400 },
            Complaint::TooBig { mtu: 68 },
        ]);
        self.peer(Sent::Complaint { connection, what });
    }

    fn receive(&mut self, slot: usize) {
        let len = self.pick(&[0, 1, 10, 100, 2000, 2000]);
        let flags = self.pick(&[
            0,
            0,
            0,
            libc::MSG_DONTWAIT,
            libc::MSG_PEEK,
            libc::MSG_TRUNC,
            libc::MSG_WAITALL,
            libc::MSG_PEEK | libc::MSG_TRUNC,
            libc::MSG_OOB,
        ]);
        self.call(slot, Call::Receive { len, flags });
    }

    fn send(&mut self, slot: usize) {
        let call = match self.random.below(5) {
            0 => Call::WriteParts { lengths: vec![10, 0, self.pick(&[1, 300])] },
            1 => Call::Send {
                len: self.pick(&[10, 3000]),
                flags: self.pick(&[libc::MSG_DONTWAIT, libc::MSG_MORE]),
            },
            2 => Call::SendTo { port: self.pick(&[0, 1]), len: 10 },
            _ => Call::Send { len: self.pick(&[0, 1, 100, 1000, 5000]), flags: 0 },
        };
        self.call(slot, call);
    }

    fn question(&mut self, slot: usize) {
        const TCP: i32 = libc::IPPROTO_TCP;
        const SOCKET: i32 = libc::SOL_SOCKET;
        let call = match self.random.below(4) {
            0 => Call::Name,
            1 => Call::PeerName,
            2 => Call::Get { level: SOCKET, option: libc::SO_ERROR },
            _ => {
                let (level, option) = self.pick(&[
                    (SOCKET, libc::SO_REUSEADDR),
                    (SOCKET, libc::SO_KEEPALIVE),
                    (SOCKET, libc::SO_ACCEPTCONN),
                    (SOCKET, libc::SO_LINGER),
                    (SOCKET, libc::SO_RCVLOWAT),
                    (SOCKET, libc::SO_TYPE),
                    (TCP, libc::TCP_NODELAY),
                    (TCP, libc::TCP_CORK),
                    (TCP, libc::TCP_KEEPIDLE),
                    (TCP, libc::TCP_SYNCNT),
                    (TCP, libc::TCP_USER_TIMEOUT),
                ]);
                Call::Get { level, option }
            }
        };
        self.call(slot, call);
    }

    /// Sets some.
    fn options(&mut self, slot: usize) {
        const TCP: i32 = libc::IPPROTO_TCP;
        const SOCKET: i32 = libc::SOL_SOCKET;
        for _ in 0..self.random.below(3) {
            let (level, option, value) = self.pick(&[
                (SOCKET, libc::SO_REUSEADDR, 1),
                (SOCKET, libc::SO_KEEPALIVE, 1),
                (SOCKET, libc::SO_OOBINLINE, 1),
                (SOCKET, libc::SO_RCVLOWAT, 200),
                (TCP, libc::TCP_NODELAY, 1),
                (TCP, libc::TCP_CORK, 1),
                (TCP, libc::TCP_CORK, 0),
                (TCP, libc::TCP_KEEPIDLE, 10),
                (TCP, libc::TCP_KEEPIDLE, 0),
                (TCP, libc::TCP_KEEPCNT, 200),
                (TCP, libc::TCP_SYNCNT, 3),
                (TCP, libc::TCP_USER_TIMEOUT, 5000),
                (TCP, libc::TCP_USER_TIMEOUT, -1),
                (TCP, libc::TCP_MAXSEG, 800),
                (TCP, libc::TCP_MAXSEG, 5),
            ]);
            self.call(slot, Call::Set { level, option, value });
        }
    }
}

/// A segment that acknowledges everything.
pub(crate) fn plain(connection: usize) -> Segment {
    Segment {
        connection,
        from: 0,
        len: 0,
        flags: 0,
        acknowledgment: Acknowledgment::All,
        window: 65535,
        corrupt: false,
    }
}

#[cfg(test)]
mod tests;
