//! A thread that sleeps until a server begins to die. The supervisor itself sleeps on descriptors, and a process closes none
//! before the kernel has taken its memory apart.

use crate::futex::WaitSet;
use crate::life;
use crate::{Doing, Result, futex};
use eft_channel::Shared;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

#[derive(Default)]
struct Watch {
    /// The words of servers that hold theirs.
    words: Mutex<Vec<Shared<AtomicU32>>>,
    /// Changes with `words`; the thread sleeps on it, too.
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

    /// Takes the news; what they are is for the kernel to say.
    pub fn take(&self) {
        let _ = rustix::io::read(&*self.told, &mut [0; 8]);
    }

    /// Watches a server that holds its word, until it dies.
    pub fn add(&self, word: Shared<AtomicU32>) {
        let mut words = self.watch.words();
        // A successor has the page of its predecessor.
        if !words.iter().any(|known| std::ptr::eq(&**known, &*word)) {
            words.push(word);
        }
        drop(words);
        self.watch.stir();
    }
}

impl Drop for Deathwatch {
    fn drop(&mut self) {
        self.watch.ends.store(true, Ordering::Release);
        self.watch.stir();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Watch {
    fn words(&self) -> std::sync::MutexGuard<'_, Vec<Shared<AtomicU32>>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stir(&self) {
        self.changed.fetch_add(1, Ordering::Release);
        futex::wake(&self.changed);
    }

    fn keep_watch(&self, told: &OwnedFd) {
        let mut set = WaitSet::default();
        while !self.ends.load(Ordering::Acquire) {
            set.clear();
            set.add(&self.changed, self.changed.load(Ordering::Acquire));
            let mut words = self.words().clone();
            let held = |word: &Shared<AtomicU32>| {
                let value = word.load(Ordering::Acquire);
                life::is_held(value) && set.add(word, value)
            };
            let before = words.len();
            words.retain(held);
            if words.len() < before {
                self.words().retain(|word| life::is_held(word.load(Ordering::Acquire)));
                let _ = rustix::io::write(told, &1u64.to_ne_bytes());
            }
            // Servers die unwatched where the kernel cannot do this; then their end is noticed later.
            if !set.wait(None) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
