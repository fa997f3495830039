use super::*;

#[test]
fn what_is_flipped_lost_or_shifted_is_found() {
    let mut buffer = [0; CHUNK];
    for place in [0, 1, PERIOD as u64 - 5, 1 << 40] {
        fill(&mut buffer, place);
        assert_eq!(damaged(&buffer, place), 0);
        buffer[CHUNK - 1] ^= 16;
        assert_eq!(damaged(&buffer, place), 1);
        buffer[CHUNK - 1] ^= 16;
        for shift in [1, 1448, 4096, 65536] {
            assert!(damaged(&buffer, place + shift) > CHUNK as u64 / 2, "{shift}");
        }
    }
}
