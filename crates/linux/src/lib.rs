//! The live world: every system call of eft is made here or in the shim.

pub mod actuators;
pub mod journal;
pub mod sensors;
