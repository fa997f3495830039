//! A record in the arena's header of the input that is about to run, identified by its content: a successor that opens
//! the arena learns which input its predecessor died of.
//!
//! An input that kills twice in a row, in the same state of its connection, is condemned, and no successor runs it
//! again. A server that was killed from outside did not die of an input ([`acquit`]).
//!
//! Only the death of the process matters, as in [`crate::Arena`].

use crate::fuse::Fuse;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use eft_channel::Segment;

/// Its offset in the arena, behind the header proper.
const AT: usize = 2048;
/// How many condemned inputs are remembered.
const CONDEMNED_MAX: usize = 8;
/// After this many condemned segments their connection is given up, too: its peer sends the same bytes again in new
/// segments.
const STUBBORN: usize = 3;

/// Offsets in words: the running input, the input blamed for the last death, how many inputs were ever condemned, and
/// the last of those.
const RUNNING: usize = 0;
const SUSPECT: usize = 2;
const COUNT: usize = 4;
const CONDEMNED: usize = 5;
const WORDS: usize = CONDEMNED + 2 * CONDEMNED_MAX;

/// Bytes of the header up to the end of the docket.
pub const END: usize = AT + WORDS * 8;

/// The kind of call that an input causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message whose connection is not known yet.
    Message = 1,
    Segment = 2,
    Timer = 3,
    /// The connection's pending work is done.
    Serve = 4,
    /// Its application has rung the doorbell.
    Dirty = 5,
    /// The connection is revived after a death.
    Revive = 6,
    /// A packet of no connection.
    Packet = 7,
    /// A packet that is to be sent.
    Send = 8,
    /// A question about a packet.
    Question = 9,
    /// A question for a route.
    Route = 10,
    /// A step of a transport's list of groups.
    Group = 11,
    /// What a device says of its link.
    Link = 12,
    /// A configuration, or an operator's question.
    Setting = 13,
}

impl Kind {
    const ALL: [Kind; 13] = [
        Kind::Message,
        Kind::Segment,
        Kind::Timer,
        Kind::Serve,
        Kind::Dirty,
        Kind::Revive,
        Kind::Packet,
        Kind::Send,
        Kind::Question,
        Kind::Route,
        Kind::Group,
        Kind::Link,
        Kind::Setting,
    ];

    fn of(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Its name for people.
    fn name(self) -> &'static str {
        match self {
            Kind::Message => "a message of no known connection",
            Kind::Segment => "a segment",
            Kind::Timer => "a timer",
            Kind::Serve => "due work",
            Kind::Dirty => "a program's doorbell",
            Kind::Revive => "the revival",
            Kind::Packet => "a packet",
            Kind::Send => "a packet to be sent",
            Kind::Question => "a question about a packet",
            Kind::Route => "a question for a route",
            Kind::Group => "a wish for a group",
            Kind::Link => "a device's word of its link",
            Kind::Setting => "a setting",
        }
    }
}

/// An input, identified by content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    kind: Kind,
    /// The connection's block; of an engine without connections, what the input is about.
    block: u32,
    generation: u32,
    digest: u64,
}

/// Bytes behind its IP header by which a packet is known: all of TCP's that differ from segment to segment, but for the checksum,
/// which the device may still have to complete.
pub const BEHIND: usize = 16;

/// What a docket says that runs.
#[derive(Clone, Copy, Debug)]
pub struct Running([u64; 2]);

const NOBODY: u32 = u32::MAX;

impl Note {
    /// An input of a connection, distinguished from its others by `content`.
    pub fn of(kind: Kind, block: u32, generation: u32, content: &[u64]) -> Note {
        Note { kind, block, generation, digest: content.iter().fold(0, |digest, word| mix(digest, *word)) }
    }

    /// An input of no connection.
    pub fn alone(kind: Kind, content: &[u64]) -> Note {
        Note::of(kind, NOBODY, 0, content)
    }

