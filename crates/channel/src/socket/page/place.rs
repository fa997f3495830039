//! Where a socket's page and rings lie, and a sum of that: a changed bit would put a stream's bytes, or take them, elsewhere.

use alloc::sync::Arc;

use eft_base::protection;

use super::SocketPage;
use crate::access::AccessObserver;
use crate::segment::Segment;
use crate::socket::{Arena, Geometry};

impl Arena {
    /// An arena of which the caller has seen that it lies in the segment.
    pub(in crate::socket) fn at(segment: Segment, geometry: Geometry) -> Arena {
        let sum = geometry.sum(&segment);
        Arena { segment, geometry, sum, observer: None }
    }

    /// Panics if where the arena lies or how it is cut was changed: a server ends then, and its successor begins with what is right.
    pub(in crate::socket) fn check_place(&self) {
        assert!(
            self.sum == self.geometry.sum(&self.segment),
            "where the sockets of a domain lie was changed"
        );
    }
}

impl Geometry {
    fn sum(&self, segment: &Segment) -> usize {
        segment.sum_of_place([self.slots, self.send_len, self.receive_len])
    }
}

impl SocketPage {
    /// The page of a slot of which the caller has seen that it lies in the segment.
    pub(in crate::socket) fn at(
        segment: Segment,
        base: usize,
        geometry: Geometry,
        observer: Option<Arc<dyn AccessObserver>>,
    ) -> SocketPage {
        let (send_len, receive_len) = (geometry.send_len, geometry.receive_len);
        let mut page = SocketPage { segment, base, send_len, receive_len, sum: 0, observer };
        page.sum = page.computed();
        page
    }

    fn computed(&self) -> usize {
        self.segment.sum_of_place([self.base, self.send_len, self.receive_len])
    }

    /// As [`Arena::check_place`], of the page.
    pub(super) fn check_place(&self) {
        let is_right = || self.sum == self.computed();
        assert!(!protection::is_on() || is_right(), "where the rings of a socket lie was changed");
    }
}

#[cfg(test)]
mod tests;
