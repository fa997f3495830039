//! The frame: what a component is, the one server loop, the topology, the traits of a world.

#![cfg_attr(not(test), no_std)]
