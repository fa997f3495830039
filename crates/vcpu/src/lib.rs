//! Asymmetry-aware scheduling of virtual CPUs.
