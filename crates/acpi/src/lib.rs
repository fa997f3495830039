//! Reads ACPI tables as far as processors and their P-states need them: table headers, the MADT, and a small AML
//! reader.
//!
//! Promises: nothing is written to hardware, and only [`aml::Hardware`] reads it. Results that depend on something
//! unread are marked. Hostile bytes end in an error, within bounds of time, stack and memory (see [`aml::Limits`]).

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod aml;
pub mod processor;
pub mod table;

pub use processor::{Processor, Processors, ReadError, read_processors};
pub use table::{Madt, Table, TableError};
