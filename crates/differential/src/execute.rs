//! Runs a program: the application's calls by the system calls of the process that this runs in, the peer on a wire.
//!
//! Nothing is compared that depends on time. On the kernel a step is over when nothing comes any more; on eft when what is
//! observed equals what the kernel showed but for known differences, and else after [`PATIENCE`].

use crate::calls::{self, Outcome};
use crate::known::judged;
use crate::observation::Observation;
use crate::peer::{Peer, Place};
use crate::program::{Call, Kind, Program, SLOTS, Step};
use core::ffi::c_int;
use eft_packetdrill::wire::Wire;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a difference must last to be one.
const PATIENCE: Duration = Duration::from_millis(400);
/// The same where acknowledgments may be delayed: RFC 9293 §3.8.6.3 allows 500 ms.
const LONG_PATIENCE: Duration = Duration::from_millis(1000);
/// How long nothing comes from the kernel when it has done all.
const QUIET: Duration = Duration::from_millis(4);
/// More than the kernel delays an acknowledgment.
const DELAYED: Duration = Duration::from_millis(250);
/// What eft may take although what is observed is equal already: it was before.
const AT_LEAST: Duration = Duration::from_millis(2);

#[derive(Clone, Copy)]
struct Socket {
    fd: c_int,
    kind: Kind,
}

/// A call that has not returned.
struct Waiting {
    call: Call,
    kind: Kind,
    thread: c_int,
    outcome: Receiver<Outcome>,
}

pub struct Executor<'a> {
    peer: Peer<'a>,
    place: Place,
    v6: bool,
    sockets: [Option<Socket>; SLOTS],
    waiting: [Option<Waiting>; SLOTS],
    /// What each socket has sent: its data go on from there.
    sent: [u64; SLOTS],
    /// What calls said since the last step began.
    said: Observation,
}

/// What the kernel showed, and whether what is seen after a step of the program is the same, known differences apart.
struct Wanted<'a> {
    program: &'a Program,
    number: usize,
    observation: Option<&'a Observation>,
}

impl Wanted<'_> {
    fn is(&self, seen: &Observation) -> bool {
        self.observation.is_some_and(|wanted| {
            judged(self.program, self.number, wanted, seen).iter().all(|(_, known)| known.is_some())
        })
    }
}

/// Runs a program until it shows a difference that is not known, and says what was observed after each step. `expected`: what
/// the kernel showed.
pub fn execute(
    program: &Program,
    wire: &Wire,
    place: Place,
    expected: Option<&[Observation]>,
) -> Vec<Observation> {
    let mut executor = Executor {
        peer: Peer::new(wire, place),
        place,
        v6: program.v6,
        sockets: [None; SLOTS],
        waiting: [const { None }; SLOTS],
        sent: [0; SLOTS],
        said: Observation::new(),
    };
    let mut trace = Vec::new();
    for (number, step) in program.steps.iter().enumerate() {
        let wanted = expected.map(|all| Wanted { program, number, observation: all.get(number) });
        let seen = executor.step(step, wanted.as_ref());
        let other = wanted.is_some_and(|wanted| !wanted.is(&seen));
        trace.push(seen);
        if other {
            break;
        }
    }
    executor.end();
    trace
}

