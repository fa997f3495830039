//! The symbols that programs call. Thin: each finds out whose descriptor it is and hands on.

mod descriptors;
mod interfaces;
mod io;
mod names;
mod programs;
mod raw;
mod sockets;
mod streams;
mod variadic;
