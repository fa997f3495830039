//! What the tables say about processors: `_PSS`, `_PCT`, `_PPC`, `_PSD` (ACPI 6.5, section 8.4.5). They are evaluated
//! after `_PDC` has told firmware what the system can do, because firmware may load the tables that define them only
//! then.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;

use super::aml::{Error, Hardware, Interpreter, Limits, Path, Value};
use super::table::{Madt, Table, TableError};

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
    /// The position among the MADT's enabled processors.
    pub madt_index: Option<usize>,
    /// `_PSS`, fastest first.
    pub states: Vec<AcpiPState>,
    /// What the states depend on and cannot be read. `states` is then one of several possible lists.
    pub states_depend_on: Option<String>,
    /// The other possible lists.
    pub other_states: Vec<Vec<AcpiPState>>,
    /// `_PPC`: the index of the first state that may be used now.
    pub first_usable: Option<u64>,
    /// `_PCT`: how a state is entered and read back.
    pub control: Option<Register>,
    pub status: Option<Register>,
    /// `_PSD`.
    pub dependency: Option<Dependency>,
    /// Objects that the tables have but that could not be evaluated, and why.
    pub not_evaluated: Vec<String>,
}

/// One P-state of `_PSS`. A number that cannot be read is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AcpiPState {
    pub frequency_mhz: u64,
    pub power_mw: Option<u64>,
    pub transition_latency_us: Option<u64>,
    pub bus_master_latency_us: Option<u64>,
    pub control: Option<u64>,
    pub status: Option<u64>,
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

/// The power management that eft claims in `_PDC`, so that firmware shows the native `_PSS` and `_PCT`. Linux claims
/// the same.
const PDC_CAPABILITIES: u32 = 0x0000_01fb;
/// States a processor may have; firmware has up to 16 in practice.
const STATES_MAX: usize = 256;
/// A greater number is not a frequency but an entry that firmware has not filled in. Linux refuses such states, too.
const FREQUENCY_MHZ_MAX: u64 = u32::MAX as u64 / 1000;
const GENERIC_REGISTER: u8 = 0x82;

/// Why the tables as a whole cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("the tables cannot be read: {0}")]
    Load(Error),
    /// A method takes too long or makes too much; another attempt would do the same.
    #[error("{method}: {error}")]
    Method { method: String, error: Error },
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Reads the processors. `definition_blocks` holds the DSDT first, then SSDTs. `loadable` holds the tables that
/// firmware loads itself. `hardware` is what may be read from the machine that the tables describe.
pub fn read_processors(
    definition_blocks: &[Table],
    loadable: &[Table],
    madt: Option<&Madt>,
    hardware: Box<dyn Hardware>,
) -> Result<Processors, ReadError> {
    let dsdt = definition_blocks.iter().find(|table| table.is(b"DSDT"));
    // A folder may hold a single SSDT, as iasl makes it: then there is no DSDT.
    let revision = dsdt.map_or(2, |table| table.revision);
    let mut interpreter = Interpreter::new(revision, Limits::default(), hardware);
    loadable.iter().for_each(|table| interpreter.offer(table.bytes.to_vec()));
    let ordered = definition_blocks.iter().filter(|table| table.is(b"DSDT"));
    for table in ordered.chain(definition_blocks.iter().filter(|table| table.is(b"SSDT"))) {
        load(&mut interpreter, table.body)?;
    }
    announce(&mut interpreter)?;
    // The kernel has loaded these tables. Those that no `Load` of the firmware has taken are loaded now.
    for table in interpreter.take_unloaded() {
        load(&mut interpreter, &table[table.len() - Table::parse(&table)?.body.len()..])?;
    }
    let processors = interpreter.processors();
    let processors =
        processors.into_iter().map(|(path, id)| read_one(&mut interpreter, &path, id, madt)).collect();
    let hardware_writes_left_out = interpreter.hardware_writes_left_out;
    Ok(Processors { processors, problems: interpreter.problems, hardware_writes_left_out })
}

fn load(interpreter: &mut Interpreter, body: &[u8]) -> Result<(), ReadError> {
    interpreter.load(body).map_err(ReadError::Load)
}

