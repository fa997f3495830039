//! The contracts: one file per edge between two components.

#![cfg_attr(not(test), no_std)]
