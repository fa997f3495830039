//! What hosts learn addresses from: messages of routers and servers, and what a predecessor knew. Whatever they say, lists stay
//! short, and nothing waits for the past.

use super::Target;
use crate::mutate::Examples;
use crate::source::Source;
use core::net::Ipv6Addr;
use core::time::Duration;
use eft_autoconf::host::Host;
use eft_autoconf::identity::Identity;
use eft_autoconf::known::{self, Known};
use eft_autoconf::method::Method;
use eft_autoconf::router::message;
use eft_base::{Instant, Random};

/// As many entries as all lists of one interface may have together.
const ENTRIES_MAX: usize = 64;

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
        let mut host = Host::new("eft0".into(), vec![Method::Slaac], Identity([1, 2]), Known::default());
        host.start(now, &mut random);
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
                    self.host.conflict(taken);
                }
            }
            // What a predecessor knew.
            2 => {
                let mutated =
                    Examples::new(vec![known::text(&[("eft0".into(), self.host.known())].into())], 4000)
                        .mutated(source);
                let known = known::parse(&mutated).remove("eft0").unwrap_or_default();
                self.host = Host::new("eft0".into(), vec![Method::Slaac], Identity([1, 2]), known);
                self.host.start(self.now, &mut self.random);
            }
            _ => {
                if let Some(read) = message::parse(&self.examples.mutated(source)) {
                    self.host.advertised(self.now, from, &read);
                }
            }
        }
        self.host.expire(self.now, &mut self.random);
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
