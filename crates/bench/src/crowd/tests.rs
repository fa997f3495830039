use super::*;

#[test]
fn connections_are_spread_over_descriptors_and_ports() {
    assert_eq!(spread(1000, 20_000), [1000]);
    assert_eq!(spread(19_000, 20_000), [19_000]);
    assert_eq!(spread(10_000, 4_500), [4000, 4000, 2000]);
    assert_eq!(spread(100_000, 1 << 20), [20_000; 5], "a client has no more ports for one server");
    assert!(spread(0, 1000).is_empty());
    assert_eq!(spread(3, 1), [1, 1, 1]);
}

#[test]
fn each_connection_of_a_crowd_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || serve(listener));
    let mut streams: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    // One that ends takes no other with it.
    streams.swap_remove(50);
    for stream in &mut streams {
        stream.write_all(b"a").unwrap();
    }
    for stream in &mut streams {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"a");
    }
}
