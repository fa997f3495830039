//! A fake stack for the shim's tests: sockets, tcp and udp in two threads of the test program.
//!
//! It keeps the contracts (control messages, socket pages, tokens, plugs, doorbells) and delivers
//! bytes from page to page within one make-believe network: every address in 10/8 is the stack's
//! own, except 10.78.0.99, which never answers. A name server sits at 10.78.0.53.
#![allow(dead_code)]

pub mod control;
pub mod dns;
pub mod network;
pub mod slots;
pub mod sys;

use control::Control;
use network::Network;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A running fake stack; ends when dropped.
pub struct Fake {
    network: Arc<Mutex<Network>>,
    control: Arc<Control>,
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// A domain of programs on the fake stack.
pub struct Domain {
    connection: OwnedFd,
}

impl Fake {
    pub fn start() -> Fake {
        let network = Arc::new(Mutex::new(Network::new()));
        let control = Arc::new(Control::new(network.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let threads = vec![
            std::thread::spawn({
                let (control, stop) = (control.clone(), stop.clone());
                move || control.run(&stop)
            }),
            std::thread::spawn({
                let (network, stop) = (network.clone(), stop.clone());
                move || network::run(&network, &stop)
            }),
        ];
        Fake { network, control, stop, threads }
    }

    pub fn domain(&self) -> Domain {
        let (near, far) = sys::pair();
        let id = self.network.lock().unwrap().add_domain();
        self.control.add_domain(id, far);
        Domain { connection: near }
    }

    /// As if sockets had been killed and reborn: what was not answered is forgotten.
    pub fn forget_next_request(&self) {
        self.control.drop_next.store(true, Ordering::SeqCst);
    }

    pub fn network(&self) -> std::sync::MutexGuard<'_, Network> {
        self.network.lock().unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Out of the way of programs' own descriptors, as with `eft run`.
const DOMAIN_FD: RawFd = 900;

impl Domain {
    /// A command whose program runs on the stack.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let fd = self.connection.as_raw_fd();
        command
            .env("LD_PRELOAD", library())
            .env("EFT_SHIM", library())
            .env("EFT_STACK", "fake")
            .env("EFT_LOOK", "1")
            .env("EFT_DOMAIN_FD", DOMAIN_FD.to_string());
        // SAFETY: dup2 is async-signal-safe.
        unsafe {
            command.pre_exec(move || match libc::dup2(fd, DOMAIN_FD) {
                DOMAIN_FD => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        command
    }

    pub fn fd(&self) -> RawFd {
        self.connection.as_raw_fd()
    }
}

/// The library under test, as cargo built it for this test.
pub fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("own path");
    exe.ancestors()
        .skip(1)
        .flat_map(|dir| [dir.join("deps/libeft.so"), dir.join("libeft.so")])
        .find(|path| path.exists())
        .expect("libeft.so is built before the tests")
}
