//! What is compared: after each step, names with values, without times and without numbers that a host chooses.

use std::collections::BTreeMap;

pub type Observation = BTreeMap<String, String>;

/// Bytes by their number and a sum of what they are.
pub fn digest(data: &[u8]) -> String {
    // FNV-1a: nobody makes collisions on purpose.
    let sum =
        data.iter().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{} bytes #{sum:08x}", data.len())
}

/// The name of an error as C has it.
pub fn error_name(number: i32) -> String {
    let known = [
        (libc::EAGAIN, "EAGAIN"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::EALREADY, "EALREADY"),
        (libc::EISCONN, "EISCONN"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::EINVAL, "EINVAL"),
        (libc::EPIPE, "EPIPE"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ECONNABORTED, "ECONNABORTED"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::EBADF, "EBADF"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ENOPROTOOPT, "ENOPROTOOPT"),
        (libc::EDESTADDRREQ, "EDESTADDRREQ"),
        (libc::EMSGSIZE, "EMSGSIZE"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::EACCES, "EACCES"),
        (libc::EPROTO, "EPROTO"),
        (libc::EDOM, "EDOM"),
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
    ];
    known
        .iter()
        .find(|(n, _)| *n == number)
        .map_or_else(|| format!("error {number}"), |(_, name)| name.to_string())
}

/// The names in which two observations differ, with both values.
pub fn differences(kernel: &Observation, eft: &Observation) -> Vec<(String, String, String)> {
    let names: std::collections::BTreeSet<&String> = kernel.keys().chain(eft.keys()).collect();
    let value = |of: &Observation, name: &String| of.get(name).cloned().unwrap_or_else(|| "nothing".into());
    names
        .into_iter()
        .map(|name| (name.clone(), value(kernel, name), value(eft, name)))
        .filter(|(_, kernel, eft)| kernel != eft)
        .collect()
}
