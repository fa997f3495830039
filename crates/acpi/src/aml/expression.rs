//! Expressions (section 20.2.5.4), and reading and storing places.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::namespace::{Object, Path};
use super::reader::Reader;
use super::value::{Target, Value};
use super::{Error, Interpreter, convert};

/// `Index` of `Index` of ...: deeper ones are an attack on the stack.
const TARGET_DEPTH_MAX: usize = 16;
const ONES: u64 = u64::MAX;

fn depth_of(target: &Target) -> usize {
    let mut depth = 0;
    let mut target = target;
    while let Target::Element { of, .. } = target {
        depth += 1;
        target = of;
    }
    depth
}

impl Interpreter {
    pub(super) fn integer(&mut self, scope: &Path, reader: &mut Reader) -> Result<u64, Error> {
        let value = self.expression(scope, reader)?.as_integer()?;
        Ok(value & self.integer_mask)
    }

    pub(super) fn expression(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        self.step(0)?;
        self.deeper(
            |this| {
                if reader.at_name() { this.named(scope, reader) } else { this.operation(scope, reader) }
            },
        )
    }

    /// A name: the object's value, or the call of a method.
    fn named(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let name = reader.name()?;
        let path = self
            .namespace
            .find(&name, scope)
            .ok_or_else(|| Error::UnknownName(name.in_scope(scope).to_text()))?;
        let Some(Object::Method { arguments, .. }) = self.namespace.get(&path) else {
            return self.read_target(&Target::Named(path));
        };
        let arguments =
            (0..*arguments).map(|_| self.expression(scope, reader)).collect::<Result<Vec<Value>, Error>>()?;
        self.call(&path, arguments)
    }

    fn operation(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let opcode = reader.byte()?;
        match opcode {
            0x00 => Ok(Value::Integer(0)),
            0x01 => Ok(Value::Integer(1)),
            0x0a => reader.integer(1).map(Value::Integer),
            0x0b => reader.integer(2).map(Value::Integer),
            0x0c => reader.integer(4).map(Value::Integer),
            0x0e => reader.integer(8).map(|value| Value::Integer(value & self.integer_mask)),
            0xff => Ok(Value::Integer(self.integer_mask)),
            0x0d => {
                let text = reader.string()?;
                self.charge(text.len())?;
                Ok(Value::String(String::from_utf8_lossy(text).into_owned()))
            }
            0x11 => self.buffer(scope, reader),
            0x12 | 0x13 => self.package(scope, reader, opcode == 0x13),
            0x60..=0x6e => {
                let target = self.slot(opcode)?;
                self.read_target(&target)
            }
            0x70 | 0x9d => {
                let value = self.expression(scope, reader)?;
                self.store_to_next(scope, reader, value)
            }
            0x71 => self.super_name(scope, reader).map(|target| Value::Reference(Box::new(target))),
            0x72 | 0x74 | 0x77 | 0x79..=0x7f | 0x85 => self.arithmetic(opcode, scope, reader),
            0x75 | 0x76 => {
                let target = self.super_name(scope, reader)?;
                let value = self.read_target(&target)?.as_integer()?;
                let value = if opcode == 0x75 { value.wrapping_add(1) } else { value.wrapping_sub(1) };
                self.store_integer(&target, value)
            }
            0x78 => self.divide(scope, reader),
            0x80..=0x82 => {
                let value = self.integer(scope, reader)?;
                let result = match opcode {
                    0x80 => !value,
                    0x81 => u64::from(64 - value.leading_zeros()),
                    _ if value == 0 => 0,
                    _ => u64::from(value.trailing_zeros()) + 1,
                };
                self.store_to_next(scope, reader, Value::Integer(result & self.integer_mask))
            }
            0x83 => match self.expression(scope, reader)? {
                Value::Reference(target) => self.read_target(&target),
                Value::String(name) => {
                    let path = Path::parse(&name).ok_or(Error::Malformed("DerefOf of a bad name"))?;
                    self.read_target(&Target::Named(path))
                }
                other => Err(Error::WrongType { wanted: "a reference", found: other.kind() }),
            },
            0x87 | 0x8e => {
                let target = self.super_name(scope, reader)?;
                self.measure(opcode, &target)
            }
            0x88 => self.index(scope, reader).map(|target| Value::Reference(Box::new(target))),
            0x89 => self.find_match(scope, reader),
            0x90..=0x95 => self.logical(opcode, scope, reader),
            0x73 | 0x96..=0x99 | 0x9c | 0x9e => self.conversion(opcode, scope, reader),
            0x84 => Err(Error::Unsupported("ConcatenateResTemplate")),
            0x5b => self.extended(scope, reader),
            other => Err(Error::UnknownOpcode(u16::from(other))),
        }
    }

