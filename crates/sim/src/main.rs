//! `eft-sim`, which `eft sim` runs: a program of its own, since the product does not import its simulator.

mod report;

use std::process::ExitCode;

use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use clap::{Parser, Subcommand};
use eft_base::protection;
use eft_base::text::wrong_usage;

#[derive(Parser)]
#[command(name = "eft-sim", version, about = "Experiments on modelled machines")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Repeat a paper's experiments: each claim, the paper's figure, ours, and a verdict
    #[command(subcommand)]
    Paper(Paper),
    /// The real engines with costs and the model of batches, held against each other
    Tiers(report::tiers::TiersArguments),
    /// Policies for virtual machines on hosts of today, against the best static pinning
    Hosts(report::hosts::HostsArguments),
    /// The scheduler's policies on the real engines with costs, against the best fixed configuration
    Policies(report::policies::PoliciesArguments),
    /// Make a trace of a real program's clients, for `policies --load trace:FILE`
    Trace(report::trace::TraceArguments),
    /// How throughput grows with instances of tcp, each on a core of its own, and which server ends it
    Scaling(report::scaling::ScalingArguments),
    /// Every setting of the cores' clocks under a load, by the model of batches
    Sweep(report::sweep::SweepArguments),
    /// Whole stacks whose servers die and err in every way, from seeds; every byte is compared
    Hunt(report::hunt::HuntArguments),
    /// Goodput of TCP over wires that lose, delay and reorder
    Impaired(report::impaired::ImpairedArguments),
}

#[derive(Subcommand)]
enum Paper {
    /// Virtualizing Performance Asymmetric Multi-core Systems (ISCA 2011)
    Asymmetric(report::asymmetric::AsymmetricArguments),
    /// Bolt: Faster Reconfiguration in Operating Systems (USENIX ATC 2015)
    Bolt(report::bolt::BoltArguments),
    /// Scheduling of Multiserver System Components on Over-provisioned Multicore Systems (2014)
    Multiserver(report::columns::PaperArguments),
    /// When Slower is Faster: On Heterogeneous Multicores for Reliable Systems (USENIX ATC 2013)
    SlowerIsFaster(report::slower_is_faster::SlowerArguments),
    /// Efficient Use of Heterogeneous Multicore Architectures in Reliable Multiserver Systems (2012)
    Thesis(report::columns::PaperArguments),
}

/// The command line. What is wrong with one is said in one line, as all else is.
fn arguments() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
            error.exit();
        }
        eprintln!("eft-sim: {}", wrong_usage(&error.to_string()));
        std::process::exit(2)
    })
}

/// Whether only what stacks cost is asked for: nothing in them dies or is damaged, and what protects them against that has no part
/// in any cost of the model.
fn is_sound(command: &Command) -> bool {
    match command {
        Command::Paper(_) | Command::Tiers(_) | Command::Policies(_) | Command::Scaling(_) => true,
        Command::Hosts(_) | Command::Sweep(_) | Command::Hunt(_) => false,
        Command::Impaired(_) | Command::Trace(_) => false,
    }
}

fn main() -> ExitCode {
    let command = arguments().command;
    if is_sound(&command) {
        protection::switch_off();
    }
    let outcome = match command {
        Command::Paper(Paper::Asymmetric(arguments)) => report::asymmetric::run(&arguments),
        Command::Paper(Paper::Bolt(arguments)) => report::bolt::run(&arguments),
        Command::Paper(Paper::Multiserver(arguments)) => {
            report::columns::run(&report::multiserver::PAPER, &arguments)
        }
        Command::Paper(Paper::Thesis(arguments)) => report::columns::run(&report::thesis::PAPER, &arguments),
        Command::Paper(Paper::SlowerIsFaster(arguments)) => report::slower_is_faster::run(&arguments),
        Command::Tiers(arguments) => report::tiers::run(&arguments),
        Command::Policies(arguments) => report::policies::run(&arguments),
        Command::Trace(arguments) => report::trace::run(&arguments),
        Command::Scaling(arguments) => report::scaling::run(&arguments),
        Command::Sweep(arguments) => report::sweep::run(&arguments),
        Command::Hunt(arguments) => report::hunt::run(&arguments),
        Command::Impaired(arguments) => report::impaired::run(&arguments),
        Command::Hosts(arguments) => report::hosts::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("eft-sim: {reason:#}");
            ExitCode::FAILURE
        }
    }
}
