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
    assert_eq!(shown(Endpoint::UNSPECIFIED), "0.0.0.0:*");
    assert_eq!(shown(Endpoint { port: 80, ..Endpoint::UNSPECIFIED }), "0.0.0.0:80");
    assert_eq!(shown(Endpoint::new(IpAddr::from([10, 0, 0, 1]), 5)), "10.0.0.1:5");
}
