//! Benchmarks: each prints value, unit, and the ratio to a baseline measured in the same run.

pub mod reconfigure;

#[derive(clap::Subcommand)]
pub enum Bench {
    /// Hotplug, expedited hotplug, and parking
    Reconfigure(reconfigure::ReconfigureArguments),
}

pub fn run(bench: &Bench) -> Result<(), String> {
    match bench {
        Bench::Reconfigure(arguments) => reconfigure::run(arguments),
    }
}
