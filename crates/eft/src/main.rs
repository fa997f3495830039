//! The binary: wires worlds and engines together; no logic of its own.

mod bench;
mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "eft",
    version,
    about = "A dependable multiserver TCP/IP stack, and the core manager that it needs"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// See the CPUs, set their speed, park them
    Cpu(commands::cpu::CpuArguments),
    /// Measure something against a baseline of the same run
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Cpu(arguments) => commands::cpu::run(&arguments),
        Command::Bench(bench) => bench::run(&bench),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("eft: {reason}");
            ExitCode::FAILURE
        }
    }
}
