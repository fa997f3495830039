//! The preloaded library: socket calls of an unmodified program, served by eft.
//!
//! Promises: an eft socket has a real descriptor number, and the kernel's own poll state of that
//! descriptor mirrors the socket's readiness, so that select, poll, every kind of epoll, dup, fork,
//! exec and descriptor passing work in the kernel as for any other descriptor. A read or write
//! costs no system call except to wake and to drain. Calls on other descriptors go to libc.
//!
//! What must never happen: traffic that goes silently over the kernel's network; a descriptor whose
//! readiness lies; a lock held while waiting; a touch of the parent's tables in a vfork child.
//!
//! The way of a call: a symbol in `interpose` looks the number up in `table`; foreign numbers go on
//! to `real`; eft's to `stream`, `datagram`, `accept`, `establish` and so on, which work on the
//! socket's page (`socket`) under its locks (`lock`), keep its readiness (`readiness`) and ring the
//! transport (`family`). What needs sockets goes over `control`.

// Everything but the symbols is private, so what only they use looks dead to the unit tests, which
// leave the symbols out: a test program must not interpose its own libc.
#![cfg_attr(test, allow(dead_code))]

mod accept;
mod address;
mod ancillary;
mod buffers;
mod control;
mod control_calls;
mod convert;
mod datagram;
mod epoll;
mod errno;
mod establish;
mod exec;
mod family;
mod fdops;
mod init;
mod interface_calls;
mod interface_list;
mod interfaces;
#[cfg(not(test))]
mod interpose;
mod loadable;
mod lock;
mod loopback;
mod names;
mod options;
mod process;
mod readiness;
mod real;
mod rights;
mod scan;
mod sendfile;
mod socket;
mod spin;
mod stdio;
mod stream;
mod sys;
mod table;
mod tcp_info;
mod transfer;
