use super::*;
use crate::commands::cpu::columns;

#[test]
fn the_widest_line_fits_into_80_columns() {
    let widest =
        ["tcp", "CLOSE-WAIT", "4194304", "4194304", "100.100.100.100:65535", "100.100.100.100:65535"];
    let header = COLUMNS[..BRIEF].iter().map(|(title, _)| title.to_string()).collect();
    let table = columns(&[header, widest.map(String::from).to_vec()]);
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn nobody_is_shown_as_ss_does() {
    let any = Endpoint::new(Ipv6Addr::UNSPECIFIED.into(), 80);
    assert_eq!(shown(Endpoint::UNSPECIFIED, None, false), ["0.0.0.0:*"; 2]);
    assert_eq!(
        shown(Endpoint { port: 80, ..Endpoint::UNSPECIFIED }, None, false),
        ["0.0.0.0:80", "0.0.0.0:*"]
    );
    assert_eq!(shown(any, None, false), ["*:80", "*:*"]);
    assert_eq!(shown(any, None, true), ["[::]:80", "[::]:*"]);
}

#[test]
fn ends_are_shown_as_ss_does() {
    let (own, peer) =
        (Endpoint::new(IpAddr::from([10, 0, 0, 1]), 5), Endpoint::new(IpAddr::from([10, 0, 0, 2]), 6));
    assert_eq!(shown(own, Some(peer), false), ["10.0.0.1:5", "10.0.0.2:6"]);
    let (own, peer) =
        (Endpoint::new("fd77::1".parse().unwrap(), 5), Endpoint::new("fd77::2".parse().unwrap(), 6));
    assert_eq!(shown(own, Some(peer), false), ["[fd77::1]:5", "[fd77::2]:6"]);
    assert_eq!(shown(own, None, false), ["[fd77::1]:5", "[::]:*"]);
}
