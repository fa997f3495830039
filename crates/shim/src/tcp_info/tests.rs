use super::*;

#[test]
fn no_threshold_reads_as_on_linux() {
    assert_eq!(threshold(u32::MAX, 1448), 0x7fff_ffff);
    assert_eq!(threshold(14480, 1448), 10);
}
