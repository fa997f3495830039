//! The live world: every system call of eft is made here or in the shim.
