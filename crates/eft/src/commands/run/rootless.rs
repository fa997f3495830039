//! `eft run --rootless`: a stack for one program and its descendants (see [`eft_linux::rootless`]).

use super::{RunArguments, find_program, run_on_stack};
use crate::commands::up;
use crate::commands::up::file::Options;
use crate::commands::up::source::Source;
use eft_base::Cidr;
use eft_linux::Result;
use eft_linux::rootless::{self, Ended};
use eft_linux::supervisor::{self, News, StackConfig};
use std::process::ExitCode;

/// The stack's addresses; the kernel of its namespace has [`KERNEL`]. Both are of networks for private use (RFC 1918,
/// RFC 4193), and nobody else sees them.
const STACK: [&str; 2] = ["10.0.2.15/24", "fd65:6674::15/64"];
const KERNEL: [&str; 2] = ["10.0.2.2/24", "fd65:6674::2/64"];

pub fn run(arguments: &RunArguments) -> ExitCode {
    if let Err(refusal) = find_program(&arguments.command[0]) {
        eprintln!("eft: {refusal}");
        return ExitCode::from(refusal.status());
    }
    let stack = |ready: &dyn Fn()| run_stack(&arguments.stack.name, ready);
    match rootless::run(stack, || run_on_stack(arguments)) {
        Ok(Ended::Status(status)) => ExitCode::from(status),
        Ok(Ended::Signal(signal)) => end_by(signal),
        Ok(Ended::Hindered) => ExitCode::from(125),
        Err(e) => {
            eprintln!("eft: --rootless: {e}");
            ExitCode::from(125)
        }
    }
}

fn run_stack(name: &str, ready: &dyn Fn()) -> Result<()> {
    let network = rootless::make_network(&addresses(KERNEL))?;
    let kernel = KERNEL.map(|cidr| cidr.split('/').next().unwrap_or_default()).join(" and ");
    eprintln!(
        "eft: this stack reaches only the kernel of its own namespace, at {kernel}; its servers have no priority over programs"
    );
    supervisor::run(config(name, network)?, |news| {
        if news == News::Ready {
            ready();
        }
    })
}

fn config(name: &str, network: rootless::Network) -> Result<StackConfig> {
    let options = Options {
        name: Some(name.into()),
        device: vec![network.device],
        address: addresses(STACK).into_iter().map(Source::Given).collect(),
        host_address: network.host_addresses,
        // Nothing of it outlives its supervisor.
        keep: Some(0),
        ..Options::default()
    };
    let config = up::config(options).map_err(|e| eft_linux::Error::Invalid(format!("{e:#}")))?;
    Ok(StackConfig { private: true, ..config })
}

fn addresses(of: [&str; 2]) -> Vec<Cidr> {
    of.iter().filter_map(|cidr| cidr.parse().ok()).collect()
}

/// Ends as the program did. It has left a core dump if there is to be one.
fn end_by(signal: i32) -> ExitCode {
    // SAFETY: plain numbers, and a structure of our own.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    ExitCode::from(128 + signal as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eft_linux::devices::DeviceSpec;

    #[test]
    fn both_ends_of_the_device_have_addresses_of_both_versions_in_the_same_networks() {
        let device = DeviceSpec::Tap("eft0".into());
        let network = rootless::Network { device, host_addresses: addresses(KERNEL) };
        let config = config("x", network).unwrap();
        assert_eq!(config.devices[0].addresses.len(), 2);
        assert_eq!(config.host_addresses.len(), 2);
        for (own, other) in config.devices[0].addresses.iter().zip(&config.host_addresses) {
            assert!(own.contains(other.address) && own.address != other.address);
        }
    }
}
