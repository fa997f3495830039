//! ACPI tables that iasl compiled, read by us and by acpiexec. Without acpica-tools the test says so and checks nothing.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use eft_acpi::aml::{Interpreter, Limits, NoHardware, Path as AmlPath, Value};
use eft_acpi::processor::AcpiPState;
use eft_acpi::{Processor, Processors, Table};
use eft_host::sensors::{Tree, acpi};

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
    let mut interpreter = Interpreter::new(2, Limits::default(), Box::new(NoHardware));
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
        first.states.iter().map(|state| (state.frequency_mhz, state.power_mw.unwrap())).collect::<Vec<_>>(),
        [(2267, 80000), (1867, 55000), (1600, 34000)]
    );
    assert_eq!(first.first_usable, Some(1), "only after _PDC");
    assert_eq!(first.control.unwrap().address, 0x199);
    assert_eq!(first.dependency.unwrap().processors, 2);
    assert!(
        second.not_evaluated.iter().any(|reason| reason.contains("PORT, which cannot be read")),
        "{second:?}"
    );
    assert_eq!(second.states.len(), 3);
}

#[test]
fn damaged_tables_are_told_and_empty_folders_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(acpi::read_dir(dir.path()).unwrap_err().to_string().contains("neither"));
    assert!(acpi::read_dir(&dir.path().join("absent")).is_err());
    std::fs::write(dir.path().join("dsdt.dat"), b"DSDT\xff\xff\xff\xff12345678901234567890123456789012")
        .unwrap();
    assert!(acpi::read_dir(dir.path()).unwrap_err().to_string().contains("header says"));
}

const NOTEBOOK: &[&str] = &["notebook.asl", "speeds.asl"];

/// Frequency, power, two latencies, control, status; `None` where it cannot be read.
type Row = [Option<u64>; 6];

fn rows(states: &[AcpiPState]) -> Vec<Row> {
    let row = |state: &AcpiPState| {
        let AcpiPState {
            frequency_mhz,
            power_mw,
            transition_latency_us,
            bus_master_latency_us,
            control,
            status,
        } = *state;
        [Some(frequency_mhz), power_mw, transition_latency_us, bus_master_latency_us, control, status]
    };
    states.iter().map(row).collect()
}

/// What acpiexec evaluates each `_PSS` to after `_PDC`, if every byte that is read of the hardware is `fill`.
fn states_if(tables: &[&Path], processors: &Processors, fill: u8) -> Option<Vec<Vec<Row>>> {
    let mut commands = "evaluate \\_SB.PR00._PDC (01 00 00 00 01 00 00 00 FB 01 00 00)".to_string();
    processors.processors.iter().for_each(|p| commands += &format!(";evaluate {}._PSS", p.path));
    let fill = fill.to_string();
    let run = Command::new("acpiexec").args(["-di", "-fv", &fill, "-b", &commands]).args(tables).output();
    let text = String::from_utf8_lossy(&run.ok()?.stdout).into_owned();
    let rows = |part: &str| {
        let numbers: Vec<u64> = part
            .lines()
            .filter_map(|line| line.trim().strip_prefix("[Integer] = "))
            .map(|number| u64::from_str_radix(number.trim(), 16).unwrap())
            .collect();
        let rows = numbers.chunks(6).map(|row| std::array::from_fn(|index| Some(row[index])));
        rows.filter(|row: &Row| row[0] != Some(0x8000_0000)).collect()
    };
    let parts: Vec<&str> = text.split("Evaluating ").skip(2).collect();
    assert_eq!(parts.len(), processors.processors.len(), "{text}");
    Some(parts.into_iter().map(rows).collect())
}

