//! A whole stack that gets its address by DHCPv6 (RFC 8415), from servers that are slow, absent, contradict each other or lie.

mod lease;

use eft_autoconf::known::All;
use eft_autoconf::method::Method;
use eft_base::checksum::Checksum;
use eft_base::{Instant, Random};
use lease::{Link, MAC, S, behind_lies, damaged};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Where a DHCPv6 message begins in a frame.
const AT: usize = 14 + 40 + 8;
const SOLICIT: u8 = 1;
const ADVERTISE: u8 = 2;
const REQUEST: u8 = 3;
const RENEW: u8 = 5;
const REBIND: u8 = 6;
const REPLY: u8 = 7;
const DECLINE: u8 = 9;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const LENT: Ipv6Addr = lent(9);

const fn lent(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, last)
}

/// A server's way to answer.
#[derive(Clone)]
struct Server {
    id: u8,
    lends: Ipv6Addr,
    preferred_s: u32,
    valid_s: u32,
    preference: u8,
    /// Messages of these kinds that it does not answer any more, or not yet: so many.
    deaf: BTreeMap<u8, u32>,
    /// Requests that it refuses.
    refuses: u32,
}

impl Server {
    fn new(id: u8, lends: Ipv6Addr) -> Server {
        let (preferred_s, valid_s) = (400, 600);
        Server { id, lends, preferred_s, valid_s, preference: 0, deaf: BTreeMap::new(), refuses: 0 }
    }

    fn duid(&self) -> [u8; 4] {
        [0, 4, 0x77, self.id]
    }

    fn address(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x77, self.id.into())
    }

    fn answer(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let kind = kind_of(frame)?;
        if let Some(left) = self.deaf.get_mut(&kind).filter(|left| **left > 0) {
            *left -= 1;
            return None;
        }
        if option(&frame[AT + 4..], 2).is_some_and(|named| named != self.duid()) {
            return None;
        }
        match kind {
            SOLICIT => Some(self.say(frame, ADVERTISE)),
            REQUEST | RENEW if self.refuses > 0 => {
                self.refuses -= 1;
                // None is free; the lease is unknown.
                Some(self.refuse(frame, if kind == REQUEST { 2 } else { 3 }))
            }
            DECLINE => {
                let [.., last] = self.lends.segments();
                self.lends = lent(last + 1);
                Some(self.refuse(frame, 0))
            }
            // Who has another server's address is none of its clients.
            REBIND if held(frame) != Some(self.lends) => None,
            REQUEST | RENEW | REBIND => Some(self.say(frame, REPLY)),
            _ => None,
        }
    }

    /// A message to the client that sent `request`, with an address.
    fn say(&self, request: &[u8], kind: u8) -> Vec<u8> {
        let mut address = self.lends.octets().to_vec();
        address.extend(self.preferred_s.to_be_bytes());
        address.extend(self.valid_s.to_be_bytes());
        self.message(request, kind, (5, &address))
    }

    fn refuse(&self, request: &[u8], status: u16) -> Vec<u8> {
        self.message(request, REPLY, (13, &status.to_be_bytes()))
    }

    fn message(&self, request: &[u8], kind: u8, within: (u16, &[u8])) -> Vec<u8> {
        let mut m = vec![kind];
        m.extend(&request[AT + 1..AT + 4]);
        put(&mut m, 1, option(&request[AT + 4..], 1).unwrap());
        put(&mut m, 2, &self.duid());
        put(&mut m, 7, &[self.preference]);
        let mut association = option(&request[AT + 4..], 3).unwrap()[..4].to_vec();
        // When it is renewed is for the client.
        association.extend([0; 8]);
        put(&mut association, within.0, within.1);
        put(&mut m, 3, &association);
        self.datagram(request, &m)
    }

    /// To the client that sent `request`.
    fn datagram(&self, request: &[u8], message: &[u8]) -> Vec<u8> {
        let len = (8 + message.len() as u16).to_be_bytes();
        let mut datagram = [&[2, 35, 2, 34][..], &len, &[0, 0], message].concat();
        let client: [u8; 16] = request[22..38].try_into().unwrap();
        sum(&mut datagram, 6, 17, (self.address(), client.into()));
        frame([2, 0, 0, 0, 1, self.id], (self.address(), client.into()), 17, 64, &datagram)
    }
}

fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(kind.to_be_bytes());
    to.extend((value.len() as u16).to_be_bytes());
    to.extend(value);
}

fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    while let [k, kind, l, len, ..] = *options {
        let len = usize::from(u16::from_be_bytes([l, len]));
        if u16::from_be_bytes([k, kind]) == wanted {
            return options.get(4..4 + len);
        }
        options = options.get(4 + len..)?;
    }
    None
}

/// The address that a client's message names.
fn held(frame: &[u8]) -> Option<Ipv6Addr> {
    let address = option(option(&frame[AT + 4..], 3)?.get(12..)?, 5)?;
    Some(<[u8; 16]>::try_from(&address[..16]).unwrap().into())
}

/// The kind of a client's message.
fn kind_of(frame: &[u8]) -> Option<u8> {
    let is_dhcp = frame.len() > AT && frame[12..14] == [0x86, 0xdd] && frame[20] == 17;
    (is_dhcp && frame[54..58] == [2, 34, 2, 35]).then(|| frame[AT])
}

fn sum(bytes: &mut [u8], at: usize, protocol: u8, (from, to): (Ipv6Addr, Ipv6Addr)) {
    let sum = Checksum::new().add_pseudo_header(from.into(), to.into(), protocol, bytes.len() as u32);
    let sum = sum.add_bytes(bytes).finish();
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn frame(mac: [u8; 6], (from, to): (Ipv6Addr, Ipv6Addr), protocol: u8, hops: u8, body: &[u8]) -> Vec<u8> {
    let [.., a, b, c, d] = to.octets();
    let destination = if to.is_multicast() { [0x33, 0x33, a, b, c, d] } else { MAC };
    let mut frame = [&destination[..], &mac, &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend((body.len() as u16).to_be_bytes());
    frame.extend([protocol, hops]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend(body);
    frame
}

/// A message of neighbour discovery about `target`.
fn discovery(kind: u8, mac: [u8; 6], ends: (Ipv6Addr, Ipv6Addr), target: Ipv6Addr) -> Vec<u8> {
    let flags = if kind == NEIGHBOUR_ADVERTISEMENT { 0x20 } else { 0 };
    let mut message = [&[kind, 0, 0, 0, flags, 0, 0, 0][..], &target.octets()].concat();
    message.extend([if kind == NEIGHBOUR_ADVERTISEMENT { 2 } else { 1 }, 1]);
    message.extend(mac);
    sum(&mut message, 2, 58, ends);
    frame(mac, ends, 58, 255, &message)
}

/// The servers, and what was heard on the link.
struct Servers {
    servers: Vec<Server>,
    /// Addresses that another host has.
    taken: Vec<Ipv6Addr>,
    /// What the client has sent: when, its kind, and the frame.
    sent: Vec<(Instant, u8, Vec<u8>)>,
    /// Addresses that the stack has advertised.
    claims: Vec<Ipv6Addr>,
    /// Each answer comes a few times, damaged.
    hostile: bool,
}

type World = lease::World<Servers>;

fn world(seed: u64, servers: &[Server]) -> World {
    let (taken, sent, claims) = (Vec::new(), Vec::new(), Vec::new());
    World::of(seed, Servers { servers: servers.to_vec(), taken, sent, claims, hostile: false })
}

impl Link for Servers {
    type Address = Ipv6Addr;
    const METHOD: Method = Method::Dhcp6;

    fn lent(known: &All) -> Option<Ipv6Addr> {
        let lease = known.get("eft0").and_then(|known| known.lease6.as_ref())?;
        lease.addresses.first().map(|a| a.address)
    }

    fn hear(&mut self, now: Instant, frame: Vec<u8>, random: &mut Random) -> Vec<Vec<u8>> {
        let is_discovery = frame.len() >= 78 && frame[12..14] == [0x86, 0xdd] && frame[20] == 58;
        if is_discovery {
            let target: Ipv6Addr = <[u8; 16]>::try_from(&frame[62..78]).unwrap().into();
            if frame[54] == NEIGHBOUR_ADVERTISEMENT {
                self.claims.push(target);
            }
            let is_taken = frame[54] == NEIGHBOUR_SOLICITATION && self.taken.contains(&target);
            let ends = (target, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
            let objection = discovery(NEIGHBOUR_ADVERTISEMENT, [2, 0, 0, 0, 5, 5], ends, target);
            return is_taken.then_some(objection).into_iter().collect();
        }
        let Some(kind) = kind_of(&frame) else { return Vec::new() };
        self.sent.push((now, kind, frame.clone()));
        let answers = self.servers.iter_mut().filter_map(|server| server.answer(&frame));
        behind_lies(answers, |answer| if self.hostile { lies(&frame, answer, random) } else { Vec::new() })
    }
}

/// What a liar on the link sends before the server's answer: messages to others, damaged ones, and ones that give what no host
/// could use.
fn lies(request: &[u8], honest: &[u8], random: &mut Random) -> Vec<Vec<u8>> {
    let liar = Server { preference: 255, ..Server::new(66, lent(66)) };
    let mut lies = Vec::new();
    for kind in [ADVERTISE, REPLY] {
        // Of another exchange, and of another client.
        for at in [1, 10] {
            let mut lie = liar.say(request, kind)[AT..].to_vec();
            lie[at] ^= 0x55;
            lies.push(liar.datagram(request, &lie));
        }
    }
    for lends in ["::", "::1", "ff02::1", "fe80::66", "::ffff:10.0.0.1"] {
        let useless = Server { lends: lends.parse().unwrap(), ..liar.clone() };
        lies.push(useless.say(request, honest[AT]));
    }
    for (preferred_s, valid_s) in [(0, 0), (10, 5)] {
        lies.push(Server { preferred_s, valid_s, ..liar.clone() }.say(request, honest[AT]));
    }
    // No exchange has a number of which the first byte is another.
    lies.extend((0..20).map(|_| liar.datagram(request, &damaged(honest, AT, 1, random)[AT..])));
    lies
}

fn server_of(w: &World) -> Option<Vec<u8>> {
    w.known.get("eft0").and_then(|known| known.lease6.as_ref()).map(|lease| lease.server.clone())
}

/// Whether the stack answers for an address.
fn has(w: &mut World, address: Ipv6Addr) -> bool {
    w.claims.clear();
    let [.., high, low] = address.segments();
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | high & 0xff, low);
    let asker = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 9, 9);
    w.fly(discovery(NEIGHBOUR_SOLICITATION, [2, 0, 0, 0, 9, 9], (asker, group), address));
    w.run_for(S / 10);
    w.claims.contains(&address)
}

fn kinds(w: &World) -> Vec<u8> {
    w.sent.iter().map(|(_, kind, _)| *kind).collect()
}

fn addresses(w: &World) -> Vec<Option<Ipv6Addr>> {
    w.had.iter().map(|(_, address)| *address).collect()
}

#[test]
fn lost_messages_are_sent_again_ever_more_seldom() {
    for seed in 0..4 {
        let mut server = Server::new(1, LENT);
        server.deaf = [(SOLICIT, 3), (REQUEST, 1)].into();
        let mut w = world(seed, &[server]);
        w.run_for(60 * S);
        assert_eq!(w.address(), Some(LENT), "seed {seed}");
        assert!(has(&mut w, LENT) && !has(&mut w, lent(10)), "seed {seed}");
        assert_eq!(kinds(&w), [SOLICIT, SOLICIT, SOLICIT, SOLICIT, REQUEST, REQUEST], "seed {seed}");
        // RFC 8415 §15: 1, 2 and 4 seconds, a tenth more or less; each is twice the last.
        let times: Vec<Instant> = w.sent.iter().map(|(at, ..)| *at).collect();
        for (n, seconds) in [1, 2, 4].into_iter().enumerate() {
            let pause = times[n + 1].saturating_since(times[n]);
            assert!(pause >= S * seconds * 4 / 5 && pause <= S * seconds * 5 / 4, "seed {seed}: {pause:?}");
        }
    }
}

#[test]
fn who_is_refused_begins_anew() {
    let mut w = world(1, &[Server { refuses: 1, ..Server::new(1, LENT) }]);
    w.run_for(20 * S);
    assert_eq!((w.address(), kinds(&w)), (Some(LENT), vec![SOLICIT, REQUEST, SOLICIT, REQUEST]));
    assert!(has(&mut w, LENT));
    // §18.2.10.1: a server that has forgotten its client is asked for the same address again, which lives on meanwhile.
    w.servers[0].refuses = 1;
    w.run_for(300 * S);
    assert_eq!(kinds(&w)[4..], [RENEW, REQUEST]);
    assert_eq!(addresses(&w), [None, Some(LENT)]);
}

#[test]
fn a_lease_is_renewed_in_time_whoever_dies() {
    for seed in 0..6 {
        let mut w = world(seed, &[Server::new(1, LENT)]);
        w.mortal = seed > 0;
        w.run_for(5000 * S);
        assert_eq!(addresses(&w), [None, Some(LENT)], "seed {seed}: it was lost");
        assert!(has(&mut w, LENT), "seed {seed}");
        // Half of 400 seconds.
        let renewals = w.sent.iter().filter(|(_, kind, _)| *kind == RENEW).count();
        assert!((20..=40).contains(&renewals), "seed {seed}: {renewals} renewals");
        let to_its_server = |frame: &[u8]| option(&frame[AT + 4..], 2) == Some(&[0, 4, 0x77, 1]);
        assert!(w.sent.iter().all(|(_, kind, frame)| *kind != RENEW || to_its_server(frame)), "seed {seed}");
    }
}

#[test]
fn another_server_takes_over_a_lease_and_without_one_it_ends() {
    let mut w = world(3, &[Server::new(1, LENT)]);
    w.run_for(20 * S);
    assert_eq!((w.address(), server_of(&w)), (Some(LENT), Some(vec![0, 4, 0x77, 1])));
    // Its server is gone; after four fifths of the preferred lifetime all are asked.
    w.servers = vec![Server::new(2, LENT)];
    w.run_for(500 * S);
    assert_eq!((w.address(), server_of(&w)), (Some(LENT), Some(vec![0, 4, 0x77, 2])));
    assert_eq!(addresses(&w), [None, Some(LENT)]);
    assert!(has(&mut w, LENT));
    // Now there is none.
    let gone = w.now;
    w.servers.clear();
    w.run_for(1200 * S);
    let (lost, address) = *w.had.last().unwrap();
    assert_eq!(address, None);
    assert!(!has(&mut w, LENT), "an address that is over is used");
    assert!(lost.saturating_since(gone) <= 600 * S, "it was used for too long");
    assert_eq!(kinds(&w).last(), Some(&SOLICIT));
    w.servers = vec![Server::new(4, lent(40))];
    w.run_until(3700 * S, |w| w.address() == Some(lent(40)));
}

#[test]
fn of_two_servers_the_preferred_one_is_chosen() {
    for seed in 0..6 {
        let better = Server { preference: 7, ..Server::new(2, lent(20)) };
        let mut w = world(seed, &[Server::new(1, LENT), better]);
        w.run_for(2000 * S);
        assert_eq!(addresses(&w), [None, Some(lent(20))], "seed {seed}");
        assert_eq!(server_of(&w), Some(vec![0, 4, 0x77, 2]), "seed {seed}");
        assert!(has(&mut w, lent(20)) && !has(&mut w, LENT), "seed {seed}");
    }
}

#[test]
fn an_address_that_another_host_has_is_declined() {
    for seed in 0..4 {
        let mut w = world(seed, &[Server::new(1, LENT)]);
        w.taken = vec![LENT];
        w.run_for(60 * S);
        assert_eq!(w.address(), Some(lent(10)), "seed {seed}");
        assert!(has(&mut w, lent(10)) && !has(&mut w, LENT), "seed {seed}");
        let declined: Vec<_> = w.sent.iter().filter(|(_, kind, _)| *kind == DECLINE).collect();
        assert_eq!(declined.len(), 1, "seed {seed}");
        assert_eq!(held(&declined[0].2), Some(LENT), "seed {seed}");
    }
}

#[test]
fn lies_are_not_believed() {
    for seed in 0..6 {
        let mut w = world(seed, &[Server::new(1, LENT)]);
        (w.hostile, w.mortal) = (true, seed % 2 == 1);
        w.run_for(3000 * S);
        assert_eq!(addresses(&w), [None, Some(LENT)], "seed {seed}");
        assert_eq!(server_of(&w), Some(vec![0, 4, 0x77, 1]), "seed {seed}");
        assert!(has(&mut w, LENT), "seed {seed}");
    }
}
