use super::super::super::{Arena, Geometry, signature_keys::SignatureKey};
use super::*;
use crate::Segment;
use eft_base::ComponentId;
use zerocopy::FromZeros;

fn pages() -> [SocketPage; 2] {
    let geometry = Geometry { slots: 2, send_len: 4096, receive_len: 4096 };
    let arena = Arena::new(Segment::heap(geometry.arena_len()), geometry).unwrap();
    [0, 1].map(|slot| {
        let page = arena.socket(slot).unwrap();
        page.reset(ComponentId::TCP);
        page
    })
}

#[test]
fn a_further_listener_is_known_by_the_descriptor_of_the_first() {
    let [first, further] = pages();
    assert_eq!((first.beside(), further.is_beside(&first)), (None, false));
    first.set_inode(77);
    further.join(&first);
    first.set_beside(Some(1));
    assert!(further.is_beside(&first) && further.is_further() && !first.is_further());
    assert!(!first.is_beside(&further) && !further.is_beside(&further));
    assert_eq!((first.beside(), further.beside()), (Some(1), None));
    first.set_inode(78);
    assert!(!further.is_beside(&first));
    first.reset(ComponentId::TCP);
    assert_eq!(first.beside(), None);
}

#[test]
fn it_agrees_with_the_first_in_every_option_and_key() {
    let [first, further] = pages();
    for word in 0..=Opt::LAST as usize {
        first.store_u32(option_offset(word), 100 + word as u32);
    }
    // Some in the page, one in the ring.
    let keys = signature_keys::FIRST_KEYS + 1;
    for n in 0..keys {
        first.write_signature_key(n, &SignatureKey { send_id: n as u8, ..SignatureKey::new_zeroed() });
    }
    first.tell_signature_keys(keys);
    first.set_cookie_keys(b"sixteen bytes...");
    first.add_wish(wish::EDGES | wish::SENDS_URGENT);
    further.agree_with(&first);
    for word in 0..=Opt::LAST as usize {
        let offset = option_offset(word);
        assert_eq!(further.load_u32(offset), first.load_u32(offset), "{word}");
    }
    assert_eq!(further.option(Opt::DeferAccept), 100 + Opt::DeferAccept as u32);
    assert!((0..keys).all(|n| further.signature_key(n).send_id == n as u8));
    assert_eq!(further.cookie_keys(), first.cookie_keys());
    assert_eq!(further.wishes(), wish::EDGES);
    // A program may write any number of keys.
    first.set_option(Opt::SignatureKeys, u32::MAX);
    further.agree_with(&first);
}
