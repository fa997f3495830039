//! Supervisor and store: decisions only, no system calls.

#![cfg_attr(not(test), no_std)]
