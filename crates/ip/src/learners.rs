//! The interfaces that get addresses by themselves: which they are, and what they know ([`crate::autoconf`]).

use crate::config::Config;
use alloc::vec::Vec;
use eft_autoconf::host::Host;
use eft_autoconf::identity::Identity;
use eft_autoconf::known::{self, All, Known};
use eft_base::Instant;

/// The keys of the store with what is known, and with the secret for identifiers.
pub(crate) const KNOWN: &str = "autoconf";
pub(crate) const IDENTITY: &str = "identity";
/// The key by which the supervisor says that the stack ends.
pub(crate) const RELEASE: &str = "release";

/// All interfaces that get addresses by themselves.
#[derive(Default)]
pub(crate) struct Learners {
    identity: Identity,
    /// What a predecessor knew, until its interface is configured.
    remembered: All,
    pub hosts: Vec<(u8, Host)>,
    /// What the supervisor was told last.
    pub told: All,
    pub tell_after: Instant,
    pub due: Option<Instant>,
}

impl Learners {
    pub fn remember(&mut self, text: &[u8]) {
        self.remembered = known::parse(text);
        self.told = self.remembered.clone();
    }

    pub fn set_identity(&mut self, text: &[u8]) {
        let text = core::str::from_utf8(text).unwrap_or_default();
        self.identity = Identity::parse(text).unwrap_or_default();
    }

    /// Returns the interfaces that have methods now and had others before.
    pub fn configure(&mut self, config: &Config) -> Vec<u8> {
        let of = |index| config.interface.iter().find(|i| i.index == index);
        self.hosts.retain(|(n, host)| {
            of(*n).is_some_and(|i| (&i.name, &i.auto) == (&host.interface, &host.methods))
        });
        let mut new = Vec::new();
        for i in config.interface.iter().filter(|i| !i.auto.is_empty()) {
            if self.hosts.iter().all(|(n, _)| *n != i.index) {
                let known = self.remembered.remove(&i.name).unwrap_or_default();
                let host = Host::new(i.name.clone(), i.auto.clone(), self.identity, known);
                self.hosts.push((i.index, host));
                new.push(i.index);
            }
        }
        new
    }

    pub fn host(&mut self, nic: u8) -> Option<&mut Host> {
        self.hosts.iter_mut().find(|(n, _)| *n == nic).map(|(_, host)| host)
    }

    pub fn known(&self) -> All {
        let all = self.hosts.iter().map(|(_, host)| (host.interface.clone(), host.known()));
        all.filter(|(_, known)| *known != Known::default()).collect()
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }
}
