//! How a system call that was made past libc is handled.

/// `AUDIT_ARCH_X86_64`.
const OURS: u32 = 0xc000_003e;
/// Marks the numbers of the x32 interface.
const X32: i64 = 0x4000_0000;

/// What the handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// As `syscall` does: by eft, or by the kernel unchanged.
    Call,
    /// The end of a signal handler whose frame lies where the stack pointer says.
    Return,
    /// A child with a copy of the memory, made by `clone` with these flags; it continues where its parent
    /// does.
    Fork { flags: usize },
    /// A thread, or a child with a stack of its own.
    Clone,
    /// Sets the mask that the interrupted code is to have.
    Mask,
    /// Sets the stack of the thread's handlers.
    HandlerStack,
    /// Cannot be made from the handler; programs have a fallback.
    Refuse,
}

/// `arch`: the architecture of the numbers.
pub fn route(arch: u32, number: i64, args: &[usize; 6]) -> Route {
    if arch != OURS || number & X32 != 0 {
        return Route::Refuse;
    }
    match number {
        libc::SYS_rt_sigreturn => Route::Return,
        libc::SYS_rt_sigprocmask => Route::Mask,
        libc::SYS_sigaltstack => Route::HandlerStack,
        libc::SYS_fork => Route::Fork { flags: libc::SIGCHLD as usize },
        // A child that borrowed the memory would run on the stack that the handler needs for its return. With
        // a copy it has everything that vfork guarantees, and the parent waits as it should.
        libc::SYS_vfork => Route::Fork { flags: (libc::CLONE_VFORK | libc::SIGCHLD) as usize },
        libc::SYS_clone if args[1] == 0 => Route::Fork { flags: args[0] & !(libc::CLONE_VM as usize) },
        libc::SYS_clone => Route::Clone,
        // Callers fall back on `clone`, as on older kernels.
        libc::SYS_clone3 => Route::Refuse,
        _ => Route::Call,
    }
}

#[cfg(test)]
mod tests;
