use super::*;

fn place(here: usize, caller: usize, alternate: (usize, usize)) -> Place {
    Place { here, caller, alternate }
}

const SMALL: (usize, usize) = (0x10000, 8192);
const LARGE: (usize, usize) = (0x10000, 32 << 10);

#[test]
fn room() {
    assert!(!place(0x11f00, 0x7f008, SMALL).has_room());
    assert!(place(0x17000, 0x7f008, LARGE).has_room());
    // Unless other handlers have used it up.
    assert!(!place(0x12000, 0x7f008, LARGE).has_room());
    // On a stack of the program, all of it.
    assert!(place(0x7e000, 0x7f008, SMALL).has_room());
    assert!(place(0x7e000, 0x7f008, (0, 0)).has_room());
}

#[test]
fn the_callers_stack() {
    assert_eq!(place(0x10800, 0x7f008, SMALL).callers(), Some(0x7ef80));
    // There is no alternate stack; this is not on it; or the call was made on it.
    assert_eq!(place(0x7e000, 0x7f008, (0, 0)).callers(), None);
    assert_eq!(place(0x7e000, 0x7f008, SMALL).callers(), None);
    assert_eq!(place(0x10800, 0x11800, SMALL).callers(), None);
}

#[test]
fn work_is_done_there_and_returns() {
    let mut memory = vec![0u8; 65536];
    let top = (memory.as_mut_ptr() as usize + 65536) & !15;
    let mut seen = 0usize;
    unsafe extern "C" fn look(seen: *mut c_void) {
        let local = 0u8;
        // SAFETY: the test's variable.
        unsafe { *seen.cast::<usize>() = (&raw const local).addr() };
    }
    // SAFETY: the memory is ours, and enough.
    unsafe { call_on(top, look, (&raw mut seen).cast()) };
    assert!(seen < top && seen > top - 65536);
}
