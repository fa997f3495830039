//! Reports on the papers' experiments, and on TCP over bad wires.

pub mod asymmetric;
pub mod bolt;
pub mod figures;
pub mod hosts;
pub mod hunt;
pub mod impaired;
pub mod judged;
pub mod slower_figures;
pub mod slower_is_faster;
pub mod tiers;
