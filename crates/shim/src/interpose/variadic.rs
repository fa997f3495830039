//! Functions with a variable number of arguments: `execl` and its kin, `dprintf`.
//!
//! Stable Rust cannot take such arguments, so each symbol is a few instructions that lay the
//! argument registers out in memory and call a function with their address.

use core::ffi::{c_char, c_int};

type Strings = *const *const c_char;

/// Arguments that the callee receives in registers.
#[cfg(target_arch = "x86_64")]
const REGISTERS: usize = 6;
#[cfg(target_arch = "aarch64")]
const REGISTERS: usize = 8;

/// More arguments than any program passes to execl.
const ARGUMENTS_MAX: usize = 1024;

/// The arguments of a call, in order.
struct Arguments {
    registers: *const usize,
    stack: *const usize,
    next: usize,
}

impl Arguments {
    /// # Safety
    /// The caller passed at least this many arguments.
    unsafe fn next(&mut self) -> usize {
        let i = self.next;
        self.next += 1;
        // SAFETY: by the caller.
        unsafe {
            match i {
                i if i < REGISTERS => *self.registers.add(i),
                i => *self.stack.add(i - REGISTERS),
            }
        }
    }
}

/// Collects the strings of an `execl` call up to its null, and the environment after it if asked.
unsafe fn run(
    registers: *const usize,
    stack: *const usize,
    has_environment: bool,
    call: unsafe fn(*const c_char, Strings, Option<Strings>) -> c_int,
) -> c_int {
    let mut arguments = Arguments { registers, stack, next: 0 };
    let mut argv = [core::ptr::null::<c_char>(); ARGUMENTS_MAX];
    // SAFETY: the contract of execl: a null ends the list.
    unsafe {
        let path = arguments.next() as *const c_char;
        for place in &mut argv[..ARGUMENTS_MAX - 1] {
            *place = arguments.next() as *const c_char;
            if place.is_null() {
                break;
            }
        }
        let environment = has_environment.then(|| arguments.next() as Strings);
        call(path, argv.as_ptr(), environment)
    }
}

unsafe extern "C" fn execl_with(registers: *const usize, stack: *const usize) -> c_int {
    // SAFETY: the program's call, as are all below.
    unsafe { run(registers, stack, false, |p, a, _| super::programs::execv(p, a)) }
}

unsafe extern "C" fn execlp_with(registers: *const usize, stack: *const usize) -> c_int {
    // SAFETY: as above.
    unsafe { run(registers, stack, false, |p, a, _| super::programs::execvp(p, a)) }
}

unsafe extern "C" fn execle_with(registers: *const usize, stack: *const usize) -> c_int {
    // SAFETY: as above.
    unsafe {
        run(registers, stack, true, |p, a, e| super::programs::execve(p, a, e.unwrap_or(core::ptr::null())))
    }
}

macro_rules! spread {
    ($($name:ident => $with:ident;)*) => {$(
        /// Lays its arguments out for the function above.
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            core::arch::naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "sub rsp, 48",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov rdi, rsp",
                "lea rsi, [rbp + 16]",
                "call {with}",
                "leave",
                "ret",
                with = sym $with,
            )
        }

        /// Lays its arguments out for the function above.
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "add x0, sp, #16",
                "add x1, x29, #80",
                "bl {with}",
                "ldp x29, x30, [sp], #80",
                "ret",
                with = sym $with,
            )
        }
    )*};
}

spread! {
    execl => execl_with;
    execlp => execlp_with;
    execle => execle_with;
}

unsafe extern "C" fn dprintf_with(fd: c_int, format: *const c_char, list: *mut core::ffi::c_void) -> c_int {
    // SAFETY: as above; `list` is a va_list.
    unsafe { super::streams::vdprintf(fd, format, list) }
}

unsafe extern "C" fn dprintf_chk_with(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    list: *mut core::ffi::c_void,
) -> c_int {
    // SAFETY: as above.
    unsafe { super::streams::__vdprintf_chk(fd, flag, format, list) }
}

// A va_list on x86-64 (System V ABI §3.5.7): offsets into the register save area of the next
// general and floating argument, the stack arguments, the register save area.
#[cfg(target_arch = "x86_64")]
macro_rules! listed {
    ($($name:ident, $named:literal, $list:literal => $with:ident;)*) => {$(
        /// Makes a va_list of its arguments after the named ones.
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            core::arch::naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "sub rsp, 208",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "movaps [rsp + 48], xmm0",
                "movaps [rsp + 64], xmm1",
                "movaps [rsp + 80], xmm2",
                "movaps [rsp + 96], xmm3",
                "movaps [rsp + 112], xmm4",
                "movaps [rsp + 128], xmm5",
                "movaps [rsp + 144], xmm6",
                "movaps [rsp + 160], xmm7",
                "mov dword ptr [rsp + 176], {named} * 8",
                "mov dword ptr [rsp + 180], 48",
                "lea rax, [rbp + 16]",
                "mov [rsp + 184], rax",
                "mov [rsp + 192], rsp",
                concat!("lea ", $list, ", [rsp + 176]"),
                "call {with}",
                "leave",
                "ret",
                named = const $named,
                with = sym $with,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
listed! {
    dprintf, 2, "rdx" => dprintf_with;
    __dprintf_chk, 3, "rcx" => dprintf_chk_with;
}

// A va_list on aarch64 (AAPCS64, appendix B): stack arguments, ends of the general and floating
// save areas, (negative) offsets from those ends.
#[cfg(target_arch = "aarch64")]
macro_rules! listed_aarch64 {
    ($($name:ident, $named:literal, $list:literal => $with:ident;)*) => {$(
        /// Makes a va_list of its arguments after the named ones.
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-240]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #48]",
                "stp x2, x3, [sp, #64]",
                "stp x4, x5, [sp, #80]",
                "stp x6, x7, [sp, #96]",
                "stp q0, q1, [sp, #112]",
                "stp q2, q3, [sp, #144]",
                "stp q4, q5, [sp, #176]",
                "stp q6, q7, [sp, #208]",
                "add x9, x29, #240",
                "str x9, [sp, #16]",
                "add x9, sp, #112",
                "str x9, [sp, #24]",
                "add x9, sp, #240",
                "str x9, [sp, #32]",
                "mov w9, #-(64 - {named} * 8)",
                "str w9, [sp, #40]",
                "mov w9, #-128",
                "str w9, [sp, #44]",
                concat!("add ", $list, ", sp, #16"),
                "bl {with}",
                "ldp x29, x30, [sp], #240",
                "ret",
                named = const $named,
                with = sym $with,
            )
        }
    )*};
}

#[cfg(target_arch = "aarch64")]
listed_aarch64! {
    dprintf, 2, "x2" => dprintf_with;
    __dprintf_chk, 3, "x3" => dprintf_chk_with;
}
