//! ACPI tables from files: the running machine's, or those of a folder (as `acpidump -b` or iasl leave them).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use eft_acpi::aml::{Hardware, NoHardware};
use eft_acpi::processor::AcpiPState;
use eft_acpi::{Madt, Processors, Table, read_processors};
use eft_machine::{CpuId, KiloHertz, Microseconds, Milliwatts, PState, PStateSource};

use super::Tree;
use super::regions::Regions;

use crate::error::{Error, error};

const TABLES: &str = "sys/firmware/acpi/tables";
/// Real DSDTs are below 1 MB; a table says its length in 32 bits.
const TABLE_BYTES_MAX: u64 = 16 << 20;
const TABLES_MAX: usize = 512;

/// Reads this machine's tables, and those regions that their code reads and eft may read.
pub fn read_machine(tree: &Tree) -> Result<Processors, Error> {
    read_tables(&tree.path(TABLES), Box::new(Regions::new(tree)))
}

/// Reads some machine's tables from a folder. `dynamic/` below it holds the tables that firmware loads by itself.
pub fn read_dir(dir: &Path) -> Result<Processors, Error> {
    read_tables(dir, Box::new(NoHardware))
}

fn read_tables(dir: &Path, hardware: Box<dyn Hardware>) -> Result<Processors, Error> {
    let fixed = files(dir)?;
    let dynamic = if dir.join("dynamic").is_dir() { files(&dir.join("dynamic"))? } else { Vec::new() };
    let (tables, mut problems) = parse(&fixed);
    let (loadable, more) = parse(&dynamic);
    problems.extend(more);
    let blocks: Vec<Table> = tables.iter().filter(|table| table.is_definition_block()).copied().collect();
    let loadable: Vec<Table> = loadable.into_iter().filter(Table::is_definition_block).collect();
    if blocks.is_empty() && loadable.is_empty() {
        let reason = problems.first().map_or(String::new(), |problem| format!(" ({problem})"));
        return Err(error!(Missing, "{} holds neither a DSDT nor an SSDT{reason}", dir.display()));
    }
    let madt = tables.iter().find(|table| table.is(b"APIC")).map(Madt::parse).transpose();
    let madt = madt.unwrap_or_else(|problem| {
        problems.push(problem.to_string());
        None
    });
    let mut processors = read_processors(&blocks, &loadable, madt.as_ref(), hardware)
        .map_err(|problem| error!(Invalid, "{problem}"))?;
    processors.problems.splice(0..0, problems);
    Ok(processors)
}

fn files(dir: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let complain = |error: std::io::Error| error!(System, "{} cannot be read ({error})", dir.display());
    let mut found: Vec<_> =
        fs::read_dir(dir).map_err(complain)?.flatten().map(|entry| entry.path()).collect();
    found.sort();
    let mut tables = Vec::new();
    for path in found.into_iter().filter(|path| path.is_file()).take(TABLES_MAX) {
        let length = fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or(0);
        if length > TABLE_BYTES_MAX {
            return Err(error!(Invalid, "{} is too large for an ACPI table", path.display()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tables.push((
            name,
            fs::read(&path).map_err(|error| error!(System, "{} cannot be read ({error})", path.display()))?,
        ));
    }
    Ok(tables)
}

/// Tables that matter, and what is wrong with files that look like one.
fn parse(files: &[(String, Vec<u8>)]) -> (Vec<Table<'_>>, Vec<String>) {
    let (mut tables, mut problems) = (Vec::new(), Vec::new());
    let matters =
        |bytes: &[u8]| [b"DSDT", b"SSDT", b"APIC"].iter().any(|signature| bytes.starts_with(*signature));
    for (name, bytes) in files.iter().filter(|(_, bytes)| matters(bytes)) {
        match Table::parse(bytes) {
            Ok(table) => tables.push(table),
            Err(reason) => problems.push(format!("{name}: {reason}")),
        }
    }
    (tables, problems)
}

/// Processors of this machine by Linux's CPU number.
pub fn by_cpu(tree: &Tree, processors: &Processors) -> BTreeMap<CpuId, usize> {
    let apic_ids = apic_ids(tree);
    let number = |(index, processor): (usize, &eft_acpi::Processor)| {
        let hardware_id = processor.hardware_id?;
        let cpu = match apic_ids.is_empty() {
            false => *apic_ids.get(&hardware_id)?,
            // ARM: Linux numbers CPUs in the MADT's order.
            true => CpuId(u32::try_from(processor.madt_index?).ok()?),
        };
        Some((cpu, index))
    };
    processors.processors.iter().enumerate().filter_map(number).collect()
}

fn apic_ids(tree: &Tree) -> BTreeMap<u64, CpuId> {
    let (mut ids, mut cpu) = (BTreeMap::new(), None);
    for line in tree.text("proc/cpuinfo").unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match (name.trim(), value.trim().parse::<u64>()) {
            ("processor", Ok(number)) => cpu = u32::try_from(number).ok().map(CpuId),
            ("apicid", Ok(id)) => {
                cpu.map(|cpu| ids.insert(id, cpu));
            }
            _ => {}
        }
    }
    ids
}

/// P-states by CPU; empty where the tables are absent, unreadable or silent.
pub fn p_states(tree: &Tree) -> BTreeMap<CpuId, Vec<PState>> {
    let Ok(processors) = read_machine(tree) else {
        return BTreeMap::new();
    };
    let states = |index: usize| -> Vec<PState> {
        let processor = &processors.processors[index];
        let is_uncertain = processor.states_depend_on.is_some();
        processor.states.iter().map(|state| p_state(state, is_uncertain)).collect()
    };
    let by_cpu = by_cpu(tree, &processors);
    by_cpu
        .into_iter()
        .map(|(cpu, index)| (cpu, states(index)))
        .filter(|(_, states)| !states.is_empty())
        .collect()
}

fn p_state(state: &AcpiPState, uncertain: bool) -> PState {
    PState {
        frequency: KiloHertz::from_mhz(state.frequency_mhz),
        power: state.power_mw.map(Milliwatts),
        latency: state.transition_latency_us.map(Microseconds),
        source: PStateSource::Acpi,
        uncertain,
    }
}
