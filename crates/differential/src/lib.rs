//! Runs the same random program on the Linux kernel and on eft, and compares.
//!
//! A [`program`] is a list of socket calls and of packets that a peer sends; [`generate`] makes one from a seed. [`execute`]
//! runs it in a process whose system calls are the kernel's or, under `eft run`, eft's; the peer is at the other end of
//! the wire. After each step it notes what can be [`observation`]s: what calls returned, what is ready, what was on
//! the wire. A program whose observations differ is made as [`short`](shrink) as it can be; what is [`known`] to differ, and why,
//! is told apart.
//!
//! `eft differential` has the two sides.

mod calls;
mod connection;
pub mod execute;
pub mod generate;
pub mod known;
pub mod observation;
mod packet;
pub mod peer;
pub mod program;
pub mod serve;
pub mod shrink;
