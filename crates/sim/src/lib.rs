//! The simulated world: links, faults, oracles, in virtual time, from a seed.
