//! DNS messages (RFC 1035 §4). What a server sends is checked, not trusted.

use core::net::IpAddr;

pub const TYPE_A: u16 = 1;
pub const TYPE_PTR: u16 = 12;
/// RFC 3596 §2.1.
pub const TYPE_AAAA: u16 = 28;
pub const CLASS_IN: u16 = 1;

pub const NO_ERROR: u8 = 0;
pub const NAME_ERROR: u8 = 3;

const HEADER_LEN: usize = 12;
const NAME_MAX: usize = 255;
/// Compression pointers followed in one name.
const POINTERS_MAX: usize = 32;

/// A query for one name; `None` if the name is invalid.
pub fn query(id: u16, name: &str, kind: u16, class: u16) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + name.len() + 6);
    bytes.extend(id.to_be_bytes());
    // Recursion desired; one question.
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_MAX - 2 {
        return None;
    }
    for label in name.split('.').filter(|_| !name.is_empty()) {
        if label.is_empty() || label.len() > 63 {
            return None;
        }
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(class.to_be_bytes());
    Some(bytes)
}

/// One record of the answer section.
pub struct Record {
    pub owner: String,
    pub kind: u16,
    /// Where its data lies in the message.
    pub data: core::ops::Range<usize>,
}

/// A response that answers the query it was made for.
pub struct Response<'a> {
    bytes: &'a [u8],
    pub code: u8,
    pub answers: Vec<Record>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Where the question of a query ends; the query may have come from a program.
fn question_end(query: &[u8]) -> Option<usize> {
    let mut at = HEADER_LEN;
    loop {
        match *query.get(at)? as usize {
            0 => return Some(at + 5).filter(|&end| end <= query.len()),
            len @ 1..=63 => at += 1 + len,
            _ => return None,
        }
    }
}

/// Whether `bytes` is a response to `query`: same id, same question.
pub fn answers(bytes: &[u8], query: &[u8]) -> bool {
    let Some(end) = question_end(query) else {
        return false;
    };
    bytes.len() >= end
        && bytes[..2] == query[..2]
        && bytes[2] & 0x80 != 0
        && u16_at(bytes, 4) == Some(1)
        && bytes[HEADER_LEN..end].eq_ignore_ascii_case(&query[HEADER_LEN..end])
}

/// Parses a response to `query`; `None` if it is malformed.
pub fn parse<'a>(bytes: &'a [u8], query: &[u8]) -> Option<Response<'a>> {
    if !answers(bytes, query) {
        return None;
    }
    let mut response = Response { bytes, code: bytes[3] & 15, answers: Vec::new() };
    let mut at = question_end(query)?;
    for _ in 0..u16_at(bytes, 6)? {
        let (owner, next) = name_at(bytes, at)?;
        let kind = u16_at(bytes, next)?;
        let class = u16_at(bytes, next + 2)?;
        let len = u16_at(bytes, next + 8)? as usize;
        let data = next + 10..next + 10 + len;
        bytes.get(data.clone())?;
        at = data.end;
        if class == CLASS_IN {
            response.answers.push(Record { owner, kind, data });
        }
    }
    Some(response)
}

impl Response<'_> {
    /// The addresses, and the name that has them.
    pub fn addresses(&self) -> Vec<(IpAddr, &str)> {
        let address = |r: &Record| {
            let octets = self.bytes.get(r.data.clone())?;
            match r.kind {
                TYPE_A => <[u8; 4]>::try_from(octets).map(IpAddr::from).ok(),
                TYPE_AAAA => <[u8; 16]>::try_from(octets).map(IpAddr::from).ok(),
                _ => None,
            }
        };
        self.answers.iter().filter_map(|r| Some((address(r)?, r.owner.as_str()))).collect()
    }

    /// The names that PTR records give.
    pub fn names(&self) -> Vec<String> {
        self.answers
            .iter()
            .filter(|r| r.kind == TYPE_PTR)
            .filter_map(|r| name_at(self.bytes, r.data.start).map(|(name, _)| name))
            .collect()
    }
}

/// The name at `at`, and where what follows it begins.
fn name_at(bytes: &[u8], at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut next = None;
    let mut at = at;
    let mut pointers = 0;
    loop {
        let len = *bytes.get(at)? as usize;
        match len {
            0 => return Some((name, next.unwrap_or(at + 1))),
            1..=63 => {
                let label = bytes.get(at + 1..at + 1 + len)?;
                if !name.is_empty() {
                    name.push('.');
                }
                if name.len() + len > NAME_MAX {
                    return None;
                }
                // As in libc: an invalid host name does not count as an answer.
                let fine = |b: &u8| b.is_ascii_alphanumeric() || b"-_".contains(b);
                if !label.iter().all(fine) {
                    return None;
                }
                name.push_str(core::str::from_utf8(label).ok()?);
                at += 1 + len;
            }
            0xc0..=0xff => {
                pointers += 1;
                if pointers > POINTERS_MAX {
                    return None;
                }
                next.get_or_insert(at + 2);
                at = (u16_at(bytes, at)? & 0x3fff) as usize;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_base::Random;

    fn response(query: &[u8]) -> Vec<u8> {
        let mut bytes = query.to_vec();
        bytes[2] |= 0x80;
        bytes[7] = 2;
        // www CNAME web (compressed), web A 10.0.0.1.
        bytes.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 6, 3, b'w', b'e', b'b', 0xc0, 16]);
        let web = (bytes.len() - 6) as u8;
        bytes.extend([0xc0, web, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 10, 0, 0, 1]);
        bytes
    }

    #[test]
    fn aliases_are_followed() {
        let query = query(7, "www.x", TYPE_A, CLASS_IN).unwrap();
        let bytes = response(&query);
        let parsed = parse(&bytes, &query).unwrap();
        assert_eq!(parsed.addresses(), [([10, 0, 0, 1].into(), "web.x")]);
        let other = super::query(8, "www.x", TYPE_A, CLASS_IN).unwrap();
        assert!(parse(&bytes, &other).is_none());
    }

    #[test]
    fn addresses_of_ipv6_are_read() {
        let query = query(7, "x", TYPE_AAAA, CLASS_IN).unwrap();
        let mut bytes = query.clone();
        (bytes[2], bytes[7]) = (0x81, 2);
        let address: IpAddr = "2001:db8::7".parse().unwrap();
        let IpAddr::V6(v6) = address else { panic!() };
        bytes.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 9, 0, 16]);
        bytes.extend(v6.octets());
        // One of the wrong length.
        bytes.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 9, 0, 4, 10, 0, 0, 1]);
        assert_eq!(parse(&bytes, &query).unwrap().addresses(), [(address, "x")]);
    }

    #[test]
    fn invalid_names_are_refused() {
        assert!(query(1, "a..b", TYPE_A, CLASS_IN).is_none());
        assert!(query(1, &"a".repeat(64), TYPE_A, CLASS_IN).is_none());
        assert!(query(1, &"a.".repeat(200), TYPE_A, CLASS_IN).is_none());
    }

    #[test]
    fn damaged_responses_never_panic() {
        let seed = 42;
        let mut random = Random::new(seed);
        let query = query(7, "www.x", TYPE_A, CLASS_IN).unwrap();
        let good = response(&query);
        for round in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            if bytes.len() >= query.len() {
                bytes[..query.len()].copy_from_slice(&good[..query.len()]);
            }
            if let Some(parsed) = parse(&bytes, &query) {
                assert!(parsed.addresses().len() <= 2, "seed {seed} round {round}");
            }
        }
    }
}
