//! Tells a service manager that the stack is ready (sd_notify(3): one datagram to `$NOTIFY_SOCKET`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Without a service manager nothing is told. One that cannot be reached is its own problem: the stack runs.
pub fn ready() {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(e) = tell(path.as_encoded_bytes(), b"READY=1") {
        eprintln!("eft: the service manager at $NOTIFY_SOCKET cannot be told that the stack is ready: {e}");
    }
}

fn tell(path: &[u8], message: &[u8]) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests;
