//! ACPI tables that iasl compiled, read by us and by acpiexec. Without acpica-tools the test says so and checks nothing.

use std::path::Path;
use std::process::Command;

use eft_acpi::Table;
use eft_acpi::aml::{Interpreter, Limits, Path as AmlPath, Value};
use eft_linux::sensors::acpi;

fn source(name: &str) -> String {
    format!("{}/tests/acpi/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Compiles into `dir`; `None` without iasl.
fn compile(dir: &Path, name: &str) -> Option<std::path::PathBuf> {
    let output = dir.join(name.replace(".asl", ""));
    let run = Command::new("iasl").args(["-oa", "-p"]).arg(&output).arg(source(name)).output();
    let Ok(run) = run else {
        eprintln!("skipped: iasl is not installed (Debian: acpica-tools)");
        return None;
    };
    let table = output.with_extension("aml");
    assert!(
        table.exists(),
        "iasl: {}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    Some(table)
}

/// The numbers and strings that acpiexec prints for an object, in order.
fn oracle(tables: &[&Path], object: &str) -> Option<Vec<String>> {
    let run =
        Command::new("acpiexec").arg("-b").arg(format!("evaluate {object}")).args(tables).output().ok()?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let result = text
        .split("returned object")
        .nth(1)
        .unwrap_or_else(|| panic!("acpiexec gave nothing for {object}: {text}"));
    let leaf = |line: &str| {
        let line = line.trim();
        if let Some(number) = line.strip_prefix("[Integer] = ") {
            return Some(u64::from_str_radix(number.trim(), 16).unwrap().to_string());
        }
        line.strip_prefix("[String] Length")
            .and_then(|rest| Some(rest.split_once("= ")?.1.trim_matches('"').to_string()))
    };
    Some(result.lines().filter_map(leaf).collect())
}

fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Integer(number) => vec![number.to_string()],
        Value::String(text) => vec![text.clone()],
        Value::Package(elements) => elements.iter().flat_map(leaves).collect(),
        _ => Vec::new(),
    }
}

/// A MADT of local APICs: (ACPI id, APIC id).
fn madt(processors: &[(u8, u8)]) -> Vec<u8> {
    let mut bytes = vec![0; 44];
    bytes[..4].copy_from_slice(b"APIC");
    processors.iter().for_each(|(acpi, apic)| bytes.extend([0, 8, *acpi, *apic, 1, 0, 0, 0]));
    bytes[4] = bytes.len() as u8;
    bytes[9] = 0u8.wrapping_sub(bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
    bytes
}

#[test]
fn we_and_acpiexec_agree() {
    let dir = tempfile::tempdir().unwrap();
    let Some(dsdt) = compile(dir.path(), "desktop.asl") else {
        return;
    };
    let Some(ssdt) = compile(dir.path(), "states.asl") else {
        return;
    };
    let mut interpreter = Interpreter::new(2, Limits::default());
    for path in [&dsdt, &ssdt] {
        let bytes = std::fs::read(path).unwrap();
        interpreter.load(Table::parse(&bytes).unwrap().body).unwrap();
    }
    assert_eq!(interpreter.problems, Vec::<String>::new());
    for object in
        ["\\_PR.CPU0._PSS", "\\_PR.CPU1._PSS", "\\_PR.CPU0._PPC", "\\_PR.CPU0._PSD", "\\TEST", "\\SUMS"]
    {
        let ours = interpreter.evaluate(&AmlPath::parse(object).unwrap(), Vec::new()).unwrap();
        let Some(theirs) = oracle(&[&dsdt, &ssdt], object) else {
            eprintln!("skipped: acpiexec is not installed (Debian: acpica-tools)");
            return;
        };
        assert!(!theirs.is_empty(), "{object}");
        assert_eq!(leaves(&ours), theirs, "{object}");
    }
}

#[test]
fn a_folder_of_tables_is_read_with_what_pdc_unlocks() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_) = compile(dir.path(), "desktop.asl") else {
        return;
    };
    std::fs::write(dir.path().join("apic.dat"), madt(&[(1, 0), (2, 2)])).unwrap();
    std::fs::create_dir(dir.path().join("dynamic")).unwrap();
    compile(&dir.path().join("dynamic"), "states.asl").unwrap();
    let processors = acpi::read_dir(dir.path()).unwrap();
    let [first, second] = &processors.processors[..] else { panic!("{processors:?}") };
    assert_eq!((first.hardware_id, second.hardware_id), (Some(0), Some(2)));
    assert_eq!(
        first.states.iter().map(|state| (state.frequency_mhz, state.power_mw)).collect::<Vec<_>>(),
        [(2267, 80000), (1867, 55000), (1600, 34000)]
    );
    assert_eq!(first.first_usable, Some(1), "only after _PDC");
    assert_eq!(first.control.unwrap().address, 0x199);
    assert_eq!(first.dependency.unwrap().processors, 2);
    assert!(second.not_evaluated.iter().any(|reason| reason.contains("PORT is in hardware")), "{second:?}");
    assert_eq!(second.states.len(), 3);
}

#[test]
fn damaged_tables_are_told_and_empty_folders_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(acpi::read_dir(dir.path()).unwrap_err().contains("neither"));
    assert!(acpi::read_dir(&dir.path().join("absent")).is_err());
    std::fs::write(dir.path().join("dsdt.dat"), b"DSDT\xff\xff\xff\xff12345678901234567890123456789012")
        .unwrap();
    assert!(acpi::read_dir(dir.path()).unwrap_err().contains("header says"));
}
