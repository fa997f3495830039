//! Sets the clock through cpufreq: both limits of a policy are set to the wanted frequency.

use eft_cores::speed::FrequencyRange;
use eft_machine::{CpuId, KiloHertz};

use crate::error::Error;
use crate::journal::Journal;
use crate::sensors::{Tree, frequency, topology};

pub fn range(tree: &Tree, cpu: CpuId) -> Option<FrequencyRange> {
    let dir = format!("{}/cpufreq", topology::dir(cpu));
    if !tree.exists(&format!("{dir}/scaling_max_freq")) {
        return None;
    }
    let seen = frequency::read(tree, cpu)?;
    Some(FrequencyRange { min: seen.min?, max: seen.max?, available: seen.available })
}

pub fn set(journal: &mut Journal, cpu: CpuId, clock: KiloHertz) -> Result<(), Error> {
    let dir = format!("{}/cpufreq", topology::dir(cpu));
    let (low, high) = (format!("{dir}/scaling_min_freq"), format!("{dir}/scaling_max_freq"));
    let lowest: KiloHertz = journal.tree().number(&low).unwrap_or_default();
    // The lower limit must never exceed the upper one, not even between two writes.
    let order = if clock < lowest { [&low, &high] } else { [&high, &low] };
    for path in order {
        journal.write(path, &clock.0.to_string())?;
    }
    let setspeed = format!("{dir}/scaling_setspeed");
    if journal.tree().text(&format!("{dir}/scaling_governor")).as_deref() == Some("userspace") {
        journal.write(&setspeed, &clock.0.to_string())?;
    }
    Ok(())
}
