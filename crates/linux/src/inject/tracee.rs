//! A process that is traced (ptrace(2)): it is stopped, executes single instructions, and is released.

use crate::{Doing, Error, Result};
use rustix::process::{getpriority_process, setpriority_process};
use std::time::{Duration, Instant};

/// An instruction that jumps to itself.
#[cfg(target_arch = "x86_64")]
pub const ENDLESS: &[u8] = &[0xeb, 0xfe];
#[cfg(target_arch = "aarch64")]
pub const ENDLESS: &[u8] = &[0x00, 0x00, 0x00, 0x14];
/// `movq $0, 0`; `mov x0, #0` and `str x0, [x0]`.
#[cfg(target_arch = "x86_64")]
pub const WRITE_THROUGH_NULL: &[u8] = &[0x48, 0xc7, 0x04, 0x25, 0, 0, 0, 0, 0, 0, 0, 0];
#[cfg(target_arch = "aarch64")]
pub const WRITE_THROUGH_NULL: &[u8] = &[0x00, 0x00, 0x80, 0xd2, 0x00, 0x00, 0x00, 0xf9];
/// In DR7: the first address is watched, for writes, eight bytes of it (Intel SDM, volume 3, 19.2.4).
#[cfg(target_arch = "x86_64")]
const WATCH_WRITES: u64 = 1 | 0b1001 << 16;
/// Bytes of an instruction, or of most of one.
pub const INSTRUCTION: u64 = 4;

/// System calls that send.
const SENDS: &[(i64, &str)] = &[
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
];

/// A stopped process. Dropping this releases it; so does the kernel if the tracer dies.
pub struct Tracee {
    pid: i32,
    released: bool,
    _haste: Haste,
}

/// The niceness of this thread while it holds a process, that of a stack's servers: a process that is traced runs only as often as
/// its tracer does, and a supervisor whose tracer waits for a CPU for seconds is killed by its watchdog.
const NICE: i32 = -11;

/// Without the privilege the thread stays as it is. The former niceness comes back with the drop.
struct Haste(Option<i32>);

impl Haste {
    fn begin() -> Haste {
        let before = getpriority_process(None).ok().filter(|before| *before > NICE);
        Haste(before.filter(|_| setpriority_process(None, NICE).is_ok()))
    }
}

impl Drop for Haste {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = setpriority_process(None, before);
        }
    }
}

impl Tracee {
    pub fn seize(pid: u32) -> Result<Tracee> {
        let pid = pid as i32;
        let haste = Haste::begin();
        request(libc::PTRACE_SEIZE, pid, 0, libc::PTRACE_O_TRACESYSGOOD as usize).doing(
            "it cannot be stopped (only its own user and root may, and only one debugger at a time)",
        )?;
        let mut tracee = Tracee { pid, released: false, _haste: haste };
        tracee.interrupt()?;
        Ok(tracee)
    }

    fn interrupt(&mut self) -> Result<()> {
        request(libc::PTRACE_INTERRUPT, self.pid, 0, 0).doing("it cannot be stopped")?;
        self.wait(Duration::from_secs(5))?
            .map(drop)
            .ok_or_else(|| Error::Missing("it cannot be stopped".into()))
    }

