//! A process's memory as its debugger sees it: finds its parts, and flips a bit in one of them.

use super::touched::{PAGE, touched};
use crate::{Doing, Error, Result};
use eft_arena::docket;
use eft_base::Random;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How many places are tried for a word that is not zero before any word will do.
const ATTEMPTS: usize = 2000;
const ATTEMPTS_IN_A_PAGE: usize = 64;
/// Bytes above the end of the stack in which frames lie that will be returned to.
const STACK_IN_USE: u64 = 2048;

/// Bytes with which its durable state begins, and which say what is in it.
const DURABLE_HEAD: usize = 4096;

/// A part of a server's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Heap,
    Arena,
    Channel,
    Payload,
    Stack,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Heap => "heap",
            Part::Arena => "durable state",
            Part::Channel => "channels",
            Part::Payload => "packets",
            Part::Stack => "stack",
        }
    }

    /// Whether a writable mapping belongs to this part. The supervisor gives segments their names.
    fn holds(self, mapping: &Mapping) -> bool {
        let segment = |kinds: &[&str]| {
            mapping.segment().is_some_and(|name| kinds.iter().any(|kind| name.starts_with(kind)))
        };
        match self {
            Part::Heap => mapping.name == "[heap]" || mapping.name.is_empty(),
            Part::Arena => segment(&["arena-"]),
            Part::Channel => segment(&["queue-", "position", "status-"]),
            Part::Payload => segment(&["pool-", "domain-"]),
            Part::Stack => mapping.name == "[stack]",
        }
    }
}

pub struct Mapping {
    range: Range<u64>,
    /// Where it begins in its file.
    offset: u64,
    name: String,
}

impl Mapping {
    /// Its name in the stack.
    pub fn segment(&self) -> Option<&str> {
        self.name.strip_prefix("/memfd:eft-")
    }

    /// Where a range of its file lies, if all of it is mapped.
    pub fn addresses_of(&self, range: &Range<usize>) -> Option<Range<u64>> {
        let at = |place: usize| (place as u64).checked_sub(self.offset)?.checked_add(self.range.start);
        let addresses = at(range.start)?..at(range.end)?;
        (addresses.end <= self.range.end).then_some(addresses)
    }

    /// The place of an address in its file.
    pub fn offset_of(&self, at: u64) -> u64 {
        at - self.range.start + self.offset
    }
}

/// A page that a process has touched.
pub type Page<'a> = (&'a Mapping, u64);

/// One line of /proc/PID/maps: whether it may be written and executed, and the mapping.
pub fn mapping(line: &str) -> Option<(&str, Mapping)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let (rights, offset) = (fields.next()?, fields.next()?);
    let name = fields.nth(2).unwrap_or_default().to_string();
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((rights, Mapping { range: number(from)?..number(to)?, offset: number(offset)?, name }))
}

/// The memory of a process.
pub struct Memory {
    bytes: File,
    pages: File,
    /// Those that may be written.
    mappings: Vec<Mapping>,
    /// Those that it executes.
    code: Vec<Mapping>,
}

impl Memory {
    pub fn open(pid: u32) -> Result<Memory> {
        let place = |name: &str| format!("/proc/{pid}/{name}");
        let open = |name, write| File::options().read(true).write(write).open(place(name));
        let refused = "its memory cannot be changed (only its own user and root may)";
        let maps = fs::read_to_string(place("maps")).doing(refused)?;
        let mut memory = Memory {
            bytes: open("mem", true).doing(refused)?,
            pages: open("pagemap", false).doing(refused)?,
            mappings: Vec::new(),
            code: Vec::new(),
        };
        for (rights, mapping) in maps.lines().filter_map(mapping) {
            match rights.get(..3) {
                Some("rw-" | "rwx") => memory.mappings.push(mapping),
                Some("r-x" | "--x") => memory.code.push(mapping),
                _ => {}
            }
        }
        Ok(memory)
    }

    /// An address in code, so that the place can be found again in another process: the file's name and the offset in it.
    pub fn place(&self, at: u64) -> String {
        let Some(code) = self.code.iter().find(|code| code.range.contains(&at)) else {
            return format!("{at:#x}");
        };
        let file = code.name.rsplit('/').next().unwrap_or_default();
        format!("{file}+{:#x}", code.offset_of(at))
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.bytes.write_all_at(bytes, at).doing("its memory cannot be changed")
    }

