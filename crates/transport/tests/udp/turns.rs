//! The order in which programs are told.

use crate::host::*;
use eft_component::transport::{Effect, Event};

/// Programs that come to look at their sockets have work done for these that is no input.
#[test]
fn who_rings_before_input_is_told_of_it_in_its_order() {
    const PORT: u16 = 4_000;
    let mut h = Host::new();
    let sockets: [_; 4] = [0, 1, 2, 3].map(|i| {
        let socket = h.open();
        assert_eq!(h.bind(socket, [0; 4], PORT + i, 0), 0);
        socket
    });
    for ringing in [&[][..], &[3], &[2, 3], &[0, 1, 2, 3]] {
        for order in [[1, 0, 3, 2], [3, 2, 1, 0], [2, 3, 0, 1]] {
            h.effects.clear();
            for i in ringing {
                h.event(Event::Dirty(sockets[*i]));
            }
            let packets = order.map(|i| datagram((PEER, 53), (OWN, PORT + i as u16), b"input"));
            h.deliver_together(&packets.each_ref().map(Vec::as_slice), true);
            let told: Vec<_> = h.effects.iter().filter(|e| matches!(e, Effect::Readable(_))).collect();
            let came = order.map(|i| Effect::Readable(sockets[i]));
            assert_eq!(told, came.iter().collect::<Vec<_>>(), "after {ringing:?} rang");
        }
    }
}
