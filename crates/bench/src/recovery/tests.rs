use super::*;
use eft_component::topology::Topology;

#[test]
fn each_component_that_is_measured_has_a_standby() {
    let topology = Topology::parse(&with_standby(DEFAULT)).unwrap();
    for name in COMPONENTS {
        let spec = topology.component.iter().find(|c| c.name == name).unwrap();
        assert!(topology.has_standby(spec), "{name}");
    }
}
