//! Hostile bytes: whatever they are, they end, within the limits and without a panic. The agreement with acpiexec is
//! tested where programs may be run, in `crates/linux/tests/cpu_acpi.rs`.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn load(body: &[u8]) -> (Interpreter, Result<(), Error>) {
    let mut interpreter = Interpreter::new(2, Limits { steps: 200_000, depth: 100, bytes: 1 << 20 });
    let outcome = interpreter.load(body);
    (interpreter, outcome)
}

/// A package with its length, as the encoding of section 20.2.4 has it.
fn package(opcode: &[u8], inside: &[u8]) -> Vec<u8> {
    let length = inside.len() + 3;
    [opcode, &[0x80 | (length & 0x0f) as u8, (length >> 4) as u8, (length >> 12) as u8], inside].concat()
}

fn method(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    package(&[0x14], &[name.as_slice(), &[0], body].concat())
}

fn evaluate(body: &[u8]) -> Result<Value, Error> {
    let (mut interpreter, outcome) = load(&method(b"TEST", body));
    outcome?;
    interpreter.evaluate(&Path::parse("TEST").unwrap(), Vec::new())
}

#[test]
fn an_endless_loop_ends() {
    assert_eq!(evaluate(&package(&[0xa2], &[0x01])), Err(Error::TooManySteps));
    assert_eq!(load(&package(&[0xa2], &[0x01])).1.unwrap_err(), Error::TooManySteps);
}

#[test]
fn endless_recursion_ends() {
    assert_eq!(evaluate(b"\xa4TEST"), Err(Error::TooDeep));
}

#[test]
fn deep_nesting_ends() {
    let expression: Vec<u8> = [vec![0xa4], vec![0x92; 10_000], vec![0x01]].concat();
    assert_eq!(evaluate(&expression), Err(Error::TooDeep));
    let mut scopes = vec![];
    for _ in 0..2_000 {
        scopes = package(&[0x10], &[b"_SB_".as_slice(), &scopes].concat());
    }
    assert_eq!(load(&scopes).1.unwrap_err(), Error::TooDeep);
    let mut packages = vec![0x01];
    for _ in 0..2_000 {
        packages = package(&[0x12], &[[1].as_slice(), &packages].concat());
    }
    assert_eq!(evaluate(&[&[0xa4], packages.as_slice()].concat()), Err(Error::TooDeep));
}

#[test]
fn bad_lengths_are_errors() {
    for body in
        [&[0x10, 0x3f, b'A'][..], &[0x10, 0xff], &[0x12, 0x00], &[0x11, 0x01, 0x01], &[0x0d, b'a'], &[0x5b]]
    {
        let (interpreter, outcome) = load(body);
        assert!(outcome.is_err() || !interpreter.problems.is_empty(), "{body:x?}");
    }
}

#[test]
fn a_huge_buffer_is_refused() {
    let huge = package(&[0x11], &[0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(evaluate(&[&[0xa4], huge.as_slice()].concat()), Err(Error::TooLarge));
}

/// `While (1) { Store (Local0, Index (Local0, 0)) }`: a package that swallows itself.
#[test]
fn a_package_that_contains_itself_is_bounded() {
    let start = [&[0x70][..], &package(&[0x12], &[2, 1, 1]), &[0x60]].concat();
    let swallow = package(&[0xa2], &[0x01, 0x70, 0x60, 0x88, 0x60, 0x00, 0x00]);
    assert!(matches!(evaluate(&[start, swallow].concat()), Err(Error::TooLarge | Error::TooManySteps)));
}

/// `While (1) { Local0 = Index (Local0, 0) }`: references to references.
#[test]
fn chained_references_are_bounded() {
    let start =
        [&[0x70][..], &package(&[0x12], &[1, 1]), &[0x61], &[0x70, 0x88, 0x61, 0x00, 0x00, 0x60]].concat();
    let chain = package(&[0xa2], &[0x01, 0x70, 0x88, 0x60, 0x00, 0x00, 0x60]);
    assert!(evaluate(&[start, chain].concat()).is_err());
}

#[test]
fn hardware_is_named_and_not_read() {
    let region = [b"\x5b\x80REGN\x01".as_slice(), &[0x0b, 0x00, 0x10, 0x0a, 0x10]].concat();
    let field = package(&[0x5b, 0x81], b"REGN\x01STAT\x08");
    let body = [region, field, method(b"TEST", b"\xa4STAT"), method(b"WRIT", b"\x70\x01STAT")].concat();
    let (mut interpreter, outcome) = load(&body);
    outcome.unwrap();
    let test = interpreter.evaluate(&Path::parse("TEST").unwrap(), Vec::new());
    assert_eq!(test, Err(Error::Hardware("\\STAT".into())));
    interpreter.evaluate(&Path::parse("WRIT").unwrap(), Vec::new()).unwrap();
    assert_eq!(interpreter.hardware_writes_left_out, 1);
}

const OPCODES: &[u8] =
    b"\x70\x60\x61\x68\x88\x83\x12\x11\xa0\xa1\xa2\xa4\x00\x01\x0a\x5b\x80\x82\x10\x14\x08\x04\x06\x72\x8a\x13A_\x0d\x87\x93\xff";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = load(&bytes);
        let _ = evaluate(&bytes);
    }

    /// Bytes of the right kind get further than random ones.
    #[test]
    fn random_opcodes_end(bytes in proptest::collection::vec(proptest::sample::select(OPCODES), 0..200)) {
        let _ = load(&bytes);
        let _ = evaluate(&bytes);
    }
}
