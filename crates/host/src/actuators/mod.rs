//! What eft changes on the host. Each file has one kind of setting; each change goes through the journal.
//!
//! Promises: nothing is changed on a CPU unless the caller has had it checked (`eft_cores::park::Situation`); a
//! change that fails half way is undone before the error is returned.

pub mod affinity;
pub mod bolt;
pub mod burner;
pub mod change;
pub mod clock_modulation;
pub mod cpufreq;
pub mod cpuset_v1;
pub mod cpuset_v2;
pub mod expedite;
pub mod held;
pub mod holder;
pub mod hotplug;
pub mod interrupts;
pub mod lazy;
pub mod parking;
pub mod scope;
pub mod session;
pub mod undo;
pub mod urgent;