    fn extended(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        match reader.byte()? {
            0x12 => {
                let found = self.conditional_reference(scope, reader)?;
                let target = self.target(scope, reader)?;
                if let Some(found) = &found {
                    self.store(&target, Value::Reference(Box::new(found.clone())))?;
                }
                Ok(Value::Integer(if found.is_some() { ONES & self.integer_mask } else { 0 }))
            }
            0x20 => {
                let name = reader.name()?;
                let path = self
                    .namespace
                    .find(&name, scope)
                    .ok_or_else(|| Error::UnknownName(name.in_scope(scope).to_text()))?;
                let handle = self.target(scope, reader)?;
                self.load_from(&path)?;
                self.store(&handle, Value::Integer(1))?;
                Ok(Value::Integer(ONES & self.integer_mask))
            }
            0x1f => Err(Error::Unsupported("LoadTable")),
            // Acquire: nobody else is here, so it never times out.
            0x23 => {
                self.super_name(scope, reader)?;
                reader.take(2)?;
                Ok(Value::Integer(0))
            }
            0x25 => {
                self.super_name(scope, reader)?;
                self.expression(scope, reader)?;
                Ok(Value::Integer(0))
            }
            0x28 => Err(Error::Unsupported("FromBCD")),
            0x29 => Err(Error::Unsupported("ToBCD")),
            0x30 => Ok(Value::Integer(2)),
            0x31 => Ok(Value::Uninitialised),
            0x33 => Err(Error::Hardware("the timer".into())),
            other => Err(Error::UnknownOpcode(0x5b00 | u16::from(other))),
        }
    }

    fn buffer(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let mut inside = reader.package()?;
        let size = self.integer(scope, &mut inside)? as usize;
        let given = inside.rest();
        let size = size.max(given.len());
        self.charge(size)?;
        let mut bytes = given.to_vec();
        bytes.resize(size, 0);
        Ok(Value::Buffer(bytes))
    }

    fn package(&mut self, scope: &Path, reader: &mut Reader, variable: bool) -> Result<Value, Error> {
        let mut inside = reader.package()?;
        let count =
            if variable { self.integer(scope, &mut inside)? as usize } else { usize::from(inside.byte()?) };
        self.charge(count.saturating_mul(size_of::<Value>()))?;
        self.step(count / 8)?;
        let mut elements = Vec::new();
        while !inside.is_empty() && elements.len() < count {
            let element = if inside.at_name() {
                self.package_name(scope, &mut inside)?
            } else {
                self.expression(scope, &mut inside)?
            };
            elements.push(element);
        }
        elements.resize(count, Value::Uninitialised);
        Ok(Value::Package(elements))
    }

    /// Names in packages may be defined later, so they stay references.
    fn package_name(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let name = reader.name()?;
        let path = self.namespace.find(&name, scope).unwrap_or_else(|| name.in_scope(scope));
        Ok(Value::Reference(Box::new(Target::Named(path))))
    }

    fn slot(&self, opcode: u8) -> Result<Target, Error> {
        let frame =
            self.frames.len().checked_sub(1).ok_or(Error::Malformed("a local outside of every method"))?;
        Ok(match opcode {
            0x60..=0x67 => Target::Local { frame, index: usize::from(opcode - 0x60) },
            _ => Target::Argument { frame, index: usize::from(opcode - 0x68) },
        })
    }

