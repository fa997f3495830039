//! A web server on tier 1: connections of the real tcp that open, ask, are answered and close.
//!
//! The program is a server of the modelled machine, with the costs that [tier 2](crate::web) charges; it writes into rings. Its
//! clients are programs on the peer, whose turns take no time. Requests have bytes here; nobody reads any.

pub mod audience;
pub mod clients;
pub mod exchanges;
pub mod host;
pub mod load;
pub mod program;
pub mod run;

pub use run::run_for;
