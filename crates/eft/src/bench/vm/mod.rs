//! `eft bench vm`: scheduling of guests on two equal CPUs, one of them slowed, and what deciding costs.
//!
//! Guests are process groups with a given utilisation, and QEMU guests where asked for. A paced one does a piece of work
//! at each beat, so that its throughput is what it got done, not how long it ran. The judge counts work and reads the
//! kernel's times itself. Ways alternate in one run; medians are compared.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eft_host::actuators::affinity;
use eft_host::clock;
use eft_host::guests::discover::{GroupSpec, Members, Wanted};
use eft_host::guests::session::{Session, Settings, View};
use eft_host::sensors::{Tree, topology};
use eft_machine::CpuSet;
use eft_vcpu::PPM;
use eft_vcpu::guest::{Progress, Vcpu};
use eft_vcpu::host::{Class, Group, Host};
use eft_vcpu::options::{Options, Policy};
use eft_vcpu::scheduler::{Due, Scheduler};

use super::figure::{Aim, Figure};
use super::report;
use super::stolen::Stolen;
use crate::samples::Samples;

#[derive(clap::Args)]
pub struct VmArguments {
    /// Rounds of each way; medians are compared
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seconds of each measured round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds that a policy gets to learn before each
    #[arg(long, default_value_t = 6.0)]
    settle: f64,
    /// The two CPUs; the second is slowed
    #[arg(long)]
    cpus: Option<CpuSet>,
    /// What is left of the slowed CPU's speed
    #[arg(long, default_value_t = 0.35)]
    slow: f64,
    /// Only what deciding costs
    #[arg(long)]
    cost_only: bool,
    #[arg(long)]
    json: bool,
}

/// How the guests are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// The CPU-bound guest on the fast CPU.
    PinnedWell,
    PinnedBadly,
    Linux,
    Fair,
    Vm,
}

const WAYS: [(Way, &str); 5] = [
    (Way::PinnedWell, "pinned, CPU-bound on fast"),
    (Way::PinnedBadly, "pinned, CPU-bound on slow"),
    (Way::Linux, "Linux's own placement"),
    (Way::Fair, "amp-fair"),
    (Way::Vm, "amp-vm"),
];

/// A paced guest works once in each.
const PERIOD: Duration = Duration::from_millis(20);
const PACED_SHARE: f64 = 0.3;
/// What is to be reached.
const GAIN_AIM: f64 = 1.15;
const SHARE_AIM_POINTS: f64 = 3.0;
const COST_AIM_PERCENT: f64 = 0.5;

pub fn run(arguments: &VmArguments) -> Result<(), String> {
    for (name, value) in [("--seconds", arguments.seconds), ("--settle", arguments.settle)] {
        if !(0.5..=600.0).contains(&value) {
            return Err(format!("{name} {value}: it must be from 0.5 to 600 s"));
        }
    }
    if !(0.05..=0.95).contains(&arguments.slow) {
        return Err(format!("--slow {}: it must be from 0.05 to 0.95", arguments.slow));
    }
    let (mut figures, mut notes) = (cost()?, Vec::new());
    if !arguments.cost_only {
        live(arguments, &mut figures, &mut notes)?;
    }
    report::print("vm", &figures, &notes, arguments.json)
}

/// What this thread has used of a CPU.
fn own_cpu() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: plain call with a valid out pointer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Own CPU time of looking and deciding, as a share of one core, for 4, 32 and 96 vCPUs: threads that sleep, so that
/// looking costs what it does live, told as busy and waiting, so that deciding does, too.
fn cost() -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    for count in [4u32, 32, 96] {
        let (stop, threads) = sleepers(count);
        let samples: Result<Vec<f64>, String> = (0..5).map(|_| cost_of(count)).collect();
        stop.store(true, std::sync::atomic::Ordering::Release);
        threads.into_iter().for_each(|thread| drop(thread.join()));
        let what = format!("own CPU time of measuring and deciding, {count} vCPUs");
        figures.push(Figure::new(what, "% of a core", samples?).aim(Aim::AtMost(COST_AIM_PERCENT)));
    }
    Ok(figures)
}

