//! Asks name servers: UDP, then TCP if the answer was cut short (RFC 1035 §4.2, RFC 7766).

use super::configuration::Configuration;
use super::message;
use crate::buffers::Buffers;
use crate::sys::{self, Errno, Result};
use crate::table::{self, Entry};
use crate::{address, establish, fdops, real, transfer};
use core::ffi::c_int;
use core::net::IpAddr;
use eft_base::Endpoint;

const PORT: u16 = 53;
const DATAGRAM_MAX: usize = 4096;

/// A socket of ours that closes itself.
struct Connection(c_int);

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = fdops::close(self.0);
    }
}

impl Connection {
    /// Connects to a server; through the stack, unless the server is on the loopback.
    fn open(server: IpAddr, stream: bool, timeout_ms: u64) -> Result<Connection> {
        let kind = if stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
        let inet6 = server.is_ipv6();
        let domain = if inet6 { libc::AF_INET6 } else { libc::AF_INET };
        let fd = sys::socket(domain, kind | libc::SOCK_CLOEXEC)?;
        let connection = Connection(fd);
        table::set(
            fd,
            Entry::Undecided { stream, inet6, plain: false, begun: false, segment: false, congestion: false },
        );
        connection.limit(timeout_ms)?;
        let (storage, len) = address::to_storage(Endpoint::new(server, PORT), inet6);
        // SAFETY: the address is ours.
        unsafe { establish::connect(fd, (&raw const storage).cast(), len as libc::socklen_t)? };
        Ok(connection)
    }

    fn limit(&self, timeout_ms: u64) -> Result<()> {
        let mut timeout = [0; 16];
        timeout[..8].copy_from_slice(&(timeout_ms / 1000).to_ne_bytes());
        timeout[8..].copy_from_slice(&(timeout_ms % 1000 * 1000).to_ne_bytes());
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            sys::set_option(self.0, libc::SOL_SOCKET, name, &timeout)?;
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> Result<()> {
        let buffer = transfer::buffer(bytes.as_ptr().cast(), bytes.len());
        let Some(socket) = table::socket(self.0) else {
            // SAFETY: our bytes.
            let n = unsafe { real::send.get()(self.0, buffer.iov_base, bytes.len(), libc::MSG_NOSIGNAL) };
            return if n < 0 { Err(crate::errno::get()) } else { Ok(()) };
        };
        // SAFETY: our bytes.
        let buffers = unsafe { Buffers::one(&buffer)? };
        transfer::send(self.0, socket?, buffers, libc::MSG_NOSIGNAL).map(drop)
    }

    fn receive(&self, to: &mut [u8], flags: c_int) -> Result<usize> {
        let buffer = transfer::buffer(to.as_mut_ptr().cast(), to.len());
        loop {
            let got = match table::socket(self.0) {
                // SAFETY: our bytes, in both arms.
                Some(socket) => unsafe { transfer::receive(self.0, socket?, Buffers::one(&buffer)?, flags) },
                None => {
                    // SAFETY: our bytes.
                    let n = unsafe { real::recv.get()(self.0, buffer.iov_base, to.len(), flags) };
                    if n < 0 { Err(crate::errno::get()) } else { Ok(n as usize) }
                }
            };
            match got {
                Err(Errno(libc::EINTR)) => {}
                other => return other,
            }
        }
    }
}

/// Sends `query` to the servers in turn until one answers.
pub fn exchange(configuration: &Configuration, query: &[u8]) -> Result<Vec<u8>> {
    let mut last = Errno(libc::ECONNREFUSED);
    for _ in 0..configuration.attempts {
        for &server in &configuration.servers {
            match ask(server, query, configuration.timeout_ms) {
                Ok(answer) if is_final(&answer) => return Ok(answer),
                Ok(_) => last = Errno(libc::EAGAIN),
                Err(errno) => last = errno,
            }
        }
    }
    Err(last)
}

/// Whether no other server needs to be asked.
fn is_final(answer: &[u8]) -> bool {
    matches!(answer[3] & 15, message::NO_ERROR | message::NAME_ERROR)
}

fn ask(server: IpAddr, query: &[u8], timeout_ms: u64) -> Result<Vec<u8>> {
    let connection = Connection::open(server, false, timeout_ms)?;
    connection.send(query)?;
    let mut bytes = vec![0; DATAGRAM_MAX];
    // A stray answer to an earlier try does not end the wait.
    for _ in 0..16 {
        let n = connection.receive(&mut bytes, 0)?;
        if message::answers(&bytes[..n], query) {
            bytes.truncate(n);
            return match bytes[2] & 2 {
                0 => Ok(bytes),
                _ => ask_by_stream(server, query, timeout_ms),
            };
        }
    }
    Err(Errno(libc::ETIMEDOUT))
}

fn ask_by_stream(server: IpAddr, query: &[u8], timeout_ms: u64) -> Result<Vec<u8>> {
    let connection = Connection::open(server, true, timeout_ms)?;
    let framed = [&(query.len() as u16).to_be_bytes(), query].concat();
    connection.send(&framed)?;
    let mut len = [0; 2];
    if connection.receive(&mut len, libc::MSG_WAITALL)? != 2 {
        return Err(Errno(libc::ECONNRESET));
    }
    let mut bytes = vec![0; u16::from_be_bytes(len) as usize];
    let n = connection.receive(&mut bytes, libc::MSG_WAITALL)?;
    match n == bytes.len() && message::answers(&bytes, query) {
        true => Ok(bytes),
        false => Err(Errno(libc::EPROTO)),
    }
}

/// An id that others cannot guess.
pub fn random_id() -> u16 {
    let mut bytes = [0; 2];
    // SAFETY: our bytes.
    unsafe {
        let _ = sys::call(libc::SYS_getrandom, [bytes.as_mut_ptr() as usize, 2, 0, 0, 0, 0]);
    }
    u16::from_ne_bytes(bytes)
}
