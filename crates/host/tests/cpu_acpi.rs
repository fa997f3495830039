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
    let file = Path::new(name).file_stem().unwrap();
    compile_source(Path::new(&source(name)), &dir.join(file))
}

/// `output` lacks its ending. To iasl it is an error (6074) that both ways of a conditional define the same name.
fn compile_source(source: &Path, output: &Path) -> Option<std::path::PathBuf> {
    let run = Command::new("iasl").args(["-vw", "6074", "-oa", "-p"]).arg(output).arg(source).output();
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

/// What acpiexec evaluates each `_PSS` to after the `_PDC` of the first, if every byte that is read of the hardware is `fill`.
fn states_if(tables: &[&Path], processors: &Processors, fill: u8) -> Option<Vec<Vec<Row>>> {
    let first = &processors.processors[0].path;
    let mut commands = format!("evaluate {first}._PDC (01 00 00 00 01 00 00 00 FB 01 00 00)");
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

/// States that are not marked must equal the truth; of the marked lists, one must fit as far as it is known.
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
    // If firmware's memory may not be read, the same states are found, but marked.
    write("proc/iomem", b"00000000-00000000 : ACPI Non-volatile Storage\n");
    let processors = acpi::read_machine(&tree).unwrap().processors;
    assert_eq!(processors[1].states_depend_on.as_deref(), Some("\\OSYS"));
}

/// Compiles a whole machine's tables as firmware and the kernel show them: those that firmware loads by itself under
/// `dynamic/`, found there by their lengths. Gives them in the order in which they are loaded; `None` without iasl.
fn machine(name: &str, dir: &Path) -> Option<Vec<std::path::PathBuf>> {
    let source = source(&format!("machines/{name}"));
    let files = |folder: &Path| {
        let mut files: Vec<_> =
            folder.read_dir().into_iter().flatten().map(|file| file.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "asl"));
        files.sort();
        files
    };
    let mut loaded = Vec::new();
    let mut lengths = Vec::new();
    std::fs::create_dir(dir.join("dynamic")).unwrap();
    for file in files(&Path::new(&source).join("dynamic")) {
        let stem = file.file_stem().unwrap();
        let table = compile_source(&file, &dir.join("dynamic").join(stem))?;
        lengths.push((format!("@{}@", stem.display()), std::fs::metadata(&table).unwrap().len().to_string()));
        loaded.push(table);
    }
    let mut tables = Vec::new();
    for file in files(Path::new(&source)) {
        let mut text = std::fs::read_to_string(&file).unwrap();
        lengths.iter().for_each(|(place, length)| text = text.replace(place, length));
        let filled = dir.join(file.file_name().unwrap());
        std::fs::write(&filled, text).unwrap();
        tables.push(compile_source(&filled, &filled.with_extension(""))?);
        std::fs::remove_file(filled).unwrap();
    }
    Some(tables.into_iter().chain(loaded).collect())
}

/// For each machine: its processors, and what decides about the states of each, if something that cannot be read does.
/// Every processor has states but those that are marked with "-".
const MACHINES: [(&str, &[(&str, Option<&str>)]); 5] = [
    (
        "laptop",
        &[
            ("\\_SB.PR00", Some("\\CFGD")),
            ("\\_SB.PR01", Some("\\CFGD")),
            ("\\_SB.PR02", None),
            ("\\_SB.PR03", Some("\\_SB.PCI0.LPCB.EC0.THRM")),
            ("\\_SB.PR04", Some("\\CFGD")),
        ],
    ),
    (
        "desktop",
        &[
            ("\\_SB.PLTF.C000", None),
            ("\\_SB.PLTF.C001", None),
            ("\\_SB.PLTF.C002", Some("\\CPB0")),
            ("\\_SB.PLTF.C003", Some("\\BRDT")),
            ("\\_SB.PLTF.C004", Some("\\MMSO")),
            ("\\_SB.PLTF.C005", Some("-")),
        ],
    ),
    (
        "server",
        &[
            ("\\_SB.SCK0.CP00", None),
            ("\\_SB.SCK0.CP01", Some("\\PSTA")),
            ("\\_SB.SCK1.CP00", Some("\\SKTN")),
            ("\\_SB.SCK1.CP01", Some("\\TPMV")),
        ],
    ),
    (
        "hybrid",
        &[
            ("\\_SB.PR00", Some("\\HWPE")),
            ("\\_SB.PR01", Some("\\HWPE")),
            ("\\_SB.PR02", None),
            ("\\_SB.PR03", Some("\\BIGM")),
        ],
    ),
    (
        "guest",
        &[
            ("\\_SB.CPUS.C000", Some("-")),
            ("\\_SB.CPUS.C001", Some("-")),
            ("\\_SB.CPUS.C002", Some("\\_SB.HOST")),
        ],
    ),
];

