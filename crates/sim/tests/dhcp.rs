//! A whole stack that gets its address by DHCPv4 (RFC 2131), from servers that are slow, absent, contradict each other or lie.

mod lease;

use eft_autoconf::known::All;
use eft_autoconf::method::Method;
use eft_base::checksum::Checksum;
use eft_base::{Instant, Random};
use lease::{Link, S, behind_lies, damaged};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Where a DHCP message begins in a frame, and its options.
const AT: usize = 14 + 20 + 8;
const OPTIONS: usize = AT + 240;
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;

/// A server's way to answer.
#[derive(Clone)]
struct Server {
    address: Ipv4Addr,
    lends: Ipv4Addr,
    lease_s: u32,
    /// Messages of these kinds that it does not answer any more, or not yet: so many.
    deaf: BTreeMap<u8, u32>,
    /// Requests that it refuses.
    refuses: u32,
}

impl Server {
    fn new(last: u8, lends: u8) -> Server {
        Server {
            address: Ipv4Addr::new(10, 77, 0, last),
            lends: Ipv4Addr::new(10, 77, 0, lends),
            lease_s: 600,
            deaf: BTreeMap::new(),
            refuses: 0,
        }
    }

    fn mac(&self) -> [u8; 6] {
        [2, 0, 0, 0, 1, self.address.octets()[3]]
    }

    fn answer(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let kind = kind_of(frame)?;
        if let Some(left) = self.deaf.get_mut(&kind).filter(|left| **left > 0) {
            *left -= 1;
            return None;
        }
        let to = Ipv4Addr::from(<[u8; 4]>::try_from(&frame[30..34]).unwrap());
        let named = option(frame, 54).map(|b| Ipv4Addr::from(<[u8; 4]>::try_from(b).unwrap()));
        if named.is_some_and(|named| named != self.address) || !(to.is_broadcast() || to == self.address) {
            return None;
        }
        let has = Ipv4Addr::from(<[u8; 4]>::try_from(&frame[AT + 12..AT + 16]).unwrap());
        match kind {
            DISCOVER => Some(self.say(frame, OFFER)),
            REQUEST if self.refuses > 0 => {
                self.refuses -= 1;
                Some(self.say(frame, NAK))
            }
            // Who has another server's address is none of its clients.
            REQUEST if !has.is_unspecified() && has != self.lends => None,
            REQUEST => Some(self.say(frame, ACK)),
            _ => None,
        }
    }

    /// A message to the client that sent `request`, by all means.
    fn say(&self, request: &[u8], kind: u8) -> Vec<u8> {
        let mut m = request[AT..AT + 240].to_vec();
        (m[0], m[10]) = (2, 0);
        m[12..16].fill(0);
        if kind != NAK {
            m[16..20].copy_from_slice(&self.lends.octets());
        }
        m.extend([53, 1, kind, 54, 4]);
        m.extend(self.address.octets());
        if kind != NAK {
            m.extend([51, 4]);
            m.extend(self.lease_s.to_be_bytes());
            m.extend([1, 4, 255, 255, 255, 0, 3, 4]);
            m.extend(self.address.octets());
        }
        m.push(255);
        ipv4_frame(self.mac(), self.address, &m)
    }
}

fn ipv4_frame(mac: [u8; 6], from: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let mut frame = [&[255; 6][..], &mac, &[8, 0]].concat();
    let len = (28 + message.len()) as u16;
    let mut ip = [&[0x45, 0][..], &len.to_be_bytes(), &[0, 1, 0, 0, 64, 17, 0, 0]].concat();
    ip.extend(from.octets());
    ip.extend([255; 4]);
    let sum = Checksum::new().add_bytes(&ip).finish();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend([0, 67, 0, 68]);
    frame.extend((8 + message.len() as u16).to_be_bytes());
    // Without a checksum (RFC 768).
    frame.extend([0, 0]);
    frame.extend(message);
    frame
}

/// The kind of a client's DHCP message.
fn kind_of(frame: &[u8]) -> Option<u8> {
    let is_dhcp = frame.len() > OPTIONS && frame[12..14] == [8, 0] && frame[34..38] == [0, 68, 0, 67];
    is_dhcp.then(|| option(frame, 53).map(|kind| kind[0])).flatten()
}

fn option(frame: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut at = OPTIONS;
    while *frame.get(at)? != 255 {
        let len = usize::from(*frame.get(at + 1)?);
        if frame[at] == wanted {
            return frame.get(at + 2..at + 2 + len);
        }
        at += 2 + len;
    }
    None
}

