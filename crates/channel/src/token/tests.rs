use super::*;

#[test]
fn a_plug_that_comes_while_one_is_taken_stays() {
    let plug = WritePlug::new();
    plug.set();
    assert!(plug.is_set() && plug.take());
    // The removal woke the program, which filled the ring again; it must not rely on the old plug.
    assert!(!plug.is_set());
    plug.set();
    plug.taken();
    assert!(plug.is_set() && plug.take());
    plug.taken();
    assert!(!plug.is_set());
}
