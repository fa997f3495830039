//! The transport engine.

#![cfg_attr(not(test), no_std)]
