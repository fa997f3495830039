//! Terms that make named objects (section 20.2.5.1 and 20.2.5.2), and the walk over a definition block.

use alloc::rc::Rc;
use alloc::vec::Vec;

use super::branches::Root;
use super::namespace::{Object, Region};
use super::path::Path;
use super::reader::Reader;
use super::value::Value;
use super::{Error, Flow, Interpreter};

/// `DataTableRegion` has a space of its own.
const DATA_TABLE: u8 = 0x7e;

impl Interpreter {
    /// Runs the terms of a scope. A term that cannot be evaluated is recorded in `problems`, and the walk continues
    /// behind it where that is possible.
    pub(super) fn run_block(&mut self, scope: &Path, bytes: &[u8]) -> Result<Flow, Error> {
        let mut reader = Reader::new(bytes);
        let outcome = self.deeper(|this| this.run_terms(scope, &mut reader));
        match outcome {
            // Methods report errors to their callers. At load there is none, so the place is noted.
            Err(error) if self.frames.is_empty() && !error.is_limit() => {
                self.note(scope, &error);
                Ok(Flow::Next)
            }
            outcome => outcome,
        }
    }

    pub(super) fn define(&mut self, path: Path, object: Object) -> Result<(), Error> {
        self.charge(path.to_text().len() + size_of::<Object>())?;
        self.remember(Root::Named(path.clone()))?;
        if let Some(frame) = self.frames.last_mut() {
            frame.made.push(path.clone());
        }
        self.namespace.insert(path, object)
    }

    /// A term that declares something; `None` if the opcode does not.
    pub(super) fn declaration(&mut self, scope: &Path, reader: &mut Reader) -> Result<Option<()>, Error> {
        let Some(opcode) = reader.peek() else {
            return Ok(None);
        };
        if opcode == 0x5b {
            return self.extended_declaration(scope, reader);
        }
        if !matches!(opcode, 0x06 | 0x08 | 0x10 | 0x14 | 0x15 | 0x8a..=0x8d | 0x8f) {
            return Ok(None);
        }
        reader.byte()?;
        match opcode {
            0x06 => self.declare_alias(scope, reader)?,
            0x08 => {
                let path = reader.name()?.in_scope(scope);
                let value = self.expression(scope, reader)?;
                self.define(path, Object::Value(value))?;
            }
            0x10 => {
                let mut inside = reader.package()?;
                let name = inside.name()?;
                let path = self.namespace.find(&name, scope).unwrap_or_else(|| name.in_scope(scope));
                if !self.exists(&path) {
                    self.note(&path, &Error::UnknownName("its scope".into()));
                    self.define(path.clone(), Object::Scope)?;
                }
                self.run_block(&path, inside.rest())?;
            }
            0x14 => {
                let mut inside = reader.package()?;
                let path = inside.name()?.in_scope(scope);
                let arguments = inside.byte()? & 7;
                self.charge(inside.rest().len())?;
                self.define(
                    path,
                    Object::Method { arguments, body: Rc::from(inside.rest()), native: false },
                )?;
            }
            0x15 => {
                // External carries only what the compiler needs.
                reader.name()?;
                reader.take(2)?;
            }
            0x8a => self.declare_buffer_field(scope, reader, Some(32), 8)?,
            0x8b => self.declare_buffer_field(scope, reader, Some(16), 8)?,
            0x8c => self.declare_buffer_field(scope, reader, Some(8), 8)?,
            0x8d => self.declare_buffer_field(scope, reader, Some(1), 1)?,
            _ => self.declare_buffer_field(scope, reader, Some(64), 8)?,
        }
        Ok(Some(()))
    }

    fn extended_declaration(&mut self, scope: &Path, reader: &mut Reader) -> Result<Option<()>, Error> {
        let opcode = reader.peek_second();
        let Some(opcode @ (0x01 | 0x02 | 0x13 | 0x80..=0x88)) = opcode else {
            return Ok(None);
        };
        reader.take(2)?;
        match opcode {
            0x01 => {
                let path = reader.name()?.in_scope(scope);
                reader.byte()?;
                self.define(path, Object::Mutex)?;
            }
            0x02 => {
                let path = reader.name()?.in_scope(scope);
                self.define(path, Object::Mutex)?;
            }
            0x13 => self.declare_buffer_field(scope, reader, None, 1)?,
            0x80 => {
                self.declare_region(scope, reader)?;
            }
            0x81 => self.declare_fields(scope, reader)?,
            0x86 => self.declare_index_fields(scope, reader)?,
            0x87 => self.declare_bank_fields(scope, reader)?,
            0x88 => {
                let path = reader.name()?.in_scope(scope);
                (0..3).try_for_each(|_| self.expression(scope, reader).map(|_| ()))?;
                let region = Region { space: DATA_TABLE, address: None, length: None, scope: scope.clone() };
                self.define(path, Object::Region(region))?;
            }
            _ => self.declare_container(opcode, scope, reader)?,
        }
        Ok(Some(()))
    }

