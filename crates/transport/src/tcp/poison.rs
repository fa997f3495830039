//! A segment of which tcp dies, in builds for tests alone: what they see is what an input does that meets a fault of the program.

use super::segment::Segment;

const PORT: u16 = 6666;
const LEN: u32 = 666;

pub fn die_of(segment: &Segment) {
    let is_deadly = segment.tuple.remote_port == PORT && segment.len == LEN;
    assert!(!is_deadly, "{LEN} bytes from port {PORT}");
}
