//! A simulated program's datagram socket: sends numbered datagrams, checks those that come.

use eft_base::{Endpoint, SocketId};
use eft_channel::socket::{DatagramHeader, SocketPage, datagram_record_len};
use eft_harness::byte_at;
use std::collections::BTreeSet;
use std::net::IpAddr;
use zerocopy::{FromZeros, IntoBytes};

/// What it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Datagrams {
    /// Bound to this port; 0: any.
    pub port: u16,
    /// Whom it sends to.
    pub to: Option<Endpoint>,
    pub count: u64,
    /// Most payload bytes, at least 8, for the number; lengths differ from datagram to datagram.
    pub len_max: u64,
    /// If more than 1: each call sends so many datagrams of `len_max` bytes (UDP_SEGMENT).
    pub batch: u64,
    /// Sends the datagram of this number again and again.
    pub same: Option<u64>,
    /// It is a member of this group, and shares its port with others.
    pub group: Option<IpAddr>,
}

impl Datagrams {
    /// The bytes of its datagram of this number.
    pub fn payload(&self, number: u64) -> Vec<u8> {
        payload(number, len_of(number, self.len_max))
    }
}

/// One such socket.
#[derive(Debug)]
pub struct DatagramSocket {
    pub socket: SocketId,
    plan: Datagrams,
    sent: u64,
    /// Numbers that have come.
    pub received: BTreeSet<u64>,
    pub duplicates: u64,
}

fn len_of(number: u64, len_max: u64) -> usize {
    8 + (number.wrapping_mul(0x9e37_79b9) % (len_max - 7)) as usize
}

fn payload(number: u64, len: usize) -> Vec<u8> {
    let rest = (8..len as u64).map(|i| byte_at(number, i));
    number.to_le_bytes().into_iter().chain(rest).collect()
}

impl DatagramSocket {
    pub fn new(socket: SocketId, plan: Datagrams) -> DatagramSocket {
        DatagramSocket { socket, plan, sent: 0, received: BTreeSet::new(), duplicates: 0 }
    }

    pub fn has_sent_all(&self) -> bool {
        self.sent == self.plan.count
    }

    /// Sends `count` more.
    pub fn send_more(&mut self, count: u64) {
        self.plan.count += count;
    }

    /// Reads and writes what is possible. True if the transport must be told.
    pub fn progress(&mut self, page: &SocketPage, seed: u64) -> bool {
        let changed = self.read(page, seed);
        self.write(page) || changed
    }

    fn read(&mut self, page: &SocketPage, seed: u64) -> bool {
        let mut changed = false;
        while page.receivable() >= size_of::<DatagramHeader>() {
            let at = page.receive_taken();
            let mut header = DatagramHeader::new_zeroed();
            page.read_receive(at, header.as_mut_bytes());
            let len = header.len as usize;
            assert!(datagram_record_len(len) <= page.receivable(), "seed {seed}: half a record");
            let mut bytes = vec![0; len];
            page.read_receive(at + size_of::<DatagramHeader>() as u64, &mut bytes);
            let number = bytes.first_chunk().map_or(u64::MAX, |b| u64::from_le_bytes(*b));
            assert!(bytes == payload(number, len), "seed {seed}: datagram {number} was altered");
            if !self.received.insert(number) {
                self.duplicates += 1;
            }
            let taken = at + datagram_record_len(len) as u64;
            page.set_receive_taken(taken);
            changed |= taken >= page.receive_notify();
        }
        changed
    }

    fn write(&mut self, page: &SocketPage) -> bool {
        let Some(to) = self.plan.to else {
            return false;
        };
        let mut changed = false;
        while self.sent < self.plan.count {
            let (bytes, count, segment) = self.next_send();
            if page.sendable() < datagram_record_len(bytes.len()) {
                page.write_plug().set();
                return true;
            }
            let header = DatagramHeader {
                len: bytes.len() as u32,
                segment,
                port: to.port,
                address: to.address.into(),
                ..DatagramHeader::default()
            };
            let at = page.send_end();
            page.write_send(at, header.as_bytes());
            page.write_send(at + size_of::<DatagramHeader>() as u64, &bytes);
            page.set_send_end(at + datagram_record_len(bytes.len()) as u64);
            self.sent += count;
            changed = true;
        }
        changed
    }

    /// What the next call sends: its bytes, how many datagrams they are, and the length of each if there are several.
    fn next_send(&self) -> (Vec<u8>, u64, u16) {
        let Datagrams { count, len_max, batch, .. } = self.plan;
        if batch <= 1 {
            let number = self.plan.same.unwrap_or(self.sent);
            return (self.plan.payload(number), 1, 0);
        }
        let numbers = self.sent..count.min(self.sent + batch);
        let bytes = numbers.clone().flat_map(|number| payload(number, len_max as usize));
        (bytes.collect(), numbers.end - numbers.start, len_max as u16)
    }
}
