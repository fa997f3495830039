//! The cursor over AML bytes: constants, package lengths (20.2.4), name strings (20.2.2).

use super::Error;
use super::path::{Name, Seg};
use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const END: Error = Error::Malformed("it ends in the middle of a term");
/// A longer name can only be an attack.
const SEGMENTS_MAX: usize = 32;

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub fn peek_second(&self) -> Option<u8> {
        self.bytes.get(self.at + 1).copied()
    }

    pub fn byte(&mut self) -> Result<u8, Error> {
        let byte = self.peek().ok_or(END)?;
        self.at += 1;
        Ok(byte)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length).ok_or(END)?;
        let taken = self.bytes.get(self.at..end).ok_or(END)?;
        self.at = end;
        Ok(taken)
    }

    /// Little-endian, of 1 to 8 bytes.
    pub fn integer(&mut self, length: usize) -> Result<u64, Error> {
        Ok(self.take(length)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub fn string(&mut self) -> Result<&'a [u8], Error> {
        let length =
            self.rest().iter().position(|byte| *byte == 0).ok_or(Error::Malformed("a string has no end"))?;
        let text = self.take(length)?;
        self.at += 1;
        Ok(text)
    }

    /// The number that a package length encodes.
    pub fn package_length(&mut self) -> Result<usize, Error> {
        let lead = self.byte()?;
        let following = usize::from(lead >> 6);
        if following == 0 {
            return Ok(usize::from(lead & 0x3f));
        }
        let high = self.integer(following)? as usize;
        Ok(high << 4 | usize::from(lead & 0x0f))
    }

    /// A package: the bytes that its length spans, without the bytes of the length itself.
    pub fn package(&mut self) -> Result<Reader<'a>, Error> {
        let start = self.at;
        let length = self.package_length()?;
        let used = self.at - start;
        let length =
            length.checked_sub(used).ok_or(Error::Malformed("a package is shorter than its own length"))?;
        let inside =
            self.take(length).map_err(|_| Error::Malformed("a package reaches beyond its surroundings"))?;
        Ok(Reader::new(inside))
    }

    pub fn segment(&mut self) -> Result<Seg, Error> {
        let taken = self.take(4)?;
        let segment = [taken[0], taken[1], taken[2], taken[3]];
        let is_lead = |byte: u8| byte == b'_' || byte.is_ascii_uppercase();
        if is_lead(segment[0]) && segment[1..].iter().all(|byte| is_lead(*byte) || byte.is_ascii_digit()) {
            Ok(segment)
        } else {
            Err(Error::Malformed("a name has impossible letters"))
        }
    }

    pub fn name(&mut self) -> Result<Name, Error> {
        let mut name = Name::default();
        if self.peek() == Some(b'\\') {
            self.at += 1;
            name.absolute = true;
        }
        while self.peek() == Some(b'^') {
            self.at += 1;
            name.parents += 1;
            if name.parents > SEGMENTS_MAX {
                return Err(Error::Malformed("a name climbs too far"));
            }
        }
        let count = match self.peek() {
            Some(0) => {
                self.at += 1;
                0
            }
            Some(0x2e) => {
                self.at += 1;
                2
            }
            Some(0x2f) => {
                self.at += 1;
                usize::from(self.byte()?)
            }
            _ => 1,
        };
        if count > SEGMENTS_MAX {
            return Err(Error::Malformed("a name has too many segments"));
        }
        name.segments = (0..count).map(|_| self.segment()).collect::<Result<Vec<Seg>, Error>>()?;
        Ok(name)
    }

    /// Whether a name string begins here.
    pub fn at_name(&self) -> bool {
        matches!(self.peek(), Some(b'\\' | b'^' | b'_' | b'A'..=b'Z' | 0x2e | 0x2f))
    }
}
