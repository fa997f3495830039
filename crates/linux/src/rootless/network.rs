//! The devices of a private stack.
//!
//! Without privilege nothing leads out of a network namespace. The other end of the stack's device is the namespace's
//! own kernel.

use crate::devices::DeviceSpec;
use crate::{Error, Result, host};
use eft_base::Cidr;
use std::process::{Command, Stdio};

const DEVICE: &str = "eft0";
/// The kernel's end, if it is not the device itself.
const FAR: &str = "host0";

/// What the stack is to be told.
#[derive(Clone, Debug)]
pub struct Network {
    pub device: DeviceSpec,
    /// Of the kernel's end of a TAP device.
    pub host_addresses: Vec<Cidr>,
}

/// Makes the device in this namespace. The kernel gets `host_addresses`.
pub fn make(host_addresses: &[Cidr]) -> Result<Network> {
    host::configure("lo", &[])?;
    if crate::devices::tap::is_permitted() {
        return Ok(Network {
            device: DeviceSpec::Tap(DEVICE.into()),
            host_addresses: host_addresses.to_vec(),
        });
    }
    // Distributions let everybody open /dev/net/tun; where it is forbidden, a pair of interfaces does the same.
    add_pair()?;
    // The kernel would otherwise speak IPv6 on the stack's interface, too.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{DEVICE}/disable_ipv6"), "1");
    host::configure(DEVICE, &[])?;
    host::configure(FAR, host_addresses)?;
    Ok(Network { device: DeviceSpec::Packet(DEVICE.into()), host_addresses: Vec::new() })
}

fn add_pair() -> Result<()> {
    let ip = ["link", "add", DEVICE, "type", "veth", "peer", "name", FAR];
    let what = "neither a TAP device (/dev/net/tun) nor a pair of interfaces can be made";
    let done = Command::new("ip").args(ip).stdin(Stdio::null()).output();
    let done = done.map_err(|e| Error::Missing(format!("{what}: ip: {e}: install the package iproute2")))?;
    match done.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&done.stderr);
            Err(Error::System(format!("{what}: {}", text.lines().next().unwrap_or("ip failed"))))
        }
    }
}
