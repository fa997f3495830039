use super::*;

pub const DUID: &[u8] = &[0, 4, 1, 2];
pub const SERVER: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 1];

/// A server's message with one address, and further options.
pub fn reply(
    kind: u8,
    xid: u32,
    iaid: u32,
    leased: Option<(Ipv6Addr, u32, u32)>,
    more: &[(u16, &[u8])],
) -> Vec<u8> {
    let mut m = xid.to_be_bytes().to_vec();
    m[0] = kind;
    write(&mut m, SERVER_ID, SERVER);
    if let Some((address, preferred, valid)) = leased {
        let mut value = address.octets().to_vec();
        value.extend(preferred.to_be_bytes());
        value.extend(valid.to_be_bytes());
        let mut association = iaid.to_be_bytes().to_vec();
        association.extend([0; 8]);
        write(&mut association, ADDRESS, &value);
        write(&mut m, IA_NA, &association);
    }
    more.iter().for_each(|(kind, value)| write(&mut m, *kind, value));
    m
}

fn ours() -> Ipv6Addr {
    Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 9)
}

#[test]
fn a_servers_message_is_read() {
    let dns = Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 0x53).octets();
    let more: &[(u16, &[u8])] =
        &[(CLIENT_ID, DUID), (NAME_SERVERS, &dns), (SEARCH, b"\x03lab\x00"), (PREFERENCE, &[7])];
    let m = reply(7, 5, 1, Some((ours(), 100, 200)), more);
    let read = parse(&m, 5, DUID, 1).unwrap();
    assert_eq!(
        (read.kind, &read.server[..], read.status, read.preference),
        (Kind::Reply, SERVER, SUCCESS, 7)
    );
    assert_eq!((&read.addresses[..], &read.name_servers[..]), (&[(ours(), 100, 200)][..], &[dns.into()][..]));
    assert_eq!(read.search, ["lab"]);
    // Another exchange, client or association; and what is cut short.
    assert_eq!(parse(&m, 6, DUID, 1), None);
    assert_eq!(parse(&m, 5, &[0, 4, 1, 3], 1), None);
    assert_eq!(parse(&m, 5, DUID, 2).unwrap().addresses, []);
    let ends: Vec<usize> = (0..m.len()).filter(|len| parse(&m[..*len], 5, DUID, 1).is_some()).collect();
    assert!(ends.iter().all(|len| parse(&m[..*len], 5, DUID, 1).unwrap().server == SERVER));
    assert!(ends.len() <= 3, "{ends:?}: only whole options");
}

#[test]
fn an_address_that_cannot_be_is_left_out() {
    let m = reply(7, 5, 1, Some((ours(), 300, 200)), &[(CLIENT_ID, DUID)]);
    assert_eq!(parse(&m, 5, DUID, 1).unwrap().addresses, [], "preferred for longer than valid");
    let m = reply(7, 5, 1, None, &[(CLIENT_ID, DUID), (STATUS, &[0, 2, b'n', b'o'])]);
    assert_eq!(parse(&m, 5, DUID, 1).unwrap().status, 2);
}
