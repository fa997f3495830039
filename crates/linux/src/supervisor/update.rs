//! Live update: a server is replaced by one from another program file, and connections survive.
//!
//! The newcomer is started beside the old server and examines what it would take over: the protocol and the arena. Only
//! when it has agreed is the old server told to end; what follows is a rebirth like any other, without the time to
//! start a program. A newcomer that dies before that, or does not answer, has changed nothing. One that dies within its
//! first second is replaced by the old program, which finds its state in the arena.

use super::children;
use super::member::{Life, Member};
use super::process::Spawned;
use super::say::say;
use super::{Supervisor, Watched};
use crate::error::error;
use crate::protocol::{FromServer, ToServer, encode};
use crate::{Error, Result, life, memory, scm};
use eft_base::Instant;
use eft_control::plan;
use eft_host::clock;
use serde_json::json;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// How long a newcomer may take to examine what it gets, or to become ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// After this time a newcomer is examined as if it was urgent: where programs compute on every CPU it would never be its turn.
const LEISURE: Duration = Duration::from_millis(200);
/// How long the old server may take to end.
const END: Duration = Duration::from_secs(1);
/// How long the newcomer must live to prove itself.
const PROBATION: Duration = Duration::from_secs(1);
/// A component whose arena could not be converted back is started again after this time.
pub const REVERT: Duration = Duration::from_secs(10);

/// An update in progress.
pub struct Update {
    member: usize,
    client: u64,
    program: Arc<OwnedFd>,
    stage: Stage,
    /// The old program's arena, once the newcomer has converted it.
    unconverted: Option<OwnedFd>,
    /// The stage must end by this time.
    until: Instant,
}

enum Stage {
    /// The newcomer examines the protocol and the arena.
    Examining(Spawned),
    /// The old server was told to end.
    Ending {
        newcomer: Spawned,
        told_at: Instant,
    },
    /// The newcomer is the server. `previous` is the program to which a failure returns.
    Starting {
        previous: Option<Arc<OwnedFd>>,
        told_at: Instant,
    },
    Probation {
        previous: Option<Arc<OwnedFd>>,
        pause: Duration,
    },
    /// The newcomer had converted the arena and failed: its program converts that arena back into one that the old
    /// program can read. `like` is the old program's arena.
    Reverting {
        helper: Spawned,
        to: OwnedFd,
        like: OwnedFd,
    },
}

impl Supervisor {
    /// An operator's `eft update`. The answer comes when the newcomer has proven itself, or is refused.
    pub(super) fn operator_updates(
        &mut self,
        client: u64,
        component: &str,
        program: Option<OwnedFd>,
    ) -> Result<()> {
        let i = self.find(component)?;
        let program = program.ok_or_else(|| error!(Invalid, "an update needs the program's descriptor"))?;
        if self.regroup.is_some() {
            return Err(error!(
                Busy,
                "components are being put into other processes: wait until that is done"
            ));
        }
        if let Some(update) = &self.update {
            return Err(error!(
                Busy,
                "{} is being updated: wait until that is done", self.members[update.member].name
            ));
        }
        if self.company(i).len() > 1 {
            return Err(error!(
                Refused,
                "{} share a process, and cannot be updated yet",
                self.company_name(i)
            ));
        }
        if self.members[i].life != Life::Running {
            return Err(error!(Busy, "{component} is not running at the moment: try again"));
        }
        self.examine(i, client, program)
    }

    fn examine(&mut self, i: usize, client: u64, program: OwnedFd) -> Result<()> {
        let program = Arc::new(children::above_control(program)?);
        let newcomer = self.spawn(i, Some(&program), true)?;
        self.watch(&newcomer.controls[0], Watched::Newcomer)?;
        let question = encode(&ToServer::Examine(self.identity(i)?));
        let shown = self.members[i].arena.as_ref().map(memory::read_only).transpose()?;
        let fds: Vec<_> = shown.iter().map(|fd| fd.as_fd()).collect();
        // A newcomer that has already died does not get it; its death is noticed when it is reaped.
        let _ = scm::send(&newcomer.controls[0], &question, &fds, true);
        let until = clock::now() + PATIENCE;
        let stage = Stage::Examining(newcomer);
        self.update = Some(Update { member: i, client, program, stage, unconverted: None, until });
        Ok(())
    }

    /// Handles the newcomer's answer to the examination.
    pub(super) fn newcomer_speaks(&mut self) {
        let Some(Update { stage, .. }) = &self.update else { return };
        let (Stage::Examining(spawned) | Stage::Reverting { helper: spawned, .. }) = stage else { return };
        let Ok(control) = spawned.controls[0].try_clone() else { return };
        let mut buffer = [0; 4096];
        match scm::receive(&control, &mut buffer, true) {
            Ok((n @ 1.., _)) => {
                if let Ok(FromServer::Suits { arena_len }) = postcard::from_bytes(&buffer[..n]) {
                    self.newcomer_agrees(arena_len);
                }
            }
            Err(rustix::io::Errno::AGAIN) => {}
            // Its end tells why.
            _ => self.unwatch(&control, Watched::Newcomer),
        }
    }