/// The servers, and what was heard on the link.
struct Servers {
    servers: Vec<Server>,
    /// What the client has sent: when, its kind, and the frame.
    sent: Vec<(Instant, u8, Vec<u8>)>,
    /// Answers to ARP requests.
    claims: Vec<Ipv4Addr>,
    /// Each answer comes a few times, damaged.
    hostile: bool,
}

type World = lease::World<Servers>;

fn world(seed: u64, servers: &[Server]) -> World {
    let link = Servers { servers: servers.to_vec(), sent: Vec::new(), claims: Vec::new(), hostile: false };
    World::of(seed, link)
}

impl Link for Servers {
    type Address = Ipv4Addr;
    const METHOD: Method = Method::Dhcp4;

    fn lent(known: &All) -> Option<Ipv4Addr> {
        known.get("eft0").and_then(|known| known.lease4.as_ref()).map(|lease| lease.address)
    }

    fn hear(&mut self, now: Instant, frame: Vec<u8>, random: &mut Random) -> Vec<Vec<u8>> {
        if frame[12..14] == [8, 6] {
            if frame[20..22] == [0, 2] {
                self.claims.push(<[u8; 4]>::try_from(&frame[28..32]).unwrap().into());
                return Vec::new();
            }
            // The servers have their addresses.
            let wanted: Ipv4Addr = <[u8; 4]>::try_from(&frame[38..42]).unwrap().into();
            let server = self.servers.iter().find(|server| server.address == wanted);
            return server.map(|server| arp(2, server.mac(), wanted, &frame[28..32])).into_iter().collect();
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
    let liar = Server { lends: Ipv4Addr::new(10, 77, 0, 66), ..Server::new(66, 66) };
    let mut lies = Vec::new();
    for kind in [OFFER, ACK, NAK] {
        // Of another exchange, and of another client.
        for at in [AT + 4, AT + 28] {
            let mut lie = liar.say(request, kind);
            lie[at] ^= 0x55;
            lies.push(lie);
        }
    }
    for lends in [[0; 4], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4], [10, 77, 0, 255]] {
        let useless = Server { lends: lends.into(), ..liar.clone() };
        lies.push(useless.say(request, kind_of_answer(honest)));
    }
    lies.push(Server { lease_s: 0, ..liar }.say(request, kind_of_answer(honest)));
    // No exchange has a number of which the first byte is another.
    lies.extend((0..20).map(|_| damaged(honest, AT, 4, random)));
    lies
}

fn lease_server(w: &World) -> Option<Ipv4Addr> {
    w.known.get("eft0").and_then(|known| known.lease4.as_ref()).map(|lease| lease.server)
}

/// Whether the stack answers for an address.
fn has(w: &mut World, address: Ipv4Addr) -> bool {
    w.claims.clear();
    w.fly(arp(1, [2, 0, 0, 0, 9, 9], Ipv4Addr::new(10, 77, 0, 99), &address.octets()));
    w.run_for(S / 10);
    w.claims.contains(&address)
}

fn kinds(w: &World) -> Vec<u8> {
    w.sent.iter().map(|(_, kind, _)| *kind).collect()
}

fn kind_of_answer(frame: &[u8]) -> u8 {
    option(frame, 53).unwrap()[0]
}

/// An ARP request or answer, to all.
fn arp(operation: u8, mac: [u8; 6], from: Ipv4Addr, of: &[u8]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, operation];
    [&[255; 6][..], &mac, &[8, 6], &head, &mac, &from.octets(), &[0; 6], of].concat()
}

const LENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);

#[test]
fn lost_messages_are_sent_again_ever_more_seldom() {
    for seed in 0..4 {
        let mut server = Server::new(1, 9);
        server.deaf = [(DISCOVER, 3), (REQUEST, 1)].into();
        let mut w = world(seed, &[server]);
        w.run_for(60 * S);
        assert_eq!(w.address(), Some(LENT), "seed {seed}");
        assert!(has(&mut w, LENT) && !has(&mut w, Ipv4Addr::new(10, 77, 0, 10)), "seed {seed}");
        assert_eq!(kinds(&w), [DISCOVER, DISCOVER, DISCOVER, DISCOVER, REQUEST, REQUEST], "seed {seed}");
        // RFC 2131 §4.1: 4, 8 and 16 seconds, a second more or less.
        let times: Vec<Instant> = w.sent.iter().map(|(at, ..)| *at).collect();
        for (n, seconds) in [4, 8, 16].into_iter().enumerate() {
            let pause = times[n + 1].saturating_since(times[n]);
            assert!(pause >= S * (seconds - 1) && pause <= S * (seconds + 1), "seed {seed}: {pause:?}");
        }
    }
}