    /// Device, Processor, PowerResource, ThermalZone: a name, a few fixed bytes, and terms.
    fn declare_container(&mut self, opcode: u8, scope: &Path, reader: &mut Reader) -> Result<(), Error> {
        let mut inside = reader.package()?;
        let path = inside.name()?.in_scope(scope);
        let object = match opcode {
            0x82 => Object::Device,
            0x83 => {
                let id = inside.byte()?;
                inside.take(5)?;
                Object::Processor { id }
            }
            0x84 => {
                inside.take(3)?;
                Object::Scope
            }
            _ => Object::Scope,
        };
        self.define(path.clone(), object)?;
        self.run_block(&path, inside.rest())?;
        Ok(())
    }

    fn declare_alias(&mut self, scope: &Path, reader: &mut Reader) -> Result<(), Error> {
        let source = reader.name()?;
        let path = reader.name()?.in_scope(scope);
        let target = self
            .namespace
            .find(&source, scope)
            .ok_or_else(|| Error::UnknownName(source.in_scope(scope).to_text()))?;
        self.define(path, Object::Alias(target))
    }

    /// Declares a field of `bits` bits within a source, at an index that counts in units of `unit` bits. With `None`
    /// the term itself gives the number of bits.
    fn declare_buffer_field(
        &mut self,
        scope: &Path,
        reader: &mut Reader,
        bits: Option<usize>,
        unit: usize,
    ) -> Result<(), Error> {
        let source = self.super_name(scope, reader)?;
        let index = self.expression(scope, reader)?;
        let bits = match bits {
            Some(bits) => Value::Integer(bits as u64),
            None => self.expression(scope, reader)?,
        };
        let path = reader.name()?.in_scope(scope);
        let buffer = self.read_target(&source)?;
        if let Some(cause) = index.cause().or(bits.cause()).or(buffer.cause()) {
            return self.define(path, Object::Value(Value::unknown(cause)));
        }
        let (index, bits) = (index.as_integer()? as usize, bits.as_integer()? as usize);
        let bit = index.checked_mul(unit).ok_or(Error::OutOfRange("a buffer field"))?;
        let size = buffer.as_buffer()?.len() * 8;
        if bits == 0 || bit.checked_add(bits).is_none_or(|end| end > size) {
            return Err(Error::OutOfRange("a buffer field"));
        }
        self.define(path, Object::BufferField { source, bit, bits })
    }

    /// `Load` (section 19.6.75) from a buffer that holds the table, or from a region. A region's memory is not read:
    /// the offered table of the same length is loaded instead.
    pub(super) fn load_from(&mut self, path: &Path) -> Result<(), Error> {
        let table = match self.namespace.get(path) {
            Some(Object::Value(Value::Buffer(bytes))) => bytes.clone(),
            Some(Object::Region(region)) => {
                let length = region.length.ok_or_else(|| Error::NoSuchTable(path.to_text()))?;
                let fits = |table: &&mut Option<Vec<u8>>| {
                    table.as_ref().is_some_and(|table| table.len() as u64 == length)
                };
                let found = self.loadable.iter_mut().find(fits).and_then(Option::take);
                found.ok_or_else(|| {
                    Error::NoSuchTable(alloc::format!("{} ({length} bytes)", path.to_text()))
                })?
            }
            _ => return Err(Error::NoSuchTable(path.to_text())),
        };
        self.charge(table.len())?;
        let table =
            crate::Table::parse(&table).map_err(|_| Error::Malformed("a table that is loaded is damaged"))?;
        // The loaded names outlive the method that loads them: they are made outside of every frame.
        let frames = core::mem::take(&mut self.frames);
        let outcome = self.run_block(&Path::root(), table.body);
        self.frames = frames;
        outcome.map(|_| ())
    }
}
