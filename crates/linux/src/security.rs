//! What a component's process may do, as the kernel says: `eft ps --security`.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// Namespaces that are compared.
const NAMESPACES: [&str; 4] = ["user", "mnt", "net", "ipc"];
/// Capabilities that a component may keep, by their numbers in linux/capability.h.
const CAPABILITIES: [(u32, &str); 8] = [
    (1, "dac_override"),
    (5, "kill"),
    (14, "ipc_lock"),
    (17, "sys_rawio"),
    (21, "sys_admin"),
    (23, "sys_nice"),
    (24, "sys_resource"),
    (38, "perfmon"),
];

/// The restrictions of a process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    uid: u32,
    capabilities: Vec<String>,
    /// No program that it starts gains privileges.
    no_new_privileges: bool,
    system_calls_filtered: bool,
    /// Namespaces that its parent does not share.
    own_namespaces: Vec<String>,
}

impl Security {
    /// The restrictions of a living process; `None` if it has ended, or belongs to another user or to a user
    /// namespace in which this process has no right.
    pub fn of(pid: u64) -> Option<Security> {
        let folder = format!("/proc/{pid}");
        let status = std::fs::read_to_string(Path::new(&folder).join("status")).ok()?;
        let parent: u64 = field(&status, "PPid")?.parse().ok()?;
        let of = |pid: u64, name: &str| std::fs::read_link(format!("/proc/{pid}/ns/{name}")).ok();
        let mut own = Vec::new();
        for name in NAMESPACES {
            if of(pid, name)? != of(parent, name)? {
                own.push(name.into());
            }
        }
        Some(Security { own_namespaces: own, ..Security::parse(&status)? })
    }

    /// From the text of `/proc/PID/status`, which says nothing of namespaces.
    fn parse(status: &str) -> Option<Security> {
        let effective = u64::from_str_radix(field(status, "CapEff")?, 16).ok()?;
        let name = |bit: u32| {
            let known = CAPABILITIES.iter().find(|(number, _)| *number == bit);
            known.map_or_else(|| format!("capability {bit}"), |(_, name)| (*name).into())
        };
        Some(Security {
            uid: field(status, "Uid")?.split_whitespace().nth(1)?.parse().ok()?,
            capabilities: (0..64).filter(|bit| effective >> bit & 1 != 0).map(name).collect(),
            no_new_privileges: field(status, "NoNewPrivs")? == "1",
            system_calls_filtered: field(status, "Seccomp")? == "2",
            own_namespaces: Vec::new(),
        })
    }

    /// Cells of a row under [`HEADER`].
    pub fn row(&self) -> Vec<String> {
        let words = |list: &[String]| if list.is_empty() { "none".into() } else { list.join(" ") };
        vec![
            self.uid.to_string(),
            words(&self.capabilities),
            if self.no_new_privileges { "never" } else { "by setuid" }.into(),
            if self.system_calls_filtered { "listed" } else { "all" }.into(),
            words(&self.own_namespaces),
        ]
    }
}

/// Titles of a row, after those of the component and its process.
pub const HEADER: [&str; 5] = ["USER", "CAPABILITIES", "NEW-PRIVILEGES", "SYSTEM-CALLS", "OWN-NAMESPACES"];

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let of = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    status.lines().find_map(of)
}

#[cfg(test)]
mod tests;
