use super::*;

fn header(kind: u32, flags: u32, at: u64, len: u64) -> Elf64_Phdr {
    Elf64_Phdr {
        p_type: kind,
        p_flags: flags,
        p_offset: at,
        p_vaddr: at,
        p_paddr: at,
        p_filesz: len,
        p_memsz: len,
        p_align: 4096,
    }
}

#[test]
fn only_the_executable_segment_around_the_address() {
    let headers = [
        header(libc::PT_LOAD, libc::PF_R, 0, 0x2000),
        header(libc::PT_LOAD, libc::PF_R | libc::PF_X, 0x2000, 0x3000),
        header(libc::PT_LOAD, libc::PF_R, 0x5000, 0x1000),
        header(libc::PT_GNU_STACK, libc::PF_R | libc::PF_X, 0, 0x9000),
    ];
    assert_eq!(segment_with(0x12000, 0x10000, &headers), Some(0x12000..0x15000));
    assert_eq!(segment_with(0x14fff, 0x10000, &headers), Some(0x12000..0x15000));
    for outside in [0x10000, 0x11fff, 0x15000, 0x2000] {
        assert_eq!(segment_with(outside, 0x10000, &headers), None);
    }
}

#[test]
fn a_gate_is_a_call_and_a_return() {
    let getpid = [0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3, 0x66];
    assert_eq!(gate_in(&getpid), Some(5));
    assert_eq!(gate_in(&getpid[..7]), None);
    assert_eq!(gate_in(&[0x0f, 0x05, 0x48, 0x3d]), None);
}

#[test]
fn versions() {
    assert!(version_of("2.33") < Some(WHOLE));
    assert!(version_of("2.36") > Some(WHOLE));
    assert!(version_of("2.4") < Some(WHOLE));
    assert_eq!(version_of("2.35.9000"), Some((2, 35)));
    assert_eq!(version_of("?"), None);
}

/// The range found holds libc and neither this program nor the dynamic linker.
#[test]
fn this_process() {
    let found = of_libc().expect("Debian's libc has one");
    assert!(found.range.contains(&found.gate));
    assert!(found.range.contains(&(libc::write as *const () as usize)));
    assert!(!found.range.contains(&(version_of as *const () as usize)));
    // SAFETY: NUL-terminated name.
    let linker = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tls_get_addr".as_ptr()) } as usize;
    assert!(linker != 0 && !found.range.contains(&linker));
}
