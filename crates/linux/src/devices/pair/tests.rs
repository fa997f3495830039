use super::*;
use crate::protocol::DeviceKind;
use eft_base::MacAddress;
use rustix::event::EventfdFlags;
use rustix::fs::MemfdFlags;

#[test]
fn memory_that_could_shrink_under_us_is_refused() {
    let event = || rustix::event::eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    let setup =
        DeviceSetup { kind: DeviceKind::Pair, interface: 0, mac: MacAddress([2; 6]), mtu: 1500, ring: None };
    let sealed = |len| memory::create("eft-test", len).unwrap();
    let unsealed = |len: usize| {
        let fd = rustix::fs::memfd_create("eft-test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, len as u64).unwrap();
        fd
    };
    let open = |half, taken| {
        let rest = vec![sealed(HALF_LEN), sealed(TAKEN_LEN), half, taken, event()];
        PairDevice::new(event(), rest, &setup).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(open(sealed(HALF_LEN), sealed(TAKEN_LEN)), Ok(()));
    let shrinks = Err("pair: the other side's memory could shrink under us".to_string());
    assert_eq!(open(unsealed(HALF_LEN), sealed(TAKEN_LEN)), shrinks);
    assert_eq!(open(sealed(HALF_LEN), unsealed(TAKEN_LEN)), shrinks);
    assert!(open(sealed(HALF_LEN / 2), sealed(TAKEN_LEN)).is_err());
}
