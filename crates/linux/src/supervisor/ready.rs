//! When the stack is ready, and what its operator is told if addresses from the network did not come in time.

use super::Supervisor;
use super::say::say;
use super::setup::StackConfig;
use eft_control::readiness::{Readiness, Verdict};
use eft_host::clock;

pub fn begin(config: &StackConfig) -> Readiness {
    let interfaces = config.devices.iter().map(|device| (device.interface.as_str(), &device.auto[..]));
    Readiness::new(interfaces, clock::now(), config.wait_online)
}

impl Supervisor {
    /// Whether the stack is ready: its servers run, and its interfaces have their addresses, or have waited long enough.
    pub(super) fn is_ready(&mut self, readiness: &mut Readiness) -> bool {
        if !self.announced {
            return false;
        }
        match readiness.look(&self.in_force.known, clock::now()) {
            Verdict::Wait => false,
            Verdict::Ready(missing) => {
                for (interface, methods) in missing.iter().filter(|_| !self.config.wait_online.is_zero()) {
                    let methods: Vec<&str> = methods.iter().map(|method| method.name()).collect();
                    let (name, methods) = (&self.config.name, methods.join(", "));
                    say!("eft {name}: ready, though {interface} has no address by {methods} yet");
                }
                true
            }
        }
    }
}
