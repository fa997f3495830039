//! Benchmarks: each prints value, unit, and the ratio to a baseline measured in the same run.

pub mod load;
pub mod reconfigure;
mod report;

#[derive(clap::Subcommand)]
pub enum Bench {
    /// Hotplug, expedited hotplug, and parking
    Reconfigure(reconfigure::ReconfigureArguments),
    /// Threads that keep a machine busy, and say whether all of them live (started by other benchmarks)
    #[command(hide = true)]
    Load(load::LoadArguments),
}

pub fn run(bench: &Bench) -> Result<(), String> {
    match bench {
        Bench::Reconfigure(arguments) => reconfigure::run(arguments),
        Bench::Load(arguments) => load::run(arguments),
    }
}
