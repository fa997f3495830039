use super::*;

fn of(number: i64, a: usize, b: usize) -> Route {
    route(OURS, number, &[a, b, 0, 0, 0, 0])
}

#[test]
fn calls_that_the_handler_can_make_are_made() {
    for number in [libc::SYS_read, libc::SYS_connect, libc::SYS_futex, libc::SYS_exit, libc::SYS_execve] {
        assert_eq!(of(number, 0, 0), Route::Call);
    }
    // The kernel refuses unknown numbers.
    assert_eq!(of(9999, 0, 0), Route::Call);
    assert_eq!(of(!X32, 0, 0), Route::Call);
}

#[test]
fn calls_that_change_the_frame() {
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
fn a_clone_with_its_own_stack_and_refused_calls() {
    assert_eq!(of(libc::SYS_clone, libc::CLONE_VM as usize, 0x1000), Route::Clone);
    assert_eq!(of(libc::SYS_clone3, 0x1000, 88), Route::Refuse);
    // `int 0x80` and x32: other numbers for the same calls.
    assert_eq!(route(0x4000_0003, 3, &[0; 6]), Route::Refuse);
    assert_eq!(of(X32 | 45, 0, 0), Route::Refuse);
}
