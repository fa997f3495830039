//! Hostile bytes of any kind end within the limits and without a panic. `crates/host/tests/cpu_acpi.rs`, where programs
//! may be run, tests that the results agree with acpiexec.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn load(body: &[u8]) -> (Interpreter, Result<(), Error>) {
    let mut interpreter =
        Interpreter::new(2, Limits { steps: 200_000, depth: 100, bytes: 1 << 20 }, Box::new(NoHardware));
    let outcome = interpreter.load(body);
    (interpreter, outcome)
}

/// A package with its length, encoded as in section 20.2.4.
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

/// `While (1) { Store (Local0, Index (Local0, 0)) }`: a package that is stored into itself.
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
    assert_eq!(test, Ok(Value::unknown(&"\\STAT".into())));
    interpreter.evaluate(&Path::parse("WRIT").unwrap(), Vec::new()).unwrap();
    assert_eq!(interpreter.hardware_writes_left_out, 1);
}

fn evaluated(body: &[u8], code: &[u8], hardware: Box<dyn Hardware>) -> (Result<Value, Error>, Vec<String>) {
    let mut interpreter =
        Interpreter::new(2, Limits { steps: 200_000, depth: 100, bytes: 1 << 20 }, hardware);
    interpreter.load(&[body, &method(b"TEST", code)].concat()).unwrap();
    (interpreter.evaluate(&Path::parse("TEST").unwrap(), Vec::new()), interpreter.problems)
}

/// A region of memory at 0x1000 with `SKIP` (4 bits), `NIBB` (12 bits) and `WIDE` (dwords).
fn region() -> Vec<u8> {
    let region = [b"\x5b\x80REGN\x00".as_slice(), &[0x0b, 0x00, 0x10, 0x0a, 0x10]].concat();
    let fields = package(&[0x5b, 0x81], b"REGN\x02SKIP\x04NIBB\x0c\x01\x03\x00WIDE\x20");
    [region, fields].concat()
}

/// Memory whose bytes are the low bits of their address, from 0x1000 on.
struct Memory;

impl Hardware for Memory {
    fn memory(&mut self, address: u64, bytes: usize) -> Option<u64> {
        assert_eq!(address % bytes as u64, 0, "fields are read by their access width");
        let bytes = (0..bytes as u64).map(|index| (address + index) & 0xff).rev();
        (address >= 0x1000).then(|| bytes.fold(0, |value, byte| value << 8 | byte))
    }

    fn pci(&mut self, _: Address, _: u64, _: usize) -> Option<u64> {
        None
    }

    fn cmos(&mut self, _: u64) -> Option<u8> {
        None
    }
}

#[test]
fn fields_are_read_where_hardware_lets_them_be() {
    let read = |code: &[u8]| evaluated(&region(), code, Box::new(Memory)).0;
    assert_eq!(read(b"\xa4SKIP"), Ok(Value::Integer(0)));
    assert_eq!(read(b"\xa4NIBB"), Ok(Value::Integer(0x010)));
    // The field begins two bytes further on, and its unit is four bytes: it lies across two units.
    assert_eq!(read(b"\xa4WIDE"), Ok(Value::Integer(0x0504_0302)));
    let written = read(b"\x70\x01NIBB\xa4NIBB");
    assert_eq!(
        written,
        Ok(Value::unknown(&"\\NIBB".into())),
        "a write that was left out would have changed it"
    );
}

#[test]
fn both_ways_of_a_conditional_are_kept_and_what_follows_is_loaded() {
    let then = package(&[0xa0], b"SKIP\x08ONE_\x0a\x07\x70\x0a\x05SAME\x70\x0a\x06DIFF");
    let otherwise = package(&[0xa1], b"\x08TWO_\x0a\x08\x70\x0a\x05SAME");
    let body = [&region(), &b"\x08SAME\x00\x08DIFF\x00"[..], &then, &otherwise, b"\x08LAST\x0a\x09"].concat();
    let read = |name: &[u8; 4]| {
        let (value, problems) = evaluated(&body, &[&[0xa4], name.as_slice()].concat(), Box::new(NoHardware));
        assert_eq!(problems, Vec::<String>::new());
        value.unwrap()
    };
    for (name, number) in [(b"ONE_", 7), (b"TWO_", 8), (b"SAME", 5), (b"LAST", 9)] {
        assert_eq!(read(name), Value::Integer(number));
    }
    let Value::Unknown(unknown) = read(b"DIFF") else { panic!("it depends on SKIP") };
    assert_eq!((&*unknown.cause, unknown.candidates), ("\\SKIP", vec![Value::Integer(0), Value::Integer(6)]));
}

/// `Local0 = 3; Local1 = 4; While (Local0) { If (SKIP) { Break } Local1 = 9; Local0-- } Return (...)`.
#[test]
fn a_loop_that_may_be_left_early_makes_unknown_what_it_changes() {
    let way = package(&[0xa0], b"SKIP\xa5");
    let body = [&[0x60][..], &way, &[0x70, 0x0a, 9, 0x61, 0x76, 0x60]].concat();
    let run = |last: &[u8]| {
        let start = [0x70, 0x0a, 3, 0x60, 0x70, 0x0a, 4, 0x61, 0x70, 0x0a, 2, 0x62];
        let code = [&start[..], &package(&[0xa2], &body), last].concat();
        evaluated(&region(), &code, Box::new(NoHardware)).0.unwrap()
    };
    assert_eq!(run(&[0xa4, 0x61]), Value::unknown(&"\\SKIP".into()));
    assert_eq!(run(&[0xa4, 0x60]), Value::unknown(&"\\SKIP".into()));
    assert_eq!(run(&[0xa4, 0x62]), Value::Integer(2), "the loop leaves this alone");
}

/// `If (SKIP) { Return (value) } KEEP = 1; Return (7)`: on one way the store does not happen.
#[test]
fn an_early_return_leaves_what_follows_undone_on_its_way() {
    let early = |value: u8| package(&[0xa0], &[b"SKIP\xa4\x0a".as_slice(), &[value]].concat());
    let helper = |value| method(b"HELP", &[early(value), b"\x70\x01KEEP\xa4\x0a\x07".to_vec()].concat());
    let body = |value| [region(), b"\x08KEEP\x00".to_vec(), helper(value)].concat();
    let run = |value, last: &[u8]| {
        evaluated(&body(value), &[b"\x70HELP\x60", last].concat(), Box::new(NoHardware)).0.unwrap()
    };
    assert_eq!(run(7, &[0xa4, 0x60]), Value::Integer(7), "both ways give seven");
    assert!(matches!(run(8, &[0xa4, 0x60]), Value::Unknown(_)));
    assert!(matches!(run(7, b"\xa4KEEP"), Value::Unknown(_)));
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

    /// Bytes that are valid opcodes reach deeper code than random ones.
    #[test]
    fn random_opcodes_end(bytes in proptest::collection::vec(proptest::sample::select(OPCODES), 0..200)) {
        let _ = load(&bytes);
        let _ = evaluate(&bytes);
    }
}
