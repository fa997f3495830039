//! Idle states with exit latency and target residency, from cpuidle.

use eft_machine::{CpuId, IdleState};

use super::{Tree, topology};

pub fn read(tree: &Tree, cpu: CpuId) -> Vec<IdleState> {
    let dir = format!("{}/cpuidle", topology::dir(cpu));
    let read = |index: u32| {
        let state = format!("{dir}/state{index}");
        Some(IdleState {
            name: tree.text(&format!("{state}/name"))?,
            description: tree.text(&format!("{state}/desc")),
            exit_latency: tree.number(&format!("{state}/latency"))?,
            // Absent on kernels before 4.15.
            target_residency: tree.number(&format!("{state}/residency")),
            disabled: tree.number::<u32>(&format!("{state}/disable")).is_some_and(|flag| flag != 0),
            entered: tree.number(&format!("{state}/usage")).unwrap_or(0),
            time: tree.number(&format!("{state}/time")).unwrap_or_default(),
        })
    };
    tree.numbered(&dir, "state").into_iter().filter_map(read).collect()
}
