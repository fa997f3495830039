//! Expressions (section 20.2.5.4), and reading and storing places.

mod places;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::namespace::Object;
use super::path::Path;
use super::reader::Reader;
use super::value::{Target, Value};
use super::{Error, Interpreter, convert};

/// A longer chain of `Index` of `Index` is an attack on the interpreter's own stack.
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
    /// What `compute` makes of two numbers; unknown if one of them is unknown.
    fn compute(
        &self,
        values: [&Value; 2],
        compute: impl FnOnce(u64, u64) -> Result<u64, Error>,
    ) -> Result<Value, Error> {
        if let Some(cause) = values[0].cause().or(values[1].cause()) {
            return Ok(Value::unknown(cause));
        }
        let (left, right) = (values[0].as_integer()?, values[1].as_integer()?);
        let result = compute(left & self.integer_mask, right & self.integer_mask)?;
        Ok(Value::Integer(result & self.integer_mask))
    }

    fn truth(&self, holds: bool) -> Value {
        Value::Integer(if holds { ONES & self.integer_mask } else { 0 })
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
                let value = self.read_target(&target)?;
                let value = self.compute([&value, &Value::Integer(1)], |value, one| {
                    Ok(if opcode == 0x75 { value.wrapping_add(one) } else { value.wrapping_sub(one) })
                })?;
                self.store(&target, value.clone())?;
                Ok(value)
            }
            0x78 => self.divide(scope, reader),
            0x80..=0x82 => {
                let value = self.expression(scope, reader)?;
                let result = self.compute([&value, &Value::Integer(0)], |value, _| {
                    Ok(match opcode {
                        0x80 => !value,
                        0x81 => u64::from(64 - value.leading_zeros()),
                        _ if value == 0 => 0,
                        _ => u64::from(value.trailing_zeros()) + 1,
                    })
                })?;
                self.store_to_next(scope, reader, result)
            }
            0x83 => match self.expression(scope, reader)? {
                Value::Reference(target) => self.read_target(&target),
                Value::Unknown(unknown) => Ok(Value::unknown(&unknown.cause)),
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
            0x88 => self.index(scope, reader).map(|target| match target {
                Target::Unknown { cause, within: None } => Value::unknown(&cause),
                target => Value::Reference(Box::new(target)),
            }),
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
            // Acquire: there is no other holder, so it never times out.
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
            0x33 => Ok(Value::unknown(&"the timer".into())),
            other => Err(Error::UnknownOpcode(0x5b00 | u16::from(other))),
        }
    }

    fn buffer(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let mut inside = reader.package()?;
        let size = match self.expression(scope, &mut inside)? {
            Value::Unknown(unknown) => return Ok(Value::unknown(&unknown.cause)),
            size => size.as_integer()? as usize,
        };
        let given = inside.rest();
        let size = size.max(given.len());
        self.charge(size)?;
        let mut bytes = given.to_vec();
        bytes.resize(size, 0);
        Ok(Value::Buffer(bytes))
    }

    fn package(&mut self, scope: &Path, reader: &mut Reader, variable: bool) -> Result<Value, Error> {
        let mut inside = reader.package()?;
        let count = match variable {
            false => Value::Integer(inside.integer(1)?),
            true => self.expression(scope, &mut inside)?,
        };
        let count = match count {
            Value::Unknown(unknown) => return Ok(Value::unknown(&unknown.cause)),
            count => count.as_integer()? as usize,
        };
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

    fn arithmetic(&mut self, opcode: u8, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let left = self.expression(scope, reader)?;
        let right = self.expression(scope, reader)?;
        // And with zero is zero, even if the other number is unknown.
        if opcode == 0x7b && (left == Value::Integer(0) || right == Value::Integer(0)) {
            return self.store_to_next(scope, reader, Value::Integer(0));
        }
        let result = self.compute([&left, &right], |left, right| {
            let shift = u32::try_from(right).unwrap_or(u32::MAX);
            Ok(match opcode {
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
            })
        })?;
        self.store_to_next(scope, reader, result)
    }

    fn divide(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let left = self.expression(scope, reader)?;
        let right = self.expression(scope, reader)?;
        let zero = Error::OutOfRange("a division by zero");
        let remainder =
            self.compute([&left, &right], |left, right| left.checked_rem(right).ok_or(zero.clone()))?;
        let quotient = self.compute([&left, &right], |left, right| left.checked_div(right).ok_or(zero))?;
        self.store_to_next(scope, reader, remainder)?;
        self.store_to_next(scope, reader, quotient)
    }

    fn logical(&mut self, opcode: u8, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let left = self.expression(scope, reader)?;
        if opcode == 0x92 {
            return self.compute([&left, &left], |left, _| Ok(if left == 0 { ONES } else { 0 }));
        }
        let right = self.expression(scope, reader)?;
        if matches!(opcode, 0x90 | 0x91) {
            return self.connect(opcode == 0x90, &left, &right);
        }
        if let Some(cause) = left.cause().or(right.cause()) {
            return Ok(Value::unknown(cause));
        }
        let order = convert::compare(&left, &right)?;
        Ok(self.truth(match opcode {
            0x93 => order.is_eq(),
            0x94 => order.is_gt(),
            _ => order.is_lt(),
        }))
    }

    /// `LAnd` (`all`) or `LOr`. One known operand may decide even if the other is unknown.
    fn connect(&self, all: bool, left: &Value, right: &Value) -> Result<Value, Error> {
        let known = |value: &Value| match value {
            Value::Unknown(_) => Ok(None),
            value => value.as_integer().map(|number| Some(number & self.integer_mask != 0)),
        };
        let (holds, holds_too) = (known(left)?, known(right)?);
        let decides = Some(!all);
        match (left.cause().or(right.cause()), holds == decides || holds_too == decides) {
            (_, true) => Ok(self.truth(!all)),
            (Some(cause), false) => Ok(Value::unknown(cause)),
            (None, false) => Ok(self.truth(all)),
        }
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
        if let Some(cause) = value.cause() {
            return Ok(Value::unknown(cause));
        }
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

    /// `Match` (section 19.6.82): the first element from an index on for which both comparisons hold.
    fn find_match(&mut self, scope: &Path, reader: &mut Reader) -> Result<Value, Error> {
        let package = self.expression(scope, reader)?;
        let mut operators = [0; 2];
        let mut operands = [Value::default(), Value::default()];
        for (operator, operand) in operators.iter_mut().zip(&mut operands) {
            (*operator, *operand) = (reader.byte()?, self.expression(scope, reader)?);
        }
        let start = self.expression(scope, reader)?;
        let is_part = |value: &&Value| value.cause().is_some();
        let parts = operands.iter().chain([&start, &package]);
        let parts = parts.chain(if let Value::Package(elements) = &package { elements } else { &[][..] });
        if let Some(cause) = parts.clone().find(is_part).and_then(Value::cause) {
            return Ok(Value::unknown(cause));
        }
        let tests = [(operators[0], operands[0].as_integer()?), (operators[1], operands[1].as_integer()?)];
        let start = start.as_integer()? as usize;
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
