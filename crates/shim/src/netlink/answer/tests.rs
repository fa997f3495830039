use super::*;

fn ask(kind: u16, flags: u16, body: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let request = Message::new(kind, flags | 1, 5, 0).fixed(body).done();
    let answers = to(&request, 77).concat();
    let read = requests(&answers);
    assert!(read.iter().all(|m| m.sequence == 5), "{read:?}");
    read.iter().map(|m| (m.kind, m.body.to_vec())).collect()
}

#[test]
fn without_a_stack_there_is_the_loopback() {
    let links = ask(GETLINK, DUMP, &[0]);
    assert_eq!(links.iter().map(|m| m.0).collect::<Vec<_>>(), [NEWLINK, DONE]);
    assert_eq!(attribute(&links[0].1, 16, IFLA_IFNAME), Some(&b"lo\0"[..]));
    let addresses = ask(GETADDR, DUMP, &[libc::AF_INET as u8]);
    assert_eq!(attribute(&addresses[0].1, 8, IFA_LOCAL), Some(&[127, 0, 0, 1][..]));
    assert_eq!(ask(GETADDR, DUMP, &[libc::AF_INET6 as u8])[0].0, DONE);
}

#[test]
fn invalid_requests_are_refused_with_their_error() {
    let error = |(kind, body): &(u16, Vec<u8>)| (*kind, -i32::from_ne_bytes(body[..4].try_into().unwrap()));
    assert_eq!(error(&ask(NEWADDR, ACK, &[0; 8])[0]), (ERROR, libc::EOPNOTSUPP));
    let mut ninth = [0; 16];
    ninth[4] = 9;
    assert_eq!(error(&ask(GETLINK, 0, &ninth)[0]), (ERROR, libc::ENODEV));
    assert_eq!(error(&ask(GETROUTE, 0, &[0; 12])[0]), (ERROR, libc::ENETUNREACH));
    assert_eq!(ask(30, DUMP, &[0])[0].0, DONE);
}

#[test]
fn a_long_answer_comes_in_parts() {
    let parts = parts(vec![vec![1; 1000]; 10], vec![9; 20]);
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [3000, 3000, 3000, 1000, 20]);
}
