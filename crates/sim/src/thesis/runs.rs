//! The thesis' configurations, and the results of each, as named figures.
//!
//! `opteron/POSIXxTCPxIPxDRIVER/…` and `xeon/POSIXxTCPxFILTERxIPxDRIVER/…` have each server on a core of so many MHz; what
//! shares cores has a name of its own. Rates are in Mb/s, shares in percent.

use crate::batch::calibrated::{Ablation, Reader, read};
use crate::batch::profile::Filter;
use crate::batch::servers::Server;
use crate::batch::{Outcome, Profile, Seat, Setting, run};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Clock;
use crate::hardware::power::Chip;
use crate::judge::Figures;

/// Both machines: the second one's file has the stack, too.
pub struct Machines {
    pub opteron: Calibration,
    pub xeon: Calibration,
}

impl Machines {
    /// `fitted`: the E5520 with the stack, as slower-is-faster fits it. `draw`: the seed by which what is assumed of the
    /// first machine is drawn.
    pub fn of(fitted: Calibration, draw: Option<u64>) -> Result<Self, CalibrationError> {
        let opteron = Calibration::opteron_6168()?;
        let opteron = draw.map_or(opteron.clone(), |seed| opteron.draw(seed));
        Ok(Self { opteron: opteron.with_stacks_of(&fitted), xeon: fitted })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    Newtos,
    Eft,
}

/// The stack of the thesis, and eft's.
fn own(calibration: &Calibration) -> Reader<'_> {
    Reader { calibration, system: "without_offloads", base: "newtos" }
}

fn eft(calibration: &Calibration) -> Reader<'_> {
    Reader { calibration, system: "eft", base: "eft" }
}

/// A machine with a stack on it.
pub(super) struct Bench {
    pub(super) profile: Profile,
    chip: Chip,
    seed: u64,
}

impl Bench {
    pub(super) fn new(
        (calibration, stack): (&Calibration, Stack),
        cards: u64,
        ablation: Ablation,
        seed: u64,
    ) -> Result<Self, CalibrationError> {
        let cards_of = own(calibration);
        let from = if stack == Stack::Eft { eft(calibration) } else { own(calibration) };
        let mut profile = read(&from, ablation)?;
        profile.streams = (cards_of.system("streams_of_card")? * cards) as usize;
        if stack == Stack::Newtos {
            profile.polling.percent[Server::Driver as usize] = cards_of.system("driver_poll_percent")?;
            profile.polling.driver_is_tireless = true;
        }
        Ok(Self { profile, chip: calibration.chip()?, seed })
    }

    /// The Xeon has four cards, and ip a filter.
    pub(super) fn with_filter(
        of: (&Calibration, Stack),
        ablation: Ablation,
        seed: u64,
    ) -> Result<Self, CalibrationError> {
        let mut bench = Self::new(of, 4, ablation, seed)?;
        let from = own(of.0);
        let profile = &mut bench.profile;
        profile.network.mbps = from.system("link_mbps")?;
        if of.1 == Stack::Newtos {
            profile.polling.percent[Server::Ip as usize] = from.system("ip_poll_percent")?;
        }
        let costs = if of.1 == Stack::Eft { eft(of.0) } else { from };
        profile.filter = Some(Filter {
            question: costs.message("filter_question_cycles")?,
            verdict: costs.message("ip_verdict_cycles")?,
            // eft's ip asks once a flow (docs/performance.md), which bulk does not feel.
            grants: of.1 == Stack::Eft,
        });
        Ok(bench)
    }

    fn clock(&self, mhz: u64) -> Clock {
        Clock::at(mhz * 1000, self.chip.lowest.0)
    }

    /// Each on a core of its own.
    pub(super) fn seats(&self, [posix, tcp, ip, driver]: [u64; 4]) -> [Seat; 4] {
        let mut core = 0;
        [posix, tcp, ip, driver].map(|mhz| {
            core += 1;
            Seat { core, thread: 0, clock: self.clock(mhz) }
        })
    }

