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

#[test]
fn signs_of_life_come_twice_as_often_as_the_watchdog_asks() {
    let own = std::process::id().to_string();
    let mut watchdog = Watchdog::of(Some("3000000"), Some(&own)).unwrap();
    let begin = Instant::now();
    let told: Vec<u64> = (0..=60u64)
        .map(|n| n * 50)
        .filter(|ms| watchdog.is_due(begin + Duration::from_millis(*ms)))
        .collect();
    assert_eq!(told, [0, 1500, 3000]);
}

#[test]
fn without_a_watchdog_or_for_another_process_there_are_none() {
    let is_watched = |microseconds, process| Watchdog::of(microseconds, process).is_some();
    assert!(!is_watched(None, None));
    assert!(!is_watched(Some("0"), None));
    assert!(!is_watched(Some("soon"), None));
    assert!(!is_watched(Some("1000"), Some("1")), "that of the process that started this one");
    assert!(is_watched(Some("1000"), None));
}