    /// A place that must be named: a name, a local, an argument, or what a reference expression gives.
    pub(super) fn super_name(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
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
                other => Err(Error::WrongType { wanted: "a reference", found: other.kind() }),
            },
            other => Err(Error::UnknownOpcode(u16::from(other))),
        }
    }

    fn conditional_reference(&mut self, scope: &Path, reader: &mut Reader) -> Result<Option<Target>, Error> {
        if reader.at_name() {
            let name = reader.name()?;
            return Ok(self.namespace.find(&name, scope).map(Target::Named));
        }
        self.super_name(scope, reader).map(Some)
    }

    /// Like a super name, but zero stands for none.
    pub(super) fn target(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        if reader.peek() == Some(0) {
            reader.byte()?;
            return Ok(Target::Nowhere);
        }
        self.super_name(scope, reader)
    }

    pub(super) fn store_to_next(
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

    fn store_integer(&mut self, target: &Target, value: u64) -> Result<Value, Error> {
        let value = Value::Integer(value & self.integer_mask);
        self.store(target, value.clone())?;
        Ok(value)
    }

    fn arithmetic(&mut self, opcode: u8, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let left = self.integer(scope, reader)?;
        let right = self.integer(scope, reader)?;
        let shift = u32::try_from(right).unwrap_or(u32::MAX);
        let result = match opcode {
            0x72 => left.wrapping_add(right),
            0x74 => left.wrapping_sub(right),
            0x77 => left.wrapping_mul(right),
            0x79 => left.checked_shl(shift).unwrap_or(0),
            0x7a => left.checked_shr(shift).unwrap_or(0),
            0x7b => left & right,
            0x7c => !(left & right),
            0x7d => left | right,
            0x7e => !(left | right),
            0x7f => left ^ right,
            _ => left.checked_rem(right).ok_or(Error::OutOfRange("a division by zero"))?,
        };
        self.store_to_next(scope, reader, Value::Integer(result & self.integer_mask))
    }

    fn divide(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let left = self.integer(scope, reader)?;
        let right = self.integer(scope, reader)?;
        let zero = Error::OutOfRange("a division by zero");
        let (quotient, remainder) =
            (left.checked_div(right).ok_or(zero.clone())?, left.checked_rem(right).ok_or(zero)?);
        self.store_to_next(scope, reader, Value::Integer(remainder))?;
        self.store_to_next(scope, reader, Value::Integer(quotient))
    }

    fn logical(&mut self, opcode: u8, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let left = self.expression(scope, reader)?;
        let holds = match opcode {
            0x92 => left.as_integer()? == 0,
            0x90 | 0x91 => {
                let (left, right) = (left.as_integer()? != 0, self.integer(scope, reader)? != 0);
                if opcode == 0x90 { left && right } else { left || right }
            }
            _ => {
                let right = self.expression(scope, reader)?;
                let order = convert::compare(&left, &right)?;
                match opcode {
                    0x93 => order.is_eq(),
                    0x94 => order.is_gt(),
                    _ => order.is_lt(),
                }
            }
        };
        Ok(Value::Integer(if holds { ONES & self.integer_mask } else { 0 }))
    }

    /// `SizeOf` and `ObjectType`.
    fn measure(&mut self, opcode: u8, target: &Target) -> Result<Value, Error> {
        if opcode == 0x8e
            && let Target::Named(path) = target
            && let Some(number) = self.namespace.get(path).and_then(Object::type_number)
        {
            return Ok(Value::Integer(number));
        }
        let value = self.read_target(target)?;
        if opcode == 0x8e {
            return Ok(Value::Integer(value.type_number()));
        }
        match &value {
            Value::String(text) => Ok(Value::Integer(text.len() as u64)),
            Value::Buffer(bytes) => Ok(Value::Integer(bytes.len() as u64)),
            Value::Package(elements) => Ok(Value::Integer(elements.len() as u64)),
            other => Err(Error::WrongType { wanted: "something with a size", found: other.kind() }),
        }
    }

    /// `Index` names an element without reading it.
    fn index(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        let of = if reader.at_name() || matches!(reader.peek(), Some(0x60..=0x6e | 0x71 | 0x83 | 0x88)) {
            self.indexed_place(scope, reader)?
        } else {
            return Err(Error::Unsupported("Index of a constant"));
        };
        let index = self.integer(scope, reader)? as usize;
        let element = Target::Element { of: Box::new(of), index };
        if depth_of(&element) > TARGET_DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        if index >= self.length(&element)? {
            return Err(Error::OutOfRange("an index"));
        }
        let also = self.target(scope, reader)?;
        self.store(&also, Value::Reference(Box::new(element.clone())))?;
        Ok(element)
    }

    /// What `Index` is applied to: a place, or (`DerefOf`) the place that a reference leads to.
    fn indexed_place(&mut self, scope: &Path, reader: &mut Reader) -> Result<Target, Error> {
        if reader.peek() == Some(0x83) {
            reader.byte()?;
            return match self.expression(scope, reader)? {
                Value::Reference(target) => Ok(*target),
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
            other => Err(Error::WrongType { wanted: "a package or a buffer", found: other.kind() }),
        }
    }

    /// `Match` (section 19.6.82): the first element from an index on for which both comparisons hold.
    fn find_match(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let package = self.expression(scope, reader)?;
        let mut tests = [(0, 0), (0, 0)];
        for test in &mut tests {
            *test = (reader.byte()?, self.integer(scope, reader)?);
        }
        let start = self.integer(scope, reader)? as usize;
        let holds = |value: u64| {
            tests.iter().all(|(operator, operand)| match operator {
                0 => true,
                1 => value == *operand,
                2 => value <= *operand,
                3 => value < *operand,
                4 => value >= *operand,
                _ => value > *operand,
            })
        };
        let elements = package.as_package()?;
        self.step(elements.len())?;
        let found = (start..elements.len())
            .find(|index| matches!(elements[*index], Value::Integer(value) if holds(value)));
        Ok(Value::Integer(found.map_or(ONES & self.integer_mask, |index| index as u64)))
    }
}
