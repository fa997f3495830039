//! Netlink messages (RFC 3549), to and from bytes. Numbers are the host's own, addresses the network's.

pub const ERROR: u16 = 2;
pub const DONE: u16 = 3;
pub const MULTI: u16 = 2;
pub const HEADER_LEN: usize = 16;

/// A request: what it asks, and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub body: &'a [u8],
    pub header: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The number at an offset of a body; 0 if the body is too short, as most are that ask for everything.
pub fn number(body: &[u8], at: usize) -> u32 {
    if body.len() >= at + 4 { u32_at(body, at) } else { 0 }
}

/// The requests of a datagram. A truncated one at its end is ignored.
pub fn requests(bytes: &[u8]) -> Vec<Request<'_>> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while rest.len() >= HEADER_LEN {
        let len = u32_at(rest, 0) as usize;
        if len < HEADER_LEN || len > rest.len() {
            break;
        }
        let (header, body) = rest[..len].split_at(HEADER_LEN);
        all.push(Request {
            kind: u16_at(rest, 4),
            flags: u16_at(rest, 6),
            sequence: u32_at(rest, 8),
            body,
            header,
        });
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// The value of an attribute after `fixed` bytes of a body.
pub fn attribute(body: &[u8], fixed: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = body.get(fixed..)?;
    while rest.len() >= 4 {
        let (len, kind) = (u16_at(rest, 0) as usize, u16_at(rest, 2));
        if len < 4 || len > rest.len() {
            return None;
        }
        if kind == wanted {
            return Some(&rest[4..len]);
        }
        rest = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}

/// A message that is being written.
pub struct Message(Vec<u8>);

impl Message {
    pub fn new(kind: u16, flags: u16, sequence: u32, port: u32) -> Message {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(port.to_ne_bytes());
        Message(bytes)
    }

    /// Appends to the fixed part.
    pub fn fixed(mut self, bytes: &[u8]) -> Message {
        self.0.extend(bytes);
        self
    }

    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend((value.len() as u16 + 4).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self
    }

    /// A name, with its NUL.
    pub fn text(self, kind: u16, value: &str) -> Message {
        self.attribute(kind, &[value.as_bytes(), b"\0"].concat())
    }

    pub fn done(mut self) -> Vec<u8> {
        // The last attribute's padding counts, as in the kernel's.
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests;
