//! The binary: wires worlds and engines together; no logic of its own.

fn main() {}
