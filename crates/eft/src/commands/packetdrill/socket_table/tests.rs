use super::*;

#[test]
fn addresses_are_shown_as_the_kernel_does() {
    let address: IpAddr = "192.168.0.1".parse().unwrap();
    assert_eq!(place(Endpoint::new(address, 8080), false), "0100A8C0:1F90");
    let address: IpAddr = "fd3d:a0b::1".parse().unwrap();
    assert_eq!(place(Endpoint::new(address, 80), true), "0B0A3DFD000000000000000001000000:0050");
    assert_eq!(place(Endpoint::UNSPECIFIED, true).len(), 32 + 5);
}

#[test]
fn without_sockets_there_is_the_head() {
    assert_eq!(table([].into_iter(), false), HEAD);
}
