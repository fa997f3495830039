//! The paper's web server profiles, and the results of each, as named figures.
//!
//! `SIZE/TCPIP/DRIVER/…` has files of so many bytes, tcp and ip on cores of so many MHz, the driver on another, and the
//! program on the other chip; `figure-2/stack/N/…` and `figure-2/linux/N/…` have all cores
//! at 2267 MHz, 10 bytes and N connections. Rates are answers
//! in a second, shares are percent.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::batch::calibrated::Ablation;
use crate::batch::servers::Server;
use crate::batch::{Seat, Setting};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Clock;
use crate::hardware::power::Chip;
use crate::judge::Figures;
use crate::web::calibrated::{Stack, web};
use crate::web::{Outcome, run};

pub const SIZES: [u64; 4] = [10, 100_000, 1_000_000, 10_000_000];
/// Of throttled cores, MHz.
pub const SPEEDS: [u64; 6] = [200, 400, 600, 800, 1200, 1600];
pub const CONNECTIONS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

const NO_LATENCY: Ablation =
    Ablation { no_wake_latency: true, free_empty_polls: false, no_memory_stalls: false };

/// The program, tcp, ip and the driver, each on a core, at so many MHz.
pub fn setting(chip: &Chip, program: u64, others: [u64; 3]) -> Setting {
    let [tcp, ip, driver] = others.map(|mhz| Clock::at(mhz * 1000, chip.lowest.0));
    let mut core = 0;
    let seats = [Clock::full(program * 1000), tcp, ip, driver].map(|clock| {
        core += 1;
        Seat { core, thread: 0, clock }
    });
    Setting::of(seats)
}

pub struct Bench<'a> {
    calibration: &'a Calibration,
    stack: Stack,
    ablation: Ablation,
    chip: Chip,
    seed: u64,
    /// What was run already: figures have some settings in common.
    known: RefCell<BTreeMap<Point, Outcome>>,
}

/// Connections, bytes of files, and the clocks of the program, tcp, ip and the driver.
type Point = (usize, u64, u64, [u64; 3]);

impl<'a> Bench<'a> {
    pub fn new(
        calibration: &'a Calibration,
        stack: Stack,
        ablation: Ablation,
        seed: u64,
    ) -> Result<Self, CalibrationError> {
        Ok(Self { calibration, stack, ablation, chip: calibration.chip()?, seed, known: RefCell::default() })
    }

    fn outcome(
        &self,
        connections: usize,
        file: u64,
        program: u64,
        others: [u64; 3],
    ) -> Result<Outcome, CalibrationError> {
        let point = (connections, file, program, others);
        if let Some(known) = self.known.borrow().get(&point) {
            return Ok(known.clone());
        }
        let web = web(self.calibration, self.stack, connections, file, self.ablation)?;
        let outcome = run(&web, &setting(&self.chip, program, others), self.seed);
        self.known.borrow_mut().insert(point, outcome.clone());
        Ok(outcome)
    }

    /// Files of so many bytes; tcp and ip at one clock, the driver at another, in MHz.
    pub fn serve(&self, file: u64, tcp_ip: u64, driver: u64) -> Result<Outcome, CalibrationError> {
        let connections = self.calibration.get("web_server", "connections")? as usize;
        self.outcome(connections, file, self.chip.highest.0 / 1000, [tcp_ip, tcp_ip, driver])
    }

    /// Everything at the highest clock.
    pub fn crowd(&self, connections: usize) -> Result<Outcome, CalibrationError> {
        let mhz = self.chip.highest.0 / 1000;
        self.outcome(connections, SIZES[0], mhz, [mhz; 3])
    }

    /// 1 MB, the driver at 400 MHz: the best of tcp's and ip's speeds over the highest one.
    fn slower_is_faster(&self) -> Result<f64, CalibrationError> {
        let all = SPEEDS.map(|tcp_ip| Ok(self.serve(SIZES[2], tcp_ip, 400)?.answers_milli));
        let all = all.into_iter().collect::<Result<Vec<u64>, CalibrationError>>()?;
        let (best, fastest) = (all.iter().max().copied(), all.last().copied());
        Ok(best.unwrap_or_default() as f64 / fastest.unwrap_or(1).max(1) as f64)
    }

    /// Of the stack's chip, with what its three cores take; W.
    fn watts(&self, outcome: &Outcome, tcp_ip: u64, driver: u64) -> f64 {
        let core = |server: Server, mhz: u64| {
            let clock = Clock::at(mhz * 1000, self.chip.lowest.0);
            self.chip.core_mw(clock, outcome.stack.busy_ppm[server as usize])
        };
        let cores = core(Server::Tcp, tcp_ip) + core(Server::Ip, tcp_ip) + core(Server::Driver, driver);
        (self.chip.static_mw() + cores) as f64 / 1000.0
    }
}

fn put(
    bench: &Bench,
    figures: &mut Figures,
    (file, tcp_ip, driver): (u64, u64, u64),
) -> Result<(), CalibrationError> {
    let outcome = bench.serve(file, tcp_ip, driver)?;
    let name = |what: &str| format!("{file}/{tcp_ip}/{driver}/{what}");
    let rate = outcome.answers_milli as f64 / 1000.0;
    let percent = |server: Server| outcome.stack.busy_ppm[server as usize] as f64 / 10_000.0;
    figures.insert(name("rate"), rate);
    figures.insert(name("mbps"), outcome.stack.kbps as f64 / 1000.0);
    figures.insert(name("program"), percent(Server::Front));
    figures.insert(name("tcp"), percent(Server::Tcp));
    figures.insert(name("ip"), percent(Server::Ip));
    figures.insert(name("driver"), percent(Server::Driver));
    figures.insert(name("per-joule"), rate / bench.watts(&outcome, tcp_ip, driver));
    Ok(())
}

/// Every figure that claims are about. `linux`: of the same machine, for both columns.
pub fn figures(bench: &Bench, linux: &Bench) -> Result<Figures, CalibrationError> {
    let mut figures = Figures::new();
    for file in SIZES {
        for tcp_ip in SPEEDS {
            for driver in SPEEDS {
                put(bench, &mut figures, (file, tcp_ip, driver))?;
            }
        }
    }
    put(bench, &mut figures, (SIZES[0], 2267, 2267))?;
    for (name, bench) in [("stack", bench), ("linux", linux)] {
        for connections in CONNECTIONS {
            let rate = bench.crowd(connections)?.answers_milli as f64 / 1000.0;
            figures.insert(format!("figure-2/{name}/{connections}/rate"), rate);
        }
    }
    let without = Bench::new(bench.calibration, bench.stack, NO_LATENCY, bench.seed)?;
    for (name, bench) in [("with", bench), ("without", &without)] {
        figures.insert(format!("ablation/slower/{name}"), bench.slower_is_faster()?);
    }
    Ok(figures)
}
