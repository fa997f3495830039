//! What programs want of their IPv6 packets: flow labels, and a limit of their length.

use super::ipv6::*;
use super::*;
use eft_messages::transport::Wish;

/// The labels and lengths of the packets that a datagram of this length goes as.
fn sent_as(len: u32, flags: u8, wish: Wish) -> Vec<(u32, usize)> {
    let mut b = Bench::met6(false);
    let mut d = datagram6(US6, THEM6, len);
    (d.flags, d.wish) = (flags, wish.to_word());
    b.send(ComponentId::UDP, 1, &d);
    let out = b.drain();
    let sends: Vec<_> = out.iter().filter(|m| matches!(m, ToPeer::Nic(0, IpToNic::Send { .. }))).collect();
    let frames = sends.into_iter().map(|m| b.frame(m));
    frames.map(|f| (u32::from_be_bytes(f[14..18].try_into().unwrap()) & Wish::LABEL, f.len() - 14)).collect()
}

#[test]
fn packets_have_the_label_that_their_program_chose_or_none() {
    for label in [0, 1, 0x54321, Wish::LABEL] {
        assert_eq!(sent_as(10, 0, Wish { label: Some(label), largest: 0 }), [(label, 58)]);
    }
    assert_ne!(sent_as(10, 0, Wish::default())[0].0, 0);
}

/// As on Linux: what fits the way goes whole, and what must not be cut keeps the limit.
#[test]
fn no_fragment_is_longer_than_the_program_allows() {
    let within = |largest: u16| Wish { label: Some(7), largest: largest / Wish::UNIT };
    assert_eq!(sent_as(1300, 0, within(1280)), [(7, 1348)]);
    assert_eq!(sent_as(1600, 0, within(0)), [(7, 1496), (7, 208)]);
    assert_eq!(sent_as(1600, 0, within(1280)), [(7, 1280), (7, 424)]);
    // Less than every link takes is no limit that would be followed.
    assert_eq!(sent_as(1600, 0, within(600)), [(7, 1280), (7, 424)]);
    assert_eq!(sent_as(1600, 0, within(u16::MAX)), [(7, 1496), (7, 208)]);
    assert_eq!(sent_as(1300, SEND_DONT_FRAGMENT, within(1280)), []);
}

#[test]
fn a_wish_is_a_word_and_back() {
    for wish in [
        Wish::default(),
        Wish { label: Some(0), largest: Wish::LARGEST_MAX },
        Wish { label: Some(Wish::LABEL), largest: 160 },
        Wish { label: None, largest: 1 },
    ] {
        assert_eq!(Wish::of_word(wish.to_word()), wish);
    }
}
