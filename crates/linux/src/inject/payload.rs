//! Flips bits of payload: of packets in pools, and of what programs send and receive, in their rings.
//!
//! The pages beside the rings, which say what is in them, are spared: what they do to a connection has nothing to do with payload.

use super::memory::{Mapping, Memory, Part};
use super::{Process, Strike};
use crate::error::{Error, Result, error};
use crate::operator;
use eft_base::Random;
use eft_channel::socket::{ARENA_HEADER_LEN, Geometry, SOCKET_HEADER_LEN};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bits that one fault flips at most. Most bytes of a pool or a ring are written before they are read next: of 250 faults of one
/// bit one damaged what a program got.
const FLIPS: usize = 256;

/// How the arenas of a stack's programs are cut, by the names of their segments.
type Arenas = BTreeMap<String, Geometry>;

/// Flips bits of the payload that this process writes.
pub fn strike(stack: &str, pid: u32, random: &mut Random) -> Result<Strike> {
    let process = Process::open(pid)?;
    let memory = Memory::open(process.pid)?;
    let arenas = arenas(stack, &memory)?;
    let mut pages: Vec<_> = memory
        .touched_pages(Part::Payload)
        .into_iter()
        .filter(|(mapping, page)| is_payload(&arenas, mapping, *page))
        .collect();
    if pages.is_empty() {
        return Err(Error::Missing("it has written no packets".into()));
    }
    // One in a page, so that no packet of usual size has two: where these flip the same bit of two words, one to 0 and the other
    // to 1, the sum stays as it was.
    let flips = FLIPS.min(pages.len());
    let mut struck: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..flips {
        let page = pages.swap_remove(random.below(pages.len() as u64) as usize);
        let (name, address) = memory.pick_among(&[page], Part::Payload, random);
        memory.flip(address, random)?;
        *struck.entry(name).or_default() += 1;
    }
    let places: Vec<String> = struck.iter().map(|(name, bits)| format!("{bits} in {name}")).collect();
    Ok(Strike::now(format!("{flips} bits: {}", places.join(", "))))
}

/// All of a pool is, and of an arena what is in its rings.
fn is_payload(arenas: &Arenas, mapping: &Mapping, page: u64) -> bool {
    let Some(name) = mapping.segment() else { return false };
    match arenas.get(name) {
        Some(geometry) => is_in_a_ring(geometry, mapping.offset_of(page) as usize),
        None => !is_of_a_domain(name),
    }
}

fn is_in_a_ring(geometry: &Geometry, offset: usize) -> bool {
    offset.checked_sub(ARENA_HEADER_LEN).is_some_and(|behind| behind % geometry.stride() >= SOCKET_HEADER_LEN)
}

fn is_of_a_domain(segment: &str) -> bool {
    segment.starts_with("domain-")
}

/// Asks the supervisor about those that the process writes. One that has just ended is left out.
fn arenas(stack: &str, memory: &Memory) -> Result<Arenas> {
    let mut arenas = Arenas::new();
    for segment in memory.mappings(Part::Payload).filter_map(Mapping::segment) {
        let number = segment.strip_prefix("domain-").and_then(|number| number.parse::<u32>().ok());
        let Some(number) = number.filter(|_| !arenas.contains_key(segment)) else { continue };
        match operator::ask(stack, &json!({ "op": "domain", "domain": number })) {
            Ok((answer, _)) => drop(arenas.insert(segment.into(), geometry(&answer["shape"])?)),
            Err(Error::Missing(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(arenas)
}

fn geometry(shape: &Value) -> Result<Geometry> {
    let of = |name: &str| shape[name].as_u64().map_or(0, |bytes| bytes as usize);
    let geometry = Geometry { slots: of("slots"), send_len: of("send_len"), receive_len: of("receive_len") };
    if geometry.is_valid() { Ok(geometry) } else { Err(error!(Protocol, "the stack named no shape")) }
}

#[cfg(test)]
mod tests;