    /// A packet that begins with `head`. Its sender may send it again, in another buffer, with another identification and TTL: of
    /// an IP packet the length counts, and all from the addresses on up to [`BEHIND`] bytes behind the IP header.
    pub fn packet(head: &[u8]) -> Note {
        let (len, known) = match head.first().map_or(0, |first| first >> 4) {
            4 => (2, 12..(head[0] & 15) as usize * 4 + BEHIND),
            6 => (4, 8..40 + BEHIND),
            _ => (0, 0..head.len()),
        };
        let len = head.get(len..len + 2).map_or(0, |len| u64::from(len[0]) << 8 | u64::from(len[1]));
        let known = head.get(known.start..known.end.min(head.len())).unwrap_or_default();
        Note::bytes(Kind::Packet, len, known)
    }

    /// A setting, or an operator's question, by its key and its value.
    pub fn setting(key: &str, value: &[u8]) -> Note {
        Note::bytes(Kind::Setting, Note::bytes(Kind::Setting, 0, key.as_bytes()).digest, value)
    }

    /// An input of no connection that consists of a number and bytes.
    pub fn bytes(kind: Kind, number: u64, bytes: &[u8]) -> Note {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut digest = mix(0, number);
        for word in words {
            digest = mix(digest, u64::from_le_bytes(*word));
        }
        for byte in rest {
            digest = mix(digest, (*byte).into());
        }
        Note { kind, block: NOBODY, generation: 0, digest }
    }

    fn words(self) -> [u64; 2] {
        let name = (self.kind as u64) << 56 | (self.generation as u64 & 0xff_ffff) << 32 | self.block as u64;
        [name, self.digest]
    }
}

/// A digest with one word more.
#[inline]
fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// What opening an arena found out about the last death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Nothing,
    /// An input ran then. It will not run again if it kills once more.
    Blamed,
    /// An input has killed twice, and will not run again. The block is that of a connection that has had too many such inputs.
    Condemned(Option<u32>),
}

/// The docket of an arena.
pub struct Docket {
    segment: Segment,
    condemned: u64,
    /// Inputs are named.
    is_on: bool,
    /// The message that is about to run has killed two predecessors.
    is_fatal: bool,
    /// Deaths of which an input was blamed at the opening, until they are counted.
    blamed: u64,
    fuse: Fuse,
}

impl Docket {
    /// Reads what the predecessor died of and records it.
    pub fn open(segment: Segment) -> (Docket, Finding) {
        Docket::open_with(segment, Fuse::default())
    }

    /// The same with a fuse, which may be lit.
    pub fn open_with(segment: Segment, fuse: Fuse) -> (Docket, Finding) {
        let mut docket = Docket { segment, condemned: 0, is_on: true, is_fatal: false, blamed: 0, fuse };
        let running = docket.pair(RUNNING);
        let mut finding = Finding::Nothing;
        // First, so that nothing is laid to that input if this life dies before it runs one.
        docket.clear();
        if running[0] != 0 {
            if docket.pair(SUSPECT) == running {
                finding = Finding::Condemned(docket.condemn(running));
                docket.put(SUSPECT, [0; 2]);
            } else {
                docket.put(SUSPECT, running);
                finding = Finding::Blamed;
            }
        }
        docket.blamed = (finding != Finding::Nothing) as u64;
        docket.condemned = docket.word(COUNT).load(Ordering::Relaxed);
        (docket, finding)
    }

    #[inline]
    fn word(&self, n: usize) -> &AtomicU64 {
        self.segment.atomic_u64(AT + n * 8).expect("length was checked")
    }

    fn pair(&self, n: usize) -> [u64; 2] {
        [0, 1].map(|i| self.word(n + i).load(Ordering::Relaxed))
    }

    #[inline]
    fn put(&self, n: usize, [name, digest]: [u64; 2]) {
        // The name is written last: a half-written note has no name.
        self.store(n, 0);
        compiler_fence(Ordering::SeqCst);
        self.store(n + 1, digest);
        compiler_fence(Ordering::SeqCst);
        self.store(n, name);
    }

    #[inline]
    fn store(&self, n: usize, value: u64) {
        self.fuse.burn_in_tests();
        self.word(n).store(value, Ordering::Relaxed);
    }

