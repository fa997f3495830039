//! The commands, one folder or file each: arguments in, text or JSON out.

pub mod cpu;
