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

#[test]
fn connections_go_on_after_each_rebirth_of_the_engine() {
    for connections in [1, 200] {
        assert!(engine::figure(connections, 2).is_ok(), "{connections}");
    }
}

#[test]
fn aims_are_those_of_the_least_number_of_connections_that_covers_it() {
    assert_eq!(aims(1), Some([5.0, 1.0]));
    assert_eq!(aims(1001), Some([50.0, 50.0]));
    assert_eq!(aims(100_001), None);
    assert!(at_least_one("0").is_err());
    assert_eq!(at_least_one("10"), Ok(10));
}
