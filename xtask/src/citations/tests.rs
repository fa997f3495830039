use super::*;

const LIST: &str = "# a comment\n\n5681 Congestion\n3.1 Slow start\n4.2 Acknowledgments\n4.3 Recovery\n\n\
                        5482 Timeout\n3 Operation - not sent\n";

#[test]
fn sections_are_cited_by_name_by_what_follows_and_from_below() {
    let mut citations = Citations::new();
    collect("a.rs", "//! By RFC 5681 (§3.1.2, RFC 6298).\n/// §4.3\n", &mut citations);
    let text = render(&parse(LIST).unwrap(), &citations);
    assert!(text.contains("§3.1 Slow start: a.rs\n"), "{text}");
    assert!(text.contains("§4.2 Acknowledgments: NOT CITED\n"));
    // That one was RFC 6298's.
    assert!(text.contains("§4.3 Recovery: NOT CITED\n"));
    assert!(text.contains("RFC 5482 Timeout: not named anywhere\n  §3 Operation: left out: not sent\n"));
    assert!(text.ends_with("1 sections cited, 1 left out on purpose, 2 not cited\n"));
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    assert!(parse("Congestion control\n").is_err());
    assert!(parse("5681\n").is_err());
}

#[test]
fn the_workspace_s_report_can_be_made() {
    let text = report(&crate::root()).unwrap();
    assert!(text.contains("§3.10.7.4 in other states: crates/transport/src/"), "{text}");
    // What is not cited is left out on purpose, and the list says why.
    assert!(text.ends_with(" 0 not cited\n") && !text.contains("not named anywhere"), "{text}");
}
