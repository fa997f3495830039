use super::*;

#[test]
fn every_mix_fills_the_machine_once_or_twice() {
    for mix in &MIXES {
        let vcpus: usize = mix.vms.iter().map(|(_, vcpus, _)| vcpus).sum();
        assert_eq!(vcpus, if mix.scenario == Over { 24 } else { 12 }, "{}", mix.name);
    }
}