    fn newcomer_agrees(&mut self, arena_len: usize) {
        match self.update.as_ref().map(|update| &update.stage) {
            Some(Stage::Examining(_)) => self.end_predecessor(arena_len),
            Some(Stage::Reverting { .. }) => self.reverted(true),
            _ => {}
        }
    }

    fn end_predecessor(&mut self, arena_len: usize) {
        let Some(Update { member, client, program, stage: Stage::Examining(mut newcomer), .. }) =
            self.update.take()
        else {
            return;
        };
        self.unwatch(&newcomer.controls[0], Watched::Newcomer);
        match self.spare(member, arena_len) {
            Ok(spare) => self.members[member].spare = spare,
            Err(why) => {
                // It is a child that has not been reaped, so no other process can have its number.
                let _ = newcomer.child.kill();
                let _ = newcomer.child.wait();
                return self.refuse_update(member, client, &why.to_string());
            }
        }
        self.keep_newcomer(member, newcomer.child.id());
        let told_at = clock::now();
        self.tell_index(member, &ToServer::Stop, &[]);
        let stage = Stage::Ending { newcomer, told_at };
        let until = told_at + END;
        self.update = Some(Update { member, client, program, stage, unconverted: None, until });
    }

    /// Makes an arena to convert into, if the program needs one. While it is untouched it takes no memory.
    fn spare(&self, member: usize, len: usize) -> Result<Option<OwnedFd>> {
        let Member { name, arena, .. } = &self.members[member];
        let now = arena.as_ref().map_or(Ok(0), memory::len)?;
        match len {
            0 => Ok(None),
            len if plan::may_grow(now, len) => memory::create(&format!("eft-arena-{name}"), len).map(Some),
            len => Err(Error::Refused(format!(
                "the new program wants {len} bytes for its state, which has {now}"
            ))),
        }
    }

    /// Whether a newcomer, of which the keeper knows, takes this one's place as soon as it has ended.
    pub(super) fn is_awaited(&self, i: usize) -> bool {
        let awaited = |update: &Update| matches!(update.stage, Stage::Ending { .. });
        self.update.as_ref().is_some_and(|update| update.member == i && awaited(update))
    }

    /// Whether a newcomer is about to take this one's place, or has just taken it.
    pub(super) fn is_updated(&self, i: usize) -> bool {
        self.update.as_ref().is_some_and(|update| update.member == i)
    }

    /// The old server has ended, and the newcomer takes its place. False: this server is not being replaced.
    pub(super) fn replaces(&mut self, i: usize) -> bool {
        match &self.update {
            Some(Update { member, stage: Stage::Ending { .. }, .. }) if *member == i => {}
            _ => return false,
        }
        let Some(Update { client, program, stage: Stage::Ending { newcomer, told_at }, .. }) =
            self.update.take()
        else {
            return false;
        };
        self.detach(i);
        let previous = self.members[i].program.replace(program.clone());
        let stage = Stage::Starting { previous, told_at };
        let until = clock::now() + PATIENCE;
        self.update = Some(Update { member: i, client, program, stage, unconverted: None, until });
        life::wake_elsewhere(newcomer.child.id());
        if let Err(why) = self.raise(i, newcomer) {
            say!("eft {}: {} cannot be updated: {why}", self.config.name, self.members[i].name);
            // The death that follows is handled like any other.
            self.members[i].kill();
        }
        true
    }

    /// The newcomer serves.
    pub(super) fn newcomer_is_up(&mut self, i: usize) {
        let now = clock::now();
        if let Some(update) = self.update.as_mut().filter(|update| update.member == i)
            && let Stage::Starting { previous, told_at } = &mut update.stage
        {
            let pause = now.saturating_since(*told_at);
            update.stage = Stage::Probation { previous: previous.take(), pause };
            update.until = now + PROBATION;
        }
    }

    /// A server died. True if it was a newcomer that had not proven itself: then the old program is started again.
    pub(super) fn falls_back(&mut self, i: usize, how: &str) -> bool {
        let mine = |update: &Update| {
            update.member == i && matches!(update.stage, Stage::Starting { .. } | Stage::Probation { .. })
        };
        let Some(update) = self.update.take_if(|update| mine(update)) else { return false };
        let Update { client, program, stage, unconverted, .. } = update;
        if let Stage::Starting { previous, .. } | Stage::Probation { previous, .. } = stage {
            self.members[i].program = previous;
        }
        let words = last_line(&self.members[i].last_words);
        self.refuse_update(i, client, &format!("the new program ended too soon ({how}{words})"));
        if let Some(like) = unconverted
            && let Err(why) = self.revert(i, program, like)
        {
            say!("eft {}: {}: {why}", self.config.name, self.members[i].name);
        }
        true
    }

