//! Every setting of three cores' clocks under a load, and its result: jobs that can be done in any order.

use serde::Serialize;
use thiserror::Error;

use crate::batch::calibrated::{Ablation, profile};
use crate::batch::servers::Server;
use crate::batch::{Seat, Setting};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::Clock;
use crate::hardware::power::Chip;
use crate::slower_is_faster::fit;
use crate::web::calibrated::{Stack, web};

/// Steps of a throttled core's clock, and the clocks above, which all cores of a chip have at once; MHz.
const THROTTLED: [u64; 8] = [200, 400, 600, 800, 1000, 1200, 1400, 1600];
const WHOLE_CHIP: [u64; 2] = [1867, 2267];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Streams that send as fast as they can.
    Bulk,
    /// A web server with files of so many bytes.
    Web(u64),
}

impl std::str::FromStr for Load {
    type Err = UnknownLoad;

    fn from_str(text: &str) -> Result<Self, UnknownLoad> {
        if text == "bulk" {
            return Ok(Self::Bulk);
        }
        let bytes = text.strip_prefix("web:").and_then(|bytes| bytes.parse().ok());
        match bytes {
            Some(bytes @ 1..=100_000_000) => Ok(Self::Web(bytes)),
            _ => Err(UnknownLoad(text.into())),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("load {0}: bulk, or web:BYTES with files of 1 to 100000000 bytes")]
pub struct UnknownLoad(String);

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bulk => write!(f, "bulk"),
            Self::Web(bytes) => write!(f, "web:{bytes}"),
        }
    }
}

/// One run: tcp's, ip's and the driver's clock, MHz, and a draw of what is assumed (0: the nominal values).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    pub mhz: [u64; 3],
    pub draw: u64,
}

/// All jobs of a sweep, draw by draw.
pub fn jobs(draws: u64) -> Vec<Job> {
    let mut all = Vec::new();
    for draw in 0..=draws {
        for tcp in THROTTLED {
            for ip in THROTTLED {
                all.extend(THROTTLED.map(|driver| Job { mhz: [tcp, ip, driver], draw }));
            }
        }
        all.extend(WHOLE_CHIP.map(|mhz| Job { mhz: [mhz; 3], draw }));
    }
    all
}

/// A job's result; a line of the sweep's file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub job: String,
    pub tcp_mhz: u64,
    pub ip_mhz: u64,
    pub driver_mhz: u64,
    pub draw: u64,
    pub mbps: f64,
    /// Of the stack's chip.
    pub watts: f64,
    /// Percent of the time, of tcp, ip and the driver.
    pub busy: [f64; 3],
}

/// A sweep's stack, load and seed, on the E5520.
pub struct Sweep {
    pub stack: Stack,
    pub load: Load,
    pub seed: u64,
}

/// The calibration of a draw, fitted.
pub fn calibration(nominal: &Calibration, seed: u64, draw: u64) -> Result<Calibration, CalibrationError> {
    let fitted = fit::fit(nominal, seed)?;
    if draw == 0 {
        return Ok(fitted);
    }
    let seed = seed.wrapping_add(1000 + draw);
    fit::fit_draw(&nominal.draw(seed), &fitted, seed)
}

impl Sweep {
    /// Names a job among all sweeps' jobs.
    pub fn name(&self, job: &Job) -> String {
        let [tcp, ip, driver] = job.mhz;
        let stack = if self.stack == Stack::Eft { "eft" } else { "newtos" };
        format!("{stack}/{}/{}/{tcp}x{ip}x{driver}/{}", self.load, self.seed, job.draw)
    }

    pub fn run(&self, calibration: &Calibration, job: &Job) -> Result<Line, CalibrationError> {
        let chip = calibration.chip()?;
        let setting = self.setting(&chip, job);
        let (kbps, busy_ppm) = match self.load {
            Load::Bulk => {
                let system = if self.stack == Stack::Eft { "eft" } else { "newtos" };
                let profile = profile(calibration, system, Ablation::default())?;
                let outcome = crate::batch::run(&profile, &setting, self.seed);
                (outcome.kbps, outcome.busy_ppm)
            }
            Load::Web(bytes) => {
                let connections = calibration.get("web_server", "connections")? as usize;
                let web = web(calibration, self.stack, connections, bytes, Ablation::default())?;
                let outcome = crate::web::run(&web, &setting, self.seed).stack;
                (outcome.kbps, outcome.busy_ppm)
            }
        };
        let [tcp_mhz, ip_mhz, driver_mhz] = job.mhz;
        let servers = [Server::Tcp, Server::Ip, Server::Driver].map(|server| server as usize);
        let cores = servers.map(|server| chip.core_mw(setting.seats[server].clock, busy_ppm[server]));
        Ok(Line {
            job: self.name(job),
            tcp_mhz,
            ip_mhz,
            driver_mhz,
            draw: job.draw,
            mbps: kbps as f64 / 1000.0,
            watts: (chip.static_mw() + cores.iter().sum::<u64>()) as f64 / 1000.0,
            busy: servers.map(|server| busy_ppm[server] as f64 / 10_000.0),
        })
    }

    /// The program, or the syscall server, is on a core that is never slowed.
    fn setting(&self, chip: &Chip, job: &Job) -> Setting {
        let front = match self.load {
            Load::Bulk => job.mhz.into_iter().max().unwrap_or(0).max(chip.lowest.0 / 1000),
            Load::Web(_) => chip.highest.0 / 1000,
        };
        let [tcp, ip, driver] = job.mhz;
        let mut core = 0;
        Setting::of([front, tcp, ip, driver].map(|mhz| {
            core += 1;
            Seat { core, thread: 0, clock: Clock::at(mhz * 1000, chip.lowest.0) }
        }))
    }
}

#[cfg(test)]
mod tests;
