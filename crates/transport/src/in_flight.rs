//! The bytes of a send ring to which unanswered `Send`s still refer.

/// Unanswered `Send`s of one epoch.
#[derive(Clone, Copy, Default)]
struct Epoch {
    count: u32,
    lowest: u64,
}

/// The ring bytes to which unanswered `Send`s still refer, in constant space: an older and a
/// younger epoch, each with a count and its lowest offset. When the older is empty the younger
/// takes its place, so an epoch is never open for longer than two rounds of answers.
#[derive(Clone, Copy, Default)]
pub struct InFlight {
    epochs: [Epoch; 2],
    /// The epoch that new sends join.
    young: u8,
}

impl InFlight {
    /// A `Send` that refers to bytes from `offset` on; returns its epoch.
    pub fn add(&mut self, offset: u64) -> u8 {
        let old = &self.epochs[1 - self.young as usize];
        if old.count == 0 && self.epochs[self.young as usize].count > 0 {
            self.young = 1 - self.young;
        }
        let e = &mut self.epochs[self.young as usize];
        if e.count == 0 {
            e.lowest = offset;
        }
        e.lowest = e.lowest.min(offset);
        e.count += 1;
        self.young
    }

    /// A `Send` of that epoch was answered.
    pub fn remove(&mut self, epoch: u8) {
        let e = &mut self.epochs[(epoch & 1) as usize];
        e.count = e.count.saturating_sub(1);
    }

    pub fn count(&self) -> u32 {
        self.epochs[0].count + self.epochs[1].count
    }

    /// Below this offset nothing is referred to.
    pub fn lowest(&self) -> u64 {
        let of = |e: &Epoch| if e.count > 0 { e.lowest } else { u64::MAX };
        of(&self.epochs[0]).min(of(&self.epochs[1]))
    }
}

#[cfg(test)]
mod tests;
