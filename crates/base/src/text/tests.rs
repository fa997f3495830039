use super::*;

#[test]
fn a_complaint_is_one_line() {
    assert_eq!(one_line("a\n  b\x1b[31m c "), "a b [31m c");
    assert_eq!(complaint("x\ny = 1\nz", Some(6..7), "is\n  wrong"), "line 2 (`y = 1`): is wrong");
    assert_eq!(complaint("x", Some(7..9), "beyond"), "beyond");
    assert_eq!(complaint("x", None, "nowhere"), "nowhere");
}
