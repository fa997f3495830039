//! ACPI table headers (ACPI 6.5, section 5.2.6) and the MADT (5.2.12).

use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

const HEADER: usize = 36;

/// Why a table is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    #[error("{0} bytes are too few for an ACPI table")]
    TooFewBytes(usize),
    #[error("table {table}: its header says {said} bytes, the file has {found}")]
    Length { table: String, said: usize, found: usize },
    #[error("table {0}: wrong checksum")]
    Checksum(String),
    #[error("table APIC: too short")]
    MadtTooShort,
    #[error("table APIC: an entry of type {kind} has the bad length {length}")]
    MadtEntry { kind: u8, length: usize },
}

#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    pub signature: [u8; 4],
    pub revision: u8,
    pub length: usize,
    pub body: &'a [u8],
    pub bytes: &'a [u8],
}

impl<'a> Table<'a> {
    /// Parses a whole table. A wrong length or checksum refuses it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TableError> {
        let header = bytes.get(..HEADER).ok_or(TableError::TooFewBytes(bytes.len()))?;
        let signature = [header[0], header[1], header[2], header[3]];
        let table = || String::from_utf8_lossy(&signature).into_owned();
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if length < HEADER || length > bytes.len() {
            return Err(TableError::Length { table: table(), said: length, found: bytes.len() });
        }
        let bytes = &bytes[..length];
        if bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) != 0 {
            return Err(TableError::Checksum(table()));
        }
        Ok(Self { signature, revision: header[8], length, body: &bytes[HEADER..], bytes })
    }

    pub fn is(&self, signature: &[u8; 4]) -> bool {
        &self.signature == signature
    }

    /// Whether the table holds AML.
    pub fn is_definition_block(&self) -> bool {
        self.is(b"DSDT") || self.is(b"SSDT")
    }
}

/// The local APIC (or GIC CPU interface) of each ACPI processor id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Madt {
    /// Enabled processors, in the order of the table.
    pub processors: Vec<MadtProcessor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadtProcessor {
    /// `_UID`, or the id in `Processor(...)`.
    pub acpi_id: u32,
    /// The APIC id on x86, the MPIDR on ARM.
    pub hardware_id: u64,
}

const LOCAL_APIC: u8 = 0;
const LOCAL_X2APIC: u8 = 9;
const GICC: u8 = 11;
const FLAG_ENABLED: u32 = 1;
const FLAG_ONLINE_CAPABLE: u32 = 2;

impl Madt {
    pub fn parse(table: &Table) -> Result<Self, TableError> {
        // The address of the local interrupt controller and flags come first.
        let mut rest = table.body.get(8..).ok_or(TableError::MadtTooShort)?;
        let mut madt = Self::default();
        while let [kind, length, ..] = *rest {
            let length = usize::from(length);
            if length < 2 || length > rest.len() {
                return Err(TableError::MadtEntry { kind, length });
            }
            let (entry, after) = rest.split_at(length);
            if let Some((processor, flags)) = Self::processor(kind, entry)
                && flags & (FLAG_ENABLED | FLAG_ONLINE_CAPABLE) != 0
            {
                madt.processors.push(processor);
            }
            rest = after;
        }
        Ok(madt)
    }

    fn processor(kind: u8, entry: &[u8]) -> Option<(MadtProcessor, u32)> {
        let word = |at: usize| Some(u32::from_le_bytes(entry.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
        let (acpi_id, hardware_id, flags) = match kind {
            LOCAL_APIC => (u32::from(*entry.get(2)?), u64::from(*entry.get(3)?), word(4)?),
            LOCAL_X2APIC => (word(12)?, u64::from(word(4)?), word(8)?),
            GICC => (word(8)?, long(68)?, word(12)?),
            _ => return None,
        };
        Some((MadtProcessor { acpi_id, hardware_id }, flags))
    }
}

#[cfg(test)]
mod tests;
