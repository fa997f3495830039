use super::*;
use crate::keeper::{Entries, Entry};
use crate::protocol::PACKET_MAX;
use crate::supervisor::inheritance::Inheritance;
use eft_control::store::Store;

/// What a keeper at the other end has, once all was said.
fn heard(socket: &OwnedFd) -> Entries {
    let mut entries = Entries::new();
    hear(socket, &mut entries);
    entries
}

/// The same of one that has something already.
pub fn hear(socket: &OwnedFd, entries: &mut Entries) {
    let mut buffer = vec![0; PACKET_MAX];
    while let Ok((n @ 1.., fds)) = scm::receive(socket, &mut buffer, true) {
        match postcard::from_bytes(&buffer[..n]).unwrap() {
            ToKeeper::Put { name, value } => drop(entries.insert(name, Entry { value, fds })),
            ToKeeper::Drop { name } => drop(entries.remove(&name)),
            _ => {}
        }
    }
}

#[test]
fn a_value_of_the_store_is_inherited_as_it_was_last_even_if_it_is_empty() {
    let (ours, keepers) = scm::pair().unwrap();
    let mut kept = Kept::of_predecessor(ours);
    kept.put_stored("ecn", b"ask");
    kept.put_stored("fastopen-key", b"an old key");
    kept.put_stored("fastopen-key", b"");
    let mut store = Store::default();
    store.publish("fastopen-key", b"of the command line".to_vec());
    store.publish("pacing", b"auto".to_vec());
    Inheritance::new(heard(&keepers)).fill_store(&mut store, &["ecn", "fastopen-key", "pacing"]);
    let value = |key| store.get(key).map(|(_, value)| value.to_vec()).unwrap();
    assert_eq!(value("ecn"), b"ask");
    assert_eq!(value("fastopen-key"), b"");
    assert_eq!(value("pacing"), b"auto", "what was never kept stays as it is");
}

#[test]
fn a_keeper_that_is_held_hears_everything_in_order_afterwards() {
    let (ours, keepers) = scm::pair().unwrap();
    let mut kept = Kept::of_predecessor(ours);
    kept.put("process/tcp".into(), &(), &[]);
    kept.hold();
    kept.forget("process/tcp".into());
    kept.put("process/tcp".into(), &1u32, &[]);
    assert!(!kept.has_all(), "nothing is done before it has heard it");
    assert_eq!(heard(&keepers)["process/tcp"].value, encode(&()));
    kept.flush();
    assert!(kept.has_all());
    assert_eq!(heard(&keepers)["process/tcp"].value, encode(&1u32));
    kept.forget("process/tcp".into());
    assert!(kept.has_all(), "it is held no more");
}
