//! What the stack's configuration says to tcp: as `eft up` began it, or as `eft set` changes it.

use super::Tcp;
use core::str::FromStr;
use eft_component::Commit;

impl Tcp {
    pub(super) fn configure(&mut self, key: &str, value: &[u8]) {
        match key {
            "addresses" => self.addresses.configure(value),
            "ecn" => self.ecn = choice(value),
            "fastopen" => self.fast_open = choice(value),
            "fastopen-key" => self.cookie_keys = parsed(value),
            "forget-servers" => self.cookie_cache.clear(),
            "timestamps" => self.clocks = choice(value),
            "pacing" => self.pacing = choice(value),
            "mtu-probing" => self.mtu_probing = choice(value),
            "tail-probes" => self.tail_probes = choice(value),
            "congestion" => self.algorithm = choice(value),
            "slow-start" => self.slow_start = choice(value),
            "slow-start-after-idle" => self.after_idle = choice(value),
            "min-tso-segs" => self.min_segments = choice(value),
            Commit::KEY => self.set_commit(Commit::of(value)),
            _ => {}
        }
    }

    /// A connection begins, or goes on after a rebirth, with the settings of now.
    pub(in crate::tcp) fn take_settings(&mut self, i: u32) {
        let (slow_start, after_idle, algorithm) = (self.slow_start, self.after_idle, self.algorithm);
        let (pacing, mtu_probing, tail_probes) = (self.pacing, self.mtu_probing, self.tail_probes);
        let live = self.connection(i).live;
        (live.slow_start, live.after_idle, live.algorithm) = (slow_start, after_idle, algorithm);
        (live.pace.mode, live.mtu.mode, live.tail_probes) = (pacing, mtu_probing, tail_probes);
    }
}

/// The value of a switch; the default if the value is unknown.
fn choice<T: FromStr + Default>(value: &[u8]) -> T {
    parsed(value).unwrap_or_default()
}

fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    core::str::from_utf8(value).ok()?.parse().ok()
}
