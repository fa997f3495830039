//! A guest that is a QEMU with software emulation, running a boot sector: always, or for a share of its time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use eft_host::sensors::{Tree, tasks};
use eft_machine::CpuSet;

use super::guest::Guest;
use crate::ground::End;

const PROGRAM: &str = "qemu-system-x86_64";
/// What QEMU calls its first vCPU's thread.
const VCPU: &str = "CPU 0/TCG";
/// Longest wait until the firmware has loaded the boot sector.
const BOOT: Duration = Duration::from_secs(30);
/// Rounds of the paced program that are tried first, how often others are tried, and how near its share is to be.
const ROUNDS_TRIED: u32 = 500;
const TRIES: u32 = 5;
const NEAR: f64 = 0.02;

pub fn is_there() -> bool {
    Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A boot sector, in 16-bit code: so many rounds of 1000 turns of a loop, then a rest until the next interrupt, which is the
/// timer's, 18.2 times a second. Without rounds it never rests.
fn boot_sector(rounds: Option<u32>) -> [u8; 512] {
    let mut code = vec![0x31, 0xc0, 0x8e, 0xd8, 0xfb]; // xor ax,ax; mov ds,ax; sti
    match rounds {
        None => code.extend([0xeb, 0xfe]), // jmp to itself
        Some(rounds) => {
            code.extend([0x66, 0xba]); // mov edx,rounds
            code.extend(rounds.to_le_bytes());
            code.extend([0xb9, 0xe8, 0x03, 0xe2, 0xfe]); // mov cx,1000; loop to itself
            code.extend([0x66, 0x4a, 0x75, 0xf7]); // dec edx; jnz back to mov cx
            code.extend([0xf4, 0xeb, 0xee]); // hlt; jmp back to mov edx
        }
    }
    let mut sector = [0; 512];
    sector[..code.len()].copy_from_slice(&code);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// Starts a guest and waits until its program runs.
fn boot(name: &str, dir: &Path, rounds: Option<u32>) -> Result<Guest> {
    let failed = |what: &str, error: std::io::Error| anyhow!("{PROGRAM}: {what} ({error})");
    std::fs::create_dir_all(dir).map_err(|error| failed("no folder for its disk", error))?;
    let disk = dir.join(format!("{name}.img"));
    std::fs::write(&disk, boot_sector(rounds)).map_err(|error| failed("no disk", error))?;
    let child = Command::new(PROGRAM)
        .args(["-accel", "tcg,thread=multi", "-m", "16", "-display", "none", "-monitor", "none"])
        .args(["-serial", "none", "-nic", "none", "-name", &format!("{name},debug-threads=on")])
        .args(["-drive", &format!("file={},format=raw,if=floppy", disk.display()), "-boot", "a"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed("it cannot be started", error))?;
    let (tree, pid) = (Tree::live(), child.id() as i32);
    let mut guest = Guest::new(child, pid);
    let until = Instant::now() + BOOT;
    let vcpu = || {
        let named = |tid: &i32| tasks::read(&tree, pid, *tid).is_some_and(|task| task.name == VCPU);
        tasks::threads(&tree, pid).into_iter().find(named)
    };
    while Instant::now() < until {
        if let Some(thread) = vcpu() {
            guest.set_thread(thread);
            // The firmware takes about a second of work.
            while guest.run_ns() < 1_500_000_000 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            return Ok(guest);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("{PROGRAM} has no thread called '{VCPU}'")
}

/// Rounds of the loop that take `share` of a full-speed CPU, as near as some tries come. A part of each rest is work, too:
/// the emulator's own, for the interrupt. So what some rounds take says only about where to try next.
pub fn pace(share: f64, dir: &Path, fast: &CpuSet, end: &End) -> Result<u32> {
    let (mut rounds, mut nearest) = (ROUNDS_TRIED, (f64::MAX, ROUNDS_TRIED));
    for _ in 0..TRIES {
        let used = use_of(rounds, dir, fast, end)?;
        let off = (used - share).abs();
        if off < nearest.0 {
            nearest = (off, rounds);
        }
        if off <= NEAR {
            break;
        }
        // A guest that never rests has more rounds than fit; how many more does not show.
        rounds = if used > 0.9 { rounds / 4 } else { (f64::from(rounds) * share / used.max(0.01)) as u32 };
        rounds = rounds.clamp(1, 1_000_000);
    }
    match nearest {
        (off, rounds) if off < share / 2.0 => Ok(rounds),
        _ => bail!("{PROGRAM}: no guest comes near {:.0}% of a CPU here", share * 100.0),
    }
}

/// The share of the CPU that a guest with this many rounds takes.
fn use_of(rounds: u32, dir: &Path, fast: &CpuSet, end: &End) -> Result<f64> {
    let guest = boot("bench-pace", dir, Some(rounds))?;
    guest.put(fast)?;
    // The firmware may not be done yet.
    end.sleep(Duration::from_secs(1))?;
    let (before, begin) = (guest.run_ns(), Instant::now());
    end.sleep(Duration::from_secs(2))?;
    Ok((guest.run_ns() - before) as f64 / begin.elapsed().as_nanos() as f64)
}

pub fn start(name: &str, dir: &Path, rounds: Option<u32>) -> Result<Guest> {
    boot(name, dir, rounds)
}

#[cfg(test)]
mod tests;
