use super::*;
use crate::supervisor::changes::Changes;
use crate::supervisor::setup::members;
use crate::supervisor::tests::world::config;
use std::rc::Rc;

#[test]
fn every_component_is_told_that_it_is_unprotected_and_nothing_otherwise() {
    for protection in [Protection::On, Protection::Off] {
        let config = StackConfig { protection, ..config() };
        let store = configuration(&config);
        let all = members(&config, &mut None, &Rc::new(Changes::new().unwrap())).unwrap();
        assert!(all.len() > 6, "{} components", all.len());
        for member in all {
            let told = store.for_peer(member.peer).find(|(key, _)| *key == Protection::KEY);
            let expected = (protection == Protection::Off).then_some(b"off".as_slice());
            assert_eq!(told.map(|(_, value)| value), expected, "{}", member.peer);
        }
    }
}
