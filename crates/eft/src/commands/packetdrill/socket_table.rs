//! The stack's TCP sockets as Linux's `/proc/net/tcp` and `/proc/net/tcp6` show the kernel's (proc_net_tcp.txt in its
//! documentation), for scripts that look there with `grep`.

use anyhow::{Result, bail};
use eft_base::Endpoint;
use eft_linux::{memory, operator};
use eft_messages::Role;
use eft_transport::tcp::inspect::{self, Row};
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;

const HEAD: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

/// `grep` with these arguments, as which it ends: in place of the kernel's tables it reads the stack's.
pub fn grep(stack: &str, arguments: &[String]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut rows = None;
    let mut instead = Vec::new();
    for argument in arguments {
        let ipv6 = match argument.as_str() {
            "/proc/net/tcp" => false,
            "/proc/net/tcp6" => true,
            _ => {
                instead.push(OsString::from(argument));
                continue;
            }
        };
        if rows.is_none() {
            rows = Some(sockets(stack)?);
        }
        let file = folder.path().join(if ipv6 { "tcp6" } else { "tcp" });
        std::fs::write(&file, table(rows.iter().flatten(), ipv6))?;
        instead.push(file.into());
    }
    let mut command = Command::new("grep");
    command.args(instead).env("PATH", path_without_tools());
    // grep ends with the status that the script wants, and without it: its files must outlive it.
    match rows {
        None => bail!(command.exec()),
        Some(_) => {
            let status = command.status()?;
            drop(folder);
            std::process::exit(status.code().unwrap_or(2));
        }
    }
}

/// The PATH behind the folder of tools with which it begins ([`super::kernel_tools::path`]).
fn path_without_tools() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::env::split_paths(&path).skip(1)).unwrap_or_default()
}

fn sockets(stack: &str) -> Result<Vec<Row>> {
    let (answer, fds) = operator::ask(stack, &json!({ "op": "arenas" }))?;
    let mut rows = Vec::new();
    for (name, fd) in answer["arenas"].as_array().into_iter().flatten().zip(&fds) {
        if name.as_str().and_then(crate::commands::role_of) == Some(Role::Tcp) {
            rows.extend(inspect::list(&memory::map(fd, false)?).unwrap_or_default());
        }
    }
    Ok(rows)
}

/// The rows of a version of IP. What the stack has no number for is 0.
fn table<'a>(rows: impl Iterator<Item = &'a Row>, ipv6: bool) -> String {
    let mut text = HEAD.to_string();
    for (number, row) in rows.filter(|row| row.local.address.is_ipv6() == ipv6).enumerate() {
        let (local, remote, state) = (place(row.local, ipv6), place(row.remote, ipv6), row.state as u8);
        let (unsent, unread, retransmits) = (row.send_queue, row.receive_queue, row.backoff);
        let _ = writeln!(
            text,
            "{number:4}: {local} {remote} {state:02X} {unsent:08X}:{unread:08X} 00:00000000 {retransmits:08X} \
             {0:5} {0:8} 0",
            0
        );
    }
    text
}

/// An address in words of the machine's byte order, and a port.
fn place(endpoint: Endpoint, ipv6: bool) -> String {
    let mut text = String::new();
    let bytes = match endpoint.address {
        IpAddr::V4(a) if !ipv6 => a.octets().to_vec(),
        IpAddr::V4(_) => vec![0; 16],
        IpAddr::V6(a) if ipv6 => a.octets().to_vec(),
        IpAddr::V6(_) => vec![0; 4],
    };
    for word in bytes.chunks_exact(4) {
        let _ = write!(text, "{:08X}", u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    let _ = write!(text, ":{:04X}", endpoint.port);
    text
}

#[cfg(test)]
mod tests;
