//! Servers that accuse their neighbours: decides which of the two is replaced.

use super::Supervisor;
use super::member::Life;
use super::process;
use super::say::say;
use crate::serve::inspect_queue;
use crate::{Result, memory};
use eft_control::accusation::{Evidence, Verdict};
use eft_host::clock;
use eft_messages::ComponentId;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// One direction of an edge. It is mapped only while an accusation is judged.
pub struct Queue {
    pub writer: ComponentId,
    pub reader: ComponentId,
    pub lines: Rc<OwnedFd>,
    pub position: Rc<OwnedFd>,
}

impl Supervisor {
    /// Keeps a new queue in place of the old one.
    pub(super) fn keep_queue(&mut self, queue: Queue) {
        self.queues.retain(|q| (q.writer, q.reader) != (queue.writer, queue.reader));
        self.kept.iter_mut().for_each(|kept| queue.keep(kept));
        self.queues.push(queue);
    }

    /// `queue`: the one that the accuser reads, if it says which; `None` if it is not in use any more.
    fn evidence(
        &self,
        accuser: ComponentId,
        accused: ComponentId,
        queue: Option<u64>,
    ) -> Result<Option<Evidence>> {
        let find = |writer, reader| self.queues.iter().find(|q| (q.writer, q.reader) == (writer, reader));
        let (Some(written), Some(read)) = (find(accused, accuser), find(accuser, accused)) else {
            return Ok(None);
        };
        if let Some(meant) = queue
            && memory::number(&*written.lines)? != meant
        {
            return Ok(None);
        }
        let inspect =
            |q: &Queue| inspect_queue(&memory::map(&*q.lines, false)?, &memory::map(&*q.position, false)?);
        Ok(Some(Evidence { accuser, accused, written: inspect(written)?, read: inspect(read)? }))
    }

    /// A server accuses a neighbour of damaging messages in a queue. It is believed if the queues show it.
    pub(super) fn accused(&mut self, by: usize, peer: ComponentId, queue: Option<u64>) {
        let Some(i) = self.index(peer).filter(|i| self.members[*i].life == Life::Running) else { return };
        let evidence = match self.evidence(self.members[by].peer, peer, queue) {
            Ok(Some(evidence)) => evidence,
            // There is no such edge, or no memory to map it: the server will repeat the accusation. Or it means a predecessor,
            // which has been replaced meanwhile.
            Ok(None) | Err(_) => return,
        };
        let (accuser, accused) = (self.members[by].name.clone(), self.members[i].name.clone());
        let (guilty, verdict) = match self.members[by].credit.judge(clock::now(), &evidence) {
            Verdict::Accused => (Some(i), format!("killing {accused}")),
            Verdict::Accuser => (Some(by), format!("the accusation is false; killing {accuser}")),
            Verdict::Neither => (None, "the queues do not show it".into()),
        };
        say!("eft {}: {accuser} says that {accused} sends nonsense; {verdict}", self.config.name);
        if let Some(guilty) = guilty {
            self.members[guilty].kill();
        }
    }

    /// A server has found that its code was changed. A debugger changes it, too, where it stops the server.
    pub(super) fn altered(&mut self, i: usize) {
        let what = match self.members[i].pid() {
            Some(pid) if !process::is_traced(pid) => "killing it",
            _ => "a debugger may have done that",
        };
        say!("eft {}: the code of {} has changed in memory; {what}", self.config.name, self.company_name(i));
        if what == "killing it" {
            self.members[i].kill();
        }
    }
}
