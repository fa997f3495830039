use super::*;
use eft_base::wire::{PROTOCOL_TCP, PROTOCOL_UDP};

/// An IPv6 header with these after it.
fn packet(first: u8, rest: &[&[u8]]) -> Vec<u8> {
    let mut p = vec![0x60, 0, 0, 0, 0, 0, first, 64];
    p.extend([0; 32]);
    rest.iter().for_each(|r| p.extend_from_slice(r));
    p
}

fn refused(first: u8, rest: &[&[u8]]) -> Option<Report> {
    walk(&packet(first, rest)).unwrap_err().1
}

const PADDING: [u8; 8] = [PROTOCOL_UDP, 0, 1, 4, 0, 0, 0, 0];

#[test]
fn a_chain_is_followed_to_its_end() {
    let plain = walk(&packet(PROTOCOL_TCP, &[])).unwrap();
    assert_eq!(plain, Chain { protocol: PROTOCOL_TCP, named_at: 6, len: 40, fragment_at: None });
    let hop = [IPV6_ROUTING, 0, 5, 2, 0, 0, 1, 0];
    let routing = [IPV6_DESTINATION, 0, 0, 0, 0, 0, 0, 0];
    let chain = walk(&packet(IPV6_HOP_BY_HOP, &[&hop, &routing, &PADDING])).unwrap();
    assert_eq!(chain, Chain { protocol: PROTOCOL_UDP, named_at: 56, len: 64, fragment_at: None });
}

#[test]
fn fragments_are_found_and_atomic_ones_are_whole() {
    let fragment = |offset_more: u16| {
        let [a, b] = offset_more.to_be_bytes();
        [IPV6_DESTINATION, 0, a, b, 0, 0, 0, 9]
    };
    let first = walk(&packet(IPV6_FRAGMENT, &[&fragment(1), &PADDING])).unwrap();
    assert_eq!(first, Chain { protocol: PROTOCOL_UDP, named_at: 48, len: 56, fragment_at: Some(40) });
    // What follows is the middle of something.
    let later = walk(&packet(IPV6_FRAGMENT, &[&fragment(8 | 1), &PADDING])).unwrap();
    assert_eq!(later, Chain { protocol: IPV6_DESTINATION, named_at: 40, len: 48, fragment_at: Some(40) });
    let atomic = walk(&packet(IPV6_FRAGMENT, &[&fragment(0), &PADDING])).unwrap();
    assert_eq!((atomic.len, atomic.fragment_at), (56, None));
    let twice = [IPV6_FRAGMENT, 0, 0, 1, 0, 0, 0, 9];
    assert!(walk(&packet(IPV6_FRAGMENT, &[&twice, &fragment(1), &PADDING])).is_err());
}

#[test]
fn what_is_wrong_is_pointed_at() {
    // Hop-by-hop options that are not first.
    assert_eq!(
        refused(IPV6_DESTINATION, &[&[IPV6_HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0], &PADDING]),
        Some(Report::ParameterProblem { code: 1, pointer: 40 })
    );
    // A source route with segments left.
    assert_eq!(
        refused(IPV6_ROUTING, &[&[PROTOCOL_TCP, 0, 0, 1, 0, 0, 0, 0]]),
        Some(Report::ParameterProblem { code: 0, pointer: 42 })
    );
    let option = |kind: u8| refused_or_not(&[PROTOCOL_TCP, 0, kind, 4, 0, 0, 0, 0]);
    assert_eq!(option(0x1e), Ok(()));
    assert_eq!(option(0x5e), Err(None));
    assert_eq!(option(0x9e), Err(Some(Report::ParameterProblem { code: 2, pointer: 42 })));
    assert_eq!(option(0xde), Err(Some(Report::ParameterProblem { code: 2, pointer: 42 })));
    // An option, a header and a chain that are longer than what is there.
    assert_eq!(refused(IPV6_DESTINATION, &[&[PROTOCOL_TCP, 0, 1, 5, 0, 0, 0, 0]]), None);
    assert_eq!(refused(IPV6_DESTINATION, &[&[PROTOCOL_TCP, 1, 1, 4, 0, 0, 0, 0]]), None);
    assert_eq!(refused(IPV6_DESTINATION, &[&[IPV6_DESTINATION, 0, 1, 4, 0, 0, 0, 0][..]; 12]), None);
    assert!(walk(&[0x60; 39]).is_err());
}

fn refused_or_not(header: &[u8]) -> Result<(), Option<Report>> {
    walk(&packet(IPV6_DESTINATION, &[header])).map(drop).map_err(|r| r.1)
}
