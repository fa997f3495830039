//! Network devices, one in each file. The supervisor opens them and keeps the descriptors; a NIC's process drives them.

mod note;
pub mod packet;
pub mod pair;
pub mod ring;
pub mod tap;
mod virtio;
mod vnet;

use crate::error::error;
use crate::protocol::{DeviceKind, DeviceSetup};
use crate::{Error, Result};
use eft_base::PacketRef;
use eft_channel::{Pool, PoolView};
use eft_component::{Device, DeviceError, DeviceInfo, Frame, ReceivedFrame};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

/// A device as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSpec {
    /// `tap:IF`: a TAP device, which is made if it does not exist.
    Tap(String),
    /// `plain-tap:IF`: the same without offloads. The stack segments, and computes and verifies all checksums, so that bytes which
    /// change in its memory between a sum and its verification are found.
    PlainTap(String),
    /// `packet:IF`: AF_PACKET on an existing interface.
    Packet(String),
    /// `pair:PATH`: shared memory to another stack on this machine.
    Pair(String),
}

impl DeviceSpec {
    /// The name of a TAP device.
    pub fn tap(&self) -> Option<&str> {
        match self {
            DeviceSpec::Tap(name) | DeviceSpec::PlainTap(name) => Some(name),
            DeviceSpec::Packet(_) | DeviceSpec::Pair(_) => None,
        }
    }
}

impl FromStr for DeviceSpec {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let expected = "expected tap:IF, plain-tap:IF, packet:IF or pair:PATH";
        let (kind, name) = s.split_once(':').ok_or_else(|| error!(Invalid, "device `{s}`: {expected}"))?;
        let spec = match kind {
            "tap" => DeviceSpec::Tap(name.into()),
            "plain-tap" => DeviceSpec::PlainTap(name.into()),
            "packet" => DeviceSpec::Packet(name.into()),
            "pair" => DeviceSpec::Pair(name.into()),
            _ => return Err(error!(Invalid, "device `{s}`: {expected}")),
        };
        if name.is_empty() || (kind != "pair" && (name.len() > 15 || name.contains('/'))) {
            return Err(error!(
                Invalid,
                "device `{s}`: `{name}` is no interface name (1 to 15 characters, no slash)"
            ));
        }
        Ok(spec)
    }
}

/// A live device of any kind.
pub enum LiveDevice {
    Vnet(vnet::VnetDevice),
    Pair(pair::PairDevice),
}

impl LiveDevice {
    /// Takes over a device that the supervisor opened.
    pub fn adopt(setup: &DeviceSetup, fds: Vec<OwnedFd>) -> Result<LiveDevice> {
        let mut fds = fds.into_iter();
        let first = fds.next().ok_or_else(|| Error::Protocol("the supervisor gave no device".into()))?;
        match setup.kind {
            DeviceKind::Tap | DeviceKind::Packet | DeviceKind::PlainTap => {
                Ok(LiveDevice::Vnet(vnet::VnetDevice::new(first, setup)?))
            }
            DeviceKind::Pair => {
                let rest: Vec<OwnedFd> = fds.collect();
                Ok(LiveDevice::Pair(pair::PairDevice::new(first, rest, setup)?))
            }
        }
    }
}

impl AsFd for LiveDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            LiveDevice::Vnet(d) => d.as_fd(),
            LiveDevice::Pair(d) => d.as_fd(),
        }
    }
}

impl Device for LiveDevice {
    fn info(&mut self) -> DeviceInfo {
        match self {
            LiveDevice::Vnet(d) => d.info(),
            LiveDevice::Pair(d) => d.info(),
        }
    }

    fn send(&mut self, frame: &Frame) -> std::result::Result<(), DeviceError> {
        match self {
            LiveDevice::Vnet(d) => d.send(frame),
            LiveDevice::Pair(d) => d.send(frame),
        }
    }

    fn receive(&mut self, pool: &Pool, slot: PacketRef) -> std::result::Result<ReceivedFrame, DeviceError> {
        match self {
            LiveDevice::Vnet(d) => d.receive(pool, slot),
            LiveDevice::Pair(d) => d.receive(pool, slot),
        }
    }

    fn recover(&mut self, pool: &PoolView, slot: PacketRef) -> Option<ReceivedFrame> {
        match self {
            LiveDevice::Vnet(d) => d.recover(pool, slot),
            LiveDevice::Pair(d) => d.recover(pool, slot),
        }
    }

    fn flush(&mut self) {
        match self {
            LiveDevice::Vnet(d) => d.flush(),
            LiveDevice::Pair(d) => d.flush(),
        }
    }
}

#[cfg(test)]
mod tests;
