//! Lists of domains in the encoding of DNS (RFC 1035 §3.1), as options of several protocols have them.

use alloc::string::String;
use alloc::vec::Vec;

/// Of one list, more are ignored. resolv.conf(5) had six for long.
pub const DOMAINS_MAX: usize = 6;
/// RFC 1035 §2.3.4, without the last dot.
const NAME_MAX: usize = 253;
const LABEL_MAX: u8 = 63;
const POINTER: u8 = 0xc0;

/// Reads domains that stand one behind another; zeroes between them are padding (RFC 8106 §5.2). What is malformed ends the
/// list. `compressed`: a name may end with a pointer to an earlier place (RFC 3397).
///
/// Only letters, digits, `-` and `_` are accepted: the names go into files that programs read.
pub fn read(bytes: &[u8], compressed: bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() && all.len() < DOMAINS_MAX {
        let Some((name, next)) = name(bytes, at, compressed) else { break };
        if !name.is_empty() && !all.contains(&name) {
            all.push(name);
        }
        at = next;
    }
    all
}

/// A domain that stands there as text.
pub fn from_text(text: &[u8]) -> Option<String> {
    let text = core::str::from_utf8(text).ok()?.trim_end_matches(['\0', '.']);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_MAX.into()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    (text.len() <= NAME_MAX && text.split('.').all(is_label)).then(|| text.into())
}

/// The name that begins at `start`, and where the next one does.
fn name(bytes: &[u8], start: usize, compressed: bool) -> Option<(String, usize)> {
    let mut name = String::new();
    let (mut at, mut next) = (start, None);
    // A pointer leads before the place where the last one led to, so this ends.
    let mut floor = start;
    loop {
        match *bytes.get(at)? {
            0 => return Some((name, next.unwrap_or(at + 1))),
            len @ 1..=LABEL_MAX => {
                let label = bytes.get(at + 1..at + 1 + len as usize)?;
                let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
                if !label.iter().all(is_plain) || name.len() + 1 + label.len() > NAME_MAX {
                    return None;
                }
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(core::str::from_utf8(label).ok()?);
                at += 1 + label.len();
            }
            high if compressed && high & POINTER == POINTER => {
                let to = usize::from(high & !POINTER) << 8 | usize::from(*bytes.get(at + 1)?);
                if to >= floor {
                    return None;
                }
                next = next.or(Some(at + 2));
                (floor, at) = (to, to);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
