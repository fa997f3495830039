//! ACPI tables as far as processors and their P-states need them: table headers, the MADT, and a small AML reader.
//!
//! Promises: nothing is written to hardware, and only [`aml::Hardware`] reads it; what depends on something that it does
//! not read is marked. Hostile bytes end in an error, bounded in time, stack and memory (see [`aml::Limits`]).

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod aml;
pub mod processor;
pub mod table;

pub use processor::{Processor, Processors, ReadError, read_processors};
pub use table::{Madt, Table, TableError};
