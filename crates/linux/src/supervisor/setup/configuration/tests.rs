use super::*;
use crate::supervisor::changes::Changes;
use crate::supervisor::setup::members;
use crate::supervisor::tests::world::config;
use eft_component::topology::Topology;
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

#[test]
fn several_instances_of_tcp_have_one_secret_which_stays() {
    let spread = include_str!("../../../../../../topologies/spread.toml");
    let several = StackConfig { topology: Topology::parse(spread).unwrap(), ..config() };
    let mut store = configuration(&several);
    let secret = cookie_secret(&store, &several).unwrap().expect("two instances");
    assert!(secret.len() == 32 && secret.iter().all(u8::is_ascii_hexdigit), "{secret:?}");
    assert_ne!(cookie_secret(&store, &several).unwrap(), Some(secret.clone()), "it is drawn");
    store.publish(COOKIE_SECRET, secret.clone());
    assert_eq!(cookie_secret(&store, &several).unwrap(), Some(secret.clone()));
    let told = |peer| store.for_peer(peer).any(|(key, value)| key == COOKIE_SECRET && value == secret);
    assert!(told(ComponentId::TCP) && told(ComponentId::new(Role::Tcp, 1)));
    assert!(!told(ComponentId::IP) && !told(ComponentId::SOCKETS));
    assert_eq!(cookie_secret(&Store::default(), &config()).unwrap(), None, "one has its own");
}
