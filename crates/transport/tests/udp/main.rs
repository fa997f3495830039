//! The udp engine: ip and sockets are played by the test, applications write and read pages.

mod allocations;
mod errors;
mod exchange;
mod fatal;
mod groups;
mod host;
mod lives;
mod lost;
mod segments;
mod stamps;
mod turns;
