//! Values, and the places that values are stored to.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use super::Error;
use super::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    #[default]
    Uninitialised,
    Integer(u64),
    String(String),
    Buffer(Vec<u8>),
    Package(Vec<Value>),
    /// The result of `RefOf` and `Index`, and what names within packages stand for.
    Reference(Box<Target>),
    /// A value that could not be read, or that depends on one that could not be read.
    Unknown(Unknown),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The first thing that the value depends on and that could not be read.
    pub cause: Rc<str>,
    /// The possible values, one for each way; empty if none is known.
    pub candidates: Vec<Value>,
}

/// Further possible values are dropped.
const CANDIDATES_MAX: usize = 8;

/// A place. Locals and arguments carry the number of their call, so that a reference that outlives the call is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Nowhere,
    Local {
        frame: usize,
        index: usize,
    },
    Argument {
        frame: usize,
        index: usize,
    },
    Named(Path),
    Element {
        of: Box<Target>,
        index: usize,
    },
    /// A place that depends on something unknown. `within` is the place that contains it in every case.
    Unknown {
        cause: Rc<str>,
        within: Option<Box<Target>>,
    },
}

impl Value {
    pub fn unknown(cause: &Rc<str>) -> Self {
        Self::Unknown(Unknown { cause: cause.clone(), candidates: Vec::new() })
    }

    /// What the value depends on, if it is unknown.
    pub fn cause(&self) -> Option<&Rc<str>> {
        match self {
            Self::Unknown(unknown) => Some(&unknown.cause),
            _ => None,
        }
    }

    /// One of two values; the unknown `cause` decides which.
    pub fn either(self, other: Self, cause: &Rc<str>) -> Self {
        if self == other {
            return self;
        }
        let mut candidates = self.candidates();
        for value in other.candidates() {
            if !candidates.contains(&value) && candidates.len() < CANDIDATES_MAX {
                candidates.push(value);
            }
        }
        Self::Unknown(Unknown { cause: cause.clone(), candidates })
    }

    fn candidates(self) -> Vec<Self> {
        match self {
            Self::Unknown(unknown) => unknown.candidates,
            Self::Uninitialised => Vec::new(),
            known => alloc::vec![known],
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Uninitialised => "nothing",
            Self::Integer(_) => "an integer",
            Self::String(_) => "a string",
            Self::Buffer(_) => "a buffer",
            Self::Package(_) => "a package",
            Self::Reference(_) => "a reference",
            Self::Unknown(_) => "an unknown value",
        }
    }

    /// The number that `ObjectType` gives (section 19.6.97).
    pub fn type_number(&self) -> u64 {
        match self {
            Self::Uninitialised | Self::Reference(_) | Self::Unknown(_) => 0,
            Self::Integer(_) => 1,
            Self::String(_) => 2,
            Self::Buffer(_) => 3,
            Self::Package(_) => 4,
        }
    }

    /// About how many bytes it takes to hold or copy the value.
    pub fn size(&self) -> usize {
        let content = match self {
            Self::String(text) => text.len(),
            Self::Buffer(bytes) => bytes.len(),
            Self::Package(elements) => elements.iter().map(Self::size).sum(),
            Self::Unknown(unknown) => unknown.candidates.iter().map(Self::size).sum(),
            _ => 0,
        };
        size_of::<Self>() + content
    }

    /// Implicit conversion to an integer (section 19.3.5).
    pub fn as_integer(&self) -> Result<u64, Error> {
        match self {
            Self::Integer(value) => Ok(*value),
            Self::Buffer(bytes) if !bytes.is_empty() => {
                Ok(bytes.iter().take(8).rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
            }
            Self::String(text) => Ok(leading_hexadecimal(text)),
            Self::Unknown(unknown) => Err(Error::Unknown(unknown.cause.clone())),
            other => Err(Error::WrongType { wanted: "an integer", found: other.kind() }),
        }
    }

    pub fn as_package(&self) -> Result<&[Value], Error> {
        match self {
            Self::Package(elements) => Ok(elements),
            Self::Unknown(unknown) => Err(Error::Unknown(unknown.cause.clone())),
            other => Err(Error::WrongType { wanted: "a package", found: other.kind() }),
        }
    }

    pub fn as_buffer(&self) -> Result<&[u8], Error> {
        match self {
            Self::Buffer(bytes) => Ok(bytes),
            Self::Unknown(unknown) => Err(Error::Unknown(unknown.cause.clone())),
            other => Err(Error::WrongType { wanted: "a buffer", found: other.kind() }),
        }
    }
}

/// Strings convert implicitly as hexadecimal, up to the first other letter.
fn leading_hexadecimal(text: &str) -> u64 {
    let digits = text.trim_start();
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    digits
        .chars()
        .map_while(|digit| digit.to_digit(16))
        .take(16)
        .fold(0, |value, digit| value << 4 | u64::from(digit))
}
