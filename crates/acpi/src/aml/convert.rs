//! Reads places with the implicit conversions of section 19.3.5, and makes the explicit ones.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::namespace::Object;
use super::path::Path;
use super::reader::Reader;
use super::value::{Target, Unknown, Value};
use super::{Error, Interpreter};

/// Results that nest deeper than this are refused.
const SETTLED_DEPTH_MAX: usize = 16;

impl Object {
    /// The number that `ObjectType` gives for an object that is not data.
    pub(super) fn type_number(&self) -> Option<u64> {
        match self {
            Self::Device => Some(6),
            Self::Mutex => Some(9),
            Self::Method { .. } => Some(8),
            Self::Region(_) => Some(10),
            Self::Processor { .. } => Some(12),
            Self::Field(_) | Self::IndirectField => Some(5),
            Self::BufferField { .. } => Some(14),
            Self::Value(_) | Self::Scope | Self::Alias(_) => None,
        }
    }
}

pub(super) fn compare(left: &Value, right: &Value) -> Result<Ordering, Error> {
    Ok(match (left, right) {
        (Value::String(left), Value::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Value::Buffer(left), Value::Buffer(right)) => left.cmp(right),
        _ => left.as_integer()?.cmp(&right.as_integer()?),
    })
}

impl Interpreter {
    /// The value in a place, if the place has an address.
    pub(super) fn place(&mut self, target: &Target) -> Result<&mut Value, Error> {
        match target {
            Target::Nowhere => Err(Error::WrongType { wanted: "a place", found: "nothing" }),
            Target::Unknown { cause, .. } => Err(Error::Unknown(cause.clone())),
            Target::Local { frame, index } => {
                let frame = self
                    .frames
                    .get_mut(*frame)
                    .ok_or(Error::Unsupported("a reference to a local of a finished call"))?;
                Ok(&mut frame.locals[*index])
            }
            Target::Argument { frame, index } => {
                let frame = self
                    .frames
                    .get_mut(*frame)
                    .ok_or(Error::Unsupported("a reference to an argument of a finished call"))?;
                Ok(&mut frame.arguments[*index])
            }
            Target::Named(path) => match self.namespace.get_mut(path) {
                Some(Object::Value(value)) => Ok(value),
                Some(Object::Field(_) | Object::IndirectField) => Err(Error::Unknown(path.to_text().into())),
                Some(_) => Err(Error::WrongType { wanted: "data", found: "another object" }),
                None => Err(Error::UnknownName(path.to_text())),
            },
            Target::Element { of, index } => match self.place(of)? {
                Value::Package(elements) => elements.get_mut(*index).ok_or(Error::OutOfRange("an index")),
                // Every element of an unknown value is unknown, too.
                unknown @ Value::Unknown(_) => Ok(unknown),
                other => Err(Error::WrongType { wanted: "a package", found: other.kind() }),
            },
        }
    }

    /// Reads a place. Copies count against the limits.
    pub(super) fn read_target(&mut self, target: &Target) -> Result<Value, Error> {
        if let Target::Element { of, index } = target
            && let Value::Buffer(bytes) = self.place(of)?
        {
            return bytes
                .get(*index)
                .map(|byte| Value::Integer(u64::from(*byte)))
                .ok_or(Error::OutOfRange("an index"));
        }
        if let Target::Unknown { cause, .. } = target {
            return Ok(Value::unknown(cause));
        }
        if let Target::Named(path) = target {
            match self.namespace.get(path) {
                Some(Object::Field(field)) => {
                    let field = field.clone();
                    return self.read_field(path, &field);
                }
                Some(Object::IndirectField) => return Ok(Value::unknown(&path.to_text().into())),
                Some(Object::BufferField { source, bit, bits }) => {
                    let (source, bit, bits) = (source.clone(), *bit, *bits);
                    return self.read_bits(&source, bit, bits);
                }
                Some(Object::Value(_)) | None => {}
                Some(_) => return Ok(Value::Reference(target.clone().into())),
            }
        }
        let size = self.place(target)?.size();
        self.charge(size)?;
        self.step(size / 64)?;
        let value = match (target, self.place(target)?) {
            (Target::Element { .. }, Value::Unknown(unknown)) => Value::unknown(&unknown.cause),
            (_, value) => value.clone(),
        };
        // An element that names data is that data (section 19.6.102).
        match (target, value) {
            (Target::Element { .. }, Value::Reference(behind)) if matches!(*behind, Target::Named(_)) => {
                match self.namespace_value(&behind) {
                    Some(value) => self.charge(value.size()).map(|()| value),
                    None => Ok(Value::Reference(behind)),
                }
            }
            (_, value) => Ok(value),
        }
    }

