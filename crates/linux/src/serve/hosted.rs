//! What the loop of a process needs of each of its servers.

use super::park::Sleeper;
use crate::Result;
use crate::sandbox::Users;
use eft_base::Instant;
use eft_channel::Shared;
use eft_channel::notify::Doorbell;
use eft_channel::status::Status;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A server as the loop of its process sees it.
pub trait Hosted {
    fn peer(&self) -> ComponentId;

    /// What it brings to the sleep of its process. Asked for once.
    fn sleeper(&mut self) -> Result<Sleeper<'_>>;

    /// Its process sleeps on the descriptors of this set.
    fn sleeps_on(&mut self, set: &Arc<OwnedFd>);

    /// Goes to where it is to run.
    fn settle(&mut self);

    /// What it asks of the sandbox of its process: see [`Surroundings::users`].
    fn users(&self) -> Option<Users>;

    /// Takes all that it must have before it begins. The servers of `company` run in the same thread; `landlock` is in force.
    fn begin(&mut self, company: &[ComponentId], landlock: bool) -> Result<()>;

    /// Takes what the supervisor sent, if it rang or its socket `is_readable`.
    fn hear(&mut self, is_readable: bool) -> Result<()>;

    /// News of the surroundings, whose descriptors may have something if they are `ready`, and one step, with at most `budget` messages of each neighbour. Returns how much was done.
    fn turn(&mut self, ready: bool, budget: usize) -> usize;

    /// One step for what neighbours of the same thread said since.
    fn answer(&mut self, budget: usize);

    /// When it wants a turn at the latest.
    fn deadline(&self) -> Option<Instant>;

    /// Whether a neighbour has sent something.
    fn has_message(&self) -> bool;

    /// Whether there is anything to be done: the last look before sleeping.
    fn has_work(&self) -> bool;

    fn bells(&self, watch: &mut dyn FnMut(&Shared<Doorbell>));

    /// Whether it would take something from its descriptors.
    fn wants_device(&self) -> bool;

    /// It is alone on its CPU, and may poll.
    fn is_dedicated(&self) -> bool;

    fn status(&self) -> &Status;

    /// It was told to end.
    fn has_ended(&self) -> bool;

    /// What its engine still wants done is done.
    fn end(&mut self);
}