fn announce(interpreter: &mut Interpreter) -> Result<(), ReadError> {
    let words = [1u32, 1, PDC_CAPABILITIES];
    let capabilities = Value::Buffer(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    for (path, _) in interpreter.processors() {
        let method = path.child(*b"_PDC");
        if !interpreter.exists(&method) {
            continue;
        }
        match interpreter.evaluate(&method, alloc::vec![capabilities.clone()]) {
            Err(error @ (Error::TooManySteps | Error::TooLarge)) => {
                return Err(ReadError::Method { method: method.to_text(), error });
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
        Ok(states) => {
            let States { chosen, others, cause } = states.unwrap_or_default();
            (processor.states, processor.other_states, processor.states_depend_on) = (chosen, others, cause);
        }
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
    if !processor.states.is_empty()
        && let Some(cause) = interpreter.depends_on(&path.child(*b"_PSS"))
    {
        processor.states_depend_on.get_or_insert_with(|| cause.to_string());
    }
    processor
}

#[derive(Default)]
struct States {
    chosen: Vec<AcpiPState>,
    others: Vec<Vec<AcpiPState>>,
    cause: Option<String>,
}

/// Where several lists are possible, the longest is chosen: firmware offers shorter ones to systems that know fewer
/// states.
fn states(value: &Value) -> Result<States, Error> {
    let Value::Unknown(unknown) = value else {
        let (chosen, cause) = list(value)?;
        return Ok(States { chosen, others: Vec::new(), cause });
    };
    let lists = unknown.candidates.iter().filter_map(|candidate| list(candidate).ok());
    let mut others: Vec<Vec<AcpiPState>> = lists.map(|(states, _)| states).collect();
    others.retain(|states| !states.is_empty());
    if others.is_empty() {
        return Err(Error::Unknown(unknown.cause.clone()));
    }
    let lengths = others.iter().map(Vec::len).enumerate().rev();
    let chosen = others.remove(lengths.max_by_key(|(_, length)| *length).map_or(0, |(index, _)| index));
    others.retain(|states| *states != chosen);
    Ok(States { chosen, others, cause: Some(unknown.cause.to_string()) })
}

/// One list of states, and what it depends on if one of its numbers is unknown.
fn list(value: &Value) -> Result<(Vec<AcpiPState>, Option<String>), Error> {
    let elements = value.as_package()?;
    if elements.len() > STATES_MAX {
        return Err(Error::OutOfRange("the number of P-states"));
    }
    let mut cause = None;
    let mut states = Vec::new();
    for element in elements.iter().filter(|element| **element != Value::Uninitialised) {
        states.extend(state(element, &mut cause)?);
    }
    states.sort_by_key(|state| core::cmp::Reverse(state.frequency_mhz));
    Ok((states, cause))
}

/// `None` for a state whose frequency is unknown or was never filled in.
fn state(value: &Value, cause: &mut Option<String>) -> Result<Option<AcpiPState>, Error> {
    if let Some(unread) = value.cause() {
        cause.get_or_insert_with(|| unread.to_string());
        return Ok(None);
    }
    let mut number = |value: &Value| match value.cause() {
        Some(unread) => {
            cause.get_or_insert_with(|| unread.to_string());
            Ok(None)
        }
        None => value.as_integer().map(Some),
    };
    let numbers: Vec<Option<u64>> =
        value.as_package()?.iter().take(6).map(&mut number).collect::<Result<_, _>>()?;
    let [frequency_mhz, power_mw, transition_latency_us, bus_master_latency_us, control, status] =
        numbers[..]
    else {
        return Err(Error::Malformed("a P-state needs six numbers"));
    };
    let frequency_mhz = frequency_mhz.filter(|mhz| (1..=FREQUENCY_MHZ_MAX).contains(mhz));
    Ok(frequency_mhz.map(|frequency_mhz| AcpiPState {
        frequency_mhz,
        power_mw,
        transition_latency_us,
        bus_master_latency_us,
        control,
        status,
    }))
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
