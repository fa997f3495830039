//! The symbols that programs call. Thin: each finds out whose descriptor it is and hands on.

mod descriptors;
mod io;
mod programs;
mod sockets;
mod streams;
mod variadic;
