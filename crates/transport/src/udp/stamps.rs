//! Times of sends that wait for room in the page.

use alloc::collections::VecDeque;
use eft_channel::socket::Stamp;

/// About as many as Linux keeps for a socket of the usual size; what comes beyond is dropped.
const STAMPS_MAX: usize = 256;

#[derive(Default)]
pub(super) struct Stamps(VecDeque<Stamp>);

impl Stamps {
    /// False: there is no room.
    pub fn put(&mut self, stamp: Stamp) -> bool {
        let fits = self.0.len() < STAMPS_MAX;
        if fits {
            self.0.push_back(stamp);
        }
        fits
    }

    /// Offers the oldest to `take`, which says how many it took. True: some.
    pub fn give(&mut self, take: impl FnOnce(&[Stamp]) -> usize) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let taken = take(self.0.make_contiguous());
        self.0.drain(..taken);
        taken > 0
    }
}
