//! TAP devices: frames are segments of up to 64 KB with virtio-net headers; checksums and segmentation are left to the
//! kernel, if it shall have them.

use crate::{Doing, Error, Result};
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsRawFd, OwnedFd};

const IFF_TAP: i16 = 0x0002;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;
const TUN_F_USO4: libc::c_ulong = 0x20;
const TUN_F_USO6: libc::c_ulong = 0x40;
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;

/// Opens the TAP device `name`, and makes it if it does not exist. It exists as long as a descriptor of it is open.
/// Without `offloads`, it gives frames of at most the MTU whose checksums are complete.
pub fn open(name: &str, offloads: bool) -> Result<OwnedFd> {
    let fd = make(name, IFF_VNET_HDR)?;
    let ioctl = |number: libc::c_ulong, argument: *mut libc::c_void| request(&fd, number, argument);
    let mut header_len: libc::c_int = super::virtio::VNET_HEADER_LEN as i32;
    ioctl(TUNSETVNETHDRSZ, (&raw mut header_len).cast()).doing("TUNSETVNETHDRSZ")?;
    let offload = |flags: libc::c_ulong| ioctl(TUNSETOFFLOAD, flags as *mut libc::c_void);
    if !offloads {
        // The device may have had them before.
        offload(0).doing("TUNSETOFFLOAD")?;
        return Ok(fd);
    }
    let segments = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
    // Linux before 6.2 cuts datagrams itself (UDP_SEGMENT).
    offload(segments | TUN_F_USO4 | TUN_F_USO6).or_else(|_| offload(segments)).doing("TUNSETOFFLOAD")?;
    Ok(fd)
}

/// Whether this user may open the device of which TAP devices are made.
pub fn is_permitted() -> bool {
    rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).is_ok()
}

/// The same without offloads and virtio-net headers: frames as they are on an Ethernet.
pub fn open_plain(name: &str) -> Result<OwnedFd> {
    make(name, 0)
}

fn request(
    fd: &OwnedFd,
    number: libc::c_ulong,
    argument: *mut libc::c_void,
) -> std::result::Result<(), std::io::Error> {
    // SAFETY: each request of this file gets the argument type that tun(4) documents.
    match unsafe { libc::ioctl(fd.as_raw_fd(), number as _, argument) } {
        0.. => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn make(name: &str, header: i16) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|e| match e {
        rustix::io::Errno::NOENT => Error::Missing(
            "/dev/net/tun does not exist: load the kernel module `tun`, or use --device packet:IF".into(),
        ),
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => {
            Error::Denied("no permission to open /dev/net/tun: run as root or with CAP_NET_ADMIN".into())
        }
        e => Error::System(format!("cannot open /dev/net/tun: {e}")),
    })?;
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | header;
    self::request(&fd, TUNSETIFF, (&raw mut request).cast()).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => {
            Error::Busy(format!("TAP device {name} is in use by another program: choose another name"))
        }
        Some(libc::EPERM) => Error::Denied(format!(
            "no permission to make TAP device {name}: run as root or with CAP_NET_ADMIN"
        )),
        Some(libc::EINVAL) => {
            Error::Invalid(format!("{name} exists and is not a TAP device: choose another name"))
        }
        _ => Error::System(format!("cannot make TAP device {name}: {e}")),
    })?;
    Ok(fd)
}
