use super::scale_for;

#[test]
fn the_scale_covers_the_ring() {
    for len in [4096, 65536, 1 << 18, 1 << 20, 1 << 26] {
        let s = scale_for(len);
        assert!((len - (1 << s)) >> s <= 65535);
        assert!(s == 0 || (len - (1 << (s - 1))) >> (s - 1) > 65535);
    }
}
