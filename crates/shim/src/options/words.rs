//! The numbers that words of the transport take.

use crate::sys::{Errno, Result};
use core::ffi::c_int;
use core::ops::RangeInclusive;
use eft_channel::socket::{Opt, SocketPage};
use libc::IPPROTO_IP;

/// The values that the kernel takes for a word of the transport.
pub(super) fn range_of(opt: Opt) -> RangeInclusive<c_int> {
    match opt {
        Opt::KeepIdle | Opt::KeepInterval => 1..=32767,
        Opt::KeepCount | Opt::SynCount => 1..=127,
        Opt::Ttl => 1..=255,
        _ => 0..=c_int::MAX,
    }
}

/// RFC 6298 §2: the first time-out of a SYN-ACK, in seconds; each is twice the one before, up to Linux's limit.
const FIRST_TIMEOUT: u32 = 1;
const LAST_TIMEOUT: u32 = 120;
const TIMEOUTS_MAX: u32 = 255;

/// TCP_DEFER_ACCEPT: as many time-outs of a SYN-ACK as take these seconds, as Linux counts them.
pub(super) fn timeouts_within(seconds: c_int) -> u32 {
    let seconds = seconds.max(0) as u32;
    let enough = |timeouts: &u32| seconds_of(*timeouts) as u32 >= seconds;
    (0..TIMEOUTS_MAX).find(enough).unwrap_or(TIMEOUTS_MAX)
}

/// The seconds that so many time-outs take.
pub(super) fn seconds_of(timeouts: u32) -> c_int {
    let each = (0..timeouts.min(TIMEOUTS_MAX)).map(|n| (FIRST_TIMEOUT << n.min(16)).min(LAST_TIMEOUT));
    each.sum::<u32>() as c_int
}

/// IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS: -1 is the default (ip(7), RFC 3493 §5.2).
pub(super) fn set_multicast_hops(page: &SocketPage, number: c_int) -> Result<()> {
    if !(-1..=255).contains(&number) {
        return Err(Errno(libc::EINVAL));
    }
    page.set_option(Opt::MulticastHops, (number + 1) as u32);
    Ok(())
}

/// What was set, or 1.
pub(super) fn multicast_hops(page: &SocketPage) -> c_int {
    page.option(Opt::MulticastHops).checked_sub(1).map_or(1, |set| set as c_int)
}

/// Whether a switch takes this number, as Linux has it: IP_MULTICAST_LOOP takes any, the others 0 and 1, but for
/// IPV6_MULTICAST_ALL.
pub(super) fn check_switch(opt: Opt, level: c_int, number: c_int) -> Result<()> {
    let any = (opt == Opt::NoMulticastLoop) == (level == IPPROTO_IP);
    match any || (0..=1).contains(&number) {
        true => Ok(()),
        false => Err(Errno(libc::EINVAL)),
    }
}
