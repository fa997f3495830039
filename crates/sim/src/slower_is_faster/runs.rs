//! The paper's configurations, and the results of each, as named figures.
//!
//! `c1/TCP/OTHERS/…` has tcp on a core of so many MHz and ip and driver on one each, `c2/TCP/OTHERS/…` has these two as
//! threads of one core, `one/MHZ/…` all three on one thread. Rates are in Mb/s, shares in percent.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::batch::calibrated::{Ablation, profile};
use crate::batch::servers::Server;
use crate::batch::{Outcome, Profile, Seat, Setting, run};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::clock::DUTY_STEPS;
use crate::hardware::power::Chip;
use crate::hardware::{Clock, Work};
use crate::judge::Figures;

/// Sections of 4.3: how the stack's servers share cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// Configuration #1.
    Cores,
    /// Configuration #2.
    Threads,
    /// Section 4.5.
    One,
}

/// A machine with a stack on it.
pub struct Bench {
    pub profile: Profile,
    lowest_khz: u64,
    chip: Chip,
    seed: u64,
    /// What was run already: figures have many configurations in common.
    known: RefCell<BTreeMap<(Sharing, u64, u64), Outcome>>,
}

/// What is taken away, the effect that should vanish with it, and the effect's figure.
pub const ABLATIONS: [(&str, Ablation, fn(&Bench) -> f64); 2] = [
    (
        "ablation/slower",
        Ablation { no_wake_latency: true, free_empty_polls: false, no_memory_stalls: false },
        slower_is_faster,
    ),
    (
        "ablation/threads",
        Ablation { no_wake_latency: false, free_empty_polls: false, no_memory_stalls: true },
        gain_of_threads,
    ),
];

/// ip and driver at 600 MHz over all at 1600 MHz.
fn slower_is_faster(bench: &Bench) -> f64 {
    bench.mbps(Sharing::Cores, 1600, 600) / bench.mbps(Sharing::Cores, 1600, 1600)
}

/// Two threads of a core at 400 MHz over two cores at 200 MHz, which are the bottleneck.
fn gain_of_threads(bench: &Bench) -> f64 {
    bench.mbps(Sharing::Threads, 1600, 400) / bench.mbps(Sharing::Cores, 1600, 200)
}

/// Each ablation's effect with everything in place, which a bench has, and without what it takes away.
pub fn ablations(calibration: &Calibration, with: &Bench) -> Result<Figures, CalibrationError> {
    let mut figures = Figures::new();
    for (name, ablation, effect) in ABLATIONS {
        let without = Bench::new(calibration, "newtos", ablation, with.seed)?;
        figures.insert(format!("{name}/with"), effect(with));
        figures.insert(format!("{name}/without"), effect(&without));
    }
    Ok(figures)
}

/// Steps of the throttle.
const STEP_MHZ: u64 = 200;
/// The tcp core's clock, and the others', for those that Figures 2 to 5 may show.
const SETS: [(u64, u64); 12] = [
    (200, 200),
    (400, 200),
    (600, 200),
    (800, 400),
    (1000, 400),
    (1200, 400),
    (1200, 600),
    (1400, 600),
    (1600, 600),
    (1867, 1867),
    (2267, 2267),
    (1600, 1600),
];
/// Of Figure 5: tcp's clock, that of ip's and the driver's shared core, and of their own cores.
pub const SHARED: [(u64, u64, u64); 6] =
    [(200, 200, 200), (400, 400, 200), (600, 400, 200), (800, 600, 400), (1000, 800, 400), (1600, 1200, 600)];

impl Bench {
    pub fn new(
        calibration: &Calibration,
        system: &str,
        ablation: Ablation,
        seed: u64,
    ) -> Result<Self, CalibrationError> {
        let of = |name: &str| calibration.get("machine", name);
        Ok(Self {
            profile: profile(calibration, system, ablation)?,
            lowest_khz: of("lowest_khz")?,
            chip: calibration.chip()?,
            seed,
            known: RefCell::default(),
        })
    }

    fn clock(&self, mhz: u64) -> Clock {
        Clock::at(mhz * 1000, self.lowest_khz)
    }

    pub fn run(&self, sharing: Sharing, tcp_mhz: u64, other_mhz: u64) -> Outcome {
        let key = (sharing, tcp_mhz, other_mhz);
        *self.known.borrow_mut().entry(key).or_insert_with(|| self.run_anew(sharing, tcp_mhz, other_mhz))
    }

