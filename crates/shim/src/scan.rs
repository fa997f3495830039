//! Finding the domain's sockets again among descriptors that this program did not make: after exec,
//! and among those that another process of the domain sent.

use crate::domain::domain;
use crate::table::{self, Entry};
use crate::{address, looking, loopback, sys};
use core::ffi::c_int;

/// Whether this is a socket of the kind that eft descriptors are.
pub fn may_be_eft(fd: c_int) -> bool {
    sys::get_option_int(fd, libc::SOL_SOCKET, libc::SO_TYPE) == Ok(libc::SOCK_SEQPACKET)
        && sys::get_option_int(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) == Ok(libc::AF_UNIX)
}

fn is_internet(fd: c_int) -> Option<Entry> {
    let inet6 = match sys::get_option_int(fd, libc::SOL_SOCKET, libc::SO_DOMAIN) {
        Ok(libc::AF_INET) => false,
        Ok(libc::AF_INET6) => true,
        _ => return None,
    };
    let protocol = sys::get_option_int(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL);
    let stream = match protocol {
        Ok(libc::IPPROTO_TCP) => true,
        Ok(libc::IPPROTO_UDP) => false,
        _ => return None,
    };
    Some(Entry::Undecided { stream, inet6, plain: false, begun: false, segment: false, congestion: false })
}

/// Notes those of `candidates` (descriptor, inode) that are sockets of the domain.
pub fn adopt(candidates: &[(c_int, u64)]) {
    let Some(domain) = domain() else { return };
    if candidates.is_empty() {
        return;
    }
    let mut left = candidates.len();
    for slot in 0..domain.arena.touched() {
        let (kind, own) = domain.identity(slot);
        if kind == 0 || own == 0 {
            continue;
        }
        for &(fd, inode) in candidates {
            if own == inode
                && table::fits(fd)
                && let Some(socket) = domain.socket(slot)
            {
                table::set(fd, Entry::Eft { slot, incarnation: socket.page.incarnation() });
                // It is another process's, too.
                looking::part(socket);
                left -= 1;
            }
        }
        if left == 0 {
            return;
        }
    }
}

/// All open descriptors, by /proc, or by trying if there is none (after chroot).
pub fn open_descriptors() -> Vec<c_int> {
    let listed: Vec<c_int> = std::fs::read_dir("/proc/self/fd")
        .map(|dir| dir.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_default();
    let mut fds = listed;
    if fds.is_empty() {
        fds = (0..65536).collect();
    }
    fds.retain(|&fd| sys::fcntl(fd, libc::F_GETFD, 0).is_ok());
    fds
}

/// A fresh kernel socket of an Internet domain may yet become an eft socket.
pub fn adopt_undecided(fd: c_int) {
    if let Some(entry) = is_internet(fd)
        && is_fresh(fd)
    {
        table::set(fd, entry);
    }
}

/// After exec: checks all inherited descriptors.
pub fn inherited() {
    let mut candidates = Vec::new();
    let mut kernel = Vec::new();
    for fd in open_descriptors() {
        if table::get(fd) != Entry::Foreign {
            continue;
        }
        let Ok((inode, mode)) = sys::identity(fd) else {
            continue;
        };
        if mode & libc::S_IFMT != libc::S_IFSOCK {
            continue;
        }
        if may_be_eft(fd) {
            candidates.push((fd, inode));
        } else if let Some(entry) = is_internet(fd) {
            kernel.push((fd, inode, entry));
        }
    }
    adopt(&candidates);
    for (fd, inode, entry) in kernel {
        if !loopback::adopt(fd, inode, &candidates) && is_fresh(fd) {
            table::set(fd, entry);
        }
    }
}

/// A kernel socket that is neither bound nor connected.
fn is_fresh(fd: c_int) -> bool {
    address::of_socket(fd, false).is_some_and(|e| e.port == 0)
}
