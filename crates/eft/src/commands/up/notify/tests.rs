use super::*;

#[test]
fn both_kinds_of_address_are_reached() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let name = format!("@eft-notify-test-{}", std::process::id());
    let by_path = UnixDatagram::bind(&path).unwrap();
    let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name[1..]).unwrap()).unwrap();
    for (socket, address) in [(by_path, path.to_str().unwrap()), (by_name, name.as_str())] {
        tell(address.as_bytes(), b"READY=1").unwrap();
        let mut buffer = [0; 32];
        let n = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..n], b"READY=1");
    }
    assert!(tell(b"/nowhere/at/all", b"").is_err());
}
