//! /etc/hosts.

use core::net::IpAddr;

/// The lines: an address and its names, the canonical one first.
fn lines(text: &str) -> impl Iterator<Item = (IpAddr, Vec<&str>)> {
    text.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        Some((address, words.collect()))
    })
}

fn read() -> String {
    std::fs::read("/etc/hosts").map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The addresses of a name, and its canonical name.
pub fn addresses(name: &str) -> Option<(Vec<IpAddr>, String)> {
    find_addresses(&read(), name)
}

fn find_addresses(text: &str, name: &str) -> Option<(Vec<IpAddr>, String)> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut found = Vec::new();
    let mut canonical = None;
    for (address, names) in lines(text) {
        if names.iter().any(|n| n.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
            canonical.get_or_insert_with(|| names[0].to_string());
        }
    }
    if found.is_empty() && name.eq_ignore_ascii_case("localhost") {
        found.push(IpAddr::from([127, 0, 0, 1]));
    }
    let canonical = canonical.unwrap_or_else(|| name.to_string());
    (!found.is_empty()).then_some((found, canonical))
}

/// The names of an address.
pub fn names(address: IpAddr) -> Option<Vec<String>> {
    let text = read();
    let found = lines(&text).find(|(a, names)| *a == address && !names.is_empty())?;
    Some(found.1.iter().map(|n| n.to_string()).collect())
}

#[cfg(test)]
mod tests;
