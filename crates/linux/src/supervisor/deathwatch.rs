//! A thread that sleeps until a server begins to die. The supervisor itself sleeps on descriptors, and a process closes none
//! before the kernel has taken its memory apart.

use crate::futex::WaitSet;
use crate::life::{self, Witness};
use crate::{Doing, Result, futex};
use eft_channel::Shared;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A server, and the word that it holds.
struct Watched {
    word: Shared<AtomicU32>,
    pid: u32,
    /// `None`: it has ended already.
    witness: Option<Witness>,
}

/// A process whose word was marked, and how it ends; `None`: it lives on.
type Told = (u32, Option<String>);

#[derive(Default)]
struct Watch {
    servers: Mutex<Vec<Watched>>,
    /// Those whose words were marked.
    told: Mutex<Vec<Told>>,
    /// Changes with `servers`; the thread sleeps on it, too.
    changed: AtomicU32,
    ends: AtomicBool,
}

/// Tells deaths by a descriptor.
pub struct Deathwatch {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
    told: Arc<OwnedFd>,
}

impl Deathwatch {
    pub fn start() -> Result<Deathwatch> {
        let told = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).doing("eventfd")?);
        let watch = Arc::<Watch>::default();
        let (watched, telling) = (watch.clone(), told.clone());
        let thread = std::thread::Builder::new()
            .name("deathwatch".into())
            .stack_size(128 << 10)
            .spawn(move || watched.keep_watch(&telling))
            .doing("the thread that watches for deaths")?;
        Ok(Deathwatch { watch, thread: Some(thread), told })
    }

    /// Readable when a server may have begun to die.
    pub fn descriptor(&self) -> &OwnedFd {
        &self.told
    }

    /// The processes whose words were marked since the last call. Whether they die is for the kernel to say, and said.
    pub fn take(&self) -> Vec<Told> {
        let _ = rustix::io::read(&*self.told, &mut [0; 8]);
        std::mem::take(&mut lock(&self.watch.told))
    }

    /// Watches a server that holds its word, until the word is marked.
    pub fn add(&self, word: Shared<AtomicU32>, pid: u32) {
        let mut servers = lock(&self.watch.servers);
        // A successor has the page of its predecessor.
        servers.retain(|known| !std::ptr::eq(&*known.word, &*word));
        servers.push(Watched { word, pid, witness: Witness::of(pid) });
        drop(servers);
        self.watch.stir();
    }

    /// This process has ended: its number may soon be another's.
    pub fn forget(&self, pid: u32) {
        lock(&self.watch.servers).retain(|server| server.pid != pid);
    }
}

impl Drop for Deathwatch {
    fn drop(&mut self) {
        self.watch.ends.store(true, Ordering::Release);
        self.watch.stir();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    fn stir(&self) {
        self.changed.fetch_add(1, Ordering::Release);
        futex::wake(&self.changed);
    }

    fn keep_watch(&self, told: &OwnedFd) {
        let mut set = WaitSet::default();
        while !self.ends.load(Ordering::Acquire) {
            set.clear();
            set.add(&self.changed, self.changed.load(Ordering::Acquire));
            let words = self.look(&mut set);
            if !lock(&self.told).is_empty() {
                let _ = rustix::io::write(told, &1u64.to_ne_bytes());
            }
            // Servers die unwatched where the kernel cannot do this; then their end is noticed later.
            if !set.wait(None) {
                return;
            }
            drop(words);
        }
    }

    /// Adds the words of all who live to the set, and returns them: they stay mapped while the thread sleeps. Those who die
    /// run last from now on: the kernel's work on one would keep even the supervisor from the CPU.
    fn look(&self, set: &mut WaitSet) -> Vec<Shared<AtomicU32>> {
        let mut words = Vec::new();
        lock(&self.servers).retain(|Watched { word, pid, witness }| {
            let value = word.load(Ordering::Acquire);
            let lives = life::is_held(value);
            if !lives {
                // It is a child that has not been reaped, so no other process has its number. A stray write may have marked
                // the word of one that lives on.
                let how = witness.as_ref().and_then(Witness::ending);
                if how.is_some() {
                    life::step_aside(*pid);
                }
                lock(&self.told).push((*pid, how));
            } else if set.add(word, value) {
                words.push(word.clone());
            }
            lives
        });
        words
    }
}

#[cfg(test)]
mod tests;
