//! Connections that a process takes and holds without descriptors: only their pages tell of that.

use crate::app::App;
use crate::control::{take_and_forget, world_with_queue};
use crate::world::World;
use eft_base::SocketId;
use eft_channel::socket::wish;
use std::time::Duration;

/// Side 1 has taken a connection and holds it.
fn held() -> (World, SocketId) {
    let mut w = world_with_queue(1);
    let (socket, _) = take_and_forget(&mut w);
    w.sides[1].page(socket).hold(7);
    (w, socket)
}

fn blocks(w: &World) -> u64 {
    w.sides[1].counter("blocks")
}

#[test]
fn a_held_connection_is_not_forgotten() {
    for crashes in [false, true] {
        let (mut w, _) = held();
        if crashes {
            w.crash(1);
        }
        w.run_for(Duration::from_secs(120));
        assert_eq!(w.sides[1].counter("abandoned_connections"), 0);
        assert!(!w.sides[0].app.streams[0].hung_up);
        // Nor is it reset with its listener.
        let listener = w.sides[1].app.listener.unwrap();
        App::close(&mut w, 1, listener);
        w.run_for(Duration::from_secs(1));
        assert!(!w.sides[0].app.streams[0].hung_up);
    }
}

#[test]
fn a_held_connection_is_closed_when_its_page_says_so() {
    let (mut w, socket) = held();
    let before = blocks(&w);
    w.sides[1].page(socket).add_wish(wish::CLOSED);
    w.dirty(1, socket);
    w.run_for(Duration::from_secs(1));
    assert!(blocks(&w) < before, "{} blocks", blocks(&w));
}

#[test]
fn a_close_of_which_nothing_told_is_found_by_the_successor() {
    let (mut w, socket) = held();
    let before = blocks(&w);
    w.sides[1].page(socket).add_wish(wish::CLOSED);
    w.crash(1);
    w.run_for(Duration::from_secs(1));
    assert!(blocks(&w) < before, "{} blocks", blocks(&w));
}

#[test]
fn who_has_a_descriptor_is_closed_by_sockets_alone() {
    let (mut w, socket) = held();
    let before = blocks(&w);
    let page = w.sides[1].page(socket);
    page.end_hold(12345);
    page.add_wish(wish::CLOSED);
    w.dirty(1, socket);
    w.run_for(Duration::from_secs(1));
    assert_eq!(blocks(&w), before);
}
