//! A web server on a stack, in batches as [tier 2](crate::batch): clients that connect, ask, read, and close.
//!
//! The machine, tcp's streams and the wire are those of tier 2. A connection carries some requests one after another; the
//! client asks the next when it has the whole answer. The program is a server like the others, on a core of its own, and
//! writes into rings; or programs and the whole stack are parts of a monolithic kernel, which two cores share.

pub mod calibrated;
pub mod clients;
pub mod kernel;
pub mod profile;
pub mod program;
pub mod run;
pub mod servers;
pub mod turn;

pub use profile::{Group, Web};
pub use run::{Outcome, run};
