//! A small reader and evaluator of AML (ACPI 6.5, chapter 20): enough to run the code by which firmware computes its
//! processor objects. It reports by name what it cannot evaluate.
//!
//! Promises: no recursion deeper than [`Limits::depth`], no more than [`Limits::steps`] terms, and no more than
//! [`Limits::bytes`] of values, whatever the bytes are. Operation regions are read as far as [`Hardware`] allows. What
//! cannot be read is an unknown value, and the code continues with it. Writes are left out and counted.

mod block;
mod branches;
mod convert;
mod expression;
mod field;
mod namespace;
mod path;
mod reader;
mod statement;
mod store;
mod value;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use field::{Address, Hardware, NoHardware};
pub use path::Path;
pub use value::{Unknown, Value};

use namespace::{Namespace, Object};
use reader::Reader;
use value::Target;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Terms executed, and elements copied.
    pub steps: u64,
    /// Nested blocks, expressions and method calls together.
    pub depth: usize,
    /// Bytes of all strings, buffers and packages made so far.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 4_000_000, depth: 100, bytes: 32 << 20 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes are no AML.
    Malformed(&'static str),
    UnknownOpcode(u16),
    UnknownName(String),
    /// The result depends on this object, which could not be read.
    Unknown(Rc<str>),
    Unsupported(&'static str),
    WrongType {
        wanted: &'static str,
        found: &'static str,
    },
    OutOfRange(&'static str),
    TooManySteps,
    TooDeep,
    TooLarge,
    /// `Load` of a table that was not given.
    NoSuchTable(String),
    Fatal(u64),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "malformed AML: {what}"),
            Self::UnknownOpcode(opcode) => write!(f, "unknown AML opcode {opcode:#x}"),
            Self::UnknownName(name) => write!(f, "{name} is defined nowhere"),
            Self::Unknown(cause) => write!(f, "it depends on {cause}, which cannot be read"),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
            Self::WrongType { wanted, found } => write!(f, "{found} where {wanted} is needed"),
            Self::OutOfRange(what) => write!(f, "{what} out of range"),
            Self::TooManySteps => f.write_str("it runs too long (an endless loop?)"),
            Self::TooDeep => f.write_str("it is nested too deeply"),
            Self::TooLarge => f.write_str("it makes too large values"),
            Self::NoSuchTable(name) => {
                write!(f, "it loads {name}, a table that is not among those given")
            }
            Self::Fatal(code) => write!(f, "the firmware calls this fatal (code {code:#x})"),
        }
    }
}

impl core::error::Error for Error {}

impl Error {
    /// Whether the error ends the whole evaluation, and not only that of one object.
    fn is_limit(&self) -> bool {
        matches!(self, Self::TooManySteps | Self::TooDeep | Self::TooLarge)
    }
}

/// How a list of terms ended.
#[derive(Debug)]
enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

/// One method call: its locals, arguments, and the names that are removed when it returns.
#[derive(Debug, Default)]
struct Frame {
    locals: [Value; 8],
    arguments: [Value; 7],
    made: Vec<Path>,
    /// The ways on which the call has already returned, while another way continues.
    returned: Vec<branches::Returned>,
    /// The first of the interpreter's stretches that belongs to this call.
    stretch: usize,
}

pub struct Interpreter {
    namespace: Namespace,
    frames: Vec<Frame>,
    /// SSDTs that firmware may load while it runs.
    loadable: Vec<Option<Vec<u8>>>,
    limits: Limits,
    steps: u64,
    depth: usize,
    bytes: usize,
    integer_mask: u64,
    hardware: Box<dyn Hardware>,
    /// Fields whose writes were left out: what the hardware holds there is not what the firmware would read.
    written: Vec<(u8, u64, u64)>,
    /// What the running code has changed: one map for each nested method and branch.
    stretches: Vec<branches::Changes>,
    /// One way left the running loop and another did not: the cause.
    loop_unknown: Option<Rc<str>>,
    /// Objects whose existence or content depends on something unknown.
    perhaps: BTreeMap<Path, Rc<str>>,
    /// Parts of tables that could not be loaded, and why.
    pub problems: Vec<String>,
    pub hardware_writes_left_out: u64,
}

/// Problems that are kept; a hostile table can cause one for each byte.
const PROBLEMS_MAX: usize = 100;

impl Interpreter {
    /// `revision` is that of the DSDT: below 2, integers have 32 bits (section 20.2.1, "DefinitionBlock").
    pub fn new(revision: u8, limits: Limits, hardware: Box<dyn Hardware>) -> Self {
        Self {
            namespace: Namespace::predefined(),
            frames: Vec::new(),
            loadable: Vec::new(),
            limits,
            steps: 0,
            depth: 0,
            bytes: 0,
            integer_mask: if revision < 2 { u64::from(u32::MAX) } else { u64::MAX },
            hardware,
            written: Vec::new(),
            stretches: Vec::new(),
            loop_unknown: None,
            perhaps: BTreeMap::new(),
            problems: Vec::new(),
            hardware_writes_left_out: 0,
        }
    }

