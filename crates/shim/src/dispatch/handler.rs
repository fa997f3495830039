//! The handler of SIGSYS: makes the call that a program made past libc.
//!
//! It is entered at such a call and nowhere else in the program's own code, so anything that is safe at a libc call is
//! safe here. The thread may wait in it for as long as the call waits: other handlers, and such calls in them, nest.

use super::disposition;
use super::route::{Route, route};
use super::{Calls, SYS_USER_DISPATCH, clone, cloned, signals, stack};
use crate::sys::{self, Errno};
use crate::{errno, handlers, held, real};
use core::ffi::{c_int, c_void};
use libc::{siginfo_t, ucontext_t};
use std::sync::OnceLock;

/// What follows the three numbers of a `siginfo_t` for SIGSYS.
#[repr(C)]
struct SysInfo {
    _head: [c_int; 4],
    _address: usize,
    number: c_int,
    arch: u32,
}

/// The function that makes the calls; set before the handler is installed.
static CALLS: OnceLock<Calls> = OnceLock::new();

/// Makes this the handler. Returns whether it is.
pub fn install(calls: Calls) -> bool {
    CALLS.get_or_init(|| calls);
    // SAFETY: all zeroes is a sigaction with an empty mask; it is ours.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_sigsys as *const () as usize;
        // NODEFER: calls past libc in handlers that run while a call waits here are seen, too.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART | libc::SA_ONSTACK;
        real::sigaction.get()(libc::SIGSYS, &action, core::ptr::null_mut()) == 0
    }
}

unsafe extern "C" fn on_sigsys(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's frame, which is ours until we return.
    unsafe {
        if (*info).si_code != SYS_USER_DISPATCH {
            return forward(signal, info, context);
        }
        let (SysInfo { number, arch, .. }, context) =
            (info.cast::<SysInfo>().read(), &mut *context.cast::<ucontext_t>());
        let number = i64::from(number);
        let register = |which: c_int| context.uc_mcontext.gregs[which as usize] as usize;
        let args = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
            .map(register);
        let result = match route(arch, number, &args) {
            Route::Call => {
                let mut done = 0;
                let work = || done = call(number, args);
                match number {
                    libc::SYS_execve | libc::SYS_execveat => stack::with_much_room(context, work),
                    _ => stack::with_room(context, work),
                }
                done
            }
            Route::Return => clone::leave(register(libc::REG_RSP), sys::gate()),
            Route::Fork { flags } => fork(flags, args),
            Route::Clone => {
                let [a, b, c, d, e, f] = args;
                let [g, h, i, j, k, l] = [
                    libc::REG_RBX,
                    libc::REG_RBP,
                    libc::REG_R12,
                    libc::REG_R13,
                    libc::REG_R14,
                    libc::REG_R15,
                ]
                .map(register);
                clone::clone(args, [a, b, c, d, e, f, g, h, i, j, k, l], register(libc::REG_RIP))
            }
            Route::Mask => {
                let done = call(number, args);
                // The mask that takes effect at the return. (The kernel's frame has room for its own mask only.)
                (&raw mut context.uc_sigmask).cast::<u64>().write(signals::current());
                done
            }
            Route::HandlerStack => {
                let mut done = 0;
                stack::to_change(context, || done = sys::raw(number, args));
                if done == 0 && args[0] != 0 {
                    context.uc_stack = *(args[0] as *const libc::stack_t);
                }
                done
            }
            Route::Refuse => Errno(libc::ENOSYS).in_kernel(),
        };
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = result as i64;
    }
}

/// What `syscall` does, with the kernel's result; `errno` stays as it is.
unsafe fn call(number: i64, args: [usize; 6]) -> isize {
    // SAFETY: the program's call.
    unsafe {
        let before = errno::get();
        let Some(done) = CALLS.get().and_then(|calls| calls(number, args)) else {
            let done = signals::by_number(number, args).unwrap_or_else(|| sys::raw(number, args));
            if number == libc::SYS_rt_sigaction {
                handlers::changed();
            }
            return done;
        };
        let result = if done == -1 { errno::get().in_kernel() } else { done };
        errno::set(before);
        result
    }
}

/// The child has a copy of this frame and returns by it, too.
unsafe fn fork(flags: usize, [_, _, c, d, e, _]: [usize; 6]) -> isize {
    held::part_all();
    // SAFETY: no memory is shared with the child.
    let done = unsafe { sys::raw(libc::SYS_clone, [flags, 0, c, d, e, 0]) };
    if done == 0 {
        cloned();
    }
    done
}

/// Handles a SIGSYS that is not a call past libc, by the program's own action.
unsafe fn forward(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let own = disposition::take();
    // SAFETY: the program's handler, called as the kernel would.
    unsafe {
        let sent = (*info).si_code <= 0;
        match own.handler {
            libc::SIG_IGN if sent => {}
            libc::SIG_IGN | libc::SIG_DFL => die(),
            handler => {
                signals::change_mask(libc::SIG_BLOCK, own.mask & !signals::BIT);
                let handler: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    core::mem::transmute(handler);
                match own.flags & libc::SA_ONSTACK as u64 {
                    0 => stack::on_callers(&*context.cast(), || handler(signal, info, context)),
                    _ => handler(signal, info, context),
                }
            }
        }
    }
}

/// Ends the process, as the kernel does for an unhandled SIGSYS.
fn die() {
    disposition::Action::DEFAULT.put_in_kernel();
    // SAFETY: takes no addresses. Not blocked, so it takes effect before the call returns.
    unsafe {
        let thread = sys::call(libc::SYS_gettid, [0; 6]).unwrap_or(0);
        let _ = sys::call(libc::SYS_tgkill, [sys::getpid() as usize, thread, libc::SIGSYS as usize, 0, 0, 0]);
    }
}
