//! Makes an application's calls, and says in words how each ended.

use crate::observation::{Observation, digest, error_name};
use crate::peer::{PORT, Place};
use crate::program::{APPLICATION, Call, Kind, Place as Where, content};
use core::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A call's outcome: words, and the descriptor that it made.
pub struct Outcome {
    pub words: String,
    pub made: Option<c_int>,
}

fn error() -> String {
    error_name(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Zero or an error.
fn plain(result: c_int) -> Outcome {
    Outcome { words: if result < 0 { error() } else { result.to_string() }, made: None }
}

fn descriptor(result: c_int) -> Outcome {
    if result < 0 { plain(result) } else { Outcome { words: "a descriptor".into(), made: Some(result) } }
}

fn written(result: isize) -> Outcome {
    Outcome { words: if result < 0 { error() } else { format!("{result} bytes") }, made: None }
}

/// An address as C has it, and its length.
struct CAddress(libc::sockaddr_storage, libc::socklen_t);

impl CAddress {
    fn empty() -> CAddress {
        // SAFETY: all zeroes is a sockaddr_storage.
        CAddress(unsafe { core::mem::zeroed() }, size_of::<libc::sockaddr_storage>() as u32)
    }

    fn of(address: SocketAddr) -> CAddress {
        let mut c = CAddress::empty();
        match address {
            SocketAddr::V4(a) => {
                let to = (&raw mut c.0).cast::<libc::sockaddr_in>();
                // SAFETY: a sockaddr_storage has room for it, and its alignment.
                unsafe {
                    (*to).sin_family = libc::AF_INET as u16;
                    (*to).sin_port = a.port().to_be();
                    (*to).sin_addr.s_addr = u32::from(*a.ip()).to_be();
                }
                c.1 = size_of::<libc::sockaddr_in>() as u32;
            }
            SocketAddr::V6(a) => {
                let to = (&raw mut c.0).cast::<libc::sockaddr_in6>();
                // SAFETY: as above.
                unsafe {
                    (*to).sin6_family = libc::AF_INET6 as u16;
                    (*to).sin6_port = a.port().to_be();
                    (*to).sin6_addr.s6_addr = a.ip().octets();
                }
                c.1 = size_of::<libc::sockaddr_in6>() as u32;
            }
        }
        c
    }

    /// The address in words: with names for the program's own, since these differ from run to run.
    fn words(&self, place: Place) -> String {
        let (ip, port): (IpAddr, u16) = match c_int::from(self.0.ss_family) {
            libc::AF_INET => {
                let from = (&raw const self.0).cast::<libc::sockaddr_in>();
                // SAFETY: the family says what it is.
                let (ip, port) = unsafe { ((*from).sin_addr.s_addr, (*from).sin_port) };
                (Ipv4Addr::from(u32::from_be(ip)).into(), u16::from_be(port))
            }
            libc::AF_INET6 => {
                let from = (&raw const self.0).cast::<libc::sockaddr_in6>();
                // SAFETY: as above.
                let (ip, port) = unsafe { ((*from).sin6_addr.s6_addr, (*from).sin6_port) };
                (Ipv6Addr::from(ip).into(), u16::from_be(port))
            }
            family => return format!("family {family}"),
        };
        let ip = match ip {
            ip if ip == place.host => "host".into(),
            ip if ip == place.peer => "peer".into(),
            ip => ip.to_string(),
        };
        let near = |base: u16| port.checked_sub(base).filter(|number| *number < 4);
        let port = match (near(place.port), near(PORT)) {
            (Some(number), _) => format!("port {number}"),
            (_, Some(number)) => format!("peer's port {number}"),
            _ if port == 0 => "no port".into(),
            _ => "a port".into(),
        };
        format!("{ip}, {port}, length {}", self.1)
    }
}

/// Makes a call that opens a socket.
pub fn open(v6: bool, kind: Kind, nonblocking: bool) -> Outcome {
    let kind = match kind {
        Kind::Stream => libc::SOCK_STREAM,
        Kind::Datagram => libc::SOCK_DGRAM,
    };
    let flags = libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: plain numbers.
    descriptor(unsafe { libc::socket(if v6 { libc::AF_INET6 } else { libc::AF_INET }, kind | flags, 0) })
}

/// Makes a call on a descriptor. `sent` is where its data begin in what the application sends.
pub fn make(call: &Call, fd: c_int, place: Place, sent: u64) -> Outcome {
    match call {
        Call::Socket { .. } => unreachable!("it has no descriptor yet"),
        Call::Bind { place: to, port } => {
            let ip = match (to, place.host) {
                (Where::Own, host) => host,
                (Where::Foreign, _) => place.peer,
                (Where::Any, IpAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
                (Where::Any, IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let c = CAddress::of((ip, place.port + u16::from(*port)).into());
            // SAFETY: an address of that length.
            plain(unsafe { libc::bind(fd, (&raw const c.0).cast(), c.1) })
        }
        // SAFETY: plain numbers.
        Call::Listen { backlog } => plain(unsafe { libc::listen(fd, *backlog) }),
        Call::Connect { port } => {
            let c = CAddress::of((place.peer, PORT + u16::from(*port)).into());
            // SAFETY: an address of that length.
            plain(unsafe { libc::connect(fd, (&raw const c.0).cast(), c.1) })
        }
        Call::Accept { nonblocking, .. } => accept(fd, *nonblocking, place),
        Call::Receive { len, flags } => receive(fd, *len, *flags, place),
        Call::Send { len, flags } => {
            let data = outgoing(sent, *len);
            // SAFETY: bytes that live for the call.
            written(unsafe { libc::send(fd, data.as_ptr().cast(), data.len(), *flags | libc::MSG_NOSIGNAL) })
        }
        Call::SendTo { port, len } => {
            let (data, c) =
                (outgoing(sent, *len), CAddress::of((place.peer, PORT + u16::from(*port)).into()));
            let (from, to) = (data.as_ptr().cast(), (&raw const c.0).cast());
            // SAFETY: bytes and an address that live for the call.
            written(unsafe { libc::sendto(fd, from, data.len(), libc::MSG_NOSIGNAL, to, c.1) })
        }
        Call::WriteParts { lengths } => write_parts(fd, lengths, sent),
        // SAFETY: plain numbers.
        Call::Shutdown { how } => plain(unsafe { libc::shutdown(fd, *how) }),
        Call::Set { level, option, value } => set(fd, *level, *option, value),
        Call::Get { level, option } => get(fd, *level, *option),
        Call::Linger { on, seconds } => {
            let value = libc::linger { l_onoff: i32::from(*on), l_linger: *seconds };
            set(fd, libc::SOL_SOCKET, libc::SO_LINGER, &value)
        }
        Call::Name => name(fd, place, libc::getsockname),
        Call::PeerName => name(fd, place, libc::getpeername),
        Call::Nonblocking { on } => {
            let mut on = c_int::from(*on);
            // SAFETY: a number that lives for the call.
            plain(unsafe { libc::ioctl(fd, libc::FIONBIO, &raw mut on) })
        }
        // SAFETY: plain numbers.
        Call::Duplicate { .. } => descriptor(unsafe { libc::dup(fd) }),
        // SAFETY: the slot that had it is empty.
        Call::Close => plain(unsafe { libc::close(fd) }),
    }
}

fn outgoing(sent: u64, len: u32) -> Vec<u8> {
    (sent..sent + u64::from(len)).map(|at| content(APPLICATION, at)).collect()
}

fn accept(fd: c_int, nonblocking: bool, place: Place) -> Outcome {
    let mut c = CAddress::empty();
    let flags = libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: an address with its room.
    let made = unsafe { libc::accept4(fd, (&raw mut c.0).cast(), &raw mut c.1, flags) };
    let mut outcome = descriptor(made);
    if made >= 0 {
        outcome.words = format!("a descriptor, from {}", c.words(place));
    }
    outcome
}

fn receive(fd: c_int, len: u32, flags: c_int, place: Place) -> Outcome {
    let mut data = vec![0_u8; len as usize];
    let mut c = CAddress::empty();
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast::<c_void>(), iov_len: data.len() };
    // SAFETY: all zeroes is a msghdr.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_name, message.msg_namelen) = ((&raw mut c.0).cast(), c.1);
    // SAFETY: our own buffers, for the call.
    let got = unsafe { libc::recvmsg(fd, &raw mut message, flags) };
    if got < 0 {
        return written(got);
    }
    let mut words = format!("{got}: {}", digest(&data[..(got as usize).min(data.len())]));
    if message.msg_flags != 0 {
        words += &format!(", flags {:#x}", message.msg_flags);
    }
    c.1 = message.msg_namelen;
    if c.1 != 0 {
        words += &format!(", from {}", c.words(place));
    }
    Outcome { words, made: None }
}

fn write_parts(fd: c_int, lengths: &[u32], sent: u64) -> Outcome {
    let data = outgoing(sent, lengths.iter().sum());
    let mut rest = &data[..];
    let parts: Vec<libc::iovec> = lengths
        .iter()
        .map(|len| {
            let (part, after) = rest.split_at(*len as usize);
            rest = after;
            libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() }
        })
        .collect();
    // SAFETY: bytes that live for the call, which only reads them.
    written(unsafe { libc::writev(fd, parts.as_ptr(), parts.len() as c_int) })
}

fn set<T>(fd: c_int, level: c_int, option: c_int, value: &T) -> Outcome {
    let len = size_of::<T>() as u32;
    // SAFETY: a plain value that lives for the call.
    plain(unsafe { libc::setsockopt(fd, level, option, core::ptr::from_ref(value).cast(), len) })
}

fn get(fd: c_int, level: c_int, option: c_int) -> Outcome {
    let mut value = [0_u8; 16];
    let mut len = value.len() as u32;
    // SAFETY: a buffer with its room.
    let got = unsafe { libc::getsockopt(fd, level, option, value.as_mut_ptr().cast(), &raw mut len) };
    if got < 0 {
        return plain(got);
    }
    let value = &value[..(len as usize).min(16)];
    let words = match (level, option, <[u8; 4]>::try_from(value).map(i32::from_ne_bytes)) {
        (libc::SOL_SOCKET, libc::SO_ERROR, Ok(number)) if number != 0 => error_name(number),
        (_, _, Ok(number)) => number.to_string(),
        _ => format!("{value:?}"),
    };
    Outcome { words, made: None }
}

type AskName = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

fn name(fd: c_int, place: Place, ask: AskName) -> Outcome {
    let mut c = CAddress::empty();
    // SAFETY: an address with its room.
    let got = unsafe { ask(fd, (&raw mut c.0).cast(), &raw mut c.1) };
    if got < 0 { plain(got) } else { Outcome { words: c.words(place), made: None } }
}

/// What is to be seen of a socket without a change to it.
pub fn observe(fd: c_int, kind: Kind, name: &str, into: &mut Observation) {
    let mut asked = libc::pollfd {
        fd,
        events: libc::POLLIN | libc::POLLPRI | libc::POLLOUT | libc::POLLRDHUP,
        revents: 0,
    };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut asked, 1, 0) };
    let bits = [
        (libc::POLLIN, "IN"),
        (libc::POLLPRI, "PRI"),
        (libc::POLLOUT, "OUT"),
        (libc::POLLRDHUP, "RDHUP"),
        (libc::POLLERR, "ERR"),
        (libc::POLLHUP, "HUP"),
        (libc::POLLNVAL, "NVAL"),
    ];
    let ready: Vec<&str> =
        bits.iter().filter(|(bit, _)| asked.revents & bit != 0).map(|(_, name)| *name).collect();
    into.insert(format!("{name} ready"), ready.join(" "));
    for (what, request) in [("unread", libc::FIONREAD), ("unsent", libc::TIOCOUTQ)] {
        let mut count: c_int = -1;
        // SAFETY: a number that lives for the call.
        let got = unsafe { libc::ioctl(fd, request, &raw mut count) };
        into.insert(format!("{name} {what}"), if got < 0 { error() } else { count.to_string() });
    }
    if kind == Kind::Stream {
        into.insert(format!("{name} state"), state(fd));
    }
}

/// The first field of TCP_INFO, by its name in RFC 9293.
fn state(fd: c_int) -> String {
    const NAMES: [&str; 13] = [
        "0",
        "ESTABLISHED",
        "SYN-SENT",
        "SYN-RECEIVED",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "CLOSED",
        "CLOSE-WAIT",
        "LAST-ACK",
        "LISTEN",
        "CLOSING",
        "12",
    ];
    let mut info = [0_u8; 8];
    let mut len = info.len() as u32;
    // SAFETY: a buffer with its room.
    let got = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut len)
    };
    match got {
        0 => NAMES.get(usize::from(info[0])).map_or_else(|| info[0].to_string(), |name| name.to_string()),
        _ => error(),
    }
}
