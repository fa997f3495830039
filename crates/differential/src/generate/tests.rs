use super::*;

#[test]
fn the_same_seed_makes_the_same_program() {
    assert_eq!(program(7), program(7));
    assert_ne!(program(7), program(8));
}

#[test]
fn every_kind_of_step_and_both_versions_occur() {
    let all: Vec<Program> = (0..300).map(program).collect();
    assert!(all.iter().any(|p| p.v6) && all.iter().any(|p| !p.v6));
    let text = format!("{all:?}");
    for word in
        ["Connect", "Accept", "SendTo", "WriteParts", "Linger", "Complaint", "SynAck", "Datagram", "Settle"]
    {
        assert!(text.contains(word), "{word}");
    }
}