impl Executor<'_> {
    /// `wanted`: nothing on the kernel; on eft, what the kernel showed.
    fn step(&mut self, step: &Step, wanted: Option<&Wanted>) -> Observation {
        self.said = Observation::new();
        match step {
            Step::Call(slot, call) => {
                let on_kernel = wanted.and_then(|wanted| wanted.observation?.get("call"));
                let returns = on_kernel.map(|words| words != "waits");
                let words = self.call(*slot, call, returns);
                self.said.insert("call".into(), words);
            }
            Step::Peer(sent) => {
                if !self.peer.send(sent) {
                    self.said.insert("peer".into(), "has nothing to answer".into());
                }
            }
            Step::Settle => {}
        }
        let settled = *step == Step::Settle;
        match wanted {
            None => {
                let begin = Instant::now();
                while self.peer.take(QUIET) || settled && begin.elapsed() < DELAYED {}
                self.look(settled)
            }
            Some(wanted) => self.await_equality(settled, wanted),
        }
    }

    fn await_equality(&mut self, settled: bool, wanted: &Wanted) -> Observation {
        let (begin, limit) = (Instant::now(), if settled { LONG_PATIENCE } else { PATIENCE });
        loop {
            let seen = self.look(settled);
            let early = begin.elapsed() < AT_LEAST;
            if !early && wanted.is(&seen) || begin.elapsed() > limit {
                return seen;
            }
            self.peer.take(Duration::from_millis(1));
        }
    }

    /// What is to be seen now.
    fn look(&mut self, settled: bool) -> Observation {
        self.peer.take(Duration::ZERO);
        for slot in 0..SLOTS {
            self.take_outcome(slot, Duration::ZERO);
        }
        let mut seen = self.said.clone();
        for (slot, socket) in self.sockets.iter().enumerate() {
            if let Some(socket) = socket {
                calls::observe(socket.fd, socket.kind, &format!("slot {slot}"), &mut seen);
            }
        }
        self.peer.observe(settled, &mut seen);
        seen
    }

    /// Makes a call and says how it ended. `returns`: whether it did on the kernel.
    fn call(&mut self, slot: usize, call: &Call, returns: Option<bool>) -> String {
        if self.waiting[slot].is_some() {
            return "another call waits".into();
        }
        if let Call::Accept { into, .. } | Call::Duplicate { into } = call
            && (self.sockets[*into].is_some() || self.waiting[*into].is_some())
        {
            return "no slot is free".into();
        }
        if let Call::Socket { kind, nonblocking } = call {
            if self.sockets[slot].is_some() {
                return "no slot is free".into();
            }
            self.sent[slot] = 0;
            let outcome = calls::open(self.v6, *kind, *nonblocking);
            self.sockets[slot] = outcome.made.map(|fd| Socket { fd, kind: *kind });
            return outcome.words;
        }
        let Some(socket) = self.sockets[slot] else { return "no socket".into() };
        if *call == Call::Close {
            self.sockets[slot] = None;
        }
        if !call.may_wait() {
            let outcome = calls::make(call, socket.fd, self.place, 0);
            return self.ended(slot, call, socket.kind, outcome);
        }
        self.waiting[slot] = Some(self.begin(slot, call, socket));
        self.await_call(slot, returns)
    }

    /// Makes a call in a thread of its own.
    fn begin(&self, slot: usize, call: &Call, socket: Socket) -> Waiting {
        let (tell_thread, thread) = channel();
        let (tell_outcome, outcome) = channel();
        let (place, sent, its_call) = (self.place, self.sent[slot], call.clone());
        std::thread::spawn(move || {
            // SAFETY: no argument.
            let _ = tell_thread.send(unsafe { libc::gettid() });
            let _ = tell_outcome.send(calls::make(&its_call, socket.fd, place, sent));
        });
        let thread = thread.recv().expect("the thread says it first");
        Waiting { call: call.clone(), kind: socket.kind, thread, outcome }
    }

    /// Waits until a call has returned, or waits itself.
    fn await_call(&mut self, slot: usize, returns: Option<bool>) -> String {
        let limit = Instant::now() + PATIENCE;
        let mut asleep = 0;
        loop {
            if self.take_outcome(slot, Duration::from_millis(2)) {
                let name = returned(slot);
                return self.said.remove(&name).unwrap_or_default();
            }
            let thread = self.waiting[slot].as_ref().map_or(0, |waiting| waiting.thread);
            asleep = if sleeps(thread) { asleep + 1 } else { 0 };
            let enough = match returns {
                Some(true) => Instant::now() > limit,
                _ => asleep > 3,
            };
            if enough {
                return "waits".into();
            }
        }
    }

    /// Takes the outcome of a slot's waiting call, if it has returned.
    fn take_outcome(&mut self, slot: usize, time: Duration) -> bool {
        let Some(waiting) = &self.waiting[slot] else { return false };
        let outcome = match waiting.outcome.recv_timeout(time) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => Outcome { words: "the thread ended".into(), made: None },
        };
        let waiting = self.waiting[slot].take().expect("it is there");
        let words = self.ended(slot, &waiting.call, waiting.kind, outcome);
        self.said.insert(returned(slot), words);
        true
    }

    /// Notes what an ended call has changed.
    fn ended(&mut self, slot: usize, call: &Call, kind: Kind, outcome: Outcome) -> String {
        match call {
            Call::Accept { into, .. } | Call::Duplicate { into } => {
                if let Some(fd) = outcome.made {
                    self.sockets[*into] = Some(Socket { fd, kind });
                    self.sent[*into] = 0;
                }
            }
            Call::Send { .. } | Call::SendTo { .. } | Call::WriteParts { .. } => {
                let count = outcome.words.strip_suffix(" bytes").and_then(|count| count.parse().ok());
                self.sent[slot] += count.unwrap_or(0_u64);
            }
            _ => {}
        }
        outcome.words
    }

    /// Closes all; a call that waits is woken by the peer or by the end of the connection.
    fn end(mut self) {
        self.peer.take(Duration::ZERO);
        self.peer.hang_up();
        for slot in 0..SLOTS {
            let Some(socket) = self.sockets[slot] else { continue };
            if self.waiting[slot].is_some() {
                // SAFETY: plain numbers.
                unsafe { libc::shutdown(socket.fd, libc::SHUT_RDWR) };
                self.take_outcome(slot, PATIENCE);
            }
            let now = libc::linger { l_onoff: 1, l_linger: 0 };
            let len = size_of::<libc::linger>() as u32;
            // SAFETY: a plain value; the descriptor is closed once, here.
            unsafe {
                libc::setsockopt(socket.fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const now).cast(), len);
                libc::close(socket.fd);
            }
        }
    }
}

fn returned(slot: usize) -> String {
    format!("slot {slot} returned")
}

/// Whether a thread of this process waits in the kernel.
fn sleeps(thread: c_int) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}
