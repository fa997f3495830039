//! Waiting for a change of memory from user space.
//!
//! Some processors let user code wait for a store to a cache line (Intel WAITPKG: UMONITOR and UMWAIT; AMD: MONITORX
//! and MWAITX; ARM: a load-exclusive and WFE). There, a dedicated core arms the monitor on the line that a sender
//! writes when it rings, checks once more, and sleeps until that store, as the kernel's idle loop does with MONITOR and
//! MWAIT. Elsewhere it executes PAUSE. One monitor covers one line: with several bells, the caller names the likeliest,
//! and the sleep is so short that the others are checked in time.

use eft_channel::account::Phase;
use std::sync::atomic::AtomicU32;

/// The longest sleep in cycles of the time stamp counter: if the line is one of several, and if it is the only one (a
/// tenth of the 100,000 that Linux allows user code).
#[cfg(target_arch = "x86_64")]
const CYCLES: (u32, u32) = (4_000, 10_000);

/// The instruction that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Umwait,
    Mwaitx,
    Wfe,
    Pause,
}

/// The method that this processor offers.
pub fn method() -> Method {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        use std::sync::OnceLock;
        static METHOD: OnceLock<Method> = OnceLock::new();
        *METHOD.get_or_init(|| {
            if __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & (1 << 5) != 0 {
                return Method::Umwait;
            }
            let extended = __cpuid(0x8000_0000).eax;
            if extended >= 0x8000_0001 && __cpuid(0x8000_0001).ecx & (1 << 29) != 0 {
                return Method::Mwaitx;
            }
            Method::Pause
        })
    }
    #[cfg(target_arch = "aarch64")]
    {
        Method::Wfe
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Method::Pause
    }
}

/// What the time counts as in which it is used.
pub fn phase() -> Phase {
    match method() {
        Method::Pause => Phase::Polling,
        _ => Phase::Waiting,
    }
}

/// Sleeps until another thread writes to the line of `word`, or for a short time. Does not sleep if `changed` is true
/// once the monitor is armed. The caller loops. `only`: no other line matters.
pub fn wait(word: &AtomicU32, only: bool, changed: impl Fn() -> bool) {
    match method() {
        #[cfg(target_arch = "x86_64")]
        Method::Umwait => arm_and_sleep(&Umwait(bound(only)), word, changed),
        #[cfg(target_arch = "x86_64")]
        Method::Mwaitx => arm_and_sleep(&Mwaitx(bound(only)), word, changed),
        #[cfg(target_arch = "aarch64")]
        Method::Wfe => arm_and_sleep(&Wfe, word, changed),
        _ => spin(&changed),
    }
}

/// Waits a moment without a line to watch.
pub fn spin(changed: &impl Fn() -> bool) {
    for _ in 0..32 {
        if changed() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// A processor's monitor.
trait Monitor {
    /// From now on a store to the line of `word` ends the next sleep, or prevents it.
    fn arm(&self, word: &AtomicU32);
    fn sleep(&self);
}

/// `changed` sees a store from before the monitor was armed; the monitor sees a later one.
fn arm_and_sleep(monitor: &impl Monitor, word: &AtomicU32, changed: impl Fn() -> bool) {
    monitor.arm(word);
    if !changed() {
        monitor.sleep();
    }
}

#[cfg(target_arch = "x86_64")]
fn bound(only: bool) -> u32 {
    if only { CYCLES.1 } else { CYCLES.0 }
}

#[cfg(target_arch = "x86_64")]
struct Umwait(u32);

#[cfg(target_arch = "x86_64")]
impl Monitor for Umwait {
    fn arm(&self, word: &AtomicU32) {
        // SAFETY: UMONITOR only reads the address, which is valid; CPUID says that WAITPKG is available.
        unsafe {
            std::arch::asm!(
                ".byte 0xf3, 0x0f, 0xae, 0xf0", // umonitor rax
                in("rax") word.as_ptr(),
                options(nostack, readonly, preserves_flags)
            );
        }
    }

    fn sleep(&self) {
        // SAFETY: RDTSC and UMWAIT touch no memory; CPUID says that WAITPKG is available. C0.1 (ecx = 1).
        unsafe {
            let until = std::arch::x86_64::_rdtsc() + u64::from(self.0);
            std::arch::asm!(
                ".byte 0xf2, 0x0f, 0xae, 0xf1", // umwait ecx
                in("ecx") 1u32,
                in("eax") until as u32,
                in("edx") (until >> 32) as u32,
                options(nostack)
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
struct Mwaitx(u32);

#[cfg(target_arch = "x86_64")]
impl Monitor for Mwaitx {
    fn arm(&self, word: &AtomicU32) {
        // SAFETY: MONITORX only reads the address, which is valid; CPUID says that it is available.
        unsafe {
            std::arch::asm!(
                ".byte 0x0f, 0x01, 0xfa", // monitorx rax, ecx, edx
                in("rax") word.as_ptr(),
                in("ecx") 0u32,
                in("edx") 0u32,
                options(nostack, readonly, preserves_flags)
            );
        }
    }

    fn sleep(&self) {
        // SAFETY: MWAITX touches no memory; CPUID says that it is available. ECX bit 1 enables the timer in EBX; EBX is
        // saved around it because LLVM reserves it. The hint in EAX asks for C0, from which the core wakes fastest.
        unsafe {
            std::arch::asm!(
                "mov {saved}, rbx",
                "mov ebx, {cycles:e}",
                ".byte 0x0f, 0x01, 0xfb", // mwaitx
                "mov rbx, {saved}",
                saved = out(reg) _,
                cycles = in(reg) self.0,
                in("eax") 0xf0u32,
                in("ecx") 2u32,
                options(nostack)
            );
        }
    }
}

#[cfg(target_arch = "aarch64")]
struct Wfe;

#[cfg(target_arch = "aarch64")]
impl Monitor for Wfe {
    fn arm(&self, word: &AtomicU32) {
        // SAFETY: a load from a valid address. A store by another core clears the exclusive monitor, which is an event.
        unsafe {
            std::arch::asm!("ldaxr {_v:w}, [{p}]", _v = out(reg) _, p = in(reg) word.as_ptr(), options(nostack));
        }
    }

    fn sleep(&self) {
        // SAFETY: WFE waits for an event, or the next one of the event stream (100 us on Linux); it touches no memory.
        unsafe { std::arch::asm!("wfe", options(nostack, preserves_flags)) };
    }
}

#[cfg(test)]
mod tests;