    /// The same with the filter.
    pub(super) fn filtered(&self, [posix, tcp, filter, ip, driver]: [u64; 5]) -> Setting {
        let mut setting = Setting::of(self.seats([posix, tcp, ip, driver]));
        setting.seats[Server::Filter as usize] = Seat { core: 9, thread: 0, clock: self.clock(filter) };
        setting
    }

    fn run(&self, setting: &Setting) -> Outcome {
        run(&self.profile, setting, self.seed)
    }

    fn put(&self, figures: &mut Figures, name: &str, setting: &Setting) {
        let outcome = self.run(setting);
        figures.insert(format!("{name}/mbps"), outcome.kbps as f64 / 1000.0);
        let mut mw = self.chip.static_mw();
        for (server, label) in NAMES {
            let busy_ppm = outcome.busy_ppm[server as usize];
            figures.insert(format!("{name}/{label}"), busy_ppm as f64 / 10_000.0);
            mw += self.chip.core_mw(setting.seats[server as usize].clock, busy_ppm);
        }
        figures.insert(format!("{name}/watts"), mw as f64 / 1000.0);
    }
}

const NAMES: [(Server, &str); 5] = [
    (Server::Front, "posix"),
    (Server::Tcp, "tcp"),
    (Server::Ip, "ip"),
    (Server::Driver, "driver"),
    (Server::Filter, "filter"),
];

/// Every figure that claims are about.
pub fn figures(machines: &Machines, stack: Stack, seed: u64) -> Result<Figures, CalibrationError> {
    let mut figures = Figures::new();
    opteron((&machines.opteron, stack), seed, &mut figures)?;
    let of = (&machines.xeon, stack);
    xeon(of, seed, &mut figures)?;
    let free = Bench::with_filter(of, FREE_EMPTY_POLLS, seed)?;
    for mhz in [XEON[0], XEON[6]] {
        free.put(&mut figures, &format!("xeon free polls/{}", name(mhz)), &free.filtered(mhz));
    }
    for name in ["with", "without"] {
        let suffix = if name == "with" { "" } else { " free polls" };
        let get = |mhz: &str| figures.get(&format!("xeon{suffix}/{mhz}/mbps")).copied();
        let slowdown =
            get("2267x2267x2267x2267x2267").zip(get("1600x1600x1600x2267x1600")).map(|(a, b)| a / b);
        figures.insert(format!("ablation/filter/{name}"), slowdown.unwrap_or(f64::NAN));
    }
    Ok(figures)
}

const FREE_EMPTY_POLLS: Ablation =
    Ablation { no_wake_latency: false, free_empty_polls: true, no_memory_stalls: false };

/// Of Figures 4.1 to 4.3: POSIX, tcp, ip and driver, MHz.
pub const OPTERON: [[u64; 4]; 12] = [
    [1900, 1900, 1900, 1900],
    [800, 1900, 1900, 1900],
    [1900, 1300, 1900, 1900],
    [1900, 800, 1900, 1900],
    [1900, 1900, 1700, 1900],
    [1900, 1900, 1500, 1900],
    [1900, 1900, 1300, 1900],
    [1900, 1900, 1000, 1900],
    [1900, 1900, 800, 1900],
    [1900, 1900, 1900, 800],
    [800, 1900, 1300, 800],
    [800, 800, 800, 800],
];

/// Of Figures 4.4 and 4.5: on whose core each server is, both in the order of [`OPTERON`].
pub(super) const SHARED: [(&str, [usize; 4]); 5] = [
    ("tcp+ip", [0, 1, 1, 3]),
    ("ip+driver", [0, 1, 2, 2]),
    ("tcp+driver", [0, 1, 2, 1]),
    ("tcp+ip+driver", [0, 1, 1, 1]),
    ("posix+tcp+ip+driver", [0; 4]),
];

