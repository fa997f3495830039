//! Recordings of live servers as files, for the simulator.
//!
//! A file is a line of text that names the format, then frames: the length of one value as a 32-bit little-endian
//! number, its digest as another, and the value. The first is the head, the others are entries in the order in which
//! they were made. They are written as they come, so that a server that was killed leaves a recording of all but its
//! last moments. A file has a bounded size; if it is reached, the last entry says so.

use crate::last_words::{LastWords, entry_max};
use crate::life::Life;
use crate::log::Log;
use crate::makes::Head;
use crate::recording::{End, Entry, Recording, digest};
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// First bytes of a file, up to the version of everything in it.
const MAGIC: &[u8] = b"eft recording ";
const VERSION: &[u8] = b"7\n";
/// Largest frame in bytes: the head may hold an arena.
const FRAME_MAX: usize = 256 << 20;
/// Bytes of frames that are buffered, to be written together.
const GATHER: usize = 64 << 10;

/// A value as it lies in a file.
pub fn frame(value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u32).to_le_bytes().to_vec();
    bytes.extend(check(value).to_le_bytes());
    bytes.extend(value);
    bytes
}

fn check(value: &[u8]) -> u32 {
    let digest = digest(value);
    (digest ^ digest >> 32) as u32
}

/// Writes a recording as it is made. Only whole frames are handed on, so a server that is killed leaves whole ones.
pub struct Writer<W: Write> {
    out: W,
    gathered: Vec<u8>,
    /// Room for the last entry, which is not touched before.
    last: Vec<u8>,
    bytes_max: usize,
    room: usize,
}

impl<W: Write> Writer<W> {
    /// Writes the head. After `bytes_max` of entries nothing more is recorded.
    pub fn new(out: W, head: &Head, bytes_max: usize) -> std::io::Result<Writer<W>> {
        let gathered = [MAGIC, VERSION].concat();
        let mut last = Vec::new();
        // Without that room the last entry of a life is missing, and all others are there.
        let _ = last.try_reserve_exact(HEAD_LEN + entry_max(head.arena_len).min(FRAME_MAX));
        let mut writer = Writer { out, gathered, last, bytes_max, room: bytes_max };
        let head = postcard::to_allocvec(head).map_err(std::io::Error::other)?;
        writer.gathered.extend(frame(&head));
        writer.hand_on()?;
        Ok(writer)
    }

    fn hand_on(&mut self) -> std::io::Result<()> {
        let written = self.out.write_all(&self.gathered);
        self.gathered.clear();
        written
    }

    fn append(&mut self, entry: &Entry) -> std::io::Result<usize> {
        let value = postcard::to_allocvec(entry).map_err(std::io::Error::other)?;
        self.gathered.extend(frame(&value));
        if self.gathered.len() >= GATHER || matches!(entry, Entry::End(_) | Entry::Last(_)) {
            self.hand_on()?;
        }
        Ok(value.len())
    }
}

/// Bytes before a value: its length and its digest.
const HEAD_LEN: usize = 8;

/// Writes into the room that a vector has.
struct Within<'a>(&'a mut Vec<u8>);

impl Within<'_> {
    fn room(&self, len: usize) -> postcard::Result<()> {
        let room = self.0.capacity() - self.0.len();
        if len <= room { Ok(()) } else { Err(postcard::Error::SerializeBufferFull) }
    }
}

