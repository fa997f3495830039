//! The nic engine.

#![cfg_attr(not(test), no_std)]
