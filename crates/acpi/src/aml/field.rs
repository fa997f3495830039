//! Operation regions and their fields (sections 5.5.2.4 and 19.6.48): which of them are read from the machine, and how.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::namespace::{Field, Object, Region};
use super::path::Path;
use super::reader::Reader;
use super::value::{Target, Value};
use super::{Error, Interpreter};

/// What may be read from the machine that the tables describe. `None`: it cannot or should not be read.
pub trait Hardware {
    /// `bytes` (1, 2, 4 or 8) of physical memory, little-endian.
    fn memory(&mut self, address: u64, bytes: usize) -> Option<u64>;

    /// `bytes` (1, 2 or 4) of a function's PCI configuration space, little-endian.
    fn pci(&mut self, function: Address, offset: u64, bytes: usize) -> Option<u64>;

    /// One byte of the battery-backed memory of the real-time clock.
    fn cmos(&mut self, offset: u64) -> Option<u8>;
}

/// A function on a PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub segment: u16,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

/// For the tables of another machine, or of one that allows no reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHardware;

impl Hardware for NoHardware {
    fn memory(&mut self, _: u64, _: usize) -> Option<u64> {
        None
    }

    fn pci(&mut self, _: Address, _: u64, _: usize) -> Option<u64> {
        None
    }

    fn cmos(&mut self, _: u64) -> Option<u8> {
        None
    }
}

const SYSTEM_MEMORY: u8 = 0;
const PCI_CONFIGURATION: u8 = 2;
const CMOS: u8 = 5;
/// `EisaId ("PNP0A03")` and `EisaId ("PNP0A08")`: host bridges.
const HOST_BRIDGES: [u64; 2] = [0x030a_d041, 0x080a_d041];
/// Wider fields are buffers that no decision depends on, so they are not read.
const FIELD_BITS_MAX: u64 = 2048;
/// More writes than this are not recorded one by one: from then on every field counts as written.
const WRITES_MAX: usize = 1000;

impl Interpreter {
    pub(super) fn read_field(&mut self, path: &Path, field: &Field) -> Result<Value, Error> {
        self.step(field.bits as usize / 8)?;
        let unknown = Value::unknown(&Rc::from(path.to_text()));
        let Some(Object::Region(region)) = self.namespace.get(&field.region).cloned() else {
            return Ok(unknown);
        };
        if field.bits == 0 || field.bits > FIELD_BITS_MAX || self.is_written(&region, field) {
            return Ok(unknown);
        }
        let Some(bytes) = self.read_region(&region, field)? else { return Ok(unknown) };
        let (shift, bits) = ((field.bit % (field.access * 8)) as usize, field.bits as usize);
        let mut value = alloc::vec![0u8; bits.div_ceil(8)];
        for index in 0..bits {
            let bit = bytes[(shift + index) / 8] >> ((shift + index) % 8) & 1;
            value[index / 8] |= bit << (index % 8);
        }
        self.charge(value.len())?;
        if bits > 64 {
            Ok(Value::Buffer(value))
        } else {
            Value::Buffer(value).as_integer().map(Value::Integer)
        }
    }

    /// The bytes that span the field, from and to a multiple of its access width.
    fn read_region(&mut self, region: &Region, field: &Field) -> Result<Option<Vec<u8>>, Error> {
        let width = field.access;
        let start = field.bit / 8 / width * width;
        let end = (field.bit + field.bits).div_ceil(8).next_multiple_of(width);
        let Some(address) = region.address.filter(|_| region.length.is_some_and(|length| end <= length))
        else {
            return Ok(None);
        };
        let function =
            if region.space == PCI_CONFIGURATION { self.pci_function(&region.scope)? } else { None };
        let mut bytes = Vec::new();
        for at in (start..end).step_by(width as usize) {
            let Some(at) = address.checked_add(at) else { return Ok(None) };
            let unit = match region.space {
                SYSTEM_MEMORY => self.hardware.memory(at, width as usize),
                PCI_CONFIGURATION => {
                    function.and_then(|function| self.hardware.pci(function, at, width as usize))
                }
                CMOS if width == 1 => self.hardware.cmos(at).map(u64::from),
                // Reading a port or asking the embedded controller may change the device's state.
                _ => None,
            };
            let Some(unit) = unit else { return Ok(None) };
            bytes.extend_from_slice(&unit.to_le_bytes()[..width as usize]);
        }
        Ok(Some(bytes))
    }

    /// The PCI function that a region belongs to, found by `_ADR` below a host bridge. The tables do not give the bus
    /// numbers behind other bridges.
    fn pci_function(&mut self, scope: &Path) -> Result<Option<Address>, Error> {
        let mut device = scope.clone();
        while device != Path::root() && !self.exists(&device.child(*b"_ADR")) {
            device = device.parent();
        }
        let bridge = device.parent();
        let Some(adr) = self.number_of(&device, *b"_ADR")? else { return Ok(None) };
        let is_host_bridge = [self.number_of(&bridge, *b"_HID")?, self.number_of(&bridge, *b"_CID")?]
            .iter()
            .flatten()
            .any(|id| HOST_BRIDGES.contains(id));
        if !is_host_bridge {
            return Ok(None);
        }
        let mut optional = |name| match self.exists(&bridge.child(name)) {
            true => self.number_of(&bridge, name),
            false => Ok(Some(0)),
        };
        let (Some(bus), Some(segment)) = (optional(*b"_BBN")?, optional(*b"_SEG")?) else { return Ok(None) };
        Ok((|| {
            Some(Address {
                segment: u16::try_from(segment).ok()?,
                bus: u8::try_from(bus).ok()?,
                device: u8::try_from(adr >> 16).ok().filter(|device| *device < 32)?,
                function: u8::try_from(adr & 0xffff).ok().filter(|function| *function < 8)?,
            })
        })())
    }

