//! The filter's configuration.

/// How the engine is made.
#[derive(Clone, Copy, Debug)]
pub struct FilterConfig {
    /// Most states at a time.
    pub states: usize,
    /// For the hash that finds states.
    pub seed: u64,
}

impl Default for FilterConfig {
    fn default() -> Self {
        FilterConfig { states: 16384, seed: 0 }
    }
}
