//! Measurements: each prints value, unit, and the ratio to a baseline measured in the same run.
//!
//! [`ground`] takes a running stack over to try configurations on it, and [`watch`] says what one achieves; sweeps of
//! profiles measure with them, too.
//!
//! Rounds of eft and of the baseline alternate, and medians are compared, because machines are
//! shared and drift. A figure that has an aim and misses it by the median makes the command exit 1.

mod beside;
mod budget;
mod bulk;
mod campaign;
mod channel;
mod commit;
mod costs;
pub mod counters;
mod crowd;
mod datagrams;
mod figure;
pub mod ground;
mod idle;
mod impaired;
mod interrupt;
mod isolation;
mod latency;
mod link;
pub mod load;
mod observe;
mod others;
mod page;
mod peer;
mod progress;
mod protection;
pub mod reconfigure;
mod recovery;
mod report;
pub mod samples;
mod scale;
mod sched;
mod servers;
mod service;
mod side;
mod stack;
mod stolen;
pub mod store;
mod visits;
mod vm;
pub mod watch;

use anyhow::Result;
use eft_linux::stack_sensor::CounterNames;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How often a sweep measures each configuration, unless told otherwise.
pub const SWEEP_ROUNDS: u8 = 3;

#[derive(clap::Subcommand)]
pub enum Bench {
    /// One connection at full speed, each direction, beside two kernels over veth
    Bulk(bulk::BulkArguments),
    /// What a program that computes loses to traffic, beside eft and beside the kernel
    Beside(beside::BesideArguments),
    /// The cost of 64 KB of bulk data: device calls, wake-ups, copies
    Budget(budget::BudgetArguments),
    /// 64-byte requests and responses, beside the kernel
    Latency(latency::LatencyArguments),
    /// Channel messages between two cores, beside a cache-line round trip
    Channel(channel::ChannelArguments),
    /// The cost for tcp of committing a turn
    Commit(commit::CommitArguments),
    /// What protection against faults costs while there is none: stacks with and without it
    Protection(protection::ProtectionArguments),
    /// What messages and bytes cost each component, counted by replaying recordings (needs valgrind) and from accounts; writes a
    /// calibration file for `eft sim`
    Costs(costs::CostsArguments),
    /// The work that is counted (started by `costs`)
    #[command(hide = true)]
    CostsReplay(costs::ReplayArguments),
    /// UDP at full speed, short and long datagrams, without and with segmentation offload, beside two kernels
    Datagrams(side::Comparison),
    /// The CPU time of a stack that has nothing to do
    Idle(idle::IdleArguments),
    /// Speed and the cost of a crash, for each way to put components into processes, beside two kernels
    Isolation(isolation::IsolationArguments),
    /// One connection over wires that lose, delay and reorder, beside two kernels
    Impaired(impaired::ImpairedArguments),
    /// The cost of sampling a stack, as the scheduler does it
    Observe(observe::ObserveArguments),
    /// smoltcp and gVisor's stack on the same kind of device, under the same loads (scripts/peers builds them)
    Others(others::OthersArguments),
    /// Break every component in every way under mixed load, and count the damage
    Campaign(campaign::CampaignArguments),
    /// Time from a server's death until its successor serves, without and with a standby
    Recovery(recovery::RecoveryArguments),
    /// Run benchmarks one after the other, and write a page with their tables and plots
    Report(page::ReportArguments),
    /// Hotplug, expedited hotplug, and parking
    Reconfigure(reconfigure::ReconfigureArguments),
    /// What a segment, a connection and a timer cost beside 10 to 100,000 connections (needs valgrind)
    Scale(scale::ScaleArguments),
    /// The work that is counted (started by `scale`)
    #[command(hide = true)]
    ScaleProbe(scale::ProbeArguments),
    /// nginx under wrk and redis under redis-benchmark, for ways to put components into processes, beside two kernels
    Servers(servers::ServersArguments),
    /// What the scheduler's policies achieve, beside the best fixed configurations
    Sched(sched::SchedArguments),
    /// Connect, one request and its answer, close, from many addresses, beside two kernels
    Visits(side::Comparison),
    /// Guests on a fast and a slowed CPU under each policy, and the cost of deciding
    Vm(vm::VmArguments),
    /// One guest (started by `vm`)
    #[command(hide = true)]
    VmWorker(vm::WorkerArguments),
    /// Threads that keep a machine busy, and report whether all of them live (started by other benchmarks)
    #[command(hide = true)]
    Load(load::LoadArguments),
    /// One end of a measurement (started by the others)
    #[command(subcommand, hide = true)]
    Peer(peer::Peer),
}

/// Options that most benchmarks share.
#[derive(clap::Args, Debug, Clone)]
pub struct Common {
    /// Rounds of each way; medians are compared
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[arg(long)]
    json: bool,
    /// Topology of the stack under test
    #[arg(long)]
    topology: Option<std::path::PathBuf>,
}

/// As many descriptors as the limit lets this process have.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// `names`: those of all engines' counters.
pub fn run(bench: &Bench, names: CounterNames) -> Result<()> {
    match bench {
        Bench::Bulk(a) => bulk::run(a),
        Bench::Beside(a) => beside::run(a),
        Bench::Budget(a) => budget::run(a, names),
        Bench::Latency(a) => latency::run(a),
        Bench::Channel(a) => channel::run(a),
        Bench::Commit(a) => commit::run(a),
        Bench::Protection(a) => protection::run(a),
        Bench::Costs(a) => costs::run(a, names),
        Bench::CostsReplay(a) => costs::replay(a),
        Bench::Datagrams(a) => datagrams::run(a),
        Bench::Idle(a) => idle::run(a),
        Bench::Impaired(a) => impaired::run(a),
        Bench::Isolation(a) => isolation::run(a),
        Bench::Observe(a) => observe::run(a, names),
        Bench::Others(a) => others::run(a),
        Bench::Campaign(a) => campaign::run(a),
        Bench::Recovery(a) => recovery::run(a),
        Bench::Report(a) => page::run(a),
        Bench::Reconfigure(a) => reconfigure::run(a),
        Bench::Scale(a) => scale::run(a),
        Bench::ScaleProbe(a) => scale::probe(a),
        Bench::Sched(a) => sched::run(a, names),
        Bench::Servers(a) => servers::run(a),
        Bench::Visits(a) => visits::run(a),
        Bench::Vm(a) => vm::run(a),
        Bench::VmWorker(a) => vm::worker(a),
        Bench::Load(a) => load::run(a),
        Bench::Peer(a) => peer::run(a),
    }
}
