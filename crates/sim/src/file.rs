//! Recordings as files: what a live server was told, for the simulator.
//!
//! A file is a line of text that names the format, then frames: the bytes of one value as a 32-bit little-endian
//! number, and the value. The first is the head, the others are entries in the order in which they were made. They are
//! written as they come, so that a server that was killed leaves a recording of all but its last moments.

use crate::makes::Life;
use crate::replay::{Entry, Log, Recording};
use eft_base::PoolId;
use eft_messages::Peer;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::{BufWriter, Write};
use std::rc::Rc;

/// First bytes of a file; the number is the version of everything in it.
const MAGIC: &[u8] = b"eft recording 2\n";
/// Bytes of one frame at most: the head may hold an arena.
const FRAME_MAX: usize = 64 << 20;

/// What a server was made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    pub peer: Peer,
    pub seed: u64,
    pub with_filter: bool,
    /// The filter's table.
    pub states: usize,
    /// Its own pools: id, slots, bytes of a slot.
    pub pools: Vec<(PoolId, usize, usize)>,
    /// What its predecessor had left.
    #[serde(with = "serde_bytes")]
    pub arena: Vec<u8>,
}

/// Writes a recording as it is made.
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    room: usize,
}

impl<W: Write> Writer<W> {
    /// Writes the head. After `bytes_max` of entries nothing more is recorded.
    pub fn new(out: W, head: &Head, bytes_max: usize) -> std::io::Result<Writer<W>> {
        let mut writer = Writer { out: BufWriter::new(out), room: bytes_max };
        writer.out.write_all(MAGIC)?;
        writer.frame(&postcard::to_allocvec(head).map_err(std::io::Error::other)?)?;
        writer.out.flush()?;
        Ok(writer)
    }

    fn frame(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        self.out.write_all(bytes)
    }
}

impl<W: Write> Log for Writer<W> {
    fn note(&mut self, entry: Entry) {
        let end = matches!(entry, Entry::End);
        let Ok(bytes) = postcard::to_allocvec(&entry) else { return self.room = 0 };
        self.room = self.room.saturating_sub(bytes.len());
        let written = self.frame(&bytes).and_then(|()| if end { self.out.flush() } else { Ok(()) });
        if let Err(e) = written {
            // A full disk must not end the server that is recorded.
            eprintln!("the recording ends here: {e}");
            self.room = 0;
        }
    }

    fn is_full(&self) -> bool {
        self.room == 0
    }
}

/// Bytes as a life; the error is one line.
pub fn from_bytes(bytes: &[u8]) -> Result<Life, String> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("this is no recording of this version of eft")?;
    let damaged = |e: postcard::Error| format!("the recording is damaged: {e}");
    let head: Head = match next_frame(&mut rest)? {
        Some(frame) => postcard::from_bytes(frame).map_err(damaged)?,
        None => return Err("the recording is empty".into()),
    };
    let mut recording = Recording::default();
    while let Some(frame) = next_frame(&mut rest)? {
        recording.note(postcard::from_bytes(frame).map_err(damaged)?);
    }
    Ok(Life { head, recording: Rc::new(RefCell::new(recording)) })
}

/// The next whole frame. The last one of a server that was killed may be cut short.
fn next_frame<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, String> {
    let Some((len, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_le_bytes(*len) as usize;
    if len > FRAME_MAX {
        return Err(format!("the recording is damaged: a frame of {len} bytes"));
    }
    if body.len() < len {
        return Ok(None);
    }
    let (frame, after) = body.split_at(len);
    *rest = after;
    Ok(Some(frame))
}

/// Events in a file: only configurations reach the engines that are recorded.
pub mod event {
    use eft_component::Event;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(event: &Event, s: S) -> Result<S::Ok, S::Error> {
        match event {
            Event::Configure { key, value } => (key, value).serialize(s),
            _ => Err(serde::ser::Error::custom("only configurations can be written down")),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Event, D::Error> {
        let (key, value) = Deserialize::deserialize(d)?;
        Ok(Event::Configure { key, value })
    }
}
