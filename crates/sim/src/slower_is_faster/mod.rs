//! "When Slower is Faster: On Heterogeneous Multicores for Reliable Systems" (Hruby et al., USENIX ATC 2013), repeated.

pub mod claims;
pub mod fit;
pub mod models;
pub mod reasons;
pub mod runs;
pub mod tiers;
