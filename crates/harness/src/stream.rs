//! One end of a stream, as a program sees it: it writes what fits, reads what is there and compares every byte.

use crate::content::byte_at;
use eft_base::SocketId;
use eft_channel::socket::{Opt, SocketPage, early, flag, wish};

/// What one end of a stream does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    pub send: u64,
    pub receive: u64,
    /// The most bytes of one read; 0: no limit.
    pub read_max: usize,
    /// The most bytes of one write; 0: whatever fits.
    pub write_max: usize,
    /// Shuts down its sending side when everything is sent.
    pub shutdown: bool,
    pub no_delay: bool,
}

/// One end of a stream.
#[derive(Debug)]
pub struct Stream {
    pub socket: SocketId,
    pub plan: Plan,
    pub sent: u64,
    pub received: u64,
    pub connected: bool,
    pub end_seen: bool,
    pub hung_up: bool,
    pub error: i32,
    pub closed: bool,
    /// Does not read at present.
    pub paused: bool,
    /// Does not check the bytes that it reads.
    pub careless: bool,
    /// The salts of the bytes that it sends and expects: both ends know both ports.
    salts: Option<(u64, u64)>,
}

/// The salt of the bytes that port `from` sends to port `to`.
pub fn salt(from: u16, to: u16) -> u64 {
    (from as u64) << 16 | to as u64
}

impl Stream {
    pub fn new(socket: SocketId, plan: Plan) -> Stream {
        Stream {
            socket,
            plan,
            sent: 0,
            received: 0,
            connected: false,
            end_seen: false,
            hung_up: false,
            error: 0,
            closed: false,
            paused: false,
            careless: false,
            salts: None,
        }
    }

    /// Whether it has sent and received everything, to the end.
    pub fn is_done(&self) -> bool {
        self.sent == self.plan.send
            && self.received == self.plan.receive
            && (self.end_seen || !self.plan.shutdown)
    }

    /// Whether it is one end of a connection from or to this port. False before it is connected.
    pub fn has_port(&self, port: u16) -> bool {
        self.salts.is_some_and(|(ours, _)| ours >> 16 == port as u64 || ours as u16 == port)
    }

    /// The `len` bytes that arrive after the next `ahead` ones; `None` before it is connected.
    pub fn expected(&self, ahead: u64, len: u64) -> Option<Vec<u8>> {
        let (_, salt) = self.salts?;
        Some((0..len).map(|i| byte_at(salt, self.received + ahead + i)).collect())
    }

    /// Reads and writes what is possible. True if the transport must be notified. `seed` is printed on failure.
    pub fn progress(&mut self, page: &SocketPage, seed: u64) -> bool {
        let flags = page.flags();
        self.connected |= flags & flag::CONNECTED != 0;
        if flags & flag::DEAD != 0 && self.error == 0 {
            self.error = page.take_error();
        }
        if !self.connected {
            return false;
        }
        if self.salts.is_none() {
            let (local, remote) = (page.local().port, page.remote().port);
            self.salts = Some((salt(local, remote), salt(remote, local)));
        }
        let mut changed = !self.paused && self.read(page, seed);
        if flags & flag::DEAD == 0 {
            changed |= self.write(page);
        }
        if page.receivable() == 0 && page.flags() & flag::RECEIVE_END != 0 {
            self.end_seen = true;
        }
        changed
    }

    /// Writes before it is connected, from `local` to `remote`, as MSG_FASTOPEN does: from an odd port without waiting, so that
    /// only what goes with the SYN is taken.
    pub fn write_early(&mut self, page: &SocketPage, local: u16, remote: u16) {
        self.salts = Some((salt(local, remote), salt(remote, local)));
        let waits = local.is_multiple_of(2);
        page.set_option(Opt::FastOpenConnect, if waits { early::DATA } else { early::FITTING });
        let shutdown = core::mem::take(&mut self.plan.shutdown);
        self.write(page);
        self.plan.shutdown = shutdown;
    }

    /// So many bytes of the early data were taken. The rest is written again once the stream is connected, if the program did not wait.
    pub fn taken(&mut self, page: &SocketPage, taken: u64) {
        match page.option(Opt::FastOpenConnect) {
            early::DATA => page.set_option(Opt::FastOpenConnect, early::NONE),
            early::FITTING => {
                self.sent = self.sent.min(taken);
                page.set_send_end(self.sent);
                page.set_option(Opt::FastOpenConnect, early::NONE);
            }
            _ => {}
        }
    }

    /// None of the early data was taken: it is written again once the stream is connected.
    pub fn withdraw(&mut self, page: &SocketPage) {
        self.sent = 0;
        page.set_send_end(0);
        page.set_option(Opt::FastOpenConnect, early::NONE);
    }

    fn read(&mut self, page: &SocketPage, seed: u64) -> bool {
        let mut changed = false;
        let salt = self.salts.map_or(0, |(_, theirs)| theirs);
        loop {
            let mut n = page.receivable();
            if self.plan.read_max > 0 {
                n = n.min(self.plan.read_max);
            }
            if n == 0 {
                return changed;
            }
            let at = page.receive_taken();
            assert_eq!(at, self.received, "seed {seed}: position");
            let mut bytes = vec![0; n];
            page.read_receive(at, &mut bytes);
            self.received += n as u64;
            if !self.careless {
                for (at, byte) in (at..).zip(&bytes) {
                    assert_eq!(*byte, byte_at(salt, at), "seed {seed}: wrong byte at {at}");
                }
                let (received, planned) = (self.received, self.plan.receive);
                assert!(received <= planned, "seed {seed}: {received} bytes of {planned}");
            }
            page.set_receive_taken(self.received);
            changed |= self.received >= page.receive_notify();
        }
    }

    fn write(&mut self, page: &SocketPage) -> bool {
        let mut changed = false;
        let salt = self.salts.map_or(0, |(ours, _)| ours);
        while self.sent < self.plan.send {
            let mut n = (self.plan.send - self.sent).min(page.sendable() as u64) as usize;
            if self.plan.write_max > 0 {
                n = n.min(self.plan.write_max);
            }
            if n == 0 {
                page.write_plug().set();
                return true;
            }
            let bytes: Vec<u8> = (0..n as u64).map(|i| byte_at(salt, self.sent + i)).collect();
            page.write_send(self.sent, &bytes);
            self.sent += n as u64;
            page.set_send_end(self.sent);
            changed = true;
        }
        if self.plan.shutdown && page.wishes() & wish::SHUT_WRITE == 0 {
            page.add_wish(wish::SHUT_WRITE);
            changed = true;
        }
        changed
    }
}