    /// Condemns an input. Returns the block of a connection that is to be given up.
    fn condemn(&self, note: [u64; 2]) -> Option<u32> {
        let count = self.word(COUNT).load(Ordering::Relaxed);
        self.put(CONDEMNED + 2 * (count as usize % CONDEMNED_MAX), note);
        self.store(COUNT, count.wrapping_add(1));
        let same = (0..CONDEMNED_MAX).filter(|n| self.pair(CONDEMNED + 2 * n)[0] == note[0]).count();
        (note[0] >> 56 == Kind::Segment as u64 && same >= STUBBORN).then_some(note[0] as u32)
    }

    /// Deaths that were laid to an input and are not counted yet.
    pub fn take_blamed(&mut self) -> u64 {
        core::mem::take(&mut self.blamed)
    }

    /// Names no input any more.
    pub fn stop(&mut self) {
        self.clear();
        self.is_on = false;
    }

    /// Records that a message runs from now on, of which nothing but its line is known yet. [`Docket::take_fatal`] says whether it
    /// must not. A condemned one is struck off, since it is refused: a later message with the same words is another one.
    pub fn begin(&mut self, line: &[u64]) {
        if !self.is_on {
            return;
        }
        let note = Note::alone(Kind::Message, line);
        let place = self.place(note.words());
        self.is_fatal = place.is_some();
        if let Some(n) = place {
            self.put(n, [0; 2]);
        }
        self.name(note);
    }

    /// Whether the message that has just begun has killed twice.
    pub fn take_fatal(&mut self) -> bool {
        core::mem::take(&mut self.is_fatal)
    }

    /// Records the input that runs from now on. False: it has killed twice, and must not run; what is done instead is no input.
    #[must_use]
    #[inline]
    pub fn enter(&self, note: Note) -> bool {
        if !self.is_on {
            return true;
        }
        if self.is_condemned(note) {
            self.clear();
            return false;
        }
        self.name(note);
        true
    }

    #[inline]
    fn name(&self, note: Note) {
        self.put(RUNNING, note.words());
    }

    /// What runs now.
    pub fn running(&self) -> Running {
        Running(self.pair(RUNNING))
    }

    /// It runs on, after something that ran in the middle of it.
    pub fn resume(&self, running: Running) {
        self.put(RUNNING, running.0);
    }

    /// As [`Docket::enter`], for an input that has waited since it ran.
    #[must_use]
    pub fn enter_again(&self, running: Running) -> bool {
        if !self.is_on {
            return true;
        }
        if running.0[0] != 0 && self.place(running.0).is_some() {
            self.clear();
            return false;
        }
        self.resume(running);
        true
    }

    /// Records that no input causes what runs from now on.
    #[inline]
    pub fn clear(&self) {
        self.store(RUNNING, 0);
    }

    #[inline]
    fn is_condemned(&self, note: Note) -> bool {
        self.place(note.words()).is_some()
    }

    #[inline]
    fn place(&self, words: [u64; 2]) -> Option<usize> {
        if self.condemned == 0 {
            return None;
        }
        (0..CONDEMNED_MAX).map(|n| CONDEMNED + 2 * n).find(|n| self.pair(*n) == words)
    }
}

/// Stores by which an input is named before it runs, each of which burns a [`Fuse`] in debug builds.
pub const NAMING: u64 = if cfg!(debug_assertions) { 3 } else { 0 };

/// Where in the arena the word lies that is 0 exactly while no input runs.
pub const RUNNING_AT: usize = AT + RUNNING * 8;

/// Whether an input ran when an arena began with these bytes.
pub fn has_running(head: &[u8]) -> bool {
    let name = head.get(RUNNING_AT..RUNNING_AT + 8);
    name.is_some_and(|name| name != [0; 8])
}

/// The input that ran when the owner of this arena died, for people. `whose` says whose a block was.
pub fn running_input(arena: &Segment, whose: impl FnOnce(u32) -> Option<String>) -> Option<String> {
    let name = arena.atomic_u64(AT + RUNNING * 8).ok()?.load(Ordering::Relaxed);
    let kind = Kind::of((name >> 56) as u8)?.name();
    let whose = Some(name as u32).filter(|block| *block != NOBODY).and_then(whose);
    Some(whose.map_or_else(|| kind.into(), |whose| format!("{kind} of {whose}")))
}

/// Records that the running input is not to blame for the owner's death.
pub fn acquit(segment: &Segment) {
    if let Ok(word) = segment.atomic_u64(AT + RUNNING * 8) {
        word.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