#[test]
fn whole_machines_have_the_states_that_acpiexec_gives_them() {
    for (name, expected) in MACHINES {
        let dir = tempfile::tempdir().unwrap();
        let Some(tables) = machine(name, dir.path()) else { return };
        let tables: Vec<&Path> = tables.iter().map(|path| path.as_path()).collect();
        let processors = acpi::read_dir(dir.path()).unwrap();
        assert_eq!(processors.problems, Vec::<String>::new(), "{name}");
        let found: Vec<(&str, Option<&str>)> = processors
            .processors
            .iter()
            .map(|processor| {
                let none = processor.states.is_empty().then_some("-");
                (&*processor.path, none.or(processor.states_depend_on.as_deref()))
            })
            .collect();
        assert_eq!(found, expected, "{name}");
        for fill in [0, 1, 2, 0x10, 0x55, 0xff] {
            let Some(truth) = states_if(&tables, &processors, fill) else {
                eprintln!("skipped: acpiexec is not installed (Debian: acpica-tools)");
                return;
            };
            for ((processor, truth), (_, cause)) in processors.processors.iter().zip(truth).zip(expected) {
                let place = format!("{} of the {name} with {fill:#x}", processor.path);
                match cause {
                    Some("-") => assert!(truth.is_empty(), "{place}: {truth:?}"),
                    _ => agree(processor, &truth, &place),
                }
            }
        }
    }
}

#[test]
fn a_laptops_own_variables_decide_among_its_tables() {
    let dir = tempfile::tempdir().unwrap();
    let tables = dir.path().join("sys/firmware/acpi/tables");
    for folder in [tables.clone(), dir.path().join("proc"), dir.path().join("dev")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    if machine("laptop", &tables).is_none() {
        return;
    }
    let memory = std::fs::File::create(dir.path().join("dev/mem")).unwrap();
    memory.write_all_at(&[0; 0x100], 0x8cb1_a000).unwrap();
    let iomem = "8cb1a000-8cb1afff : ACPI Non-volatile Storage\n";
    std::fs::write(dir.path().join("proc/iomem"), iomem).unwrap();
    // CFGD bit 0 (the system's own way to enter states), TCNT, PPCM.
    for (native, count, control) in [(0u8, 2u8, 0x83), (1, 8, 0x2300)] {
        memory.write_all_at(&[native, 0, 0, 0, count, 1], 0x8cb1_a00c).unwrap();
        let processors = acpi::read_machine(&Tree::at(dir.path())).unwrap().processors;
        assert_eq!(processors.len(), if count > 4 { 5 } else { 4 });
        let first = &processors[0];
        assert_eq!(first.states_depend_on, None, "{first:?}");
        assert_eq!(first.states[0].control, Some(control));
        assert_eq!(first.first_usable, Some(1));
        assert_eq!(first.control.unwrap().space, if native == 1 { 0x7f } else { 1 });
        assert_eq!(first.dependency.unwrap().processors, u64::from(count));
    }
}
