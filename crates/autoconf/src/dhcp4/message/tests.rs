use super::*;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

/// A server's message with these options.
pub fn reply(xid: u32, yours: [u8; 4], options: &[(u8, &[u8])]) -> Vec<u8> {
    let mut m = alloc::vec![0; FIXED_LEN];
    m[..3].copy_from_slice(&[REPLY, ETHERNET, 6]);
    m[AT_XID..AT_XID + 4].copy_from_slice(&xid.to_be_bytes());
    m[AT_YOURS..AT_YOURS + 4].copy_from_slice(&yours);
    m[AT_MAC..AT_MAC + 6].copy_from_slice(&MAC.0);
    m[AT_COOKIE..].copy_from_slice(&COOKIE);
    for (kind, value) in options {
        m.extend([*kind, value.len() as u8]);
        m.extend(*value);
    }
    m.push(END);
    m
}

#[test]
fn a_servers_message_is_read() {
    let options: &[(u8, &[u8])] = &[
        (KIND, &[5]),
        (SERVER, &[10, 0, 5, 1]),
        (LEASE_TIME, &[0, 0, 0, 120]),
        (RENEWAL, &[0, 0, 0, 50]),
        (SUBNET_MASK, &[255, 255, 254, 0]),
        (ROUTERS, &[10, 0, 5, 1, 10, 0, 5, 2]),
        (NAME_SERVERS, &[10, 0, 5, 53]),
        (DOMAIN, b"lab.example"),
    ];
    let read = parse(&reply(7, [10, 0, 5, 9], options), 7, MAC).unwrap();
    assert_eq!((read.kind, read.address, read.prefix_len), (Kind::Ack, Ipv4Addr::new(10, 0, 5, 9), 23));
    assert_eq!((read.lease_s, read.renewal_s, read.rebinding_s), (Some(120), Some(50), None));
    assert_eq!(read.server, Some(Ipv4Addr::new(10, 0, 5, 1)));
    let routes: Vec<_> = read.routes.iter().map(|(to, by)| (alloc::format!("{to}"), *by)).collect();
    let by = |last| Some(Ipv4Addr::new(10, 0, 5, last));
    assert_eq!(routes, [("0.0.0.0/0".into(), by(1)), ("0.0.0.0/0".into(), by(2))]);
    assert_eq!((read.name_servers.len(), &read.search[..]), (1, &["lab.example".into()][..]));
}

#[test]
fn what_is_not_for_this_client_is_not_read() {
    let good = reply(7, [10, 0, 5, 9], &[(KIND, &[2])]);
    assert!(parse(&good, 7, MAC).is_some());
    assert!(parse(&good, 8, MAC).is_none());
    assert!(parse(&good, 7, MacAddress([2; 6])).is_none());
    for at in [0, 1, 2, AT_COOKIE, FIXED_LEN + 2] {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        assert!(parse(&bad, 7, MAC).is_none(), "byte {at}");
    }
    for len in 0..good.len() - 1 {
        assert!(parse(&good[..len], 7, MAC).is_none(), "{len} bytes");
    }
    // A mask with holes, and options that reach beyond the message.
    for option in [(SUBNET_MASK, &[255, 0, 255, 0][..]), (SUBNET_MASK, &[255, 255])] {
        assert!(parse(&reply(7, [10, 0, 5, 9], &[(KIND, &[2]), option]), 7, MAC).is_none());
    }
    let mut long = good;
    long.extend([6, 200, 1]);
    long[FIXED_LEN + 3] = PAD;
    assert!(parse(&long, 7, MAC).is_none());
}

#[test]
fn classless_routes_count_and_routers_do_not() {
    // RFC 3442, page 4: the descriptor has the significant octets of the destination only.
    let classless = [24, 10, 9, 7, 10, 0, 5, 3, 0, 10, 0, 5, 4, 32, 10, 0, 5, 4, 0, 0, 0, 0, 33, 1];
    let options: &[(u8, &[u8])] = &[(KIND, &[5]), (ROUTERS, &[10, 0, 5, 1]), (ROUTES, &classless)];
    let read = parse(&reply(1, [10, 0, 5, 9], options), 1, MAC).unwrap();
    let routes: Vec<_> = read.routes.iter().map(|(to, by)| (alloc::format!("{to}"), *by)).collect();
    let by = |last| Some(Ipv4Addr::new(10, 0, 5, last));
    assert_eq!(
        routes,
        [("10.9.7.0/24".into(), by(3)), ("0.0.0.0/0".into(), by(4)), ("10.0.5.4/32".into(), None)]
    );
}

#[test]
fn options_come_in_pieces_and_in_other_fields() {
    let options: &[(u8, &[u8])] =
        &[(KIND, &[5]), (NAME_SERVERS, &[10, 0]), (NAME_SERVERS, &[5, 53]), (OVERLOAD, &[3])];
    let mut m = reply(1, [10, 0, 5, 9], options);
    m[AT_FILE..AT_FILE + 7].copy_from_slice(&[LEASE_TIME, 4, 0, 0, 2, 88, END]);
    m[AT_SERVER_NAME..AT_SERVER_NAME + 6].copy_from_slice(&[SERVER, 4, 10, 0, 5, 1]);
    let read = parse(&m, 1, MAC).unwrap();
    assert_eq!(read.name_servers, [Ipv4Addr::new(10, 0, 5, 53)]);
    assert_eq!((read.lease_s, read.server), (Some(600), Some(Ipv4Addr::new(10, 0, 5, 1))));
}

#[test]
fn a_clients_message_has_what_servers_look_for() {
    let message = Message {
        kind: Kind::Request,
        xid: 0x0102_0304,
        seconds: 5,
        mac: MAC,
        client_id: &[255, 1, 2],
        has: None,
        requested: Some(Ipv4Addr::new(10, 0, 5, 9)),
        server: Some(Ipv4Addr::new(10, 0, 5, 1)),
    };
    let m = message.bytes();
    assert!(m.len() >= LEN_MIN && m[..8] == [1, 1, 6, 0, 1, 2, 3, 4] && m[AT_MAC..AT_MAC + 6] == MAC.0);
    let options = Options::of(&m).unwrap();
    assert_eq!(*options.get(KIND), [3]);
    assert_eq!(*options.get(CLIENT_ID), [255, 1, 2]);
    assert_eq!((&*options.get(REQUESTED), &*options.get(SERVER)), (&[10, 0, 5, 9][..], &[10, 0, 5, 1][..]));
    assert!(options.get(WANTED).contains(&ROUTES));
}
