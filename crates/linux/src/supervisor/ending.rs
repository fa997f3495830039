//! How a stack ends, or is handed over to the next supervisor of its name.

use super::member::Member;
use super::{Supervisor, children, scheduling};
use crate::devices::packet::Silencer;
use crate::operator;
use crate::protocol::ToServer;
use eft_host::clock;
use eft_messages::Role;
use std::time::Duration;

/// How long a handover waits for what has arrived to be worked off.
const DRAIN: Duration = Duration::from_millis(20);

/// How the stack ends here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With everything that it holds.
    Whole,
    /// Its servers and we end; what they held waits at the keeper's for another `eft up` of this name.
    HandOver,
}

impl Supervisor {
    fn end_servers(&mut self) {
        for i in 0..self.members.len() {
            self.tell_index(i, &ToServer::Stop, &[]);
        }
        self.end_standbys();
        children::end_all(&mut self.members);
        self.undo_for_cores();
    }

    /// Lets what has arrived get to its program, or its sender would have to find out that it is missing: the nics end first,
    /// and it is done when the others have nothing to do any more.
    fn drain(&mut self) {
        for i in 0..self.members.len() {
            if self.members[i].peer.role == Role::Nic {
                // Of several in a process it ends alone.
                self.tell_index(i, &ToServer::Stop, &[]);
            }
        }
        let until = clock::now() + DRAIN;
        let mut quiet = 0;
        while quiet < 2 && clock::now() < until {
            std::thread::sleep(Duration::from_micros(500));
            children::reap(&mut self.members);
            quiet = if self.members.iter().all(Member::is_quiet) { quiet + 1 } else { 0 };
        }
    }

    /// Ends every server, and leaves what they had with the keeper: connections wait there.
    pub(super) fn hand_over(&mut self) {
        let Some(mut kept) = self.kept.take() else {
            eprintln!("eft {}: there is no keeper to hand over to: connections end", self.config.name);
            return self.shut_down();
        };
        self.drain();
        self.end_servers();
        // It was undone.
        kept.forget_stored(scheduling::APPLIED);
        self.silencers.drain(..).for_each(Silencer::leave);
        // Before the successor is let in, whose socket it would be.
        let _ = std::fs::remove_file(operator::control_path(&self.config.name));
        kept.leave();
    }

    /// Ends every server, undoes what was changed on the host, removes the sockets.
    pub(super) fn shut_down(&mut self) {
        self.end_servers();
        self.silencers.clear();
        if let Some(kept) = self.kept.take() {
            kept.end();
        }
        let dir = operator::stack_dir(&self.config.name);
        if self.members.iter().any(|m| m.restarts.is_hopeless()) {
            // The last word names the crash reports: they stay until a stack of this name starts.
            let _ = std::fs::remove_file(operator::control_path(&self.config.name));
            let _ = std::fs::remove_file(operator::applications_path(&self.config.name));
            let _ = std::fs::remove_file(operator::keeper_path(&self.config.name));
        } else {
            let _ = std::fs::remove_dir_all(dir);
            let _ = std::fs::remove_dir(operator::run_dir());
        }
    }
}
