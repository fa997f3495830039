//! AF_PACKET on an existing interface, with virtio-net headers.
//!
//! The stack uses the interface's own MAC and the addresses from the command line. A rule in the interface's ingress
//! hook (nftables, family netdev) keeps the kernel from answering for those addresses; that hook sees frames after
//! packet sockets do.

use super::ring;
use crate::protocol::RingShape;
use crate::{Doing, Error, Result};
use eft_base::{Cidr, MacAddress};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

const PACKET_VNET_HDR: i32 = 15;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const ETH_P_ALL: u16 = 0x0003;

/// The size of the socket's receive buffer (bytes as the kernel counts them): some milliseconds of frames at full
/// speed.
const RECEIVE_BUFFER: usize = 32 << 20;

/// An opened interface.
pub struct Opened {
    pub fd: OwnedFd,
    pub mac: MacAddress,
    pub mtu: u16,
    pub ring: Option<RingShape>,
}

/// Opens `interface`.
pub fn open(interface: &str) -> Result<Opened> {
    let index = crate::host::interface_index(interface)?;
    let mac = crate::host::mac(interface)?;
    let mtu = crate::host::mtu(interface)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0: nothing is received until bind names the interface.
    let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None::<Protocol>)
        .map_err(|e| match e {
            rustix::io::Errno::PERM => {
                Error::Denied("no permission for a packet socket: run as root or with CAP_NET_RAW".into())
            }
            e => Error::System(format!("packet socket: {e}")),
        })?;
    ring::set(&fd, PACKET_VNET_HDR, &1i32).doing("PACKET_VNET_HDR")?;
    ring::set(&fd, PACKET_IGNORE_OUTGOING, &1i32).doing("PACKET_IGNORE_OUTGOING")?;
    // Frames that arrive while the NIC's process is replaced wait in this buffer.
    // In a user namespace it is as long as the machine lets it be.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER)
        .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER))
        .doing("SO_RCVBUF")?;
    // Where the kernel has no memory for one, each frame takes a system call.
    let ring = ring::attach(&fd, mtu).ok();
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ETH_P_ALL.to_be();
    address.sll_ifindex = index as i32;
    // SAFETY: a sockaddr_ll of the right length.
    let bound = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    if bound < 0 {
        return Err(std::io::Error::last_os_error())
            .doing(format_args!("cannot bind to interface {interface}"));
    }
    receive_groups(&fd, index)?;
    Ok(Opened { fd, mac, mtu, ring })
}

/// Makes the interface receive multicast frames to all groups: IPv6 asks for an address in a group that depends on that
/// address.
fn receive_groups(fd: &OwnedFd, index: u32) -> Result<()> {
    // SAFETY: all-zero is a valid packet_mreq.
    let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
    request.mr_ifindex = index as i32;
    request.mr_type = libc::PACKET_MR_ALLMULTI as u16;
    ring::set(fd, libc::PACKET_ADD_MEMBERSHIP, &request).doing("PACKET_ADD_MEMBERSHIP")
}

/// The rule that keeps the kernel from answering; dropping this removes it.
pub struct Silencer {
    table: String,
}

impl Silencer {
    /// Drops what arrives on `interface` for `addresses` before the kernel's own stack sees it.
    pub fn install(stack: &str, interface: &str, addresses: &[Cidr]) -> Result<Silencer> {
        let table = format!("eft_{}_{}", clean(stack), clean(interface));
        let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) =
            addresses.iter().map(|a| a.address).partition(IpAddr::is_ipv4);
        let mut script = format!(
            "add table netdev {table}\ndelete table netdev {table}\nadd table netdev {table}\n\
             add chain netdev {table} ingress {{ type filter hook ingress device \"{interface}\" priority -500; }}\n"
        );
        // The kernel does not answer for IPv6 addresses that are not its own, but it would record the neighbours'
        // answers.
        for (set, matches) in [(v4, &["ip daddr", "arp daddr ip"][..]), (v6, &["ip6 daddr"])] {
            let set: Vec<String> = set.iter().map(ToString::to_string).collect();
            for what in matches.iter().filter(|_| !set.is_empty()) {
                let set = set.join(", ");
                script += &format!("add rule netdev {table} ingress {what} {{ {set} }} drop\n");
            }
        }
        let help = "cannot keep the kernel from answering for the stack's addresses (nft)";
        let mut child = Command::new("nft")
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::Missing(format!("{help}: {e}: install the package nftables")))?;
        use std::io::Write;
        child.stdin.take().map(|mut i| i.write_all(script.as_bytes()));
        let output = child.wait_with_output().doing(help)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(Error::System(format!("{help}: {}", text.lines().next().unwrap_or("failed"))));
        }
        Ok(Silencer { table })
    }

    /// Leaves the rule in place, for a successor, which replaces it, or for [`remove_table`].
    pub fn leave(self) {
        std::mem::forget(self);
    }

    /// The nftables table that holds the rule.
    pub fn table(&self) -> &str {
        &self.table
    }
}

/// Removes a rule that a [`Silencer`] left behind.
pub fn remove_table(table: &str) {
    let _ = Command::new("nft").args(["delete", "table", "netdev", table]).stderr(Stdio::null()).status();
}

fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

impl Drop for Silencer {
    fn drop(&mut self) {
        remove_table(&self.table);
    }
}