    /// The object `name` below a device, as a number; `None` if it does not exist or is not a number.
    fn number_of(&mut self, device: &Path, name: [u8; 4]) -> Result<Option<u64>, Error> {
        let path = device.child(name);
        let value = match self.namespace.get(&path) {
            None => return Ok(None),
            Some(Object::Method { .. }) => self.call(&path, Vec::new()),
            Some(_) => self.read_target(&Target::Named(path)),
        };
        match value {
            Err(error) if error.is_limit() => Err(error),
            Ok(Value::Integer(number)) => Ok(Some(number)),
            _ => Ok(None),
        }
    }

    /// Leaves out a write and remembers the place: from now on the hardware's content there is not what the firmware
    /// would read.
    pub(super) fn leave_out_write(&mut self, field: &Field) {
        self.hardware_writes_left_out += 1;
        if let Some(Object::Region(region)) = self.namespace.get(&field.region)
            && let Some((start, end)) = bits_of(region, field)
            && self.written.len() < WRITES_MAX
        {
            self.written.push((region.space, start, end));
        }
    }

    fn is_written(&self, region: &Region, field: &Field) -> bool {
        let Some((start, end)) = bits_of(region, field) else { return true };
        let overlaps =
            |(space, from, to): &(u8, u64, u64)| *space == region.space && *from < end && start < *to;
        self.written.len() >= WRITES_MAX || self.written.iter().any(overlaps)
    }

    pub(super) fn declare_region(&mut self, scope: &Path, reader: &mut Reader) -> Result<(), Error> {
        let path = reader.name()?.in_scope(scope);
        let space = reader.byte()?;
        let address = self.expression(scope, reader)?;
        let length = self.expression(scope, reader)?;
        let known = |value: Value| match value {
            Value::Unknown(_) => Ok(None),
            value => value.as_integer().map(Some),
        };
        let region = Region { space, address: known(address)?, length: known(length)?, scope: scope.clone() };
        self.define(path, Object::Region(region))
    }

    pub(super) fn declare_fields(&mut self, scope: &Path, reader: &mut Reader) -> Result<(), Error> {
        let mut inside = reader.package()?;
        let name = inside.name()?;
        let region = self.namespace.find(&name, scope).unwrap_or_else(|| name.in_scope(scope));
        let access = inside.byte()?;
        self.field_list(scope, &mut inside, access, Some(&region))
    }

    pub(super) fn declare_index_fields(&mut self, scope: &Path, reader: &mut Reader) -> Result<(), Error> {
        let mut inside = reader.package()?;
        inside.name()?;
        inside.name()?;
        let access = inside.byte()?;
        self.field_list(scope, &mut inside, access, None)
    }

    pub(super) fn declare_bank_fields(&mut self, scope: &Path, reader: &mut Reader) -> Result<(), Error> {
        let mut inside = reader.package()?;
        inside.name()?;
        inside.name()?;
        self.expression(scope, &mut inside)?;
        let access = inside.byte()?;
        self.field_list(scope, &mut inside, access, None)
    }

    fn field_list(
        &mut self,
        scope: &Path,
        inside: &mut Reader,
        access: u8,
        region: Option<&Path>,
    ) -> Result<(), Error> {
        let (mut bit, mut access) = (0u64, access);
        let beyond = Error::OutOfRange("a field");
        while let Some(lead) = inside.peek() {
            self.step(0)?;
            match lead {
                0x00 => {
                    inside.byte()?;
                    bit = bit.checked_add(inside.package_length()? as u64).ok_or(beyond.clone())?;
                }
                0x01 | 0x03 => {
                    inside.byte()?;
                    access = inside.byte()?;
                    inside.take(if lead == 0x01 { 1 } else { 2 })?;
                }
                0x02 => {
                    inside.byte()?;
                    if inside.peek() == Some(0x11) {
                        inside.byte()?;
                        inside.package()?;
                    } else {
                        inside.name()?;
                    }
                }
                _ => {
                    let path = scope.child(inside.segment()?);
                    let bits = inside.package_length()? as u64;
                    let access = match access & 0x0f {
                        2 => 2,
                        3 => 4,
                        4 => 8,
                        _ => 1,
                    };
                    let object = match region {
                        Some(region) => Object::Field(Field { region: region.clone(), bit, bits, access }),
                        None => Object::IndirectField,
                    };
                    self.define(path, object)?;
                    bit = bit.checked_add(bits).ok_or(beyond.clone())?;
                }
            }
        }
        Ok(())
    }
}

/// The bits of its address space that a field covers; `None` if the address of its region is unknown.
fn bits_of(region: &Region, field: &Field) -> Option<(u64, u64)> {
    let start = region.address?.checked_mul(8)?.checked_add(field.bit)?;
    Some((start, start.checked_add(field.bits)?))
}
