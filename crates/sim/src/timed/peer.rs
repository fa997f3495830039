//! The machine at the other end: a stack whose turns take no time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use eft_base::wire::TCP_SYN;
use eft_base::{Instant, SocketId};
use eft_messages::ComponentId;

use super::charge::NIC;
use super::frame::{flags, tcp_at};
use super::programs::content;
use crate::device::{End, WireFrame};
use crate::stack::Stack;

pub struct Peer {
    pub stack: Stack,
    end: Rc<RefCell<End>>,
    arrived: VecDeque<WireFrame>,
    sockets: Vec<SocketId>,
    /// Bytes that it offers at most, and the scale in which it says so.
    window: u64,
    scale: u8,
    /// Its programs compare what they read, and count the bytes that are others than were written.
    pub compares: bool,
    pub wrong_bytes: u64,
}

/// Messages of a turn.
const BUDGET: usize = 64;

impl Peer {
    pub fn new(
        stack: Stack,
        end: Rc<RefCell<End>>,
        sockets: Vec<SocketId>,
        (window, scale): (u64, u8),
    ) -> Self {
        Self { stack, end, arrived: VecDeque::new(), sockets, window, scale, compares: false, wrong_bytes: 0 }
    }

    /// The peer's buffer is so large that its window never shrinks, like Linux's growing buffer; the payload's checksum
    /// is not verified.
    fn offer(&self, frame: &mut WireFrame) {
        let tcp_at = tcp_at(frame);
        // The window of a SYN is never scaled.
        let scale = if flags(frame) & TCP_SYN == 0 { self.scale } else { 0 };
        if let Some(field) = frame.bytes.get_mut(tcp_at + 14..tcp_at + 16) {
            let most = (self.window >> scale).min(65_535) as u16;
            field.copy_from_slice(&most.to_be_bytes());
        }
        frame.checksum_ok = true;
    }

    pub fn arrive(&mut self, frame: WireFrame) {
        self.arrived.push_back(frame);
    }

    /// The peer's interrupt: what has arrived is there for its next turn, and not before, whatever else it has to do.
    pub fn gather(&mut self) {
        self.end.borrow_mut().incoming.append(&mut self.arrived);
    }

    /// Takes all received frames, and returns the frames sent in response.
    pub fn run(&mut self, now: Instant) -> VecDeque<WireFrame> {
        let mut sent = VecDeque::new();
        self.begin();
        loop {
            let worked = self.turns(now, &mut sent);
            self.stack.effects.clear();
            if !self.read() && !worked {
                return sent;
            }
        }
    }

    /// The device may have frames.
    pub fn begin(&mut self) {
        self.stack.wake(NIC);
    }

    /// One turn of every server that has something to do, with the frames sent. False: nobody had.
    pub fn turns(&mut self, now: Instant, sent: &mut VecDeque<WireFrame>) -> bool {
        let ready: Vec<ComponentId> = self.stack.runnable(now).collect();
        for peer in &ready {
            self.stack.step(now, *peer, BUDGET);
            let frames = std::mem::take(&mut self.end.borrow_mut().outgoing);
            sent.extend(frames.into_iter().map(|mut frame| {
                self.offer(&mut frame);
                frame
            }));
        }
        !ready.is_empty()
    }

    /// Programs read all that has arrived. True if tcp must be notified.
    fn read(&mut self) -> bool {
        let mut marked = false;
        for socket in &self.sockets {
            let Some(page) = self.stack.domain.socket(socket.slot) else { continue };
            let count = page.receivable() as u64;
            if count == 0 {
                continue;
            }
            let taken = page.receive_taken() + count;
            if self.compares {
                let (mut bytes, due) = (vec![0; count as usize], content(page.receive_taken()..taken));
                page.read_receive(page.receive_taken(), &mut bytes);
                self.wrong_bytes += bytes.iter().zip(&due).filter(|(one, other)| one != other).count() as u64;
            }
            page.set_receive_taken(taken);
            if taken >= page.receive_notify() {
                self.stack.domain.dirty(ComponentId::TCP).mark(socket.slot as usize);
                marked = true;
            }
        }
        if marked {
            self.stack.wake(ComponentId::TCP);
        }
        marked
    }

    /// Bytes that its programs have read.
    pub fn read_bytes(&self) -> u64 {
        let pages = self.sockets.iter().filter_map(|socket| self.stack.domain.socket(socket.slot));
        pages.map(|page| page.receive_taken()).sum()
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.stack.deadline()
    }
}