impl Flavor for Within<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.room(1)?;
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.room(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

impl<W: Write> Writer<W> {
    /// Writes a frame without allocating.
    fn write_within(&mut self, value: &impl Serialize) -> std::io::Result<()> {
        self.last.clear();
        if self.last.capacity() < HEAD_LEN {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        self.last.extend([0; HEAD_LEN]);
        let encoded = postcard::serialize_with_flavor(value, Within(&mut self.last));
        encoded.map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
        let (head, value) = self.last.split_at_mut(HEAD_LEN);
        head[..4].copy_from_slice(&(value.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&check(value).to_le_bytes());
        self.out.write_all(&self.last)
    }
}

/// A server that panics leaves all of its inputs in the recording.
impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        let _ = self.hand_on();
    }
}

impl<W: Write> Log for Writer<W> {
    fn note(&mut self, entry: Entry) {
        let was_full = self.is_full();
        let written = self.append(&entry).and_then(|len| {
            self.room = self.room.saturating_sub(len);
            if self.room > 0 || was_full {
                return Ok(());
            }
            eprintln!("the recording is full after {} bytes: it ends here", self.bytes_max);
            self.append(&Entry::End(End::Full(self.bytes_max))).map(drop)
        });
        if let Err(e) = written {
            // A full disk must not end the server that is recorded.
            eprintln!("the recording ends here: {e}");
            self.room = 0;
        }
    }

    fn note_last(&mut self, words: &LastWords) {
        let written = self.hand_on().and_then(|()| self.write_within(words));
        if let (Ok(()), LastWords::Call(_, cause)) = (written, words) {
            let _ = self.write_within(&Entry::End(End::InCall(*cause)));
        }
    }

    fn is_full(&self) -> bool {
        self.room == 0
    }
}

/// A life as a file of at most `bytes_max` bytes of entries.
pub fn to_bytes(life: &Life, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &life.head, bytes_max)?;
    let recording = life.recording.borrow();
    let mut pools = recording.pools.iter().peekable();
    for (i, call) in recording.calls.iter().enumerate() {
        while let Some((_, id, cut)) = pools.next_if(|(before, ..)| *before <= i) {
            writer.note(Entry::Pool(*id, *cut));
        }
        writer.note(Entry::Call(call.clone()));
        if writer.is_full() {
            break;
        }
    }
    if !writer.is_full() {
        writer.note(Entry::End(recording.end));
    }
    if let Some(last) = &recording.last {
        writer.note(Entry::Last(last.clone()));
    }
    drop(writer);
    Ok(bytes)
}

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FileError {
    #[error("this is not a recording of eft")]
    NoRecording,
    #[error(
        "this recording has format {theirs:?}, and this eft reads format {ours:?}: record again, or replay it with the eft that recorded it"
    )]
    OtherFormat { theirs: String, ours: String },
    #[error("the recording is cut short: it ends before its first call")]
    CutShort,
    #[error("the recording is damaged: entry {entry} of {len} bytes")]
    Length { entry: usize, len: usize },
    #[error("the recording is damaged: entry {entry} has another checksum")]
    Checksum { entry: usize },
    #[error("the recording is damaged: entry {entry} is invalid: {error}")]
    Entry { entry: usize, error: postcard::Error },
}

/// Reads a life.
pub fn from_bytes(bytes: &[u8]) -> Result<Life, FileError> {
    let mut frames = Frames::of(bytes)?;
    let head: Head = match frames.next_value()? {
        Some(head) => head,
        None => return Err(FileError::CutShort),
    };
    let mut recording = Recording::default();
    while let Some(entry) = frames.next_value()? {
        recording.note(entry);
    }
    if !frames.rest.is_empty() {
        recording.end = End::CutShort;
    }
    Ok(Life { head, recording: Rc::new(RefCell::new(recording)) })
}

/// The values of a file as bytes, in order: for callers that change them.
pub fn values(bytes: &[u8]) -> Result<Vec<&[u8]>, FileError> {
    let mut frames = Frames::of(bytes)?;
    let mut values = Vec::new();
    while let Some(value) = frames.next()? {
        values.push(value);
    }
    Ok(values)
}

/// A file of such values.
pub fn of_values(values: &[Vec<u8>]) -> Vec<u8> {
    values.iter().fold([MAGIC, VERSION].concat(), |mut file, value| {
        file.extend(frame(value));
        file
    })
}

/// The frames of a file.
struct Frames<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Frames<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, FileError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(FileError::NoRecording)?;
        let end = rest.iter().take(10).position(|b| *b == b'\n').map_or(rest.len().min(10), |n| n + 1);
        let (version, rest) = rest.split_at(end);
        if version != VERSION {
            let [theirs, ours] =
                [version, VERSION].map(|v| String::from_utf8_lossy(v).trim_end().to_string());
            return Err(FileError::OtherFormat { theirs, ours });
        }
        Ok(Frames { rest, number: 0 })
    }

    /// The next whole frame. The last one may be cut short, and then stays.
    fn next(&mut self) -> Result<Option<&'a [u8]>, FileError> {
        let Some((head, body)) = self.rest.split_first_chunk::<8>() else { return Ok(None) };
        let [len, sum] = [&head[..4], &head[4..]].map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let len = len as usize;
        if len > FRAME_MAX {
            return Err(FileError::Length { entry: self.number, len });
        }
        let Some((value, rest)) = body.split_at_checked(len) else { return Ok(None) };
        if check(value) != sum {
            return Err(FileError::Checksum { entry: self.number });
        }
        self.rest = rest;
        self.number += 1;
        Ok(Some(value))
    }

    fn next_value<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FileError> {
        let Some(value) = self.next()? else { return Ok(None) };
        let damaged = |error| FileError::Entry { entry: self.number - 1, error };
        postcard::from_bytes(value).map(Some).map_err(damaged)
    }
}
