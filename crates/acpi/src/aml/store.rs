//! Storing to places with the implicit conversions of section 19.3.5.

use alloc::format;
use alloc::vec;

use super::branches::Root;
use super::convert::to_bytes;
use super::namespace::Object;
use super::path::Path;
use super::value::{Target, Value};
use super::{Error, Interpreter};

impl Interpreter {
    pub(super) fn store(&mut self, target: &Target, value: Value) -> Result<(), Error> {
        match target {
            Target::Nowhere => Ok(()),
            Target::Unknown { cause, within: Some(within) } => self.store(within, Value::unknown(cause)),
            Target::Unknown { cause, within: None } => Err(Error::Unknown(cause.clone())),
            Target::Argument { .. } => {
                // A store to an argument that is a reference goes to the place behind it (section 5.5.2.3.1).
                if let Value::Reference(behind) = self.place(target)?
                    && !matches!(**behind, Target::Argument { .. })
                {
                    let behind = (**behind).clone();
                    return self.store(&behind, value);
                }
                self.remember_target(target)?;
                *self.place(target)? = value;
                Ok(())
            }
            Target::Local { .. } => {
                self.remember_target(target)?;
                *self.place(target)? = value;
                Ok(())
            }
            Target::Element { of, index } => self.store_element(of, *index, value),
            Target::Named(path) => self.store_named(path, value),
        }
    }

    fn store_element(&mut self, of: &Target, index: usize, value: Value) -> Result<(), Error> {
        self.remember_target(of)?;
        match self.place(of)? {
            Value::Package(elements) => {
                *elements.get_mut(index).ok_or(Error::OutOfRange("an index"))? = value
            }
            place @ Value::Buffer(_) if value.cause().is_some() => *place = value,
            Value::Unknown(_) => return self.store_in_each(of, index, value),
            Value::Buffer(bytes) => {
                *bytes.get_mut(index).ok_or(Error::OutOfRange("an index"))? = value.as_integer()? as u8
            }
            other => {
                return Err(Error::WrongType { wanted: "a package or a buffer", found: other.kind() });
            }
        }
        Ok(())
    }

    /// Stores to an element of something that has several possible values: the element of each of them is written.
    fn store_in_each(&mut self, of: &Target, index: usize, value: Value) -> Result<(), Error> {
        let (mut root, mut way) = (of, vec![index]);
        while let Target::Element { of, index } = root {
            way.push(*index);
            root = of;
        }
        way.reverse();
        let mut whole = core::mem::take(self.place(root)?);
        let outcome = self.put_within(&mut whole, &way, &value);
        *self.place(root)? = whole;
        outcome
    }

    fn put_within(&mut self, whole: &mut Value, way: &[usize], value: &Value) -> Result<(), Error> {
        let Some((index, rest)) = way.split_first() else {
            self.charge(value.size())?;
            *whole = value.clone();
            return Ok(());
        };
        match whole {
            Value::Package(elements) => {
                let element = elements.get_mut(*index).ok_or(Error::OutOfRange("an index"))?;
                self.put_within(element, rest, value)
            }
            Value::Unknown(unknown) => {
                for mut candidate in core::mem::take(&mut unknown.candidates) {
                    self.step(1)?;
                    match self.put_within(&mut candidate, way, value) {
                        Ok(()) => unknown.candidates.push(candidate),
                        Err(error) if error.is_limit() => return Err(error),
                        // This candidate has no such element: on that way the firmware's code fails and has no result.
                        Err(_) => {}
                    }
                }
                Ok(())
            }
            Value::Buffer(_) if rest.is_empty() && value.cause().is_some() => {
                *whole = value.clone();
                Ok(())
            }
            Value::Buffer(bytes) if rest.is_empty() => {
                *bytes.get_mut(*index).ok_or(Error::OutOfRange("an index"))? = value.as_integer()? as u8;
                Ok(())
            }
            other => Err(Error::WrongType { wanted: "a package or a buffer", found: other.kind() }),
        }
    }

    /// A named object keeps its type.
    fn store_named(&mut self, path: &Path, value: Value) -> Result<(), Error> {
        match self.namespace.get(path) {
            Some(Object::BufferField { source, bit, bits }) => {
                let (source, bit, bits) = (source.clone(), *bit, *bits);
                return self.write_bits(&source, bit, bits, &value);
            }
            Some(Object::Field(field)) => {
                let field = field.clone();
                self.leave_out_write(&field);
                return Ok(());
            }
            Some(Object::IndirectField) => {
                self.hardware_writes_left_out += 1;
                return Ok(());
            }
            _ => {}
        }
        self.remember(Root::Named(path.clone()))?;
        let place = self.place(&Target::Named(path.clone()))?;
        *place = match (&*place, value) {
            (Value::Integer(_), value @ (Value::Buffer(_) | Value::String(_))) => {
                Value::Integer(value.as_integer()?)
            }
            (Value::String(_), Value::Integer(number)) => Value::String(format!("{number:016X}")),
            (Value::Buffer(old), value @ (Value::Buffer(_) | Value::String(_) | Value::Integer(_))) => {
                let mut bytes = to_bytes(&value)?;
                bytes.resize(old.len(), 0);
                Value::Buffer(bytes)
            }
            (_, value) => value,
        };
        Ok(())
    }
}
