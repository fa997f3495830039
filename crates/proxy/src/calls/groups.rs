//! Options about groups: interfaces have other numbers on the stack than in the kernel, which shows the program its own.

use libc::{IPPROTO_IP, IPPROTO_IPV6, c_int};
use std::ffi::CString;

const IP_MSFILTER: c_int = 41;
const MCAST_MSFILTER: c_int = 48;

/// Whether `getsockopt` reads a question.
pub fn is_filter(level: c_int, name: c_int) -> bool {
    matches!((level, name), (IPPROTO_IP, IP_MSFILTER | MCAST_MSFILTER) | (IPPROTO_IPV6, MCAST_MSFILTER))
}

/// Where an option has the number of an interface, if its value is so long.
fn number_at(level: c_int, name: c_int) -> Option<usize> {
    match (level, name) {
        // `struct ip_mreqn`, `struct ipv6_mreq`, and `struct group_req` and those that begin like it.
        (IPPROTO_IP, libc::IP_MULTICAST_IF | libc::IP_ADD_MEMBERSHIP | libc::IP_DROP_MEMBERSHIP) => Some(8),
        (IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP | libc::IPV6_DROP_MEMBERSHIP) => Some(16),
        (IPPROTO_IPV6, libc::IPV6_MULTICAST_IF) => Some(0),
        (IPPROTO_IP | IPPROTO_IPV6, libc::MCAST_JOIN_GROUP..=MCAST_MSFILTER) => Some(0),
        _ => None,
    }
}

/// Puts the stack's number of an interface into the place of the kernel's. One that the kernel does not have stays.
pub fn translate(level: c_int, name: c_int, value: &mut [u8]) {
    let Some(at) = number_at(level, name) else { return };
    let Some(number) = value.get_mut(at..at + 4) else { return };
    let asked = u32::from_ne_bytes([number[0], number[1], number[2], number[3]]);
    if let Some(ours) = (asked != 0).then(|| name_in_kernel(asked)).flatten().and_then(number_on_stack) {
        number.copy_from_slice(&ours.to_ne_bytes());
    }
}

/// The kernel's name of an interface. libc's own functions are the library's here, and tell the stack's; sysfs shows the network of
/// who mounted it.
fn name_in_kernel(number: u32) -> Option<CString> {
    let table = std::fs::read_to_string("/proc/self/net/igmp").ok()?;
    CString::new(name_in(&table, number)?).ok()
}

/// The interface's name in the kernel's table of memberships, which has a line for each: number and name, a tab between them.
fn name_in(table: &str, number: u32) -> Option<&str> {
    let mut lines = table.lines().filter_map(|line| line.split_once('\t'));
    let (_, rest) = lines.find(|(first, _)| first.parse() == Ok(number))?;
    rest.split_whitespace().next()
}

fn number_on_stack(name: CString) -> Option<u32> {
    // SAFETY: NUL-terminated.
    let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_named_by_the_kernels_table() {
        let table = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                     1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                     7\teft0      :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n";
        assert_eq!(
            (name_in(table, 7), name_in(table, 1), name_in(table, 2)),
            (Some("eft0"), Some("lo"), None)
        );
    }

    #[test]
    fn only_numbers_of_interfaces_that_are_known_are_changed() {
        let mreqn = |index: u32| [[239, 1, 1, 1], [0; 4], index.to_ne_bytes()].concat();
        for index in [0, u32::MAX] {
            let mut value = mreqn(index);
            translate(IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &mut value);
            assert_eq!(value, mreqn(index));
        }
        // Too short for a number, and another option.
        for (name, len) in [(libc::IP_ADD_MEMBERSHIP, 8), (libc::IP_TTL, 12)] {
            let mut value = vec![1; len];
            translate(IPPROTO_IP, name, &mut value);
            assert_eq!(value, vec![1; len]);
        }
    }
}
