//! The preloaded library: socket calls of an unmodified program, served by eft.
//!
//! Guarantees: an eft socket has a real descriptor number, and the kernel's own poll state of that descriptor mirrors the
//! socket's readiness, so that select, poll, every kind of epoll, dup, fork, exec and descriptor passing work in the kernel
//! as for any other descriptor. A read or write costs no system call except to wake the transport and to drain the token.
//! Calls on other descriptors go to libc.
//!
//! Invariants: no traffic goes silently over the kernel's network; no descriptor shows a wrong readiness; no lock is held
//! while waiting; a vfork child never changes the parent's tables.
//!
//! The path of a call: a symbol in `interpose` looks the number up in `table`; calls on foreign numbers go on to `real`, on
//! eft's to `stream`, `datagram`, `accept`, `establish` and so on, which work on the socket's page (`socket`) under its
//! locks (`lock`), keep its readiness (`readiness`) and ring the transport (`domain`). Requests to sockets go over
//! `control`. Traffic of a wildcard socket on the kernel's loopback goes over its shadow (`loopback`, `shadow`). While
//! there is no stack, calls that need one fail; listeners and datagram sockets sleep until their domain's custodian
//! (`eft_linux`) has moved them to the next stack, of which the shim only needs the doorbells (`domain`).

//!
//! Limits, each of which fails loudly where the shim can see it:
//!
//! - System calls past libc, by instructions of the program's own, are seen where the kernel hands them over (`dispatch`:
//!   x86-64, Linux 5.11, glibc 2.34), at some microseconds each. Elsewhere such a poll or close works on an eft descriptor,
//!   but a read looks like the end of the stream, written bytes are lost, and Go programs get a proxy.
//! - Not seen even there: threads that libc's `clone`, timers (`SIGEV_THREAD`) or asynchronous I/O start; a thread or child
//!   that begins after the program's filter forbids `prctl`; children on borrowed memory (libc's vfork). A call in code
//!   that replaced libc's thread memory by its own (`ARCH_SET_FS`), or that unmaps the stack it is made on, ends the
//!   program. `clone3` and `io_submit` on eft's descriptors fail, as does a dispatch of the program's own.
//! - io_uring, which liburing enters by such calls, is refused by the kernel (`eft run` sets that up).
//! - A socket has no shadow on the kernel's loopback if its port is taken there, and none if it is bound
//!   to an address of the stack's: a datagram socket gets ENETUNREACH for 127/8 then. A shadow sits at
//!   127.0.0.1, not at the rest of 127/8; that of an AF_INET6 socket at ::1 as well, or there alone if it is IPV6_V6ONLY.
//!   If another socket of the machine has the port at whatever address, a datagram socket's of both sits at 127.0.0.1 only.
//! - A datagram socket whose first address lies in 127/8 stays in the kernel until it uses another address, and for ever in
//!   a program that inherits it over exec.
//! - IP_RECVERR: 8 errors wait for a socket, each with 320 quoted bytes; errors of the kernel's loopback are reported by
//!   calls only. `poll` and `ppoll` report POLLERR; `select` and epoll report that the socket is readable. A `poll` that
//!   wants no data wakes for an error late while data wait there, or if its list is longer than 64; one by a system call of
//!   the program's own sees the descriptor readable.
//! - Urgent data: a thread of a program whose system calls are filtered names no owner for SIGURG, and one announcement gets lost
//!   if tcp dies at that moment. An epoll set in which a socket waits for them alone tells of them once older data are read; `select`
//!   with more than 1024 numbers does not.
//! - No raw sockets, UDP-Lite or MPTCP (EPROTONOSUPPORT). What each socket option does: `docs/options.md`.
//! - Buffers, and addresses that come with data, are checked only for pointers that no program can have mapped (EFAULT);
//!   other bad ones crash the program. The rarer calls ask the kernel.
//! - A read that waits on a stream while another thread closes the descriptor fails within some milliseconds; Linux lets it wait
//!   on.
//! - In a program that both waits in a read on a socket and polls it by a call that is not seen, that poll shows what the read
//!   left some milliseconds later.
//! - `splice` copies. An accept with one number left needs a hard limit above the soft one. SO_LINGER
//!   waits in `close`, for this process's last descriptor.
//! - A program that remembered libc's own `stdout` before descriptor 1 became an eft socket (C++'s
//!   `cout` does) gets EBADF from it while it is one.
//! - Netlink answers for interfaces, addresses and routes (`netlink`); it reports no changes and makes none.
//!   Names come from /etc/hosts and DNS only.
//! - A child made by libc's `clone` must not use connections that its parent accepted by an accept without SOCK_NONBLOCK and has not
//!   waited for or duplicated (`held`): it has no descriptors for them.
//! - A child made by a bare `clone` that dies within a send or receive leaves that lock held.
//! - A duplicate of an undecided socket in another process stays with the kernel.

// Everything but the symbols is private, so what only they use looks dead to the unit tests, which
// leave the symbols out: a test program must not interpose its own libc.
#![cfg_attr(test, allow(dead_code))]

mod accept;
mod address;
mod ancillary;
mod any_port;
mod beside;
mod buffers;
mod confined;
mod control;
mod control_calls;
mod convert;
mod datagram;
mod descriptor;
#[cfg(target_arch = "x86_64")]
mod dispatch;
#[cfg(not(target_arch = "x86_64"))]
#[path = "dispatch/absent.rs"]
mod dispatch;
mod domain;
mod early;
mod epoll;
mod errno;
mod error_queue;
mod error_watch;
mod establish;
mod exec;
mod fdops;
mod flow;
mod groups;
mod handlers;
mod held;
mod holder;
mod init;
mod interface_calls;
mod interface_list;
mod interfaces;
#[cfg(not(test))]
mod interpose;
mod limit;
mod linger;
mod loadable;
mod lock;
mod looking;
mod loopback;
mod names;
mod netlink;
mod options;
mod owner;
mod pair;
mod passed;
mod poll;
mod process;
mod readiness;
mod real;
mod received;
mod refusal;
mod rights;
mod scan;
mod search;
mod second;
mod segmentation;
mod sendfile;
mod shadow;
mod shadow_send;
mod sleeping;
mod socket;
mod spin;
mod splice;
mod stamps;
mod standard;
mod stdio;
mod stream;
mod sys;
mod table;
mod tcp_info;
mod tokens;
mod transfer;
mod urgent;
mod zerocopy;
