//! Flips bits of payload: of packets in pools, and of what programs send and receive, in their rings.
//!
//! Of a ring only what waits in it is struck: the rest is written before it is read next. The pages beside the rings, which say what
//! is in them, and the records that wait for an accept are spared: what they do to a connection has nothing to do with payload.

use super::memory::{Mapping, Memory, Part};
use super::touched::PAGE;
use super::{Process, Strike};
use crate::operator;
use crate::{Error, Result};
use eft_base::Random;
use eft_channel::socket::{Arena, flag};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bits that one fault flips at most. Most bytes of a pool are written before they are read next: of 250 faults of one bit one
/// damaged what a program got.
const FLIPS: usize = 256;

/// The arenas of a stack's programs, by the names of their segments.
type Arenas = BTreeMap<String, Arena>;

/// Addresses of payload, all in one page.
struct Place<'a> {
    mapping: &'a Mapping,
    addresses: Range<u64>,
}

/// Flips bits of the payload that this process writes.
pub fn strike(stack: &str, pid: u32, random: &mut Random) -> Result<Strike> {
    let process = Process::open(pid)?;
    let memory = Memory::open(process.pid)?;
    let arenas = arenas(stack, &memory)?;
    let mut places = in_pools(&memory);
    for mapping in memory.mappings(Part::Payload) {
        let arena = mapping.segment().and_then(|name| arenas.get(name));
        places.extend(arena.into_iter().flat_map(waiting).flat_map(|range| cut(mapping, range)));
    }
    if places.is_empty() {
        return Err(Error::Missing("no packet lies in what it writes, and nothing waits in a ring".into()));
    }
    // One in a page, so that no packet of usual size has two: where these flip the same bit of two words, one to 0 and the other
    // to 1, the sum stays as it was.
    let flips = FLIPS.min(places.len());
    let mut struck: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..flips {
        let Place { mapping, addresses } = places.swap_remove(random.below(places.len() as u64) as usize);
        memory.flip(memory.pick_within(&addresses, random), random)?;
        *struck.entry(mapping.segment().unwrap_or_default()).or_default() += 1;
    }
    let places: Vec<String> = struck.iter().map(|(name, bits)| format!("{bits} in {name}")).collect();
    Ok(Strike::now(format!("{flips} bits: {}", places.join(", "))))
}

/// All of a pool is payload.
fn in_pools(memory: &Memory) -> Vec<Place<'_>> {
    let pages = memory.touched_pages(Part::Payload).into_iter();
    let of_pools = pages.filter(|(mapping, _)| mapping.segment().is_some_and(|name| number(name).is_none()));
    of_pools.map(|(mapping, page)| Place { mapping, addresses: page..page + PAGE }).collect()
}

/// Where payload waits in an arena's rings.
fn waiting(arena: &Arena) -> Vec<Range<usize>> {
    let pages = (0..arena.touched()).filter_map(|slot| arena.socket(slot));
    let with_payload = pages.filter(|page| page.kind() != 0 && page.flags() & flag::LISTENING == 0);
    with_payload.flat_map(|page| page.waiting().collect::<Vec<_>>()).collect()
}

/// The pages of a range of an arena, as this mapping shows it.
fn cut(mapping: &Mapping, range: Range<usize>) -> Vec<Place<'_>> {
    let Some(addresses) = mapping.addresses_of(&range) else { return Vec::new() };
    let pages = (addresses.start / PAGE..addresses.end.div_ceil(PAGE)).map(|page| page * PAGE);
    let part = |page: u64| addresses.start.max(page)..addresses.end.min(page + PAGE);
    pages.map(|page| Place { mapping, addresses: part(page) }).collect()
}

/// The number of the domain whose arena this segment is.
fn number(segment: &str) -> Option<u32> {
    segment.strip_prefix("domain-")?.parse().ok()
}

/// Asks the supervisor for those that the process writes. One that has just ended is left out.
fn arenas(stack: &str, memory: &Memory) -> Result<Arenas> {
    let mut arenas = Arenas::new();
    for segment in memory.mappings(Part::Payload).filter_map(Mapping::segment) {
        let Some(number) = number(segment).filter(|_| !arenas.contains_key(segment)) else { continue };
        match operator::arena(stack, number) {
            Ok(arena) => drop(arenas.insert(segment.into(), arena)),
            Err(Error::Missing(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(arenas)
}

#[cfg(test)]
mod tests;