fn sleepers(count: u32) -> (std::sync::Arc<std::sync::atomic::AtomicBool>, Vec<std::thread::JoinHandle<()>>) {
    use std::sync::atomic::{AtomicBool, Ordering};
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let sleeper = || {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(50));
            }
        })
    };
    let threads = (0..count).map(|_| sleeper()).collect();
    (stop, threads)
}

/// Five intervals' worth of looks and decisions, as fast as they go; what they took over how long they last live.
fn cost_of(count: u32) -> Result<f64, String> {
    let tree = Tree::live();
    let me = std::process::id() as i32;
    let ids: Vec<_> = eft_host::sensors::tasks::threads(&tree, me)
        .into_iter()
        .filter_map(|tid| eft_host::sensors::tasks::read(&tree, me, tid))
        .take(count as usize)
        .collect();
    let mut sensors: Vec<_> =
        ids.iter().map(|task| eft_host::guests::sense::Sensor::new(&tree, me, task.id, None)).collect();
    let class = |name: &str, speed_ppm| Class { name: name.into(), speed_ppm, ipc_ppm: PPM as u32 };
    let group = |class, cores, cache| Group { class, cores, threads: cores, cache, node: cache };
    let (fast, slow) = ((count / 3).max(1), (count / 2).max(1));
    let host = Host {
        classes: vec![class("fast", PPM as u32), class("slow", 500_000)],
        groups: vec![group(0, fast, 0), group(1, slow, 0), group(1, slow, 1)],
    };
    let mut scheduler = Scheduler::new(host, Options { policy: Policy::AmpFair(100), ..Options::default() })?;
    let vcpus: Vec<Vcpu> = (0..sensors.len()).map(|i| Vcpu::new(i as u64, i as u64 / 4)).collect();
    scheduler.set_vcpus(&vcpus);
    let mut now = clock::now();
    let (begin, end) = (now, now + scheduler.options().interval * 5);
    let before = own_cpu();
    while now < end {
        let (at, due) = scheduler.due();
        now = at.max(now);
        for (index, sensor) in sensors.iter_mut().enumerate() {
            if due != Due::Tick || scheduler.watched_at_ticks(index) {
                sensor.look();
            }
        }
        // Busy for as long as the time that is told has passed.
        let passed = now.saturating_since(begin).as_nanos() as u64;
        let all: Vec<Progress> = vcpus
            .iter()
            .map(|vcpu| Progress {
                id: vcpu.id,
                run_ns: passed / 10 * 9,
                wait_ns: passed / 10,
                counts: &[],
                own_unit: false,
            })
            .collect();
        match due {
            Due::Tick => drop(scheduler.tick(now, &all)),
            Due::Turn => scheduler.turn(now, &all),
            Due::Window => scheduler.window(now, &all),
        }
    }
    let spent = own_cpu() - before;
    Ok(spent.as_secs_f64() / (scheduler.options().interval * 5).as_secs_f64() * 100.0)
}

/// What a worker was seen to do: its run time, and the part of it on the first of the two CPUs.
///
/// The slowed CPU is taken away for a part of each period, and is at full speed in between; so the kernel's run time of a
/// worker is the work that it did, on either CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    work: f64,
    fast: f64,
}

/// A process that works at full speed for a share of its time, or always.
struct Worker {
    child: Child,
}

