//! What the processor can do.

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
    use core::sync::atomic::AtomicU8;
    use core::sync::atomic::Ordering::Relaxed;

    /// What [`has_avx2`] said; 0: it was not asked yet.
    static FOUND: AtomicU8 = AtomicU8::new(0);
    const THERE: u8 = 1;
    const ABSENT: u8 = 2;

    /// Whether the processor has AVX2 and the kernel saves its registers. It is asked once: in a virtual machine CPUID is carried out
    /// by the host, and takes microseconds.
    pub fn has_avx2() -> bool {
        if FOUND.load(Relaxed) == 0 {
            FOUND.store(if ask() { THERE } else { ABSENT }, Relaxed);
        }
        FOUND.load(Relaxed) == THERE
    }

    /// Asks the processor (Intel SDM, volume 1, section 14.7.1).
    fn ask() -> bool {
        const OSXSAVE_AVX: u32 = 1 << 27 | 1 << 28;
        const AVX2: u32 = 1 << 5;
        const XMM_YMM: u64 = 0b110;
        if __cpuid(0).eax < 7
            || __cpuid(1).ecx & OSXSAVE_AVX != OSXSAVE_AVX
            || __cpuid_count(7, 0).ebx & AVX2 == 0
        {
            return false;
        }
        // SAFETY: OSXSAVE says that the kernel allows the instruction.
        unsafe { kept() & XMM_YMM == XMM_YMM }
    }

    /// The register sets that the kernel saves (XCR0).
    #[target_feature(enable = "xsave")]
    fn kept() -> u64 {
        // SAFETY: register 0 exists wherever the instruction does.
        unsafe { _xgetbv(0) }
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::has_avx2;
