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
    /// The kernel sockets on the loopback that belong to it; the second one beside a listener of both IP versions.
    pub shadows: [Option<OwnedFd>; 2],
    bound: Option<Reply>,
    listens: Option<Reply>,
    connected: Option<Reply>,
    /// It has its slot at a new stack, but is not yet bound, listening or connected there.
    due: bool,
}

impl Kept {
    pub fn new(incarnation: u32, far: OwnedFd, note: &Reply) -> Kept {
        let (bound, listens, connected) = (None, None, None);
        let mut kept =
            Kept { incarnation, far, shadows: [None, None], bound, listens, connected, due: false };
        kept.note(note, None);
        kept
    }

    /// Records a request that the stack granted to the socket's program.
    pub fn note(&mut self, note: &Reply, fd: Option<OwnedFd>) {
        match note.value as u32 {
            op::BIND => self.bound = Some(*note),
            op::LISTEN => {
                self.listens = Some(*note);
                self.keep_shadow(0, fd);
            }
            op::SHADOW => self.keep_shadow((note.args[0] == 1).into(), fd),
            op::CONNECT if IpAddr::from(note.address).is_unspecified() => self.connected = None,
            op::CONNECT => self.connected = Some(*note),
            _ => {}
        }
    }

    fn keep_shadow(&mut self, which: usize, fd: Option<OwnedFd>) {
        self.shadows[which] = fd.or(self.shadows[which].take());
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
        for (request, shadow) in self.requests(slot) {
            let with: Vec<&OwnedFd> =
                shadow.and_then(|which| self.shadows[which].as_ref()).into_iter().collect();
            match link.ask(request, &with)? {
                0 => {}
                EEXIST if request.op == op::SHADOW => {}
                _ => return Ok(()),
            }
        }
        self.due = false;
        Ok(())
    }

    /// The requests in their order, and which shadow's descriptor goes along.
    fn requests(&self, slot: u32) -> Vec<(Request, Option<usize>)> {
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
            (Some(bound), _) => requests.push((request(op::BIND, bound), None)),
            // The connect has bound the socket to a port.
            (None, Some(connected)) => {
                let (address, port) = (IpAddr::from([0; 4]).into(), connected.args[1] as u16);
                requests.push((Request { op: op::BIND, slot, address, port, ..Request::default() }, None));
            }
            (None, None) => {}
        }
        if let Some(listens) = &self.listens {
            let mut listen = request(op::LISTEN, listens);
            listen.args[1] = self.bound.as_ref().map_or(0, |bound| bound.args[0]);
            requests.push((listen, Some(0)));
        }
        for which in (0..2).filter(|&which| self.shadows[which].is_some()) {
            // A listener's first one went along.
            if which == 1 || self.listens.is_none() {
                let args = [which as u32, 0, 0, 0];
                requests.push((Request { op: op::SHADOW, slot, args, ..Request::default() }, Some(which)));
            }
        }
        if let Some(connected) = &self.connected {
            requests.push((request(op::CONNECT, connected), None));
        }
        requests
    }
}
