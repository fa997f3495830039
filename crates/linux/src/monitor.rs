//! Waiting for a change of memory from user space.
//!
//! Where the processor lets user code wait in a sleep state (Intel WAITPKG: UMONITOR/UMWAIT; AMD
//! MONITORX/MWAITX) a dedicated core sleeps between looks, else it executes PAUSE. One monitored line
//! cannot cover several bells, so the wait is bounded to a few microseconds and the caller looks at
//! all of them.

/// Bound of one wait in cycles of the time stamp counter.
#[cfg(target_arch = "x86_64")]
const WAIT_CYCLES: u32 = 4_000;

/// Which instruction is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Umwait,
    Mwaitx,
    Wfe,
    Pause,
}

/// What this processor offers.
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

/// Waits a little, or until `changed` once it was armed. The caller loops.
pub fn pause(changed: impl Fn() -> bool) {
    #[cfg(target_arch = "x86_64")]
    match method() {
        Method::Umwait => {
            if !changed() {
                tpause();
            }
        }
        Method::Mwaitx => {
            if !changed() {
                mwaitx();
            }
        }
        _ => spin(&changed),
    }
    #[cfg(target_arch = "aarch64")]
    if !changed() {
        // SAFETY: WFE waits for an event or the next tick of the event stream; no memory is touched.
        unsafe { std::arch::asm!("wfe", options(nomem, nostack, preserves_flags)) };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    spin(&changed);
}

#[cfg(not(target_arch = "aarch64"))]
fn spin(changed: &impl Fn() -> bool) {
    for _ in 0..32 {
        if changed() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// TPAUSE for [`WAIT_CYCLES`] (part of WAITPKG): a light sleep that needs no monitored line.
#[cfg(target_arch = "x86_64")]
fn tpause() {
    // SAFETY: RDTSC and TPAUSE touch no memory; CPUID said that WAITPKG is there. C0.1 (ecx = 1).
    unsafe {
        let until = std::arch::x86_64::_rdtsc() + WAIT_CYCLES as u64;
        std::arch::asm!(
            ".byte 0x66, 0x0f, 0xae, 0xf1", // tpause ecx
            in("ecx") 1u32,
            in("eax") until as u32,
            in("edx") (until >> 32) as u32,
            options(nomem, nostack)
        );
    }
}

/// MONITORX on a line of our own stack and MWAITX with a timeout.
#[cfg(target_arch = "x86_64")]
fn mwaitx() {
    let line = 0u64;
    // SAFETY: MONITORX only reads the address; CPUID said that the instructions are there. ECX bit 1
    // of MWAITX enables the timer in EBX; EBX is saved around it because LLVM reserves it.
    unsafe {
        std::arch::asm!(
            "mov {saved}, rbx",
            "xor ecx, ecx",
            "xor edx, edx",
            ".byte 0x0f, 0x01, 0xfa", // monitorx rax, ecx, edx
            "mov ebx, {cycles:e}",
            "mov ecx, 2",
            "mov eax, 0xf0",
            ".byte 0x0f, 0x01, 0xfb", // mwaitx
            "mov rbx, {saved}",
            saved = out(reg) _,
            cycles = in(reg) WAIT_CYCLES,
            inout("rax") &raw const line => _,
            out("rcx") _,
            out("rdx") _,
            options(nostack, readonly)
        );
    }
}
