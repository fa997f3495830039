//! The ip engine.

#![cfg_attr(not(test), no_std)]
