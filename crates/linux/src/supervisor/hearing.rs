//! Hears what servers say; nothing that sockets says of programs' descriptors is lost, whoever dies meanwhile.
//!
//! A far end is in sockets and in the message about it alone until the supervisor has given it to the keeper. If the message was
//! lost, the program's socket would never be heard of again. So a message of sockets stays in its control socket until it is
//! handled: a supervisor that dies over it leaves it to its successor, to which it is no harm that it comes twice. And what a
//! dead sockets had still said is heard.

use super::Supervisor;
use crate::protocol::{FromServer, PACKET_MAX};
use crate::scm;
use eft_messages::ComponentId;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// What follows from the message lies with the keeper, or no supervisor needs to know.
fn is_lasting(message: &FromServer) -> bool {
    match message {
        FromServer::Keep { .. } | FromServer::Drop { .. } | FromServer::KeepLoopback { .. } => true,
        FromServer::KeepConnection { .. } | FromServer::DropConnection { .. } => true,
        FromServer::CloseDomain { .. } => true,
        // A program that waits for a domain asks sockets' successor again.
        FromServer::NewDomain { .. } => false,
        FromServer::Ready { .. }
        | FromServer::Suits { .. }
        | FromServer::Converted
        | FromServer::Placed { .. }
        | FromServer::Arrange { .. }
        | FromServer::Remember { .. }
        | FromServer::Answer { .. }
        | FromServer::HasDomain { .. }
        | FromServer::Dying { .. }
        | FromServer::Accuse { .. } => false,
    }
}

impl Supervisor {
    pub(super) fn server_speaks(&mut self, i: usize) {
        let mut buffer = vec![0; PACKET_MAX];
        for _ in 0..64 {
            let Some(control) = &self.members[i].control else { return };
            // What is taken here is lost if this process dies before it is done.
            self.turn.begin();
            let looks = self.members[i].peer == ComponentId::SOCKETS;
            let packet = if looks {
                scm::peek_with_sender(control, &mut buffer).map(|(n, fds, _)| (n, fds))
            } else {
                scm::receive(control, &mut buffer, true)
            };
            let (n, fds) = match packet {
                Ok((0, _)) => return self.fell_silent(i),
                Err(Errno::AGAIN) => return,
                Ok(packet) => packet,
                Err(_) => return,
            };
            // A server that went mad may send anything; what does not decode is ignored.
            if let Ok(message) = postcard::from_bytes::<FromServer>(&buffer[..n]) {
                self.heard(i, message, fds);
            }
            if let Some(control) = self.members[i].control.as_ref().filter(|_| looks) {
                let _ = scm::take_out(control);
            }
        }
    }

    /// Handles what a dead sockets had still said.
    pub(super) fn hear_the_rest(&mut self, control: &OwnedFd) {
        let mut buffer = vec![0; PACKET_MAX];
        while let Ok((n @ 1.., fds)) = scm::receive(control, &mut buffer, true) {
            match postcard::from_bytes::<FromServer>(&buffer[..n]) {
                Ok(message) if is_lasting(&message) => self.heard_of_applications(message, fds),
                _ => {}
            }
        }
    }
}
