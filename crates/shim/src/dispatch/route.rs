//! Which way a system call goes that was made past libc.

/// `AUDIT_ARCH_X86_64`.
const OURS: u32 = 0xc000_003e;
/// Marks the numbers of the x32 interface.
const X32: i64 = 0x4000_0000;

/// What the handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// As `syscall` does: eft's way, or to the kernel unchanged.
    Call,
    /// The end of a signal handler whose frame lies where the stack pointer says.
    Return,
    /// A child with a copy of the memory, made by `clone` with these flags; it goes on where its parent does.
    Fork { flags: usize },
    /// A thread, or a child with a stack of its own.
    Clone,
    /// Sets the mask that the interrupted code is to have.
    Mask,
    /// Sets the stack of the thread's handlers.
    HandlerStack,
    /// Cannot be made from here; programs can do without.
    Refuse,
}

/// `arch`: whose numbers these are.
pub fn route(arch: u32, number: i64, args: &[usize; 6]) -> Route {
    if arch != OURS || number & X32 != 0 {
        return Route::Refuse;
    }
    match number {
        libc::SYS_rt_sigreturn => Route::Return,
        libc::SYS_rt_sigprocmask => Route::Mask,
        libc::SYS_sigaltstack => Route::HandlerStack,
        libc::SYS_fork => Route::Fork { flags: libc::SIGCHLD as usize },
        // A child that borrowed the memory would run on the very stack that the handler needs to return. With
        // a copy it finds all that it may rely on, and the parent waits as it should.
        libc::SYS_vfork => Route::Fork { flags: (libc::CLONE_VFORK | libc::SIGCHLD) as usize },
        libc::SYS_clone if args[1] == 0 => Route::Fork { flags: args[0] & !(libc::CLONE_VM as usize) },
        libc::SYS_clone => Route::Clone,
        // Callers fall back on `clone`, as on older kernels.
        libc::SYS_clone3 => Route::Refuse,
        _ => Route::Call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: i64, a: usize, b: usize) -> Route {
        route(OURS, number, &[a, b, 0, 0, 0, 0])
    }

    #[test]
    fn what_the_handler_may_make_it_makes() {
        for number in [libc::SYS_read, libc::SYS_connect, libc::SYS_futex, libc::SYS_exit, libc::SYS_execve] {
            assert_eq!(of(number, 0, 0), Route::Call);
        }
        // Unknown numbers are the kernel's to refuse.
        assert_eq!(of(9999, 0, 0), Route::Call);
        assert_eq!(of(!X32, 0, 0), Route::Call);
    }

    #[test]
    fn what_lives_in_the_frame() {
        assert_eq!(of(libc::SYS_rt_sigreturn, 0, 0), Route::Return);
        assert_eq!(of(libc::SYS_rt_sigprocmask, 0, 0), Route::Mask);
        assert_eq!(of(libc::SYS_sigaltstack, 0, 0), Route::HandlerStack);
    }

    #[test]
    fn a_child_on_the_same_stack_gets_a_copy() {
        let (vm, vfork) = (libc::CLONE_VM as usize, libc::CLONE_VFORK as usize);
        let child = libc::SIGCHLD as usize;
        assert_eq!(of(libc::SYS_fork, 0, 0), Route::Fork { flags: child });
        assert_eq!(of(libc::SYS_vfork, 0, 0), Route::Fork { flags: vfork | child });
        assert_eq!(of(libc::SYS_clone, child, 0), Route::Fork { flags: child });
        assert_eq!(of(libc::SYS_clone, vm | vfork | child, 0), Route::Fork { flags: vfork | child });
    }

    #[test]
    fn a_stack_of_its_own_and_what_is_refused() {
        assert_eq!(of(libc::SYS_clone, libc::CLONE_VM as usize, 0x1000), Route::Clone);
        assert_eq!(of(libc::SYS_clone3, 0x1000, 88), Route::Refuse);
        // `int 0x80` and x32: other numbers for the same calls.
        assert_eq!(route(0x4000_0003, 3, &[0; 6]), Route::Refuse);
        assert_eq!(of(X32 | 45, 0, 0), Route::Refuse);
    }
}
