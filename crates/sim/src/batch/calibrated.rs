//! A [`Profile`] from a calibration file.

use super::polling::Polling;
use super::profile::{Messages, Network, Profile};
use crate::calibration::{Calibration, CalibrationError};
use crate::hardware::{Costs, PS_PER_NS, Work};

/// Of a stream that begins (RFC 6928). What it has written by the time its window is open decides whether it goes on with
/// large segments, which wait for acknowledgements, or with one for each write.
const INITIAL_SEGMENTS: u64 = 10;

/// What an ablation removes from the model, to show its effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ablation {
    /// A sleeper wakes without delay, by an interrupt, too.
    pub no_wake_latency: bool,
    pub free_empty_polls: bool,
    pub no_memory_stalls: bool,
}

/// Reads a stack's table in a file.
pub struct Reader<'a> {
    pub calibration: &'a Calibration,
    /// `base`: the table of values that the stack's own table lacks.
    pub system: &'a str,
    pub base: &'a str,
}

impl Reader<'_> {
    fn machine(&self, name: &str) -> Result<u64, CalibrationError> {
        self.calibration.get("machine", name)
    }

    pub fn system(&self, name: &str) -> Result<u64, CalibrationError> {
        self.calibration.get(self.system, name).or_else(|_| self.calibration.get(self.base, name))
    }

    /// A message's cycles, of which a part is waits for memory at the machine's lowest frequency.
    pub fn message(&self, name: &str) -> Result<Work, CalibrationError> {
        let cycles = self.system(name)? * self.system("message_percent")? / 100;
        let waits = cycles * self.system("stall_percent")? / 100;
        let stall_ps = waits * 1_000_000_000 / self.machine("lowest_khz")?;
        Ok(Work { cycles: cycles - waits, stall_ps })
    }

    fn messages(&self, server: &str) -> Result<Messages, CalibrationError> {
        let of = |kind: &str| self.message(&format!("{server}_{kind}_cycles"));
        Ok(Messages { segment: of("segment")?, acknowledgement: of("acknowledgement")?, sent: of("sent")? })
    }

    fn costs(&self) -> Result<Costs, CalibrationError> {
        let exit = |flag: &str| -> Result<u64, CalibrationError> {
            let name = if self.system(flag)? == 1 { "core_exit_ns" } else { "light_exit_ns" };
            Ok(self.machine(name)? * PS_PER_NS)
        };
        Ok(Costs {
            empty_poll_cycles: self.machine("empty_poll_cycles")?,
            polls: self.system("polls")?,
            enter_cycles: self.system("enter_cycles")?,
            leave_cycles: self.system("leave_cycles")?,
            wake_cycles: self.system("wake_cycles")?,
            core_exit_ps: exit("sleeps_deep")?,
            front_exit_ps: exit("front_sleeps_deep")?,
            shared_exit_ps: self.machine("light_exit_ns")? * PS_PER_NS,
            thread_exit_ps: self.machine("thread_exit_ns")? * PS_PER_NS,
            cold_ps: self.system("sleeps_deep")? * self.machine("refill_ns")? * PS_PER_NS,
            front_cold_ps: self.system("front_sleeps_deep")? * self.machine("refill_ns")? * PS_PER_NS,
            switch_cycles: self.machine("switch_cycles")?,
            refill_ps: self.machine("refill_ns")? * PS_PER_NS,
            notify_cycles: self.machine("notify_cycles")?,
            notifies_each: self.system("notifies_each")? == 1,
            receive_cycles: self.system("receive_cycles")?,
            quantum_ps: self.machine("quantum_us")? * 1000 * PS_PER_NS,
            interrupt_ps: self.machine("interrupt_ns")? * PS_PER_NS,
        })
    }
}

/// `system`: the table of the stack, `newtos` or `eft`.
pub fn profile(
    calibration: &Calibration,
    system: &str,
    ablation: Ablation,
) -> Result<Profile, CalibrationError> {
    read(&Reader { calibration, system, base: system }, ablation)
}

pub fn read(from: &Reader, ablation: Ablation) -> Result<Profile, CalibrationError> {
    let call = (from.system("call_cycles")? > 0).then(|| from.message("call_cycles")).transpose()?;
    let mut profile = Profile {
        costs: from.costs()?,
        // The call and its answer.
        call: call.map(|work| Work { cycles: work.cycles / 2, stall_ps: work.stall_ps / 2 }),
        write: from.message("write_cycles")?,
        copy_kib: Work {
            cycles: from.system("copy_cycles")?,
            stall_ps: from.system("copy_stall_ns")? * PS_PER_NS,
        },
        tcp: from.messages("tcp")?,
        ip: from.messages("ip")?,
        driver: from.messages("driver")?,
        filter: None,
        polling: Polling::default(),
        batch_max: from.system("batch_max")? as usize,
        streams: from.system("streams")? as usize,
        write_bytes: from.system("write_bytes")?,
        window_bytes: from.system("window_bytes")?,
        initial_window_bytes: (INITIAL_SEGMENTS * from.machine("maximum_segment")?)
            .min(from.system("window_bytes")?),
        buffer_bytes: from.system("buffer_bytes")?,
        segment_bytes: from.system("segment_bytes")?,
        maximum_segment: from.machine("maximum_segment")?,
        flushes: from.system("flushes")? == 1,
        modern_tcp: from.system("modern_tcp")? == 1,
        nagle: true,
        program_ps: from.system("program_ns")? * PS_PER_NS,
        network: Network {
            mbps: from.machine("link_mbps")?,
            overhead_bytes: from.machine("overhead_bytes")?,
            gather_ps: from.machine("gather_ns")? * PS_PER_NS,
            turnaround_ps: from.machine("turnaround_ns")? * PS_PER_NS,
        },
    };
    ablate(&mut profile, ablation);
    Ok(profile)
}

fn ablate(profile: &mut Profile, ablation: Ablation) {
    if ablation.no_wake_latency {
        let costs = &mut profile.costs;
        (costs.core_exit_ps, costs.thread_exit_ps, costs.interrupt_ps) = (0, 0, 0);
        (costs.shared_exit_ps, costs.front_exit_ps) = (0, 0);
        (costs.enter_cycles, costs.leave_cycles) = (0, 0);
        (costs.cold_ps, costs.front_cold_ps) = (0, 0);
    }
    if ablation.free_empty_polls {
        profile.costs.empty_poll_cycles = 0;
    }
    if ablation.no_memory_stalls {
        let costs = &mut profile.costs;
        (costs.refill_ps, costs.cold_ps, costs.front_cold_ps) = (0, 0, 0);
        let works = [&mut profile.write, &mut profile.copy_kib].into_iter().chain(profile.call.as_mut());
        let servers = [&mut profile.tcp, &mut profile.ip, &mut profile.driver].into_iter();
        let messages = servers.flat_map(|m| [&mut m.segment, &mut m.acknowledgement, &mut m.sent]);
        works.chain(messages).for_each(|work| work.stall_ps = 0);
    }
}
