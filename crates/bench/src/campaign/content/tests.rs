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

#[test]
fn a_stream_that_was_shifted_goes_on_from_there() {
    let mut buffer = [0; CHUNK];
    for place in [0, 1, PERIOD as u64 - 5, 1 << 40] {
        for shift in [1, 64, 1448, 4096, 65536] {
            fill(&mut buffer, place + shift);
            let (damaged, came) = follow(&buffer, place);
            assert!(damaged > 0, "{shift}");
            let next = place + came;
            fill(&mut buffer, place + shift + CHUNK as u64);
            assert_eq!(follow(&buffer, next), (0, CHUNK as u64), "{shift}");
        }
        // A byte alone is no shift, wherever it is.
        for at in [0, CHUNK / 2, CHUNK - 1] {
            fill(&mut buffer, place);
            buffer[at] ^= 16;
            assert_eq!(follow(&buffer, place), (1, CHUNK as u64));
        }
    }
    // Too few bytes to find a place, and bytes that are none of the content.
    assert_eq!(follow(&[0; 8], 0).1, 8);
    assert_eq!(follow(&[0; CHUNK], 0).1, CHUNK as u64);
}
