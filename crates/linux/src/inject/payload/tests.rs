use super::*;

const GEOMETRY: Geometry = Geometry { slots: 2, send_len: 8192, receive_len: 4096 };

#[test]
fn only_rings_hold_payload() {
    let first = ARENA_HEADER_LEN;
    let second = first + GEOMETRY.stride();
    let all = [0, first - 4096, first, first + 4096, first + 8192, second - 4096, second, second + 4096];
    let told = all.map(|offset| is_in_a_ring(&GEOMETRY, offset));
    assert_eq!(told, [false, false, false, true, true, true, false, true]);
}

#[test]
fn a_shape_must_be_one() {
    let shape = json!({ "slots": 2, "send_len": 8192, "receive_len": 4096 });
    assert_eq!(geometry(&shape).ok(), Some(GEOMETRY));
    for wrong in
        [json!(null), json!({ "slots": 2 }), json!({ "slots": 0, "send_len": 8192, "receive_len": 4096 })]
    {
        assert!(geometry(&wrong).is_err(), "{wrong}");
    }
}