/// Each server on the core of its host, at that core's clock.
pub(super) fn on_cores_of(seats: [Seat; 4], hosts: [usize; 4]) -> [Seat; 4] {
    hosts.map(|host| seats[host])
}

/// The Opteron's.
pub(super) const CARDS: u64 = 5;

fn opteron(of: (&Calibration, Stack), seed: u64, figures: &mut Figures) -> Result<(), CalibrationError> {
    let mut bench = Bench::new(of, CARDS, Ablation::default(), seed)?;
    for mhz in OPTERON {
        let [posix, tcp, ip, driver] = mhz;
        let name = format!("opteron/{posix}x{tcp}x{ip}x{driver}");
        bench.put(figures, &name, &Setting::of(bench.seats(mhz)));
    }
    let full = [1900; 4];
    for (name, hosts) in SHARED {
        bench.put(figures, &format!("opteron/{name}"), &Setting::of(on_cores_of(bench.seats(full), hosts)));
    }
    // Who shares a core with drivers and servers that do nothing just then.
    for (name, shared, mhz) in [
        ("posix, shared", Server::Front, full),
        ("ip, shared", Server::Ip, full),
        ("posix 800, shared; ip 1300, driver 800", Server::Front, [800, 1900, 1300, 800]),
    ] {
        let mut setting = Setting::of(bench.seats(mhz));
        setting.seats[Server::Filter as usize] = setting.seats[shared as usize];
        bench.put(figures, &format!("opteron/{name}"), &setting);
    }
    bench.profile.polling.ip_polls_percent = of.0.get("without_offloads", "long_polls")? * 100;
    bench.put(figures, "opteron/long polls", &Setting::of(bench.seats(full)));
    Ok(())
}

/// Of Figures 4.6 and 4.7: POSIX, tcp, filter, ip and driver, MHz; a boosted one has more.
pub const XEON: [[u64; 5]; 9] = [
    [2267, 2267, 2267, 2267, 2267],
    [1600, 2267, 2267, 2267, 2267],
    [2267, 1600, 2267, 2267, 2267],
    [2267, 2267, 1600, 2267, 2267],
    [2267, 2267, 2267, 1600, 2267],
    [2267, 2267, 2267, 2267, 1600],
    [1600, 1600, 1600, 2267, 1600],
    [1600, 2267, 1600, 2267, 1600],
    [1600, 1600, 2267, 2267, 1600],
];

/// Of Figure 4.8: four servers on the threads of two cores, tcp with ip and the driver with the filter.
pub(super) fn on_threads(mut setting: Setting) -> Setting {
    for (server, other) in [(Server::Ip, Server::Tcp), (Server::Filter, Server::Driver)] {
        let seat = setting.seats[other as usize];
        setting.seats[server as usize] = Seat { thread: 1, ..seat };
    }
    setting
}

fn name(mhz: [u64; 5]) -> String {
    mhz.map(|mhz| mhz.to_string()).join("x")
}

fn xeon(of: (&Calibration, Stack), seed: u64, figures: &mut Figures) -> Result<(), CalibrationError> {
    let bench = Bench::with_filter(of, Ablation::default(), seed)?;
    let boosted = [1600, 1600, 1600, 2267 + own(of.0).system("boost_khz")? / 1000, 1600];
    for mhz in XEON.into_iter().chain([boosted]) {
        let ip = mhz[3];
        let setting = bench.filtered(mhz);
        let boosts = if ip > 2267 { "boosted".into() } else { name(mhz) };
        bench.put(figures, &format!("xeon/{boosts}"), &setting);
    }
    let full = bench.filtered([2267; 5]);
    bench.put(figures, "xeon/threads", &on_threads(full));
    let mut shared = full;
    shared.seats[Server::Ip as usize].core = full.seats[Server::Tcp as usize].core;
    bench.put(figures, "xeon/tcp+ip", &shared);
    Ok(())
}
