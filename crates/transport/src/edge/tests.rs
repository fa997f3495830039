use super::*;
use eft_base::{DomainId, RequestId, SocketId, WireAddress};

fn reply(errno: i32, slot: u32, incarnation: u32) -> Out {
    let request = RequestId::default();
    let socket = SocketId { domain: DomainId(1), slot };
    let (address, port, taken) = (WireAddress::default(), 0, 0);
    Out::Sockets(TransportToSockets::Reply { request, errno, socket, incarnation, address, port, taken })
}

#[test]
fn sockets_is_woken_for_answers_that_somebody_waits_for() {
    assert!(!reply(0, 3, 0).is_urgent(), "closed, or attached");
    assert!(reply(0, 3, 7).is_urgent(), "opened, bound, connected");
    assert!(reply(22, 3, 0).is_urgent(), "refused");
    assert!(reply(0, NONE, 0).is_urgent(), "the end of a domain");
}
