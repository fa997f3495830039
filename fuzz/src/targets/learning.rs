//! What hosts learn addresses from: messages of routers and servers, and what a predecessor knew. Whatever they say, lists stay
//! short, and nothing waits for the past.

use super::Target;
use crate::mutate::Examples;
use crate::source::Source;
use core::net::Ipv6Addr;
use core::time::Duration;
use eft_autoconf::dhcp4;
use eft_autoconf::host::{Host, Send};
use eft_autoconf::identity::Identity;
use eft_autoconf::known::{self, Known};
use eft_autoconf::method::Method;
use eft_autoconf::router::message;
use eft_base::{Instant, MacAddress, Random};

/// As many entries as all lists of one interface may have together.
const ENTRIES_MAX: usize = 64;

const METHODS: [Method; 1] = [Method::Slaac];
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

/// A host that gets routers' advertisements.
pub struct Advertisements {
    host: Host,
    now: Instant,
    random: Random,
    examples: Examples,
}

impl Advertisements {
    pub fn new(source: &mut Source) -> Advertisements {
        let mut random = source.generator();
        let now = Instant::from_millis(5000);
        let mut host = Host::new("eft0".into(), METHODS.to_vec(), Identity([1, 2]), Known::default());
        host.start(now, MAC, &mut random);
        Advertisements { host, now, random, examples: Examples::new(vec![advertisement()], 1280) }
    }
}

/// A prefix, two name servers, and two domains.
fn advertisement() -> Vec<u8> {
    let mut m = vec![134, 0, 0, 0, 64, 0x48, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    m.extend([1, 1, 2, 0, 0, 0, 0, 1, 3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 7, 8, 0, 0, 0, 0]);
    m.extend(Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 0).octets());
    m.extend([25, 5, 0, 0, 0, 0, 2, 88]);
    m.extend(Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 0x53).octets());
    m.extend(Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 0x54).octets());
    m.extend(b"\x1f\x03\0\0\0\0\x02\x58\x03lan\0\x07example\0\0\0");
    m
}

impl Target for Advertisements {
    fn feed(&mut self, source: &mut Source) {
        let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, source.below(12) as u16);
        match source.below(8) {
            0 => self.now += Duration::from_millis(source.below(4_000_000)),
            1 => {
                let addresses = self.host.known().addresses();
                if let Some(core::net::IpAddr::V6(taken)) = addresses.first().map(|a| a.cidr.address) {
                    self.host.conflict(self.now, taken.into(), &mut self.random);
                }
            }
            // What a predecessor knew.
            2 => {
                let mutated =
                    Examples::new(vec![known::text(&[("eft0".into(), self.host.known())].into())], 4000)
                        .mutated(source);
                let known = known::parse(&mutated).remove("eft0").unwrap_or_default();
                self.host = Host::new("eft0".into(), METHODS.to_vec(), Identity([1, 2]), known);
                self.host.start(self.now, MAC, &mut self.random);
            }
            _ => {
                if let Some(read) = message::parse(&self.examples.mutated(source)) {
                    self.host.advertised(self.now, from, &read, &mut self.random);
                }
            }
        }
        for method in METHODS {
            self.host.expire(method, self.now, &mut self.random);
        }
        let next = self.host.deadline(self.now);
        assert!(next.is_none_or(|next| next > self.now), "{next:?} is past {:?}", self.now);
        let known = self.host.known();
        let entries = known.addresses().len() + known.routes().len() + known.name_servers().len();
        assert!(entries + known.search().len() <= ENTRIES_MAX, "{entries} entries");
        // A successor reads what this one wrote.
        let all = [("eft0".to_string(), known)].into();
        assert_eq!(known::parse(&known::text(&all)), all);
    }
}

/// A host that asks servers of both versions, which answer with the identifiers that it has sent.
pub struct Leases {
    host: Host,
    now: Instant,
    random: Random,
    asked4: Vec<u8>,
    asked6: Vec<u8>,
}

