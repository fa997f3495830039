//! A thread that libc starts arms itself before it runs the program's function.

use super::arm;
use core::ffi::{c_int, c_void};

/// The function that a new thread is to run. Lies in malloc's memory; the thread frees it.
#[repr(C)]
struct Start {
    routine: usize,
    argument: *mut c_void,
}

/// Calls `create(begin, record)`, where `begin(record)` arms the thread and continues in
/// `routine(argument)`. Returns its result (0: the thread exists); `None` if memory is out.
pub fn create(
    routine: usize,
    argument: *mut c_void,
    create: impl FnOnce(usize, *mut c_void) -> c_int,
) -> Option<c_int> {
    // SAFETY: room for a record, written before it is shared; ours again if no thread is made.
    unsafe {
        let start: *mut Start = libc::malloc(size_of::<Start>()).cast();
        if start.is_null() {
            return None;
        }
        start.write(Start { routine, argument });
        let done = create(begin as *const () as usize, start.cast());
        if done != 0 {
            libc::free(start.cast());
        }
        Some(done)
    }
}

/// The first function of a thread. It leaves no frame behind: unwinding the thread's stack (at its end or
/// cancellation) works as without the shim.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    core::arch::naked_asm!(
        "sub rsp, 24",
        "mov rsi, rsp",
        "call {prepare}",
        "mov rax, [rsp]",
        "mov rdi, [rsp + 8]",
        "add rsp, 24",
        "jmp rax",
        prepare = sym prepare,
    )
}

unsafe extern "C" fn prepare(start: *mut Start, to: *mut Start) {
    arm();
    // SAFETY: the record of `create`, which is this thread's now; `to` is in `begin`'s frame.
    unsafe {
        to.write(start.read());
        libc::free(start.cast());
    }
}
