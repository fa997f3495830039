//! What the loop of a process needs from each of its servers.

use super::park::Sleeper;
use crate::Result;
use eft_base::Instant;
use eft_channel::Shared;
use eft_channel::notify::Doorbell;
use eft_channel::status::Status;
use eft_component::server::FRAME_COUNTERS;
use eft_cores::counted::BYTES;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A server as the loop of its process sees it.
pub trait Hosted {
    fn peer(&self) -> ComponentId;

    /// What the process needs to sleep for this server. Asked for once.
    fn sleeper(&mut self) -> Result<Sleeper<'_>>;

    /// The process sleeps on the descriptors of this set.
    fn sleeps_on(&mut self, set: &Arc<OwnedFd>);

    /// Moves to the CPU where the server is to run.
    fn settle(&mut self);

    /// Receives everything that it needs before it begins. The servers of `company` run in the same thread; `landlock`:
    /// Landlock is in force.
    fn begin(&mut self, company: &[ComponentId], landlock: bool) -> Result<()>;

    /// Handles what the supervisor sent, if it rang or its socket `is_readable`.
    fn hear(&mut self, is_readable: bool) -> Result<()>;

    /// Takes the events of the surroundings (their descriptors may be ready if `ready`), and makes one step with at
    /// most `budget` messages from each neighbour. Returns how much was done.
    fn turn(&mut self, ready: bool, budget: usize) -> usize;

    /// Makes one step for what neighbours of the same thread have sent since.
    fn answer(&mut self, budget: usize);

    /// The latest time of its next turn.
    fn deadline(&self) -> Option<Instant>;

    /// Whether a neighbour has sent something that is worth a turn.
    fn has_urgent_message(&self) -> bool;

    /// Whether anything is left to do that is worth a turn.
    fn has_urgent_work(&self) -> bool;

    /// Whether anything is left to do: the last check before sleeping.
    fn has_work(&self) -> bool;

    fn bells(&self, watch: &mut dyn FnMut(&Shared<Doorbell>));

    /// Whether it would take a frame from its device now.
    fn wants_device(&self) -> bool;

    /// Whether it is alone on its CPU and may poll.
    fn is_dedicated(&self) -> bool;

    fn status(&self) -> &Status;

    /// Tells the supervisor that the code of this process has changed.
    fn tell_of_change(&self);

    /// Whether a neighbour knows that nobody is left who could start anybody again.
    fn hears_of_the_end(&self) -> bool;

    /// Whether it knows that itself, by the end of its control socket, and ends soon.
    fn is_alone(&self) -> bool;

    /// Whether it was told to end.
    fn has_ended(&self) -> bool;

    /// Carries out what its engine still has to do before it ends.
    fn end(&mut self);
}

/// Which counters of an engine with these counters of its own count the bytes that it moves.
pub fn counters_of_bytes(own: &[&str]) -> Vec<usize> {
    (0..own.len()).filter(|i| BYTES.contains(&own[*i])).map(|i| FRAME_COUNTERS.len() + i).collect()
}
