use super::*;

#[test]
fn a_plug_that_comes_while_one_is_taken_stays() {
    let plug = WritePlug::new();
    plug.set();
    assert!(plug.is_set() && plug.take());
    // The program was woken by the taking, filled the ring again, and must not trust in the old one.
    assert!(!plug.is_set());
    plug.set();
    plug.taken();
    assert!(plug.is_set() && plug.take());
    plug.taken();
    assert!(!plug.is_set());
}
