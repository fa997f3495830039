//! One socket that can be made anew at another stack, and what its program asked for.

use super::link::{Link, Lost};
use eft_base::errno::EEXIST;
use eft_channel::socket::SocketPage;
use eft_messages::control::{Reply, Request, op};
use std::net::IpAddr;
use std::os::fd::OwnedFd;

pub struct Kept {
    pub incarnation: u32,
    pub far: OwnedFd,
    /// The kernel socket on the loopback that belongs to it.
    pub shadow: Option<OwnedFd>,
    bound: Option<Reply>,
    listens: Option<Reply>,
    connected: Option<Reply>,
    /// It has its slot at a new stack, but is not yet bound, listening or connected there.
    due: bool,
}

impl Kept {
    pub fn new(incarnation: u32, far: OwnedFd, note: &Reply) -> Kept {
        let (shadow, bound, listens, connected) = (None, None, None, None);
        let mut kept = Kept { incarnation, far, shadow, bound, listens, connected, due: false };
        kept.note(note, None);
        kept
    }

    /// Records a request that the stack granted to the socket's program.
    pub fn note(&mut self, note: &Reply, fd: Option<OwnedFd>) {
        match note.value as u32 {
            op::BIND => self.bound = Some(*note),
            op::LISTEN => {
                self.listens = Some(*note);
                self.shadow = fd.or(self.shadow.take());
            }
            op::SHADOW => self.shadow = fd.or(self.shadow.take()),
            op::CONNECT if IpAddr::from(note.address).is_unspecified() => self.connected = None,
            op::CONNECT => self.connected = Some(*note),
            _ => {}
        }
    }

    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Asks for the socket's slot. If the stack refuses, the socket stays as silent as without a stack.
    pub fn restore(&mut self, link: &mut Link, slot: u32, page: &SocketPage) -> Result<(), Lost> {
        let args = [self.incarnation, 0, 0, 0];
        let request = Request { op: op::RESTORE, slot, value: page.inode(), args, ..Request::default() };
        self.due = link.ask(request, &[&self.far])? == 0;
        Ok(())
    }

    /// Repeats what the program asked for. If the stack refuses one request, the next call begins again with the first.
    pub fn settle(&mut self, link: &mut Link, slot: u32) -> Result<(), Lost> {
        if !self.due {
            return Ok(());
        }
        for (request, with_shadow) in self.requests(slot) {
            let with: Vec<&OwnedFd> = self.shadow.iter().filter(|_| with_shadow).collect();
            match link.ask(request, &with)? {
                0 => {}
                EEXIST if request.op == op::SHADOW => {}
                _ => return Ok(()),
            }
        }
        self.due = false;
        Ok(())
    }

    /// The requests in their order, and whether the shadow's descriptor goes along.
    fn requests(&self, slot: u32) -> Vec<(Request, bool)> {
        let request = |op, note: &Reply| Request {
            op,
            slot,
            address: note.address,
            port: note.port,
            args: [note.args[0], 0, 0, 0],
            ..Request::default()
        };
        let mut requests = Vec::new();
        match (&self.bound, &self.connected) {
            (Some(bound), _) => requests.push((request(op::BIND, bound), false)),
            // The connect has bound the socket to a port.
            (None, Some(connected)) => {
                let (address, port) = (IpAddr::from([0; 4]).into(), connected.args[1] as u16);
                requests.push((Request { op: op::BIND, slot, address, port, ..Request::default() }, false));
            }
            (None, None) => {}
        }
        if let Some(listens) = &self.listens {
            requests.push((request(op::LISTEN, listens), true));
        } else if self.shadow.is_some() {
            requests.push((Request { op: op::SHADOW, slot, ..Request::default() }, true));
        }
        if let Some(connected) = &self.connected {
            requests.push((request(op::CONNECT, connected), false));
        }
        requests
    }
}
