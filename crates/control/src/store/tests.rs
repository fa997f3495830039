use super::*;

#[test]
fn subscribers_hear_of_changes_and_newborns_of_everything() {
    let mut s = Store::default();
    s.subscribe("ip", ComponentId::IP);
    assert_eq!(s.publish("ip", b"a".to_vec()), Some(alloc::vec![ComponentId::IP]));
    assert_eq!(s.publish("other", b"b".to_vec()), Some(alloc::vec![]));
    s.publish("ip", b"c".to_vec());
    assert_eq!(s.get("ip"), Some((2, b"c".as_slice())));
    assert_eq!(s.for_peer(ComponentId::IP).collect::<Vec<_>>(), [("ip", b"c".as_slice())]);
    assert_eq!(s.for_peer(ComponentId::TCP).count(), 0);
    assert_eq!(s.publish("ip", alloc::vec![0; VALUE_MAX + 1]), None);
    assert_eq!(s.get("ip"), Some((2, b"c".as_slice())));
}
