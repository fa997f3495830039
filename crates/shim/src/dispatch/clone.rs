//! `clone` with a stack of its own, and the return from a signal handler: calls after which the thread
//! continues elsewhere than in our handler.

use crate::sys;

/// Lies at the top of a new stack. The gate's `ret` takes the first word.
#[repr(C)]
struct Start {
    begin: unsafe extern "C" fn(),
    /// In the order in which `begin` takes them: rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12 to r15.
    registers: [usize; 12],
    next: usize,
}

/// Makes the child. It begins at `next` with these registers, 0 as the result and the stack that the program
/// gave it, as if the call had been made there. Gives the kernel's result for the parent.
///
/// # Safety
/// As for the system call; the stack must have room for a few hundred bytes.
pub unsafe fn clone(mut args: [usize; 6], registers: [usize; 12], next: usize) -> isize {
    let place = args[1].wrapping_sub(size_of::<Start>()) as *mut Start;
    // SAFETY: the program's stack for the child; the child finds there where it begins.
    unsafe {
        place.write_unaligned(Start { begin, registers, next });
        args[1] = place as usize;
        sys::raw(libc::SYS_clone, args)
    }
}

/// The first instructions of the child.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    core::arch::naked_asm!(
        "mov rbx, rsp",
        "and rsp, -16",
        "call {cloned}",
        "mov rsp, rbx",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop r10",
        "pop r8",
        "pop r9",
        "pop rbx",
        "pop rbp",
        "pop r12",
        "pop r13",
        "pop r14",
        "pop r15",
        "xor eax, eax",
        "ret",
        cloned = sym super::cloned,
    )
}

/// Returns from the handler whose frame lies at `stack`, as the program's own instruction would have. This
/// leaves our handler, too.
///
/// # Safety
/// `stack` must be the stack pointer with which the program made its `rt_sigreturn`.
#[unsafe(naked)]
pub unsafe extern "C" fn leave(stack: usize, gate: usize) -> ! {
    core::arch::naked_asm!(
        "mov rsp, rdi",
        "mov eax, {number}",
        "jmp rsi",
        number = const libc::SYS_rt_sigreturn,
    )
}