    /// Waits for the next stop and returns its status; `None`: the process has not stopped within `limit`.
    fn wait(&mut self, limit: Duration) -> Result<Option<i32>> {
        let until = Instant::now() + limit;
        let mut polls = 0;
        loop {
            let mut status = 0;
            // SAFETY: waits for a process that we trace; `status` lives through the call.
            match unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG | libc::__WALL) } {
                0 if Instant::now() >= until => return Ok(None),
                0 => {
                    polls += 1;
                    // One instruction takes some microseconds in this way. While the process sleeps, the tracer must
                    // not spin.
                    if polls > 200 {
                        std::thread::sleep(Duration::from_micros(200));
                    } else {
                        std::thread::yield_now();
                    }
                }
                n if n < 0 => return Err(std::io::Error::last_os_error()).doing("the process"),
                _ if libc::WIFSTOPPED(status) => return Ok(Some(status)),
                _ => {
                    self.released = true;
                    return Err(Error::Gone("it died meanwhile".into()));
                }
            }
        }
    }

    /// Lets the process run in the mode `how` until the tracer's own stop. Other signals are passed on to it.
    fn go_on(&mut self, how: u32, limit: Duration) -> Result<Option<i32>> {
        let mut signal = 0;
        loop {
            request(how, self.pid, 0, signal).doing("it cannot go on")?;
            let Some(status) = self.wait(limit)? else { return Ok(None) };
            let stop = libc::WSTOPSIG(status);
            if stop & !0x80 == libc::SIGTRAP {
                return Ok(Some(status));
            }
            signal = stop as usize;
        }
    }

    /// Executes `count` instructions. Returns how many were executed before the process slept for longer than
    /// `patience`, or within `limit`.
    pub fn step(&mut self, count: u64, patience: Duration, limit: Duration) -> Result<u64> {
        let until = Instant::now() + limit;
        for done in 0..count {
            if Instant::now() >= until {
                return Ok(done);
            }
            if self.go_on(libc::PTRACE_SINGLESTEP, patience)?.is_none() {
                self.interrupt()?;
                self.end_step()?;
                return Ok(done);
            }
        }
        Ok(count)
    }

    /// Lets it run for at most `limit`, until it has just written to this word and it then `names` something. False: it has not,
    /// or this machine cannot tell.
    #[cfg(target_arch = "x86_64")]
    pub fn run_to_write(&mut self, address: u64, limit: Duration, names: impl Fn() -> bool) -> Result<bool> {
        if self
            .set_debug_register(0, address)
            .and_then(|()| self.set_debug_register(7, WATCH_WRITES))
            .is_err()
        {
            return Ok(false);
        }
        let until = Instant::now() + limit;
        let found = loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break false;
            }
            if self.go_on(libc::PTRACE_CONT, left)?.is_none() {
                self.interrupt()?;
                break false;
            }
            if names() {
                break true;
            }
        };
        self.set_debug_register(7, 0).doing("its debug registers")?;
        Ok(found)
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn run_to_write(&mut self, _: u64, _: Duration, _: impl Fn() -> bool) -> Result<bool> {
        Ok(false)
    }

    #[cfg(target_arch = "x86_64")]
    fn set_debug_register(&mut self, n: usize, value: u64) -> std::io::Result<()> {
        let at = std::mem::offset_of!(libc::user, u_debugreg) + n * size_of::<u64>();
        request(libc::PTRACE_POKEUSER, self.pid, at, value as usize)
    }

    /// Ends a step that was begun before a sleep: it has become a SIGTRAP, which would kill the process after its
    /// release.
    fn end_step(&mut self) -> Result<()> {
        request(libc::PTRACE_CONT, self.pid, 0, 0).doing("it cannot go on")?;
        if self.wait(Duration::from_millis(10))?.is_none() {
            self.interrupt()?;
        }
        Ok(())
    }

    /// Makes the next system call that sends (except to an eventfd) return ENOMEM without being executed.
    #[cfg(target_arch = "x86_64")]
    pub fn fail_a_send(&mut self, patience: Duration) -> Result<(&'static str, i32)> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.go_on(libc::PTRACE_SYSCALL, left)?.is_none() || left.is_zero() {
                return Err(Error::Missing(format!(
                    "it sent nothing through the kernel for {} s",
                    patience.as_secs_f32()
                )));
            }
            let Some((number, fd)) = self.beginning_call()? else { continue };
            let call = SENDS.iter().find(|(send, _)| *send as u64 == number);
            let Some((_, name)) = call.filter(|_| !self.is_event(fd)) else { continue };
            let mut registers = self.registers()?;
            registers.orig_rax = u64::MAX;
            self.set_registers(&registers)?;
            // A result that is written anywhere but at the call's end would be that of another call, or of none.
            if self.go_on(libc::PTRACE_SYSCALL, patience)?.is_none() || !self.ends_call()? {
                return Err(Error::Missing("its call did not end".into()));
            }
            let mut registers = self.registers()?;
            registers.rax = -i64::from(libc::ENOMEM) as u64;
            self.set_registers(&registers)?;
            return Ok((name, fd));
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn fail_a_send(&mut self, _patience: Duration) -> Result<(&'static str, i32)> {
        Err(Error::Missing("a call can be made to fail on x86-64 only".into()))
    }

    /// The number of the system call at whose beginning it stands, and the call's first argument, a descriptor.
    #[cfg(target_arch = "x86_64")]
    fn beginning_call(&self) -> Result<Option<(u64, i32)>> {
        let info = self.call_info()?;
        // SAFETY: every variant is plain numbers, which were zeroed. At a call's beginning the kernel has filled in this one.
        let begins = (info.op == libc::PTRACE_SYSCALL_INFO_ENTRY).then_some(unsafe { info.u.entry });
        Ok(begins.map(|entry| (entry.nr, entry.args[0] as i32)))
    }

    #[cfg(target_arch = "x86_64")]
    fn ends_call(&self) -> Result<bool> {
        Ok(self.call_info()?.op == libc::PTRACE_SYSCALL_INFO_EXIT)
    }

    /// What the kernel says of the stop (ptrace(2), PTRACE_GET_SYSCALL_INFO).
    #[cfg(target_arch = "x86_64")]
    fn call_info(&self) -> Result<libc::ptrace_syscall_info> {
        // SAFETY: plain numbers; zero is a valid value of each.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::ptrace_syscall_info>();
        request(libc::PTRACE_GET_SYSCALL_INFO, self.pid, size, (&raw mut info) as usize).doing("its call")?;
        Ok(info)
    }

    /// Whether the descriptor is an eventfd: waking a neighbour cannot fail for lack of memory.
    #[cfg(target_arch = "x86_64")]
    fn is_event(&self, fd: i32) -> bool {
        let link = std::fs::read_link(format!("/proc/{}/fd/{fd}", self.pid)).unwrap_or_default();
        link.to_string_lossy().contains("[eventfd]")
    }

    #[cfg(target_arch = "x86_64")]
    fn set_registers(&mut self, registers: &libc::user_regs_struct) -> Result<()> {
        let place = std::ptr::from_ref(registers) as usize;
        request(libc::PTRACE_SETREGS, self.pid, 0, place).doing("its registers")
    }

    fn registers(&self) -> Result<libc::user_regs_struct> {
        // SAFETY: plain numbers; zero is a valid value of each.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let mut place = libc::iovec {
            iov_base: (&raw mut registers).cast(),
            iov_len: size_of::<libc::user_regs_struct>(),
        };
        const NT_PRSTATUS: usize = 1;
        request(libc::PTRACE_GETREGSET, self.pid, NT_PRSTATUS, (&raw mut place) as usize)
            .doing("its registers")?;
        Ok(registers)
    }

    /// The address of the next instruction, and that of the stack's end.
    pub fn instruction_and_stack(&self) -> Result<(u64, u64)> {
        let registers = self.registers()?;
        #[cfg(target_arch = "x86_64")]
        return Ok((registers.rip, registers.rsp));
        #[cfg(target_arch = "aarch64")]
        return Ok((registers.pc, registers.sp));
    }

    /// Releases the process, with a signal or none (0).
    pub fn release(mut self, signal: i32) {
        self.released = true;
        let _ = request(libc::PTRACE_DETACH, self.pid, 0, signal as usize);
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // Only one that is stopped can be released. One that was let go on would stop at its next system call, for ever.
        let release = |tracee: &Tracee| request(libc::PTRACE_DETACH, tracee.pid, 0, 0);
        if !self.released && release(self).is_err() && self.interrupt().is_ok() {
            let _ = release(self);
        }
    }
}

fn request(what: u32, pid: i32, address: usize, data: usize) -> std::io::Result<()> {
    // SAFETY: ptrace writes only to what `data` points to, in the callers' frames; the rest are plain numbers.
    let done = unsafe { libc::ptrace(what as _, pid, address, data) };
    if done < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
