//! One interface that gets addresses by itself: all of its methods, and what they know together.

use crate::identity::Identity;
use crate::known::Known;
use crate::method::Method;
use crate::router::Discovery;
use crate::router::message::Advertisement;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use eft_base::{Instant, Random};

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Send {
    /// A router solicitation.
    Solicit,
}

pub struct Host {
    pub interface: String,
    pub methods: Vec<Method>,
    discovery: Option<Discovery>,
}

impl Host {
    /// `known`: what a predecessor knew.
    pub fn new(interface: String, methods: Vec<Method>, identity: Identity, known: Known) -> Host {
        let discovery = methods
            .contains(&Method::Slaac)
            .then(|| Discovery::new(interface.clone(), identity, known.advertised));
        Host { interface, methods, discovery }
    }

    /// The link came up, or ip is reborn.
    pub fn start(&mut self, now: Instant, random: &mut Random) {
        self.discovery.iter_mut().for_each(|d| d.start(now, random));
    }

    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.discovery.as_ref().and_then(|d| d.deadline(now))
    }

    /// Lets lifetimes end, and says what is to be sent.
    pub fn expire(&mut self, now: Instant, random: &mut Random) -> Vec<Send> {
        let solicits = self.discovery.as_mut().is_some_and(|d| d.expire(now, random));
        solicits.then_some(Send::Solicit).into_iter().collect()
    }

    /// See [`Discovery::receive`].
    pub fn advertised(&mut self, now: Instant, from: Ipv6Addr, a: &Advertisement) {
        self.discovery.iter_mut().for_each(|d| d.receive(now, from, a));
    }

    /// Another host has this address.
    pub fn conflict(&mut self, address: Ipv6Addr) {
        self.discovery.iter_mut().for_each(|d| d.conflict(address));
    }

    pub fn known(&self) -> Known {
        let advertised = self.discovery.as_ref().map(|d| d.advertised.clone());
        Known { advertised: advertised.unwrap_or_default() }
    }
}
