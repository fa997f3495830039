//! Tells a service manager that the stack is ready, and that its supervisor lives (sd_notify(3): datagrams to
//! `$NOTIFY_SOCKET`).

use eft_linux::supervisor::News;
use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The service manager, if there is one.
pub struct Manager {
    path: Option<OsString>,
    watchdog: Option<Watchdog>,
}

/// The manager ends a service that is silent for too long.
struct Watchdog {
    /// Between two signs of life: half of the time after which the manager acts.
    interval: Duration,
    last: Option<Instant>,
}

impl Watchdog {
    /// `microseconds` are those of `$WATCHDOG_USEC`; `process` is the one that must report, `$WATCHDOG_PID`.
    fn of(microseconds: Option<&str>, process: Option<&str>) -> Option<Watchdog> {
        let microseconds: u64 = microseconds?.parse().ok().filter(|n| *n > 0)?;
        let is_other = process.is_some_and(|pid| pid.parse() != Ok(std::process::id()));
        let interval = Duration::from_micros(microseconds / 2);
        (!is_other).then_some(Watchdog { interval, last: None })
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.last.is_none_or(|last| now >= last + self.interval);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

impl Manager {
    pub fn from_environment() -> Manager {
        let variable = |name| std::env::var(name).ok();
        let (microseconds, process) = (variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
        Manager {
            path: std::env::var_os("NOTIFY_SOCKET"),
            watchdog: Watchdog::of(microseconds.as_deref(), process.as_deref()),
        }
    }

    /// Without a service manager nothing is told. One that cannot be reached is its own problem: the stack runs.
    pub fn tell(&mut self, news: News) {
        let Some(path) = &self.path else { return };
        let told = match news {
            News::Ready => tell(path.as_encoded_bytes(), b"READY=1"),
            News::Alive if self.watchdog.as_mut().is_some_and(|w| w.is_due(Instant::now())) => {
                // If it cannot be told now, the next one comes in time.
                return drop(tell(path.as_encoded_bytes(), b"WATCHDOG=1"));
            }
            News::Alive => return,
        };
        if let Err(e) = told {
            eprintln!(
                "eft: the service manager at $NOTIFY_SOCKET cannot be told that the stack is ready: {e}"
            );
        }
    }
}

fn tell(path: &[u8], message: &[u8]) -> std::io::Result<()> {
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    // The supervisor waits for nobody; only the first message must arrive.
    socket.set_nonblocking(message != b"READY=1")?;
    socket.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests;
