//! When a stack is ready whose interfaces get addresses from the network.
//!
//! It waits until each of them has an address of each IP version for which it has a method. That may never come: a network
//! has perhaps one version, or no server. So the wait is bounded, and shorter when there is an address of the other version.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use eft_autoconf::known::All;
use eft_autoconf::method::Method;
use eft_base::Instant;

/// How long an interface that has an address waits for one of the other version: a question that was lost is repeated after four
/// seconds (RFC 2131 §4.1, RFC 4861 §6.3.7), and the address is tried out.
const OTHER_VERSION: Duration = Duration::from_secs(8);

/// What is waited for, and for how long.
#[derive(Debug)]
pub struct Readiness {
    /// Interfaces, and their methods.
    wanted: Vec<(String, Vec<Method>)>,
    until: Instant,
    /// For the other version.
    then_until: Option<Instant>,
}

/// Whether the stack is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Wait,
    /// Without addresses of these interfaces by these methods.
    Ready(Vec<(String, Vec<Method>)>),
}

impl Readiness {
    /// Servers began at `now`; `patience` is how long the network has.
    pub fn new<'a>(
        interfaces: impl Iterator<Item = (&'a str, &'a [Method])>,
        now: Instant,
        patience: Duration,
    ) -> Readiness {
        let wanted = interfaces.filter(|(_, methods)| !methods.is_empty());
        Readiness {
            wanted: wanted.map(|(name, methods)| (name.into(), methods.to_vec())).collect(),
            until: now + patience,
            then_until: None,
        }
    }

    /// Looks at what is known now.
    pub fn look(&mut self, known: &All, now: Instant) -> Verdict {
        let mut missing = Vec::new();
        let mut all_have_one = true;
        for (name, methods) in &self.wanted {
            let addresses = known.get(name).map(|known| known.addresses()).unwrap_or_default();
            let has = |ipv6: bool| addresses.iter().any(|a| a.cidr.address.is_ipv6() == ipv6);
            let lacks: Vec<Method> = methods.iter().copied().filter(|m| !has(m.needs_ipv6())).collect();
            all_have_one &= !addresses.is_empty();
            if !lacks.is_empty() {
                missing.push((name.clone(), lacks));
            }
        }
        if all_have_one && !missing.is_empty() {
            self.then_until.get_or_insert(now + OTHER_VERSION);
        }
        let until = self.then_until.map_or(self.until, |then| then.min(self.until));
        if missing.is_empty() || now >= until { Verdict::Ready(missing) } else { Verdict::Wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_autoconf::known::Known;
    use eft_autoconf::{dhcp4, dhcp6};

    const S: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Instant {
        Instant::ZERO + S * seconds
    }

    /// What is known of eth0: a lease of each version that is named.
    fn having(v4: bool, v6: bool) -> All {
        let lease4 = dhcp4::Lease {
            address: [10, 0, 0, 9].into(),
            prefix_len: 24,
            server: [10, 0, 0, 1].into(),
            renew: None,
            rebind: None,
            until: None,
            routes: Vec::new(),
            name_servers: Vec::new(),
            search: Vec::new(),
        };
        let address = dhcp6::Address { address: "fd00::9".parse().unwrap(), preferred: None, valid: None };
        let lease6 = dhcp6::Lease {
            server: Vec::new(),
            addresses: vec![address],
            renew: None,
            rebind: None,
            name_servers: Vec::new(),
            search: Vec::new(),
        };
        let known = Known { lease4: v4.then_some(lease4), lease6: v6.then_some(lease6), ..Known::default() };
        [("eth0".into(), known)].into()
    }

    fn waiting(methods: &[Method]) -> Readiness {
        Readiness::new([("eth0", methods), ("eth1", &[])].into_iter(), at(0), S * 30)
    }

    #[test]
    fn a_stack_without_methods_is_ready_at_once() {
        assert_eq!(waiting(&[]).look(&All::new(), at(0)), Verdict::Ready(Vec::new()));
    }

    #[test]
    fn an_address_is_waited_for_and_the_wait_is_bounded() {
        let mut readiness = waiting(&[Method::Dhcp4]);
        assert_eq!(readiness.look(&All::new(), at(0)), Verdict::Wait);
        assert_eq!(readiness.look(&having(false, true), at(1)), Verdict::Wait, "of the other version");
        assert_eq!(readiness.look(&having(true, false), at(2)), Verdict::Ready(Vec::new()));
        let mut readiness = waiting(&[Method::Dhcp4]);
        assert_eq!(readiness.look(&All::new(), at(29)), Verdict::Wait);
        let missing = vec![("eth0".into(), vec![Method::Dhcp4])];
        assert_eq!(readiness.look(&All::new(), at(30)), Verdict::Ready(missing));
    }

    #[test]
    fn who_has_an_address_waits_for_the_other_version_for_a_shorter_time() {
        let mut readiness = waiting(&Method::ALL);
        assert_eq!(readiness.look(&All::new(), at(5)), Verdict::Wait);
        assert_eq!(readiness.look(&having(false, true), at(10)), Verdict::Wait);
        assert_eq!(readiness.look(&having(true, true), at(11)), Verdict::Ready(Vec::new()));
        assert_eq!(readiness.look(&having(false, true), at(17)), Verdict::Wait);
        let missing = vec![("eth0".into(), vec![Method::Dhcp4])];
        assert_eq!(readiness.look(&having(false, true), at(18)), Verdict::Ready(missing));
    }
}
