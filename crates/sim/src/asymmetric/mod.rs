//! "Virtualizing Performance Asymmetric Multi-core Systems" (Kwon et al., ISCA 2011), repeated.
//!
//! [`credit`] is the scheduler that the paper began with, [`program`]s run in guests that know nothing of asymmetry, and
//! [`world`] puts both on a [`machine`], with the policies of `eft-vcpu` on top; [`hosts`] are some of today's. [`analytic`] is the paper's own
//! model.

pub mod analytic;
pub mod calibration;
pub mod claims;
pub mod credit;
pub mod error;
pub mod fit;
pub mod hosts;
pub mod machine;
pub mod mixes;
pub mod program;
pub mod reasons;
pub mod runs;
pub mod world;