    /// Flips a random bit of the byte at `at`, and returns the bit's number.
    pub fn flip(&self, at: u64, random: &mut Random) -> Result<u64> {
        let bit = random.below(8);
        let mut byte = [0];
        self.bytes.read_exact_at(&mut byte, at).doing("its memory cannot be read")?;
        self.write(at, &[byte[0] ^ 1 << bit])?;
        Ok(bit)
    }

    /// The word of eight bytes that holds this byte, and those around it, so that what was changed can be told afterwards.
    pub fn surroundings(&self, at: u64) -> String {
        let words = (-4..=4).map(|place: i64| {
            let mut word = [0; 8];
            let begin = (at & !7).saturating_add_signed(8 * place);
            let read = self.bytes.read_exact_at(&mut word, begin);
            let text = read.map_or("-".into(), |()| format!("{:x}", u64::from_ne_bytes(word)));
            if place == 0 { format!("[{text}]") } else { text }
        });
        words.collect::<Vec<String>>().join(" ")
    }

    /// A random byte of a word that is not zero, in a page that the process has touched.
    pub fn pick(&self, part: Part, random: &mut Random) -> Result<(&str, u64)> {
        let pages = self.touched_pages(part);
        if pages.is_empty() {
            return Err(Error::Missing(format!("it has written no {}", part.name())));
        }
        let mut place = (part.name(), 0);
        for _ in 0..ATTEMPTS {
            let (mapping, page) = pages[random.below(pages.len() as u64) as usize];
            let name = mapping.name.strip_prefix("/memfd:").unwrap_or(part.name());
            place = (name, page + 8 * random.below(PAGE / 8));
            if self.is_in_use(place.1) {
                break;
            }
        }
        Ok((place.0, place.1 + random.below(8)))
    }

    /// A random one of these addresses, if possible in a word that is not zero.
    pub fn pick_within(&self, addresses: &Range<u64>, random: &mut Random) -> u64 {
        let any = |random: &mut Random| addresses.start + random.below(addresses.end - addresses.start);
        let mut tries = (0..ATTEMPTS_IN_A_PAGE).map(|_| any(random));
        let in_use = tries.find(|at| self.is_in_use(*at));
        in_use.unwrap_or(addresses.start)
    }

    /// Whether the word of this byte is not zero.
    fn is_in_use(&self, at: u64) -> bool {
        let mut word = [0; 8];
        self.bytes.read_exact_at(&mut word, at & !7).is_ok() && word != [0; 8]
    }

    /// The pages of a part that the process has touched.
    pub fn touched_pages(&self, part: Part) -> Vec<Page<'_>> {
        self.mappings.iter().filter(|m| part.holds(m)).flat_map(|m| self.touched(m)).collect()
    }

    /// The mappings of a part.
    pub fn mappings(&self, part: Part) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter().filter(move |mapping| part.holds(mapping))
    }

    /// The begin of the durable state, if there is one.
    pub fn durable_head(&self) -> Option<Vec<u8>> {
        let arena = self.mappings.iter().find(|m| Part::Arena.holds(m))?;
        let mut head = vec![0; DURABLE_HEAD];
        self.bytes.read_exact_at(&mut head, arena.range.start).ok()?;
        Some(head)
    }

    /// Where the word lies that says which input runs, if there is one.
    pub fn docket(&self) -> Option<u64> {
        let arena = self.mappings.iter().find(|m| Part::Arena.holds(m))?;
        Some(arena.range.start + docket::RUNNING_AT as u64)
    }

    /// Whether an input runs.
    pub fn has_running(&self) -> bool {
        self.durable_head().as_deref().is_some_and(docket::has_running)
    }

    /// A random byte of the frames above the end of the stack.
    pub fn pick_in_stack(&self, end: u64, random: &mut Random) -> Result<u64> {
        let stack = self.mappings.iter().find(|m| Part::Stack.holds(m) && m.range.contains(&end));
        let stack = stack.ok_or_else(|| Error::Missing("it runs on no stack".into()))?;
        Ok(end + random.below(STACK_IN_USE.min(stack.range.end - end)))
    }

    /// The pages of a mapping that are present in memory.
    fn touched<'a>(&self, mapping: &'a Mapping) -> impl Iterator<Item = Page<'a>> {
        touched(&self.pages, &mapping.range).into_iter().map(move |page| (mapping, page))
    }
}