#[test]
fn what_is_known_holds_whatever_the_hardware_holds() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Vec::new();
    for name in NOTEBOOK {
        let Some(table) = compile(dir.path(), name) else { return };
        tables.push(table);
    }
    let tables: Vec<&Path> = tables.iter().map(|path| path.as_path()).collect();
    let processors = acpi::read_dir(dir.path()).unwrap();
    assert_eq!(processors.problems, Vec::<String>::new());
    let marked: Vec<&str> = processors
        .processors
        .iter()
        .filter(|processor| processor.states_depend_on.is_some())
        .map(|processor| &processor.path[5..])
        .collect();
    assert_eq!(marked, ["PR01", "PR02", "PR03", "PR05", "PR06", "PR07"]);
    for fill in [0, 2, 0xff] {
        let Some(truth) = states_if(&tables, &processors, fill) else {
            eprintln!("skipped: acpiexec is not installed (Debian: acpica-tools)");
            return;
        };
        for (processor, truth) in processors.processors.iter().zip(truth) {
            agree(processor, &truth, &format!("{} with {fill:#x}", processor.path));
        }
    }
}

/// What is not marked is the truth; of what is marked, one list fits it as far as it is known.
fn agree(processor: &Processor, truth: &[Row], place: &str) {
    let fits = |(ours, truth): (&Row, &Row)| {
        ours.iter().zip(truth).all(|(ours, truth)| ours.is_none() || ours == truth)
    };
    let agrees = |states: &Vec<AcpiPState>| {
        let ours = rows(states);
        ours.len() == truth.len() && ours.iter().zip(truth).all(fits)
    };
    assert!(!processor.states.is_empty(), "{place}");
    if processor.states_depend_on.is_none() {
        assert_eq!(rows(&processor.states), truth, "{place}");
    } else {
        let mut lists = [&processor.states].into_iter().chain(&processor.other_states);
        // Whether there are any may depend on it, too.
        assert!(truth.is_empty() || lists.any(agrees), "{place}: {truth:?} {processor:?}");
    }
}

#[test]
fn the_running_machines_memory_configuration_and_clock_decide() {
    let dir = tempfile::tempdir().unwrap();
    let tables = dir.path().join("sys/firmware/acpi/tables");
    let function = dir.path().join("sys/bus/pci/devices/0000:00:1f.0");
    for folder in [&tables, &function, &dir.path().join("proc"), &dir.path().join("dev")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    for name in NOTEBOOK {
        if compile(&tables, name).is_none() {
            return;
        }
    }
    let memory = std::fs::File::create(dir.path().join("dev/mem")).unwrap();
    let variables = 0x7fb0_e000;
    let put = |offset: u64, bytes: &[u8]| memory.write_all_at(bytes, variables + offset).unwrap();
    put(0, &[0; 0x40]);
    put(0, &2009u16.to_le_bytes());
    put(0x11, &[2]);
    put(0x13, &19_500u16.to_le_bytes());
    let write = |path: &str, content: &[u8]| std::fs::write(dir.path().join(path), content).unwrap();
    write("proc/iomem", b"7fb00000-7fbfffff : ACPI Non-volatile Storage\n");
    let mut configuration = [0; 256];
    configuration[0xa0] = 1;
    write("sys/bus/pci/devices/0000:00:1f.0/config", &configuration);
    let tree = Tree::at(dir.path());
    let states = |number: usize| {
        let processors = acpi::read_machine(&tree).unwrap();
        let processor = &processors.processors[number];
        assert_eq!(processor.states_depend_on, None, "{processor:?}");
        rows(&processor.states)
    };
    assert_eq!(states(1).len(), 2, "an old system gets the short list");
    assert_eq!(states(2)[0][1], Some(19_500), "the strap is set, so the power is patched");
    assert_eq!(states(3)[1][5], Some(14), "two rounds of seven");
    assert_eq!(states(6)[1][4], Some(2));
    put(0, &2015u16.to_le_bytes());
    assert_eq!(states(1).len(), 4);
    configuration[0xa0] = 0;
    write("sys/bus/pci/devices/0000:00:1f.0/config", &configuration);
    assert_eq!(states(2)[0][1], Some(20_000));
    // Where firmware's memory is not shown to us, the same states are there, marked.
    write("proc/iomem", b"00000000-00000000 : ACPI Non-volatile Storage\n");
    let processors = acpi::read_machine(&tree).unwrap().processors;
    assert_eq!(processors[1].states_depend_on.as_deref(), Some("\\OSYS"));
}
