//! Reports on the papers' experiments, and on TCP over bad wires.

pub mod asymmetric;
pub mod figures;
pub mod hosts;
pub mod impaired;
