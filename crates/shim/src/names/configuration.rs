//! Which servers to ask: the stack's name server, then those of /etc/resolv.conf.

use crate::domain::domain;
use core::net::IpAddr;

/// As in resolv.conf(5).
pub struct Configuration {
    pub servers: Vec<IpAddr>,
    pub search: Vec<String>,
    pub dots: usize,
    pub timeout_ms: u64,
    pub attempts: u32,
}

/// The configuration of this moment.
pub fn read() -> Configuration {
    let text = std::fs::read("/etc/resolv.conf")
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let mut configuration = parse(&text, crate::interfaces::speak_ipv6());
    if let Some(domain) = domain() {
        let first: IpAddr = domain.info().0.nameserver.into();
        if !first.is_unspecified() {
            configuration.servers.retain(|&s| s != first);
            configuration.servers.insert(0, first);
        }
    }
    configuration
}

fn parse(text: &str, ipv6: bool) -> Configuration {
    let mut c =
        Configuration { servers: Vec::new(), search: Vec::new(), dots: 1, timeout_ms: 5000, attempts: 2 };
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                let server = words.next().and_then(|w| w.parse::<IpAddr>().ok());
                // As in libc: three at most. A stack without IPv6 cannot reach IPv6 servers.
                if let Some(server) = server.filter(|s| ipv6 || s.is_ipv4())
                    && c.servers.len() < 3
                {
                    c.servers.push(server);
                }
            }
            Some("search" | "domain") => c.search = words.map(String::from).collect(),
            Some("options") => words.for_each(|word| set(&mut c, word)),
            _ => {}
        }
    }
    c
}

fn set(c: &mut Configuration, option: &str) {
    let Some((name, Ok(value))) = option.split_once(':').map(|(n, v)| (n, v.parse::<u32>())) else {
        return;
    };
    match name {
        "ndots" => c.dots = value.min(15) as usize,
        "timeout" => c.timeout_ms = value.clamp(1, 30) as u64 * 1000,
        "attempts" => c.attempts = value.clamp(1, 5),
        _ => {}
    }
}

impl Configuration {
    /// The names to try for `name`, in order.
    pub fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_suffix('.') {
            return vec![absolute.to_string()];
        }
        let searched = self.search.iter().map(|domain| {
            let domain = domain.trim_end_matches('.');
            match domain.is_empty() {
                true => name.to_string(),
                false => format!("{name}.{domain}"),
            }
        });
        let dots = name.bytes().filter(|&b| b == b'.').count();
        let mut list: Vec<String> = Vec::new();
        if dots >= self.dots {
            list.push(name.to_string());
        }
        list.extend(searched);
        if dots < self.dots {
            list.push(name.to_string());
        }
        list
    }
}

#[cfg(test)]
mod tests;
