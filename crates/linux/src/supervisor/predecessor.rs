//! What a supervisor finds when it starts: another one of its name that runs, or what one that died left behind.

use super::StackConfig;
use super::adoption::{self, Left};
use super::inheritance::{Inheritance, confirm_death};
use super::kept::{Kept, likenesses};
use super::say::say;
use crate::keeper::take_over;
use crate::{Error, Result, operator};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Asks the running stack of this name, if there is one, to leave everything with its keeper and to end.
pub fn ask_to_hand_over(config: &StackConfig) -> Result<()> {
    if operator::connect(&config.name, &operator::control_path(&config.name)).is_err() {
        return Ok(());
    }
    let ask = |likeness: String| {
        let request = serde_json::json!({ "op": "hand-over", "likeness": likeness });
        operator::ask(&config.name, &request).map(drop)
    };
    let mut refusal = None;
    for likeness in likenesses(config) {
        match ask(likeness) {
            Ok(()) => return Ok(()),
            Err(Error::Hangs { stack, pid }) => return end_hung(&stack, pid),
            Err(why) => refusal = refusal.or(Some(why)),
        }
    }
    refusal.map_or(Ok(()), Err)
}

/// A supervisor that hangs hands nothing over. Its servers run on, and are adopted.
fn end_hung(stack: &str, pid: i32) -> Result<()> {
    say!("eft {stack}: its supervisor (process {pid}) hangs and is killed");
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    process.map_or(Ok(()), |process| confirm_death("supervisor", &process))
}

/// Takes what a predecessor of this name left, once all its servers are dead. `None`: there is nothing, or it is from
/// another stack.
pub fn inherit(config: &StackConfig) -> Result<Option<(Kept, Inheritance)>> {
    let path = operator::keeper_path(&config.name);
    let Some((socket, entries)) = take_over(&config.name, &path)? else { return Ok(None) };
    let mut kept = Kept::of_predecessor(socket);
    let mut inheritance = Inheritance::new(entries);
    let left = inheritance.value::<String>("stack");
    let is_alike = left.is_some_and(|left| likenesses(config).contains(&left));
    match adoption::examine(&inheritance, config) {
        Left::Adoptable if is_alike => {
            inheritance.adopts = true;
            return Ok(Some((kept, inheritance)));
        }
        Left::Strange(why) if is_alike => say!(
            "eft {}: its servers lived on and are not adopted: {why}; they start again, and connections go on",
            config.name
        ),
        _ => {}
    }
    for name in inheritance.names("process/") {
        inheritance.confirm_death(&name)?;
    }
    inheritance.last_words = adoption::control_of(&mut inheritance, "sockets");
    for name in ["server/", "queue/", super::changes::CHANGES].iter().flat_map(|name| inheritance.names(name))
    {
        kept.forget(name);
    }
    if !is_alike {
        say!(
            "eft {}: a stack of this name died and had other devices, addresses or sizes: its connections end",
            config.name
        );
        kept.end();
        return Ok(None);
    }
    Ok(Some((kept, inheritance)))
}
