//! What the tables say about processors: `_PSS`, `_PCT`, `_PPC`, `_PSD` (ACPI 6.5, section 8.4.5), asked for after
//! `_PDC` has told firmware what we can do, since firmware may load the tables that hold them only then.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;

use super::aml::{Error, Interpreter, Limits, Path, Value};
use super::table::{Madt, Table};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Processors {
    pub processors: Vec<Processor>,
    /// Parts of the tables that could not be evaluated.
    pub problems: Vec<String>,
    pub hardware_writes_left_out: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Processor {
    pub path: String,
    pub acpi_id: Option<u64>,
    /// From the MADT: APIC id or MPIDR.
    pub hardware_id: Option<u64>,
    /// Its place among the MADT's enabled processors.
    pub madt_index: Option<usize>,
    /// `_PSS`, fastest first.
    pub states: Vec<AcpiPState>,
    /// `_PPC`: the first of the states that may be used now.
    pub first_usable: Option<u64>,
    /// `_PCT`: how a state is entered and read back.
    pub control: Option<Register>,
    pub status: Option<Register>,
    /// `_PSD`.
    pub dependency: Option<Dependency>,
    /// What the tables have but cannot be evaluated here, and why.
    pub not_evaluated: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AcpiPState {
    pub frequency_mhz: u64,
    pub power_mw: u64,
    pub transition_latency_us: u64,
    pub bus_master_latency_us: u64,
    pub control: u64,
    pub status: u64,
}

/// A generic register descriptor (section 6.4.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Register {
    pub space: u8,
    pub bits: u8,
    pub offset: u8,
    pub address: u64,
}

impl Register {
    pub fn space_name(&self) -> &'static str {
        match self.space {
            0 => "system memory",
            1 => "system I/O",
            2 => "PCI configuration",
            0x0a => "PCC",
            0x7f => "fixed hardware (MSR)",
            _ => "another space",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    pub domain: u64,
    /// 0xFC: software sets all; 0xFD: software sets any; 0xFE: hardware coordinates.
    pub coordination: u64,
    pub processors: u64,
}

impl Dependency {
    pub fn coordination_name(&self) -> &'static str {
        match self.coordination {
            0xfc => "software, all",
            0xfd => "software, any",
            0xfe => "hardware",
            _ => "unknown",
        }
    }
}

/// Power management that we claim in `_PDC`, so that firmware shows the native `_PSS` and `_PCT`: what Linux claims.
const PDC_CAPABILITIES: u32 = 0x0000_01fb;
/// States a processor may have; firmware has up to 16 in practice.
const STATES_MAX: usize = 256;
const GENERIC_REGISTER: u8 = 0x82;

/// `definition_blocks`: DSDT first, then SSDTs. `loadable`: tables that firmware loads by itself.
pub fn read_processors(
    definition_blocks: &[Table],
    loadable: &[Table],
    madt: Option<&Madt>,
) -> Result<Processors, String> {
    let dsdt = definition_blocks.iter().find(|table| table.is(b"DSDT"));
    // A folder may hold a lone SSDT, as iasl makes it.
    let revision = dsdt.map_or(2, |table| table.revision);
    let mut interpreter = Interpreter::new(revision, Limits::default());
    loadable.iter().for_each(|table| interpreter.offer(table.bytes.to_vec()));
    let ordered = definition_blocks.iter().filter(|table| table.is(b"DSDT"));
    for table in ordered.chain(definition_blocks.iter().filter(|table| table.is(b"SSDT"))) {
        load(&mut interpreter, table.body)?;
    }
    announce(&mut interpreter)?;
    // The kernel has loaded these: what firmware's own Load could not be matched with is loaded now.
    for table in interpreter.take_unloaded() {
        load(&mut interpreter, &table[table.len() - Table::parse(&table)?.body.len()..])?;
    }
    let processors = interpreter.processors();
    let processors =
        processors.into_iter().map(|(path, id)| read_one(&mut interpreter, &path, id, madt)).collect();
    let hardware_writes_left_out = interpreter.hardware_writes_left_out;
    Ok(Processors { processors, problems: interpreter.problems, hardware_writes_left_out })
}

fn load(interpreter: &mut Interpreter, body: &[u8]) -> Result<(), String> {
    interpreter.load(body).map_err(|error| format!("the tables cannot be read: {error}"))
}

fn announce(interpreter: &mut Interpreter) -> Result<(), String> {
    let words = [1u32, 1, PDC_CAPABILITIES];
    let capabilities = Value::Buffer(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    for (path, _) in interpreter.processors() {
        let method = path.child(*b"_PDC");
        if !interpreter.exists(&method) {
            continue;
        }
        match interpreter.evaluate(&method, alloc::vec![capabilities.clone()]) {
            Err(error @ (Error::TooManySteps | Error::TooLarge)) => {
                return Err(format!("{}: {error}", method.to_text()));
            }
            Err(error) => interpreter.problems.push(format!("{}: {error}", method.to_text())),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn read_one(interpreter: &mut Interpreter, path: &Path, id: Option<u64>, madt: Option<&Madt>) -> Processor {
    let entry = id
        .and_then(|id| madt?.processors.iter().enumerate().find(|(_, entry)| u64::from(entry.acpi_id) == id));
    let mut processor = Processor {
        path: path.to_text(),
        acpi_id: id,
        hardware_id: entry.map(|(_, entry)| entry.hardware_id),
        madt_index: entry.map(|(index, _)| index),
        ..Processor::default()
    };
    let mut ask = |name: &[u8; 4]| -> Option<Value> {
        let object = path.child(*name);
        if !interpreter.exists(&object) {
            return None;
        }
        let asked = interpreter.evaluate(&object, Vec::new());
        asked.map_err(|error| processor.not_evaluated.push(format!("{}: {error}", object.to_text()))).ok()
    };
    let (pss, ppc, pct, psd) = (ask(b"_PSS"), ask(b"_PPC"), ask(b"_PCT"), ask(b"_PSD"));
    let mut problem = |name: &str, reason: String| {
        processor.not_evaluated.push(format!("{}.{name}: {reason}", path.to_text()))
    };
    let mut keep = |name: &str, error: Error| problem(name, error.to_string());
    match pss.as_ref().map(states).transpose() {
        Ok(states) => processor.states = states.unwrap_or_default(),
        Err(error) => keep("_PSS", error),
    }
    match ppc.as_ref().map(Value::as_integer).transpose() {
        Ok(first) => processor.first_usable = first,
        Err(error) => keep("_PPC", error),
    }
    match pct.as_ref().map(registers).transpose() {
        Ok(pair) => {
            (processor.control, processor.status) = (pair.map(|pair| pair.0), pair.map(|pair| pair.1))
        }
        Err(error) => keep("_PCT", error),
    }
    match psd.as_ref().map(dependency).transpose() {
        Ok(dependency) => processor.dependency = dependency,
        Err(error) => keep("_PSD", error),
    }
    processor
}

fn states(value: &Value) -> Result<Vec<AcpiPState>, Error> {
    let elements = value.as_package()?;
    if elements.len() > STATES_MAX {
        return Err(Error::OutOfRange("the number of P-states"));
    }
    elements.iter().map(state).collect()
}

fn state(value: &Value) -> Result<AcpiPState, Error> {
    let numbers: Vec<u64> = value.as_package()?.iter().map(Value::as_integer).collect::<Result<_, _>>()?;
    let [frequency_mhz, power_mw, transition_latency_us, bus_master_latency_us, control, status, ..] =
        numbers[..]
    else {
        return Err(Error::Malformed("a P-state needs six numbers"));
    };
    Ok(AcpiPState { frequency_mhz, power_mw, transition_latency_us, bus_master_latency_us, control, status })
}

fn registers(value: &Value) -> Result<(Register, Register), Error> {
    match value.as_package()? {
        [control, status, ..] => Ok((register(control.as_buffer()?)?, register(status.as_buffer()?)?)),
        _ => Err(Error::Malformed("_PCT needs two registers")),
    }
}

fn register(bytes: &[u8]) -> Result<Register, Error> {
    match bytes {
        [GENERIC_REGISTER, _, _, space, bits, offset, _, address @ ..] if address.len() >= 8 => {
            Ok(Register {
                space: *space,
                bits: *bits,
                offset: *offset,
                address: address[..8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
            })
        }
        _ => Err(Error::Malformed("no generic register descriptor")),
    }
}

/// A package of one package: entries, revision, domain, coordination, processors.
fn dependency(value: &Value) -> Result<Dependency, Error> {
    let first = value.as_package()?.first().ok_or(Error::Malformed("_PSD is empty"))?;
    match first.as_package()? {
        [_, _, domain, coordination, processors, ..] => Ok(Dependency {
            domain: domain.as_integer()?,
            coordination: coordination.as_integer()?,
            processors: processors.as_integer()?,
        }),
        _ => Err(Error::Malformed("_PSD needs five numbers")),
    }
}