    fn is_field(&self, target: &Target) -> bool {
        let Target::Named(path) = target else { return false };
        matches!(self.namespace.get(path), Some(Object::Field(_) | Object::IndirectField))
    }

    fn namespace_value(&self, target: &Target) -> Option<Value> {
        let Target::Named(path) = target else {
            return None;
        };
        match self.namespace.get(path)? {
            Object::Value(value) => Some(value.clone()),
            _ => None,
        }
    }

    fn read_bits(&mut self, source: &Target, bit: usize, bits: usize) -> Result<Value, Error> {
        self.step(bits / 8)?;
        let bytes = match self.place(source)? {
            Value::Unknown(unknown) => return Ok(Value::unknown(&unknown.cause)),
            value => value.as_buffer()?,
        };
        let at = |index: usize| bytes.get(index / 8).map(|byte| byte >> (index % 8) & 1);
        let end = Error::OutOfRange("a buffer field");
        let mut read = alloc::vec![0u8; bits.div_ceil(8)];
        for index in 0..bits {
            read[index / 8] |= at(bit + index).ok_or(end.clone())? << (index % 8);
        }
        self.charge(read.len())?;
        if bits > 64 { Ok(Value::Buffer(read)) } else { Value::Buffer(read).as_integer().map(Value::Integer) }
    }

    pub(super) fn write_bits(
        &mut self,
        source: &Target,
        bit: usize,
        bits: usize,
        value: &Value,
    ) -> Result<(), Error> {
        self.step(bits / 8)?;
        self.remember_target(source)?;
        let written = match value {
            Value::Unknown(unknown) => {
                *self.place(source)? = Value::unknown(&unknown.cause);
                return Ok(());
            }
            Value::Buffer(bytes) => bytes.clone(),
            other => other.as_integer()?.to_le_bytes().to_vec(),
        };
        let bytes = match self.place(source)? {
            Value::Buffer(bytes) => bytes,
            Value::Unknown(_) => return Ok(()),
            other => return Err(Error::WrongType { wanted: "a buffer", found: other.kind() }),
        };
        for index in 0..bits {
            let byte = bytes.get_mut((bit + index) / 8).ok_or(Error::OutOfRange("a buffer field"))?;
            let mask = 1 << ((bit + index) % 8);
            let is_set = written.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
            *byte = if is_set { *byte | mask } else { *byte & !mask };
        }
        Ok(())
    }

    /// Concatenate, ToBuffer, ToDecimalString, ToHexString, ToInteger, ToString, Mid.
    pub(super) fn conversion(
        &mut self,
        opcode: u8,
        scope: &Path,
        reader: &mut Reader,
    ) -> Result<Value, Error> {
        let operands = match opcode {
            0x73 | 0x9c => 2,
            0x9e => 3,
            _ => 1,
        };
        let operands =
            (0..operands).map(|_| self.expression(scope, reader)).collect::<Result<Vec<Value>, Error>>()?;
        let result = match operands.iter().find_map(Value::cause) {
            Some(cause) => Value::unknown(cause),
            None => converted(opcode, &operands)?,
        };
        self.charge(result.size())?;
        self.store_to_next(scope, reader, result)
    }

    /// Refuses a reference that leaves a method and points to one of its locals or arguments.
    pub(super) fn detach(&mut self, value: Value) -> Result<Value, Error> {
        let Value::Reference(target) = &value else {
            return Ok(value);
        };
        let mut root: &Target = target;
        while let Target::Element { of, .. } = root {
            root = of;
        }
        match root {
            Target::Local { frame, .. } | Target::Argument { frame, .. } if *frame >= self.frames.len() => {
                Err(Error::Unsupported("returning a reference to a local"))
            }
            _ => Ok(value),
        }
    }

