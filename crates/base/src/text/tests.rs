use super::*;

#[test]
fn a_complaint_is_one_line() {
    assert_eq!(one_line("a\n  b\x1b[31m c "), "a b [31m c");
    assert_eq!(complaint("x\ny = 1\nz", Some(6..7), "is\n  wrong"), "line 2 (`y = 1`): is wrong");
    assert_eq!(complaint("x", Some(7..9), "beyond"), "beyond");
    assert_eq!(complaint("x", None, "nowhere"), "nowhere");
}

#[test]
fn a_wrong_command_line_is_told_in_one_line() {
    let said = "error: unexpected argument '--sed' found\n\n  tip: a similar argument exists: '--seed'\n\nUsage: eft-sim tiers \
                --seed <SEED>\n\nFor more information, try '--help'.\n";
    assert_eq!(
        wrong_usage(said),
        "unexpected argument '--sed' found tip: a similar argument exists: '--seed' (usage: eft-sim tiers --seed <SEED>)"
    );
    assert_eq!(wrong_usage("error: invalid value\n\nFor more information, try '--help'."), "invalid value");
}
