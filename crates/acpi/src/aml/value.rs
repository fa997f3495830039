//! Values, and the places that values are stored to.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::Error;
use super::namespace::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    #[default]
    Uninitialised,
    Integer(u64),
    String(String),
    Buffer(Vec<u8>),
    Package(Vec<Value>),
    /// What `RefOf`, `Index` and names within packages give.
    Reference(Box<Target>),
}

/// A place. Locals and arguments are named with their call, so that a reference outliving it is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Nowhere,
    Local { frame: usize, index: usize },
    Argument { frame: usize, index: usize },
    Named(Path),
    Element { of: Box<Target>, index: usize },
}

impl Value {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Uninitialised => "nothing",
            Self::Integer(_) => "an integer",
            Self::String(_) => "a string",
            Self::Buffer(_) => "a buffer",
            Self::Package(_) => "a package",
            Self::Reference(_) => "a reference",
        }
    }

    /// `ObjectType` of section 19.6.97.
    pub fn type_number(&self) -> u64 {
        match self {
            Self::Uninitialised | Self::Reference(_) => 0,
            Self::Integer(_) => 1,
            Self::String(_) => 2,
            Self::Buffer(_) => 3,
            Self::Package(_) => 4,
        }
    }

    /// About what it takes to hold or copy it.
    pub fn size(&self) -> usize {
        let content = match self {
            Self::String(text) => text.len(),
            Self::Buffer(bytes) => bytes.len(),
            Self::Package(elements) => elements.iter().map(Self::size).sum(),
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
            other => Err(Error::WrongType { wanted: "an integer", found: other.kind() }),
        }
    }

    pub fn as_package(&self) -> Result<&[Value], Error> {
        match self {
            Self::Package(elements) => Ok(elements),
            other => Err(Error::WrongType { wanted: "a package", found: other.kind() }),
        }
    }

    pub fn as_buffer(&self) -> Result<&[u8], Error> {
        match self {
            Self::Buffer(bytes) => Ok(bytes),
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
