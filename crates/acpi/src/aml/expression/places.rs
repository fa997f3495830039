//! The places that operations write to: super names, targets, elements of packages and buffers.

use super::{TARGET_DEPTH_MAX, depth_of};
use crate::aml::path::Path;
use crate::aml::reader::Reader;
use crate::aml::value::{Target, Value};
use crate::aml::{Error, Interpreter};
use alloc::boxed::Box;

impl Interpreter {
    pub(super) fn slot(&self, opcode: u8) -> Result<Target, Error> {
        let frame =
            self.frames.len().checked_sub(1).ok_or(Error::Malformed("a local outside of every method"))?;
        Ok(match opcode {
            0x60..=0x67 => Target::Local { frame, index: usize::from(opcode - 0x60) },
            _ => Target::Argument { frame, index: usize::from(opcode - 0x68) },
        })
    }

    /// A place that must be named: a name, a local, an argument, or the result of a reference expression.
    pub(in crate::aml) fn super_name(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        if reader.at_name() {
            let name = reader.name()?;
            let found = self.namespace.find(&name, scope);
            return found
                .map(Target::Named)
                .ok_or_else(|| Error::UnknownName(name.in_scope(scope).to_text()));
        }
        match reader.peek().ok_or(Error::Malformed("a place is missing"))? {
            slot @ 0x60..=0x6e => {
                reader.byte()?;
                self.slot(slot)
            }
            0x5b if reader.peek_second() == Some(0x31) => reader.take(2).map(|_| Target::Nowhere),
            0x71 | 0x83 | 0x88 => match self.expression(scope, reader)? {
                Value::Reference(target) => Ok(*target),
                Value::Unknown(unknown) => Ok(Target::Unknown { cause: unknown.cause, within: None }),
                other => Err(Error::WrongType { wanted: "a reference", found: other.kind() }),
            },
            other => Err(Error::UnknownOpcode(u16::from(other))),
        }
    }

    pub(super) fn conditional_reference(
        &mut self,
        scope: &Path,
        reader: &mut Reader,
    ) -> Result<Option<Target>, Error> {
        if reader.at_name() {
            let name = reader.name()?;
            return Ok(self.namespace.find(&name, scope).map(Target::Named));
        }
        self.super_name(scope, reader).map(Some)
    }

    /// Like a super name, but a zero byte means no target.
    pub(in crate::aml) fn target(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        if reader.peek() == Some(0) {
            reader.byte()?;
            return Ok(Target::Nowhere);
        }
        self.super_name(scope, reader)
    }

    pub(in crate::aml) fn store_to_next(
        &mut self,
        scope: &Path,
        reader: &mut Reader,
        value: Value,
    ) -> Result<Value, Error> {
        let target = self.target(scope, reader)?;
        self.charge(value.size())?;
        self.store(&target, value.clone())?;
        Ok(value)
    }

    /// `Index` names an element without reading it.
    pub(super) fn index(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        let of = if reader.at_name() || matches!(reader.peek(), Some(0x60..=0x6e | 0x71 | 0x83 | 0x88)) {
            self.indexed_place(scope, reader)?
        } else {
            return Err(Error::Unsupported("Index of a constant"));
        };
        let index = self.expression(scope, reader)?;
        let element = self.element(of, &index)?;
        let also = self.target(scope, reader)?;
        let reference = match &element {
            Target::Unknown { cause, within: None } => Value::unknown(cause),
            element => Value::Reference(Box::new(element.clone())),
        };
        self.store(&also, reference)?;
        Ok(element)
    }

    pub(super) fn element(&mut self, of: Target, index: &Value) -> Result<Target, Error> {
        if let Target::Unknown { cause, within } = of {
            return Ok(Target::Unknown { cause, within });
        }
        if let Some(cause) = index.cause() {
            return Ok(Target::Unknown { cause: cause.clone(), within: Some(Box::new(of)) });
        }
        let index = index.as_integer()? as usize;
        let element = Target::Element { of: Box::new(of), index };
        if depth_of(&element) > TARGET_DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        if index >= self.length(&element)? {
            return Err(Error::OutOfRange("an index"));
        }
        Ok(element)
    }

    /// What `Index` is applied to: a place, or (`DerefOf`) the place that a reference leads to.
    fn indexed_place(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        if reader.peek() == Some(0x83) {
            reader.byte()?;
            return match self.expression(scope, reader)? {
                Value::Reference(target) => Ok(*target),
                Value::Unknown(unknown) => Ok(Target::Unknown { cause: unknown.cause, within: None }),
                other => Err(Error::WrongType { wanted: "a reference", found: other.kind() }),
            };
        }
        let place = self.super_name(scope, reader)?;
        match self.place(&place)? {
            Value::Reference(behind) => Ok((**behind).clone()),
            _ => Ok(place),
        }
    }

    fn length(&mut self, element: &Target) -> Result<usize, Error> {
        let Target::Element { of, .. } = element else {
            return Ok(0);
        };
        match self.place(of)? {
            Value::Package(elements) => Ok(elements.len()),
            Value::Buffer(bytes) => Ok(bytes.len()),
            Value::String(text) => Ok(text.len()),
            // Every index of an unknown value gives an unknown element.
            Value::Unknown(_) => Ok(usize::MAX),
            other => Err(Error::WrongType { wanted: "a package or a buffer", found: other.kind() }),
        }
    }
}
