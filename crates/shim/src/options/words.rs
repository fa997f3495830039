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
