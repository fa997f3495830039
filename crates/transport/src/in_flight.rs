//! The bytes of a send ring to which unanswered `Send`s still refer.

/// Groups of unanswered `Send`s. What is given back of a ring is short by about one of `GROUPS - 1` parts of it at most.
const GROUPS: usize = 8;

/// The ring bytes to which unanswered `Send`s still refer, in constant space: groups of sends that followed each other,
/// each with a count and its lowest offset. A group is free again when all of it is answered.
#[derive(Clone, Copy, Default)]
pub struct InFlight {
    counts: [u32; GROUPS],
    lowest: [u64; GROUPS],
    /// The group that new sends join.
    young: u8,
}

impl InFlight {
    /// A `Send` that refers to bytes from `offset` on, of a ring of `ring` bytes; returns its group. A send that begins far
    /// behind the young group's first byte begins a new group, if one is free.
    pub fn add(&mut self, offset: u64, ring: usize) -> u8 {
        let part = ring as u64 / (GROUPS as u64 - 1);
        let (young, next) = (self.young as usize, (self.young as usize + 1) % GROUPS);
        let is_far = self.counts[young] > 0 && offset >= self.lowest[young].saturating_add(part);
        if is_far && self.counts[next] == 0 {
            self.young = next as u8;
        }
        let group = self.young as usize;
        self.lowest[group] = if self.counts[group] == 0 { offset } else { self.lowest[group].min(offset) };
        self.counts[group] += 1;
        self.young
    }

    /// A `Send` of that group was answered.
    pub fn remove(&mut self, group: u8) {
        let count = &mut self.counts[group as usize % GROUPS];
        *count = count.saturating_sub(1);
    }

    pub fn count(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// Below this offset nothing is referred to.
    pub fn lowest(&self) -> u64 {
        let used = self.counts.iter().zip(&self.lowest).filter(|(count, _)| **count > 0);
        used.map(|(_, lowest)| *lowest).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