impl Worker {
    fn start(share: f64) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .args(["bench", "vm-worker", &share.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| format!("a worker cannot be started ({error})"))?;
        Ok(Self { child })
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn run_ns(&self) -> u64 {
        let text =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/schedstat", self.pid())).unwrap_or_default();
        text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    /// Where it is, or was last.
    fn cpu(&self) -> u32 {
        let text =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/stat", self.pid())).unwrap_or_default();
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(36).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn put(&self, cpus: &CpuSet) -> Result<(), String> {
        let tree = Tree::live();
        let threads = eft_host::sensors::tasks::threads(&tree, self.pid());
        threads.into_iter().try_for_each(|tid| affinity::set(&tree, self.pid(), tid, cpus))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The judge: looks at the workers each 2 ms for so long, and adds up where they ran.
fn judge(workers: &[Worker; 2], fast: u32, length: Duration) -> [Did; 2] {
    let begin = Instant::now();
    let mut last = [0, 1].map(|i| workers[i].run_ns());
    let mut did = [Did::default(); 2];
    while begin.elapsed() < length {
        std::thread::sleep(Duration::from_millis(2));
        for i in 0..2 {
            let (now, cpu) = (workers[i].run_ns(), workers[i].cpu());
            let ran = now.saturating_sub(last[i]) as f64 / 1e9;
            did[i].work += ran;
            did[i].fast += if cpu == fast { ran } else { 0.0 };
            last[i] = now;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    did.map(|d| Did { work: d.work / seconds, fast: d.fast / seconds })
}

/// The slowed CPU, put back when this goes.
struct Slowed {
    dir: std::path::PathBuf,
}

impl Slowed {
    fn begin(cpus: &CpuSet, slow_cpu: u32, share: f64) -> Result<Self, String> {
        let dir = std::env::temp_dir().join(format!("eft-bench-vm-{}", std::process::id()));
        let slowed = Self { dir };
        let (cpus, cpu, share) = (cpus.to_string(), slow_cpu.to_string(), format!("{share}"));
        slowed.eft(&["--managed", &cpus, "speed", &cpu, &share, "--back-end", "emulated"])?;
        Ok(slowed)
    }

    fn eft(&self, arguments: &[&str]) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let output = Command::new(program)
            .args(["cpu", "--state-dir"])
            .arg(self.dir.join("cpu"))
            .args(arguments)
            .output()
            .map_err(|error| format!("'eft cpu' cannot be started ({error})"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(eft_base::text::one_line(String::from_utf8_lossy(&output.stderr).trim_start_matches("eft: ")))
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        if let Err(reason) = self.eft(&["restore"]) {
            eprintln!("eft: the slowed CPU is not put back: {reason}");
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// One way for one round: what the CPU-bound and the paced guest did, and what was dealt to them, if anything.
fn round(
    arguments: &VmArguments,
    way: Way,
    cpus: &CpuSet,
    slowed: &Slowed,
) -> Result<([Did; 2], Option<View>), String> {
    let (fast, slow) = (cpus.first().unwrap_or(0), cpus.last().unwrap_or(0));
    let workers = [Worker::start(1.0)?, Worker::start(PACED_SHARE)?];
    std::thread::sleep(Duration::from_millis(300));
    let length = Duration::from_secs_f64(arguments.seconds);
    let pins = match way {
        Way::PinnedWell => Some([CpuSet::one(fast), CpuSet::one(slow)]),
        Way::PinnedBadly => Some([CpuSet::one(slow), CpuSet::one(fast)]),
        _ => None,
    };
    for (i, worker) in workers.iter().enumerate() {
        worker.put(pins.as_ref().map_or(cpus, |pins| &pins[i]))?;
    }
    let policy = match way {
        Way::Fair => Policy::AmpFair(100),
        Way::Vm => Policy::AmpVm,
        _ => {
            std::thread::sleep(Duration::from_secs(1));
            return Ok((judge(&workers, fast, length), None));
        }
    };
    let group = |name: &str, worker: &Worker| GroupSpec {
        name: name.into(),
        members: Members::Processes(vec![worker.pid()]),
    };
    let groups = vec![group("busy", &workers[0]), group("paced", &workers[1])];
    let settings = Settings {
        wanted: Wanted { groups, groups_only: true, ..Wanted::default() },
        options: Options { policy, ..Options::default() },
        cpus: Some(cpus.clone()),
        state_dir: slowed.dir.join("vm"),
        cpu_state_dir: slowed.dir.join("cpu"),
        ..Settings::default()
    };
    let mut session = Session::open(&Tree::live(), settings)?;
    session.run(clock::now() + Duration::from_secs_f64(arguments.settle), || false);
    let did = std::thread::scope(|scope| {
        let judge = scope.spawn(|| judge(&workers, fast, length));
        session.run(clock::now() + length * 2, || judge.is_finished());
        judge.join().map_err(|_| "the judge failed".to_string())
    })?;
    let view = session.view();
    session.restore().iter().for_each(|note| eprintln!("eft: {note}"));
    Ok((did, Some(view)))
}

fn two_cpus(arguments: &VmArguments) -> Result<CpuSet, String> {
    let online = topology::cpu_sets(&Tree::live())?.online;
    let cpus = arguments.cpus.clone().unwrap_or_else(|| online.iter().take(2).collect());
    if cpus.len() != 2 || !cpus.is_subset(&online) {
        return Err(format!("this needs two CPUs that are online, not '{cpus}'"));
    }
    Ok(cpus)
}

fn live(arguments: &VmArguments, figures: &mut Vec<Figure>, notes: &mut Vec<String>) -> Result<(), String> {
    let cpus = two_cpus(arguments)?;
    // Guests and judge come before whatever else runs here; without the privilege the figures are noisier.
    // SAFETY: plain call; 0 names this process, whose children inherit it.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } != 0 {
        notes.push("not privileged to go before other programs: expect noise".into());
    }
    let stolen = Stolen::begin(Some(&cpus));
    let slowed = Slowed::begin(&cpus, cpus.last().unwrap_or(0), arguments.slow)?;
    let mut work: BTreeMap<Way, Vec<[f64; 2]>> = BTreeMap::new();
    let mut off: BTreeMap<Way, Vec<f64>> = BTreeMap::new();
    for _ in 0..arguments.rounds {
        for (way, _) in WAYS {
            let (did, view) = round(arguments, way, &cpus, &slowed)?;
            work.entry(way).or_default().push(did.map(|d| d.work));
            let dealt = |guest: &str, view: &View| {
                view.vcpus.iter().filter(|v| v.guest == guest).filter_map(|v| v.dealt.first()).sum::<f64>()
            };
            if let Some(view) = view {
                let points =
                    [("busy", 0), ("paced", 1)].map(|(guest, i)| (did[i].fast - dealt(guest, &view)).abs());
                off.entry(way).or_default().push(points[0].max(points[1]) * 100.0);
            }
        }
    }
    drop(slowed);
    let total = |way: Way| -> Vec<f64> { work[&way].iter().map(|[a, b]| a + b).collect() };
    let median = |samples: Vec<f64>| Samples::new(samples).median;
    let fair = total(Way::Fair);
    let best = median(total(Way::PinnedWell)).max(median(total(Way::PinnedBadly)));
    let oracle = best / median(fair.clone());
    for (way, name) in WAYS {
        let mut figure = Figure::new(format!("work, {name}"), "cores", total(way));
        if way != Way::Fair {
            figure = figure.beside("amp-fair", fair.clone());
        }
        if way == Way::Vm && oracle >= GAIN_AIM {
            figure = figure.aim(Aim::AtLeast(GAIN_AIM));
        }
        figures.push(figure);
    }
    for (i, guest) in ["CPU-bound", "30% paced"].into_iter().enumerate() {
        let of = |way: Way| -> Vec<f64> { work[&way].iter().map(|pair| pair[i]).collect() };
        let figure = Figure::new(format!("{guest} guest under amp-vm"), "cores", of(Way::Vm));
        figures.push(figure.beside("amp-fair", of(Way::Fair)));
    }
    for (way, name) in [(Way::Fair, "amp-fair"), (Way::Vm, "amp-vm")] {
        let figure =
            Figure::new(format!("fast share from what was dealt, {name}"), "points", off[&way].clone());
        figures.push(figure.aim(Aim::AtMost(SHARE_AIM_POINTS)));
    }
    notes.push(format!("the best static placement does {oracle:.2} times amp-fair's work"));
    if oracle < GAIN_AIM {
        notes.push(format!("so {GAIN_AIM} cannot be had here, and is not asked for"));
    }
    notes.push(stolen.describe());
    Ok(())
}

#[derive(clap::Args)]
pub struct WorkerArguments {
    /// Part of a full-speed CPU that its work takes; 1 never rests
    share: f64,
}

/// One worker: work at each beat, until its input closes.
pub fn worker(arguments: &WorkerArguments) -> Result<(), String> {
    let closed = std::thread::spawn(|| drop(std::io::stdin().read_to_end(&mut Vec::new())));
    let (beat, mut next) = (PERIOD.mul_f64(arguments.share.clamp(0.01, 1.0)), Instant::now());
    while !closed.is_finished() {
        // By its own CPU time: a beat is as much work on a slowed CPU as on a fast one.
        let begin = own_cpu();
        while own_cpu() - begin < beat {
            (0..4000u64)
                .fold(1u64, |x, i| std::hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i)));
        }
        if arguments.share < 1.0 {
            next = (next + PERIOD).max(Instant::now() - PERIOD);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
    Ok(())
}
