//! Firmware's tables: headers, MADT, AML.

use super::Target;
use crate::mutate::Examples;
use crate::source::Source;
use eft_acpi::aml::{Interpreter, Limits, NoHardware, Path};
use eft_acpi::{Madt, Table, read_processors};

const LIMITS: Limits = Limits { steps: 20_000, depth: 100, bytes: 1 << 20 };

pub struct Aml {
    bodies: Examples,
    madt: Examples,
}

/// A package with its length (ACPI 6.5, section 20.2.4).
fn package(opcode: &[u8], inside: &[u8]) -> Vec<u8> {
    let length = inside.len() + 3;
    [opcode, &[0x80 | (length & 0x0f) as u8, (length >> 4) as u8, (length >> 12) as u8], inside].concat()
}

fn method(name: &[u8; 4], arguments: u8, body: &[u8]) -> Vec<u8> {
    package(&[0x14], &[name.as_slice(), &[arguments], body].concat())
}

/// `Processor` with `_PSS`, as firmware writes it.
fn processor() -> Vec<u8> {
    let number = |n: u32| [&[0x0c][..], &n.to_le_bytes()].concat();
    let state = |mhz| {
        let fields: Vec<u8> = [mhz, 10_000, 10, 10, mhz << 4, mhz].iter().flat_map(|n| number(*n)).collect();
        package(&[0x12], &[&[6][..], &fields].concat())
    };
    let states = [state(2400), state(1200)].concat();
    let pss = [b"\x08_PSS".as_slice(), &package(&[0x12], &[&[2][..], &states].concat())].concat();
    let ppc = method(b"_PPC", 0, &[0xa4, 0x00]);
    let inside = [b"CPU0\x01\x10\x00\x00\x00\x06".as_slice(), &pss, &ppc].concat();
    package(&[0x10], &[b"_SB_".as_slice(), &package(&[0x5b, 0x83], &inside)].concat())
}

/// Code with a loop, a buffer, an index, a string, a conditional and a call.
fn code() -> Vec<u8> {
    let count = package(&[0xa2], &[0x95, 0x60, 0x0a, 0x20, 0x75, 0x60]);
    let buffer = [&[0x70][..], &package(&[0x11], &[0x0a, 16, 1, 2, 3]), &[0x61]].concat();
    let index = [0x70, 0x0a, 7, 0x88, 0x61, 0x01, 0x00];
    let either =
        [package(&[0xa0], &[0x60, 0x70, 0x0d, b'a', b'b', 0, 0x62]), package(&[0xa1], &[0xa3])].concat();
    let call = b"\x70HELP\x0a\x05\x63".to_vec();
    let body = [&[0x70, 0x00, 0x60][..], &count, &buffer, &index, &either, &call, &[0xa4, 0x63]].concat();
    [method(b"HELP", 1, &[0xa4, 0x72, 0x68, 0x01, 0x00]), method(b"TEST", 0, &body)].concat()
}

/// Conditionals, loops and early returns that hang on a field of hardware.
fn undecided() -> Vec<u8> {
    let region = b"\x5b\x80REGN\x00\x0b\x00\x10\x0a\x10".to_vec();
    let field = package(&[0x5b, 0x81], b"REGN\x01STAT\x08");
    let then = package(&[0xa0], b"STAT\x08ONE_\x0a\x07\x70\x01DIFF");
    let otherwise = package(&[0xa1], b"\x08TWO_\x0a\x08\x70\x00DIFF");
    let early = package(&[0xa0], b"\x93STAT\x0a\x03\xa4\x60");
    let count = package(&[0xa2], &[b"\x95\x60STAT".as_slice(), &early, b"\x75\x60"].concat());
    let test = method(b"TEST", 0, &[&[0x70, 0x00, 0x60][..], &count, b"\x70\x60DIFF\xa4DIFF"].concat());
    [region, field, b"\x08DIFF\x00".to_vec(), then, otherwise, test].concat()
}

fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = [&signature[..], &[0; 32], body].concat();
    let len = (bytes.len() as u32).to_le_bytes();
    bytes[4..8].copy_from_slice(&len);
    bytes[8] = 2;
    bytes[9] = 0u8.wrapping_sub(bytes.iter().fold(0, |s: u8, b| s.wrapping_add(*b)));
    bytes
}

impl Aml {
    pub fn new() -> Aml {
        let madt: &[u8] = &[
            0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 5, 2, 1, 0, 0, 0, 9, 16, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0,
        ];
        let deep =
            (0..90).fold(vec![0xa3], |inside, _| package(&[0x10], &[b"_SB_".as_slice(), &inside].concat()));
        Aml {
            bodies: Examples::new(vec![processor(), code(), undecided(), deep], 1 << 16),
            madt: Examples::new(vec![madt.to_vec()], 4096),
        }
    }
}

impl Target for Aml {
    fn feed(&mut self, source: &mut Source) {
        let body = self.bodies.mutated(source);
        let mut interpreter = Interpreter::new(source.below(3) as u8, LIMITS, Box::new(NoHardware));
        let _ = interpreter.load(&body);
        if let Some(path) = Path::parse("TEST") {
            let _ = interpreter.evaluate(&path, Vec::new());
        }
        let _ = interpreter.processors();
        if source.chance(0.05) {
            let (dsdt, madt) = (table(b"DSDT", &body), table(b"APIC", &self.madt.mutated(source)));
            let madt = Table::parse(&madt).expect("its checksum is right");
            let madt = Madt::parse(&madt);
            let dsdt = Table::parse(&dsdt).expect("its checksum is right");
            let _ = read_processors(&[dsdt], &[], madt.as_ref().ok(), Box::new(NoHardware));
            let mut bytes = table(b"SSDT", &body);
            let at = source.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << source.below(8);
            let _ = Table::parse(&bytes);
        }
    }
}