impl Leases {
    pub fn new(source: &mut Source) -> Leases {
        let mut random = source.generator();
        let now = Instant::from_millis(5000);
        let methods = vec![Method::Dhcp4, Method::Dhcp6];
        let mut host = Host::new("eft0".into(), methods, Identity([1, 2]), Known::default());
        host.start(now, MAC, &mut random);
        Leases { host, now, random, asked4: Vec::new(), asked6: Vec::new() }
    }

    fn server4(&self, source: &mut Source) -> Vec<u8> {
        let mut m = self.asked4.get(..240).map(Vec::from).unwrap_or_default();
        if let Some(yours) = m.get_mut(16..20) {
            yours.copy_from_slice(&[10, 0, 5, 9]);
            m[0] = 2;
        }
        m.extend([
            53,
            1,
            [2, 5, 5, 6][source.below(4) as usize],
            54,
            4,
            10,
            0,
            5,
            1,
            51,
            4,
            0,
            0,
            1,
            0,
            1,
            4,
            255,
            255,
            255,
            0,
        ]);
        m.extend(b"\x79\x09\x18\x0a\x09\x07\x0a\0\x05\x03\0\x06\x04\x0a\0\x05\x35\x77\x05\x03lan\0\xff");
        m
    }

    fn server6(&self, source: &mut Source) -> Vec<u8> {
        let Some(duid) = self.asked6.get(4..26) else { return Vec::new() };
        let mut m = vec![[2, 7, 7][source.below(3) as usize], self.asked6[1], self.asked6[2], self.asked6[3]];
        m.extend(duid);
        m.extend([0, 2, 0, 4, 9, 9, 9, 9, 0, 7, 0, 1, 255, 0, 3, 0, 40]);
        let association = self.asked6.windows(3).position(|w| w == [0, 3, 0]).unwrap_or(0);
        m.extend(self.asked6.get(association + 4..association + 8).unwrap_or(&[0; 4]));
        m.extend([0, 0, 0, 50, 0, 0, 0, 80, 0, 5, 0, 24]);
        m.extend(Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 9).octets());
        m.extend(b"\0\0\0\x64\0\0\0\xc8\0\x18\0\x05\x03lan\0");
        m
    }
}

impl Target for Leases {
    fn feed(&mut self, source: &mut Source) {
        match source.below(4) {
            0 => self.now += Duration::from_millis(source.below(100_000)),
            1 => {
                if let Some(address) = self.host.probed() {
                    self.host.conflict(self.now, address.into(), &mut self.random);
                }
            }
            which => {
                let message = if which == 2 { self.server4(source) } else { self.server6(source) };
                let message = match source.chance(0.5) {
                    true => message,
                    false => Examples::new(vec![message], 1500).mutated(source),
                };
                match which {
                    2 => self.host.receive4(self.now, &message, &mut self.random),
                    _ => self.host.receive6(self.now, &message, &mut self.random),
                }
            }
        }
        // As often as something is due: a client that never rests would not let anybody else work.
        for _ in 0..16 {
            for method in Method::ALL {
                match self.host.expire(method, self.now, &mut self.random) {
                    Some(Send::Dhcp4(dhcp4::Send::Message { bytes, .. })) => self.asked4 = bytes,
                    Some(Send::Dhcp6(bytes)) => self.asked6 = bytes,
                    _ => {}
                }
            }
        }
        let next = self.host.deadline(self.now);
        assert!(next.is_none_or(|next| next > self.now), "{next:?} is past {:?}", self.now);
        let known = self.host.known();
        let entries = known.addresses().len() + known.routes().len() + known.name_servers().len();
        assert!(entries + known.search().len() <= ENTRIES_MAX, "{entries} entries");
        let all = [("eft0".to_string(), known)].into();
        assert_eq!(known::parse(&known::text(&all)), all);
    }
}