#[test]
fn who_is_refused_begins_anew_after_a_while() {
    let mut w = world(1, &[Server { refuses: 1, ..Server::new(1, 9) }]);
    w.run_for(9 * S);
    assert_eq!((w.address(), kinds(&w)), (None, vec![DISCOVER, REQUEST]));
    w.run_for(10 * S);
    assert_eq!((w.address(), kinds(&w)), (Some(LENT), vec![DISCOVER, REQUEST, DISCOVER, REQUEST]));
    assert!(has(&mut w, LENT));
    // §4.4.5: a refused renewal ends the lease at once.
    w.servers[0].refuses = 1;
    w.servers[0].lends = Ipv4Addr::new(10, 77, 0, 10);
    w.servers[0].deaf.insert(DISCOVER, 1);
    w.run_until(300 * S, |w| w.address().is_none());
    assert!(!has(&mut w, LENT));
    w.run_for(20 * S);
    assert_eq!(w.address(), Some(Ipv4Addr::new(10, 77, 0, 10)));
    assert!(has(&mut w, Ipv4Addr::new(10, 77, 0, 10)) && !has(&mut w, LENT));
}

#[test]
fn a_lease_is_renewed_in_time_whoever_dies() {
    for seed in 0..6 {
        let mut w = world(seed, &[Server::new(1, 9)]);
        w.mortal = seed > 0;
        w.run_for(5000 * S);
        let ever: Vec<Option<Ipv4Addr>> = w.had.iter().map(|(_, address)| *address).collect();
        assert_eq!(ever, [None, Some(LENT)], "seed {seed}: it was lost");
        assert!(has(&mut w, LENT), "seed {seed}");
        let renewals = w
            .sent
            .iter()
            .filter(|(_, kind, frame)| *kind == REQUEST && frame[AT + 12..AT + 16] == LENT.octets());
        let renewals: Vec<_> = renewals.collect();
        assert!((15..=24).contains(&renewals.len()), "seed {seed}: {} renewals", renewals.len());
        // To its server alone.
        assert!(renewals.iter().all(|(_, _, frame)| frame[30..34] == [10, 77, 0, 1]), "seed {seed}");
    }
}

#[test]
fn another_server_takes_over_a_lease_and_without_one_it_ends() {
    let mut w = world(3, &[Server::new(1, 9)]);
    w.run_for(20 * S);
    assert_eq!((w.address(), lease_server(&w)), (Some(LENT), Some([10, 77, 0, 1].into())));
    // Its server is gone; after seven eighths of the lease all are asked.
    w.servers = vec![Server::new(2, 9)];
    w.run_for(600 * S);
    assert_eq!((w.address(), lease_server(&w)), (Some(LENT), Some([10, 77, 0, 2].into())));
    assert_eq!(w.had.len(), 2, "it was lost meanwhile: {:?}", w.had);
    assert!(has(&mut w, LENT));
    // Now there is none.
    let renewed = w.had.last().unwrap().0;
    w.servers.clear();
    w.run_for(1200 * S);
    let (lost, address) = *w.had.last().unwrap();
    assert_eq!(address, None);
    assert!(!has(&mut w, LENT), "an address that is over is used");
    assert!(lost.saturating_since(renewed) > 900 * S, "it ended early");
    assert_eq!(kinds(&w).last(), Some(&DISCOVER));
    // It is asked for at least every 65 seconds.
    w.servers = vec![Server::new(4, 40)];
    w.run_for(70 * S);
    assert_eq!(w.address(), Some([10, 77, 0, 40].into()));
}

#[test]
fn of_two_servers_one_is_chosen() {
    for seed in 0..6 {
        let mut w = world(seed, &[Server::new(1, 9), Server::new(2, 20)]);
        w.run_for(2000 * S);
        let server = lease_server(&w).unwrap();
        let lends = if server.octets()[3] == 1 { LENT } else { [10, 77, 0, 20].into() };
        assert_eq!(w.address(), Some(lends), "seed {seed}");
        assert_eq!(w.had.len(), 2, "seed {seed}: {:?}", w.had);
        let other: Ipv4Addr = if lends == LENT { [10, 77, 0, 20].into() } else { LENT };
        assert!(has(&mut w, lends) && !has(&mut w, other), "seed {seed}");
    }
}

#[test]
fn lies_are_not_believed() {
    for seed in 0..6 {
        let mut w = world(seed, &[Server::new(1, 9)]);
        (w.hostile, w.mortal) = (true, seed % 2 == 1);
        w.run_for(3000 * S);
        let ever: Vec<Option<Ipv4Addr>> = w.had.iter().map(|(_, address)| *address).collect();
        assert_eq!(ever, [None, Some(LENT)], "seed {seed}");
        assert_eq!(lease_server(&w), Some([10, 77, 0, 1].into()), "seed {seed}");
        assert!(has(&mut w, LENT), "seed {seed}");
    }
}