    fn run_anew(&self, sharing: Sharing, tcp_mhz: u64, other_mhz: u64) -> Outcome {
        // The rest of the system is on a core of the same chip, which is not throttled.
        let calls = Clock::full(self.clock(tcp_mhz.max(other_mhz)).khz);
        let (tcp, others) = (self.clock(tcp_mhz), self.clock(other_mhz));
        let seat = |core, thread, clock| Seat { core, thread, clock };
        let (tcp, ip, driver) = match sharing {
            Sharing::Cores => (seat(1, 0, tcp), seat(2, 0, others), seat(3, 0, others)),
            Sharing::Threads => (seat(1, 0, tcp), seat(2, 0, others), seat(2, 1, others)),
            Sharing::One => (seat(1, 0, tcp), seat(1, 0, tcp), seat(1, 0, tcp)),
        };
        run(&self.profile, &Setting::of([seat(0, 0, calls), tcp, ip, driver]), self.seed)
    }

    pub fn mbps(&self, sharing: Sharing, tcp_mhz: u64, other_mhz: u64) -> f64 {
        self.run(sharing, tcp_mhz, other_mhz).kbps as f64 / 1000.0
    }
}

fn put(figures: &mut Figures, name: &str, outcome: &Outcome) {
    let percent = |server: Server| outcome.busy_ppm[server as usize] as f64 / 10_000.0;
    figures.insert(format!("{name}/mbps"), outcome.kbps as f64 / 1000.0);
    figures.insert(format!("{name}/tcp"), percent(Server::Tcp));
    figures.insert(format!("{name}/ip"), percent(Server::Ip));
    figures.insert(format!("{name}/driver"), percent(Server::Driver));
    figures.insert(format!("{name}/copying"), outcome.copying_ppm as f64 / 10_000.0);
    figures.insert(format!("{name}/sleeps"), outcome.sleeps_per_ms[Server::Driver as usize] as f64);
    figures.insert(format!("{name}/batch"), outcome.batch_milli[Server::Tcp as usize] as f64 / 1000.0);
}

/// Every figure that claims are about.
pub fn figures(bench: &Bench) -> Figures {
    let mut figures = Figures::new();
    for (tcp, others) in SETS {
        put(&mut figures, &format!("c1/{tcp}/{others}"), &bench.run(Sharing::Cores, tcp, others));
    }
    for (tcp, shared, _) in SHARED {
        put(&mut figures, &format!("c2/{tcp}/{shared}"), &bench.run(Sharing::Threads, tcp, shared));
    }
    for mhz in [200, 1600, 2267] {
        put(&mut figures, &format!("one/{mhz}"), &bench.run(Sharing::One, mhz, mhz));
    }
    search(bench, &mut figures);
    for mhz in [1600, 1867, 2267] {
        figures.insert(format!("chip/{mhz}/watts"), bench.chip.busy_mw(mhz * 1000) as f64 / 1000.0);
    }
    let copy = bench.profile.copy_kib;
    figures.insert("copies".into(), f64::from(u8::from(copy != Work::default())));
    dies(&mut figures);
    figures
}

/// Section 4.3: tcp gets a step more each time; the others do if the rate did not rise in proportion and their
/// step helps.
fn search(bench: &Bench, figures: &mut Figures) {
    let mut others = STEP_MHZ;
    let mut before = bench.mbps(Sharing::Cores, STEP_MHZ, others);
    figures.insert(format!("search/{STEP_MHZ}/others"), others as f64);
    for step in 2..=DUTY_STEPS {
        let tcp = step * STEP_MHZ;
        let mut rate = bench.mbps(Sharing::Cores, tcp, others);
        let in_proportion = before * step as f64 / (step - 1) as f64;
        if rate - before < (in_proportion - before) / 2.0 && others < tcp {
            let faster = bench.mbps(Sharing::Cores, tcp, others + STEP_MHZ);
            if faster > rate * HELPS {
                (rate, others) = (faster, others + STEP_MHZ);
            }
        }
        before = rate;
        figures.insert(format!("search/{tcp}/others"), others as f64);
        figures.insert(format!("search/{tcp}/mbps"), rate);
    }
}

/// A step that brings less is taken back.
const HELPS: f64 = 1.02;

/// Table 1: little cores beside big ones in the transistors of 62 little ones.
fn dies(figures: &mut Figures) {
    let (big, little) = (1_400.0 / 4.0, 5_000.0 / 62.0);
    for count in [4, 8, 12] {
        let left: f64 = 5_000.0 - f64::from(count) * big;
        figures.insert(format!("die/{count}/cores"), left / little);
    }
}
