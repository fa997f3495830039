//! How a stack ends, or is handed over to the next supervisor of its name.

use super::member::{Life, Member};
use super::say::say;
use super::{Supervisor, children, scheduling};
use crate::devices::packet::Silencer;
use crate::operator;
use crate::protocol::{ToServer, farewell};
use eft_host::clock;
use eft_messages::Role;
use std::time::Duration;

/// How long the end of a stack waits until others were told of it.
const FAREWELL: Duration = Duration::from_millis(100);
/// How long a handover waits until the servers have handled what has arrived.
const DRAIN: Duration = Duration::from_millis(20);

/// How the stack ends here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With everything that it holds.
    Whole,
    /// The servers and the supervisor end; what they held waits in the keeper for another `eft up` of this name.
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

    /// Others are told that the stack ends: its peers, and who has lent it something.
    fn take_leave(&mut self) {
        self.release_leases();
        let all = self.config.topology.transports().into_iter().filter(|id| id.role == Role::Tcp);
        let all = all.filter_map(|id| self.index(id));
        let told: Vec<(usize, u64)> = all.map(|i| (i, self.members[i].status.heartbeat())).collect();
        told.iter().for_each(|(tcp, _)| self.tell_index(*tcp, &farewell(), &[]));
        let until = clock::now() + FAREWELL;
        let mut quiet = 0;
        while quiet < 3 && clock::now() < until && !told.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
            let has_heard = told.iter().all(|(tcp, turn)| {
                let tcp = &self.members[*tcp];
                tcp.life != Life::Running || tcp.status.heartbeat() != *turn
            });
            quiet = if has_heard && self.members.iter().all(Member::is_quiet) { quiet + 1 } else { 0 };
        }
    }

    /// Lets packets that have arrived reach their programs; otherwise their senders would have to detect the loss. The
    /// nics end first, and the drain is over when the other servers have nothing left to do.
    fn drain(&mut self) {
        for i in 0..self.members.len() {
            if self.members[i].peer.role == Role::Nic {
                // It ends alone, even if it shares its process.
                self.tell_index(i, &ToServer::Stop, &[]);
            }
        }
        let until = clock::now() + DRAIN;
        let mut quiet = 0;
        while quiet < 2 && clock::now() < until {
            std::thread::sleep(Duration::from_micros(500));
            for dead in children::ended(&mut self.members) {
                children::bury(&dead.process);
            }
            quiet = if self.members.iter().all(Member::is_quiet) { quiet + 1 } else { 0 };
        }
    }

    /// Ends every server and leaves what they held with the keeper, where connections wait.
    pub(super) fn hand_over(&mut self) {
        self.settle();
        let Some(mut kept) = self.kept.take() else {
            say!("eft {}: there is no keeper to hand over to: connections end", self.config.name);
            return self.shut_down();
        };
        self.drain();
        self.end_servers();
        kept.forget(super::changes::CHANGES.into());
        // The changes were undone.
        kept.forget_stored(scheduling::APPLIED);
        self.silencers.drain(..).for_each(Silencer::leave);
        // This comes before the successor is let in, because the path would then belong to its socket.
        let _ = std::fs::remove_file(operator::control_path(&self.config.name));
        kept.leave();
    }

    /// Ends every server, undoes the changes to the host, removes the sockets.
    pub(super) fn shut_down(&mut self) {
        self.take_leave();
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
            // The folder of all stacks stays: a private stack has a file system of its own mounted on it, which the kernel takes
            // away with the folder (`rootless/folder.rs`).
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