    /// Finishes the result: names within packages are replaced by the data that they name.
    pub(super) fn settle(&mut self, value: Value) -> Result<Value, Error> {
        self.settle_at(value, 0)
    }

    fn settle_at(&mut self, value: Value, depth: usize) -> Result<Value, Error> {
        if depth > SETTLED_DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        self.step(0)?;
        match value {
            Value::Package(elements) => {
                let elements: Result<Vec<Value>, Error> =
                    elements.into_iter().map(|element| self.settle_at(element, depth + 1)).collect();
                elements.map(Value::Package)
            }
            Value::Reference(target) => match self.namespace_value(&target) {
                Some(value) => {
                    self.charge(value.size())?;
                    self.settle_at(value, depth + 1)
                }
                None if self.is_field(&target) => self.read_target(&target),
                None => Ok(Value::Reference(target)),
            },
            Value::Unknown(unknown) => {
                let candidates: Result<Vec<Value>, Error> =
                    unknown.candidates.into_iter().map(|value| self.settle_at(value, depth + 1)).collect();
                Ok(Value::Unknown(Unknown { cause: unknown.cause, candidates: candidates? }))
            }
            value => Ok(value),
        }
    }
}

fn converted(opcode: u8, operands: &[Value]) -> Result<Value, Error> {
    let value = operands.first().ok_or(Error::Malformed("an operand is missing"))?;
    let number = |index: usize| operands.get(index).map_or(Ok(0), Value::as_integer);
    Ok(match opcode {
        0x73 => concatenate(value.clone(), operands.get(1).cloned().unwrap_or_default())?,
        0x96 => Value::Buffer(to_bytes(value)?),
        0x97 => Value::String(value.as_integer()?.to_string()),
        0x98 => return Err(Error::Unsupported("ToHexString")),
        0x99 => match value {
            // Unlike the implicit conversion, this one reads a decimal number unless the text begins with 0x.
            Value::String(text) if !text.trim_start().starts_with("0x") => {
                Value::Integer(text.trim().parse().map_err(|_| Error::OutOfRange("a number in a string"))?)
            }
            other => Value::Integer(other.as_integer()?),
        },
        0x9c => {
            let length = usize::try_from(number(1)?).unwrap_or(usize::MAX);
            let text: Vec<u8> =
                value.as_buffer()?.iter().copied().take(length).take_while(|byte| *byte != 0).collect();
            Value::String(String::from_utf8_lossy(&text).into_owned())
        }
        _ => middle(value, number(1)? as usize, number(2)? as usize)?,
    })
}

pub(super) fn to_bytes(value: &Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::Buffer(bytes) => Ok(bytes.clone()),
        Value::String(text) => Ok(text.bytes().chain([0]).collect()),
        other => Ok(other.as_integer()?.to_le_bytes().to_vec()),
    }
}

/// The first operand's type decides (section 19.6.12).
fn concatenate(left: Value, right: Value) -> Result<Value, Error> {
    match left {
        Value::String(mut text) => {
            match right {
                Value::String(more) => text.push_str(&more),
                other => text.push_str(&format!("{:016X}", other.as_integer()?)),
            }
            Ok(Value::String(text))
        }
        Value::Integer(_) | Value::Buffer(_) => {
            let right =
                if matches!(left, Value::Integer(_)) { Value::Integer(right.as_integer()?) } else { right };
            Ok(Value::Buffer([to_bytes(&left)?, to_bytes(&right)?].concat()))
        }
        other => Err(Error::WrongType { wanted: "something to concatenate", found: other.kind() }),
    }
}

fn middle(value: &Value, start: usize, length: usize) -> Result<Value, Error> {
    let part = |bytes: &[u8]| bytes.iter().copied().skip(start).take(length).collect::<Vec<u8>>();
    match value {
        Value::String(text) => {
            Ok(Value::String(String::from_utf8_lossy(&part(text.as_bytes())).into_owned()))
        }
        Value::Buffer(bytes) => Ok(Value::Buffer(part(bytes))),
        other => Err(Error::WrongType { wanted: "a string or a buffer", found: other.kind() }),
    }
}