    /// Offers a whole table (with header) to `Load`.
    pub fn offer(&mut self, table: Vec<u8>) {
        self.loadable.push(Some(table));
    }

    /// The offered tables that no `Load` has taken.
    pub fn take_unloaded(&mut self) -> Vec<Vec<u8>> {
        self.loadable.drain(..).flatten().collect()
    }

    /// Loads the body of a DSDT or SSDT. What cannot be evaluated is recorded in `problems`; limits are errors.
    pub fn load(&mut self, body: &[u8]) -> Result<(), Error> {
        let outcome = self.run_block(&Path::root(), body);
        self.come_to_rest();
        outcome.map(|_| ())
    }

    fn come_to_rest(&mut self) {
        self.depth = 0;
        self.frames.clear();
        self.stretches.clear();
        self.loop_unknown = None;
    }

    /// Evaluates an object or calls a method.
    pub fn evaluate(&mut self, path: &Path, arguments: Vec<Value>) -> Result<Value, Error> {
        let outcome = self.evaluate_inner(path, arguments);
        self.come_to_rest();
        outcome
    }

    fn evaluate_inner(&mut self, path: &Path, arguments: Vec<Value>) -> Result<Value, Error> {
        let Some(named) = self.namespace.behind_aliases(path.clone()) else {
            return Err(Error::UnknownName(path.to_text()));
        };
        let value = match self.namespace.get(&named) {
            Some(Object::Method { .. }) => self.call(&named, arguments)?,
            _ => self.read_target(&Target::Named(named))?,
        };
        self.settle(value)
    }

    pub fn exists(&self, path: &Path) -> bool {
        self.namespace.get(path).is_some()
    }

    /// The unknown value on which the existence or content of this object depends.
    pub fn depends_on(&self, path: &Path) -> Option<&Rc<str>> {
        let named = self.namespace.behind_aliases(path.clone()).filter(|named| named != path);
        [Some(path.clone()), named].into_iter().flatten().find_map(|mut path| {
            while path != Path::root() {
                if let Some(cause) = self.perhaps.get(&path) {
                    return Some(cause);
                }
                path = path.parent();
            }
            None
        })
    }

    /// Processor objects and processor devices (`ACPI0007`), each with its id in the MADT.
    pub fn processors(&mut self) -> Vec<(Path, Option<u64>)> {
        let mut found = Vec::new();
        for (path, declared) in self.namespace.processor_candidates() {
            match declared {
                Some(id) => found.push((path, Some(u64::from(id)))),
                None if self.is_processor_device(&path) => {
                    let id = self
                        .evaluate(&path.child(*b"_UID"), Vec::new())
                        .ok()
                        .and_then(|uid| uid.as_integer().ok());
                    found.push((path, id));
                }
                None => {}
            }
        }
        found
    }

    fn is_processor_device(&mut self, path: &Path) -> bool {
        let hardware_id = self.evaluate(&path.child(*b"_HID"), Vec::new());
        matches!(hardware_id, Ok(Value::String(name)) if name == "ACPI0007")
    }

    fn note(&mut self, place: &Path, error: &Error) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(alloc::format!("{}: {error}", place.to_text()));
        }
    }

    fn step(&mut self, cost: usize) -> Result<(), Error> {
        self.steps += 1 + cost as u64;
        if self.steps > self.limits.steps { Err(Error::TooManySteps) } else { Ok(()) }
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes { Err(Error::TooLarge) } else { Ok(()) }
    }

    /// Runs `inner` one level deeper.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= self.limits.depth {
            return Err(Error::TooDeep);
        }
        self.depth += 1;
        let outcome = inner(self);
        self.depth -= 1;
        outcome
    }

    /// Calls a method. The names that it makes live until it returns (section 5.5.2.3).
    fn call(&mut self, path: &Path, mut arguments: Vec<Value>) -> Result<Value, Error> {
        let (body, native) = match self.namespace.get(path) {
            Some(Object::Method { body, native, .. }) => (body.clone(), *native),
            _ => {
                return Err(Error::WrongType { wanted: "a method", found: "another object" });
            }
        };
        if native {
            return Ok(Value::Integer(namespace::osi(arguments.first())));
        }
        self.step(body.len() / 64)?;
        let mut frame = Frame::default();
        for (slot, argument) in frame.arguments.iter_mut().zip(arguments.drain(..)) {
            *slot = argument;
        }
        frame.stretch = self.stretches.len();
        self.frames.push(frame);
        self.begin_stretch();
        let stretches = self.stretches.len();
        let loop_around = self.loop_unknown.take();
        let outcome = self.deeper(|this| this.run_terms(path, &mut Reader::new(&body)));
        while self.stretches.len() > stretches {
            self.keep_stretch();
        }
        let outcome = self.join_returned(outcome);
        self.loop_unknown = loop_around;
        let frame = self.frames.pop().unwrap_or_default();
        for made in frame.made {
            self.remember(branches::Root::Named(made.clone()))?;
            self.namespace.remove(&made);
        }
        self.keep_stretch();
        match outcome? {
            Flow::Return(value) => self.detach(value),
            _ => Ok(Value::Integer(0)),
        }
    }
}

#[cfg(test)]
mod tests;