    /// Starts the new program to convert its arena into one that the old program can read.
    fn revert(&mut self, i: usize, program: Arc<OwnedFd>, like: OwnedFd) -> Result<()> {
        let (name, shown) = (self.members[i].name.clone(), memory::read_only(&like)?);
        let Some(ours) = self.members[i].arena.as_ref().map(memory::read_only).transpose()? else {
            return Ok(());
        };
        let to = memory::create(&format!("eft-arena-{name}"), memory::len(&like)?)?;
        let helper = children::spawn(&self.config.name, &[&name], Some(&program), None, false)?;
        self.watch(&helper.controls[0], Watched::Newcomer)?;
        let request = encode(&ToServer::Revert(self.identity(i)?));
        // A helper that has already died does not get it; its death is noticed when it is reaped.
        let _ = scm::send(&helper.controls[0], &request, &[ours.as_fd(), shown.as_fd(), to.as_fd()], true);
        let (stage, until) = (Stage::Reverting { helper, to, like }, clock::now() + PATIENCE);
        self.update = Some(Update { member: i, client: 0, program, stage, unconverted: None, until });
        Ok(())
    }

    /// Whether a dead server waits until its arena is converted back.
    pub(super) fn reverts(&self, i: usize) -> bool {
        let reverting = |update: &Update| matches!(update.stage, Stage::Reverting { .. });
        self.update.as_ref().is_some_and(|update| update.member == i && reverting(update))
    }

    /// Starts the old program again, from the arena that was made for it, or at worst from its own old one: then a
    /// connection that has changed meanwhile is lost.
    fn reverted(&mut self, done: bool) {
        let Some(Update { member: i, stage: Stage::Reverting { mut helper, to, like }, .. }) =
            self.update.take()
        else {
            return;
        };
        self.unwatch(&helper.controls[0], Watched::Newcomer);
        // It has done its work, or is dead.
        let _ = helper.child.kill();
        let _ = helper.child.wait();
        if !done {
            let name = &self.members[i].name;
            say!("eft {}: {name}: its state cannot be taken back: it is as it was", self.config.name);
        }
        self.members[i].arena = Some(if done { to } else { like });
        self.restart(i);
        self.show_member(i);
    }

    /// The server converted its arena: the old one is kept until the server has proven itself.
    pub(super) fn newcomer_converted(&mut self, i: usize, old: Option<OwnedFd>) {
        if let Some(update) = self.update.as_mut().filter(|update| update.member == i) {
            update.unconverted = old;
        }
    }

    fn refuse_update(&mut self, i: usize, client: u64, why: &str) {
        let error = format!("{} is not updated, and runs on as before: {why}", self.members[i].name);
        say!("eft {}: {error}", self.config.name);
        self.answer_client(client, &json!({ "error": error }), &[]);
    }

    /// A child ended that is not a server: a newcomer that died before it took over.
    pub(super) fn reap_newcomer(&mut self) {
        let Some(Update { stage, .. }) = &mut self.update else { return };
        let (Stage::Examining(newcomer)
        | Stage::Ending { newcomer, .. }
        | Stage::Reverting { helper: newcomer, .. }) = stage
        else {
            return;
        };
        let Ok(Some(status)) = newcomer.child.try_wait() else { return };
        let mut words = String::new();
        if let Some(stderr) = &mut newcomer.stderr {
            let _ = stderr.take(4096).read_to_string(&mut words);
        }
        let how = children::how(status);
        if matches!(stage, Stage::Reverting { .. }) {
            // What it sent before its end may not have been read yet.
            self.newcomer_speaks();
            return self.reverted(false);
        }
        let Some(Update { member, client, stage, .. }) = self.update.take() else { return };
        match stage {
            Stage::Examining(newcomer) => self.unwatch(&newcomer.controls[0], Watched::Newcomer),
            // The old server was told to end: it is reborn from its own program.
            _ => self.members[member].spare = None,
        }
        self.refuse_update(member, client, &format!("the new program ended ({how}{})", last_line(&words)));
    }

    /// Ends a stage whose time is over.
    pub(super) fn check_update(&mut self, now: Instant) {
        if let Some(Update { stage: Stage::Examining(newcomer), until, .. }) = &self.update
            && now + PATIENCE >= *until + LEISURE
        {
            life::step_forward(newcomer.child.id());
        }
        let Some(update) = self.update.as_mut().filter(|update| now >= update.until) else { return };
        let i = update.member;
        match &mut update.stage {
            // The death that follows is handled by `reap_newcomer`.
            Stage::Examining(newcomer) | Stage::Reverting { helper: newcomer, .. } => {
                drop(newcomer.child.kill());
            }
            Stage::Ending { .. } | Stage::Starting { .. } => self.members[i].kill(),
            Stage::Probation { pause, .. } => {
                let (client, pause) = (update.client, pause.as_secs_f64() * 1000.0);
                self.update = None;
                let member = &self.members[i];
                let answer =
                    json!({ "updated": member.name, "generation": member.generation, "pause_ms": pause });
                self.answer_client(client, &answer, &[]);
            }
        }
    }
}

/// The last line that a program wrote, for an operator.
fn last_line(words: &str) -> String {
    words.lines().rfind(|line| !line.trim().is_empty()).map_or_else(String::new, |line| format!(": {line}"))
}
