//! One interface that gets addresses by itself: all of its methods, and what they know together.

use crate::dhcp6::Mode;
use crate::identity::Identity;
use crate::known::Known;
use crate::method::Method;
use crate::router::Discovery;
use crate::router::message::Advertisement;
use crate::{dhcp4, dhcp6};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use eft_base::{Instant, MacAddress, Random};

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Send {
    /// A router solicitation.
    Solicit,
    Dhcp4(dhcp4::Send),
    /// To all DHCPv6 servers.
    Dhcp6(Vec<u8>),
}

pub struct Host {
    pub interface: String,
    pub methods: Vec<Method>,
    discovery: Option<Discovery>,
    client4: Option<dhcp4::Client>,
    client6: Option<dhcp6::Client>,
    /// No other host has the link-local address from which DHCPv6 servers are asked.
    may_ask6: bool,
}

impl Host {
    /// `known`: what a predecessor knew.
    pub fn new(interface: String, methods: Vec<Method>, identity: Identity, known: Known) -> Host {
        let has = |method| methods.contains(&method);
        let discovery =
            has(Method::Slaac).then(|| Discovery::new(interface.clone(), identity, known.advertised));
        let client4 = has(Method::Dhcp4).then(|| dhcp4::Client::new(&interface, &identity, known.lease4));
        let client6 = has(Method::Dhcp6).then(|| dhcp6::Client::new(&interface, &identity, known.lease6));
        Host { interface, methods, discovery, client4, client6, may_ask6: false }
    }

    /// The link, where the interface has this address, came up, or ip is reborn.
    pub fn start(&mut self, now: Instant, mac: MacAddress, random: &mut Random) {
        self.discovery.iter_mut().for_each(|d| d.start(now, random));
        self.client4.iter_mut().for_each(|c| c.start(now, mac, random));
        self.may_ask6 = false;
    }

    /// The link-local address is sure, too (RFC 8415 §17.2).
    pub fn start6(&mut self, now: Instant, random: &mut Random) {
        self.may_ask6 = true;
        self.client6.iter_mut().for_each(|c| c.start(now, random));
        self.set_mode(now, random);
    }

    /// The DHCPv6 client, when it may send.
    fn asking6(&mut self) -> Option<&mut dhcp6::Client> {
        self.client6.as_mut().filter(|_| self.may_ask6)
    }

    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let discovery = self.discovery.as_ref().and_then(|d| d.deadline(now));
        let client4 = self.client4.as_ref().and_then(|c| c.deadline());
        let client6 = self.client6.as_ref().filter(|_| self.may_ask6).and_then(|c| c.deadline(now));
        discovery.into_iter().chain(client4).chain(client6).min()
    }

    /// Lets lifetimes of what a method has brought end, and says what is to be sent for it.
    pub fn expire(&mut self, method: Method, now: Instant, random: &mut Random) -> Option<Send> {
        match method {
            Method::Slaac => self.discovery.as_mut()?.expire(now, random).then_some(Send::Solicit),
            Method::Dhcp4 => self.client4.as_mut()?.expire(now, random).map(Send::Dhcp4),
            Method::Dhcp6 => self.asking6()?.expire(now, random).map(Send::Dhcp6),
        }
    }

    /// Ends a method, and all that it has brought.
    pub fn give_up(&mut self, method: Method) {
        match method {
            Method::Slaac => self.discovery = None,
            Method::Dhcp4 => self.client4 = None,
            Method::Dhcp6 => self.client6 = None,
        }
    }

    /// See [`Discovery::receive`].
    pub fn advertised(&mut self, now: Instant, from: Ipv6Addr, a: &Advertisement, random: &mut Random) {
        self.discovery.iter_mut().for_each(|d| d.receive(now, from, a));
        self.set_mode(now, random);
    }

    /// What the DHCPv6 client does: what routers say (RFC 4861 §4.2), or, without SLAAC, what it is there for.
    fn set_mode(&mut self, now: Instant, random: &mut Random) {
        let mode = match &self.discovery {
            None => Mode::Addresses,
            Some(d) if d.managed => Mode::Addresses,
            Some(d) if d.other => Mode::Information,
            Some(_) => Mode::Nothing,
        };
        if let Some(client) = self.asking6() {
            client.set_mode(now, mode, random);
        }
    }

    /// Another host has this address. What is then to be sent.
    pub fn conflict(&mut self, now: Instant, address: IpAddr, random: &mut Random) -> Option<Send> {
        match address {
            IpAddr::V6(address) => {
                self.discovery.iter_mut().for_each(|d| d.conflict(address));
                self.client6.iter_mut().for_each(|c| c.conflict(now, address, random));
                None
            }
            IpAddr::V4(address) => {
                let client = self.client4.as_mut().filter(|c| c.probed() == Some(address));
                client.and_then(|c| c.conflict(now, random)).map(Send::Dhcp4)
            }
        }
    }

    /// The address that is tried out.
    pub fn probed(&self) -> Option<Ipv4Addr> {
        self.client4.as_ref().and_then(dhcp4::Client::probed)
    }

    /// Whether a message of a DHCPv4 server may be for it.
    pub fn awaits_server4(&self) -> bool {
        self.client4.as_ref().is_some_and(dhcp4::Client::awaits_answer)
    }

    /// A message to the DHCPv4 client's port.
    pub fn receive4(&mut self, now: Instant, bytes: &[u8], random: &mut Random) {
        self.client4.iter_mut().for_each(|c| c.receive(now, bytes, random));
    }

    pub fn awaits_server6(&self) -> bool {
        self.client6.as_ref().is_some_and(dhcp6::Client::awaits_answer)
    }

    /// A message to the DHCPv6 client's port.
    pub fn receive6(&mut self, now: Instant, bytes: &[u8], random: &mut Random) {
        self.client6.iter_mut().for_each(|c| c.receive(now, bytes, random));
    }

    /// The stack ends: what was lent is given back.
    pub fn release(&mut self, now: Instant, random: &mut Random) -> Vec<Send> {
        let four = self.client4.as_mut().and_then(|c| c.release(now, random)).map(Send::Dhcp4);
        let six = self.client6.as_mut().and_then(|c| c.release(random)).map(Send::Dhcp6);
        four.into_iter().chain(six).collect()
    }

    pub fn known(&self) -> Known {
        let advertised = self.discovery.as_ref().map(|d| d.advertised.clone());
        let lease6 = self.client6.as_ref().and_then(|c| c.lease.clone());
        let lease4 = self.client4.as_ref().and_then(|c| c.lease.clone());
        Known { advertised: advertised.unwrap_or_default(), lease4, lease6 }
    }
}
