//! Which transport owns which slots of a domain's arena.

use crate::component::ComponentId;
use serde::{Deserialize, Serialize};

/// The slots that one transport gives out: `first`, and every `stride`th after it. Transports allocate from the same
/// arena without asking each other, so no two shares of a stack have a slot in common. Others learn a slot's owner from
/// the word that the owner wrote into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotShare {
    pub owner: ComponentId,
    pub first: u32,
    /// How many transports share the arena; not 0.
    pub stride: u32,
}

impl SlotShare {
    /// tcp's beside one udp.
    pub const TCP: SlotShare = SlotShare { owner: ComponentId::TCP, first: 0, stride: 2 };
    /// udp's beside one tcp.
    pub const UDP: SlotShare = SlotShare { owner: ComponentId::UDP, first: 1, stride: 2 };

    /// How many of an arena's `slots` are in the share.
    pub fn len(&self, slots: usize) -> usize {
        slots.saturating_sub(self.first as usize).div_ceil(self.stride.max(1) as usize)
    }

    /// The `i`th slot of the share.
    pub fn slot(&self, i: usize) -> u32 {
        self.first + i as u32 * self.stride
    }

    /// Which of the share's slots this is; `None` if it is in another share.
    pub fn index(&self, slot: u32) -> Option<usize> {
        let from_first = slot.checked_sub(self.first)?;
        let stride = self.stride.max(1);
        from_first.is_multiple_of(stride).then_some((from_first / stride) as usize)
    }
}

#[cfg(test)]
mod tests;
