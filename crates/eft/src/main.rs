//! The binary: wires worlds and engines together; no logic of its own.

mod commands;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use eft_base::text::wrong_usage;
use std::process::ExitCode;

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
    /// Run a stack in the foreground; prints `ready` when it is
    Up(commands::up::UpArguments),
    /// Run an unmodified program on a stack
    Run(commands::run::RunArguments),
    /// Show the components of a stack and their state
    Ps(commands::ps::PsArguments),
    /// Show counters and traffic indicators
    Stat(commands::stat::StatArguments),
    /// Show the sockets of a stack
    Ss(commands::ss::SsArguments),
    /// Crash a component on purpose
    Kill(commands::kill::KillArguments),
    /// Break a component on purpose, in one of many ways
    Inject(commands::inject::InjectArguments),
    /// Replace components by those of another program file; connections survive
    Update(commands::update::UpdateArguments),
    /// Place a component on a CPU
    Move(commands::place::MoveArguments),
    /// Live view: cores, components, traffic, what the scheduler does
    Top(commands::top::TopArguments),
    /// Show or change the policy that places the components
    Sched(commands::sched::SchedArguments),
    /// Record and show what configurations achieve under known loads
    Profile(commands::profile::ProfileArguments),
    /// Change settings of a running stack's TCP
    Set(commands::set::SetArguments),
    /// Show or change the addresses of a running stack
    Addr(commands::network::NetworkArguments),
    /// Show or change the routes of a running stack
    Route(commands::network::NetworkArguments),
    /// Show the neighbours of a running stack, or configure some
    Neigh(commands::network::NetworkArguments),
    /// Show the groups that programs on a stack are members of
    Maddr(commands::maddr::MaddrArguments),
    /// Load or show packet filter rules
    Pf(commands::pf::PfArguments),
    /// Capture the frames of a device as pcapng
    Capture(commands::capture::CaptureArguments),
    /// Replay a recording of `eft up --record` in the simulator
    Replay(commands::replay::ReplayArguments),
    /// See the CPUs, set their speed, park them
    Cpu(commands::cpu::CpuArguments),
    /// Run packetdrill's scripts on stacks of their own
    Packetdrill(commands::packetdrill::PacketdrillArguments),
    /// A tool that changes a kernel, as a script of packetdrill uses it (started by such a script)
    #[command(hide = true)]
    KernelTool(commands::packetdrill::KernelToolArguments),
    /// Run the same random programs on the kernel and on a stack, and compare
    Differential(commands::differential::DifferentialArguments),
    /// One side of a comparison (started by `eft differential`)
    #[command(hide = true)]
    DifferentialSide(commands::differential::SideArguments),
    /// Run experiments on modelled machines
    Sim(commands::sim::SimArguments),
    /// Give the fast cores to the virtual machines that profit from them
    Vm(commands::vm::VmArguments),
    /// Measure something against a baseline of the same run
    #[command(subcommand)]
    Bench(eft_bench::Bench),
    /// One server of a stack (started by `eft up`)
    #[command(hide = true)]
    Serve(commands::serve::ServeArguments),
    /// What holds a stack's memory and descriptors (started by `eft up`)
    #[command(hide = true)]
    Keep(commands::keep::KeepArguments),
    /// What outlives a stack beside its programs (started by `eft run`)
    #[command(hide = true)]
    Custodian(commands::custodian::CustodianArguments),
    /// What makes the calls of a program that cannot be preloaded (started by `eft run`)
    #[command(hide = true)]
    Proxy(commands::proxy::ProxyArguments),
    /// Becomes a program that cannot be preloaded (started by programs on a stack)
    #[command(hide = true)]
    Enter(commands::proxy::EnterArguments),
}

/// The reader of our output may close it early (`eft ss | head -1`): that is not reported as an error. Changes are
/// still undone, since the panic unwinds.
fn end_quietly_without_a_reader() {
    let complain = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or_default();
        if !text.starts_with("failed printing to stdout") {
            complain(panic);
        }
    }));
}

/// The command line of a server alone: for a dead one's successor the whole language takes too long to build.
#[derive(Parser)]
#[command(name = "eft serve")]
struct ServeAlone {
    #[command(flatten)]
    arguments: commands::serve::ServeArguments,
}

/// What `eft serve` is told, if this is one and it is told well.
fn as_server() -> Option<commands::serve::ServeArguments> {
    let mut words = std::env::args_os().skip(1).peekable();
    words.peek().filter(|first| *first == "serve")?;
    ServeAlone::try_parse_from(words).ok().map(|alone| alone.arguments)
}

/// The command line. What is wrong with one is said in one line, as all else is.
fn arguments() -> Arguments {
    let matches = commands::help::complete(Arguments::command()).try_get_matches();
    matches.and_then(|matches| Arguments::from_arg_matches(&matches)).unwrap_or_else(|error| {
        use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
        if matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion) {
            error.exit();
        }
        eprintln!("eft: {}", wrong_usage(&error.to_string()));
        std::process::exit(2)
    })
}

fn main() -> ExitCode {
    end_quietly_without_a_reader();
    let command = as_server().map_or_else(|| arguments().command, Command::Serve);
    let outcome = match command {
        Command::Up(a) => commands::up::run(&a),
        Command::Run(a) => return commands::run::run(&a),
        Command::Ps(a) => commands::ps::run(&a),
        Command::Stat(a) => commands::stat::run(&a),
        Command::Ss(a) => commands::ss::run(&a),
        Command::Kill(a) => commands::kill::run(&a),
        Command::Inject(a) => commands::inject::run(&a),
        Command::Update(a) => commands::update::run(&a),
        Command::Move(a) => commands::place::run(&a),
        Command::Top(a) => commands::top::run(&a),
        Command::Sched(a) => commands::sched::run(&a),
        Command::Profile(a) => commands::profile::run(&a),
        Command::Set(a) => commands::set::run(&a),
        Command::Addr(a) => commands::network::addr(&a),
        Command::Route(a) => commands::network::route(&a),
        Command::Neigh(a) => commands::network::neigh(&a),
        Command::Maddr(a) => commands::maddr::run(&a),
        Command::Pf(a) => commands::pf::run(&a),
        Command::Capture(a) => commands::capture::run(&a),
        Command::Replay(a) => commands::replay::run(&a),
        Command::Cpu(a) => commands::cpu::run(&a),
        Command::Packetdrill(a) => commands::packetdrill::run(&a),
        Command::KernelTool(a) => commands::packetdrill::kernel_tool(&a),
        Command::Differential(a) => commands::differential::run(&a),
        Command::DifferentialSide(a) => commands::differential::side(&a),
        Command::Sim(a) => commands::sim::run(&a),
        Command::Vm(a) => commands::vm::run(&a),
        Command::Bench(a) => eft_bench::run(&a, commands::stat::counters_of),
        Command::Serve(a) => commands::serve::run(&a),
        Command::Keep(a) => commands::keep::run(&a),
        Command::Custodian(a) => commands::custodian::run(&a),
        Command::Proxy(a) => commands::proxy::run(&a),
        Command::Enter(a) => return commands::proxy::enter(&a),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("eft: {reason:#}");
            ExitCode::FAILURE
        }
    }
}
