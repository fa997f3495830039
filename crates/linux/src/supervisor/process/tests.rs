use super::*;
use crate::ticks;
use eft_channel::notify::Mode;
use eft_control::hang::{Hang, Sample, Stage, Watch};
use eft_host::clock;
use std::time::Duration;

extern "C" fn handle_for_ever(_signal: libc::c_int) {
    loop {
        std::hint::black_box(clock::now());
    }
}

/// A process with ticks that computes for ever; in their handler, if it `hangs_there`.
struct Computing(i32);

impl Computing {
    fn start(hangs_there: bool) -> Computing {
        // SAFETY: the child makes system calls, and then only computes; the handler is async-signal-safe.
        match unsafe { libc::fork() } {
            // SAFETY: as above.
            0 => unsafe {
                // Of what other tests have open, nothing may stay open by this process.
                libc::close_range(3, u32::MAX, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                ticks::start().unwrap();
                if hangs_there {
                    libc::signal(ticks::SIGNAL, handle_for_ever as extern "C" fn(libc::c_int) as usize);
                }
                loop {
                    std::hint::black_box(clock::now());
                }
            },
            child => Computing(child),
        }
    }

    fn pid(&self) -> u32 {
        self.0 as u32
    }

    /// What the supervisor sees of it, which has counted nothing.
    fn sample(&self, watch: &Watch) -> Sample {
        let cpu = clock::process_cpu(self.pid()).unwrap();
        Sample {
            progress: 1,
            ticks: 0,
            cpu,
            holds_tick: watch.is_deaf(1, 0, cpu) && holds_signal(self.pid(), ticks::SIGNAL),
            mode: Mode::Descriptor,
            thread: ThreadState::Sleeping,
            stage: Stage::Running,
        }
    }

    /// Watches it until it hangs, or until it has computed that long.
    fn watch(&self, enough: Duration) -> Option<Hang> {
        let (mut watch, until) = (Watch::default(), clock::now() + Duration::from_secs(60));
        loop {
            let sample = self.sample(&watch);
            let hang = watch.observe(sample);
            if hang.is_some() || sample.cpu > enough {
                return hang;
            }
            assert!(clock::now() < until, "it got no CPU: {:?}", sample.cpu);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        // SAFETY: a child that has not been reaped.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn who_loops_in_the_handler_of_the_ticks_is_found() {
    let looping = Computing::start(true);
    assert_eq!(looping.watch(Duration::from_secs(30)), Some(Hang::Spinning));
    let took = clock::process_cpu(looping.pid()).unwrap();
    assert!(took < Duration::from_secs(1), "it takes a tick of CPU time for each sample: {took:?}");
}

#[test]
fn who_takes_its_ticks_holds_none() {
    let computing = Computing::start(false);
    // Its page would count them; here only the kernel is asked.
    assert_eq!(computing.watch(Duration::from_millis(600)), None);
}

#[test]
fn a_process_that_is_gone_holds_no_signal() {
    let pid = Computing::start(true).pid();
    assert!(!holds_signal(pid, ticks::SIGNAL));
}
