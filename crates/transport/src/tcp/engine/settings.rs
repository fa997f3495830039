//! What the stack's configuration says to tcp: as `eft up` began it, or as `eft set` changes it.

use super::Tcp;
use crate::tcp::{Algorithm, MtuProbing, Pacing, SlowStart, SlowStartAfterIdle, TailProbes};
use core::str::FromStr;
use eft_base::hash::Key;
use eft_base::{PortShare, Protection};

/// What is of each connection on its own, which keeps it from its beginning on.
#[derive(Clone, Copy, Default)]
pub(super) struct Settings {
    slow_start: SlowStart,
    after_idle: SlowStartAfterIdle,
    algorithm: Algorithm,
    pacing: Pacing,
    mtu_probing: MtuProbing,
    tail_probes: TailProbes,
}

impl Tcp {
    pub(super) fn configure(&mut self, key: &str, value: &[u8]) {
        match key {
            "addresses" => self.addresses.configure(value),
            PortShare::KEY => self.ports.share = PortShare::among(self.config.slots.owner, value),
            "ecn" => self.ecn = choice(value),
            "fastopen" => self.fast_open = choice(value),
            "fastopen-key" => self.cookie_keys = parsed(value),
            "fastopen-secret" => self.cookie_secret = secret(value),
            "forget-servers" => self.cookie_cache.clear(),
            "timestamps" => self.clocks = choice(value),
            "pacing" => self.settings.pacing = choice(value),
            "mtu-probing" => self.settings.mtu_probing = choice(value),
            "tail-probes" => self.settings.tail_probes = choice(value),
            "congestion" => self.settings.algorithm = choice(value),
            "slow-start" => self.settings.slow_start = choice(value),
            "slow-start-after-idle" => self.settings.after_idle = choice(value),
            "min-tso-segs" => self.min_segments = choice(value),
            "farewell" => self.begin_farewell(),
            Protection::KEY => self.set_protection(Protection::of(value)),
            _ => {}
        }
    }

    /// A connection begins, or goes on after a rebirth, with the settings of now.
    pub(in crate::tcp) fn take_settings(&mut self, i: u32) {
        let Settings { slow_start, after_idle, algorithm, pacing, mtu_probing, tail_probes } = self.settings;
        let live = self.connection(i).live;
        (live.slow_start, live.after_idle, live.algorithm) = (slow_start, after_idle, algorithm);
        (live.pace.mode, live.mtu.mode, live.tail_probes) = (pacing, mtu_probing, tail_probes);
    }
}

/// The value of a switch; the default if the value is unknown.
fn choice<T: FromStr + Default>(value: &[u8]) -> T {
    parsed(value).unwrap_or_default()
}

/// 32 hexadecimal digits.
fn secret(value: &[u8]) -> Option<Key> {
    let digits = core::str::from_utf8(value).ok().filter(|digits| digits.len() == 32)?;
    let bits = u128::from_str_radix(digits, 16).ok()?;
    Some(Key([(bits >> 64) as u64, bits as u64]))
}

fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    core::str::from_utf8(value).ok()?.parse().ok()
}
