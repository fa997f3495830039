use super::*;

/// What the kernel's machine does with a call.
fn judge(architecture: u32, number: i64, args: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend((number as u32).to_le_bytes());
    data.extend(architecture.to_le_bytes());
    data.extend(0u64.to_le_bytes());
    args.iter().for_each(|arg| data.extend(arg.to_le_bytes()));
    let program = program();
    let (mut at, mut word) = (0, 0);
    loop {
        let statement = program[at];
        let code = u32::from(statement.code);
        at += 1;
        let skip = |yes| if yes { statement.jt } else { statement.jf } as usize;
        match code {
            c if c == BPF_LD | BPF_W | BPF_ABS => {
                let from = statement.k as usize;
                word = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
            }
            c if c == BPF_JMP | BPF_JEQ | BPF_K => at += skip(word == statement.k),
            c if c == BPF_JMP | BPF_JGE | BPF_K => at += skip(word >= statement.k),
            c if c == BPF_JMP | BPF_JSET | BPF_K => at += skip(word & statement.k != 0),
            c if c == BPF_JMP | libc::BPF_JA => at += statement.k as usize,
            c if c == BPF_RET | BPF_K => return statement.k,
            other => panic!("unknown statement {other:#x}"),
        }
    }
}

fn ours(number: i64, args: [u64; 6]) -> u32 {
    judge(OURS, number, args)
}

#[test]
fn internet_sockets_and_calls_on_sockets_are_handed_over() {
    for number in CALLS {
        assert_eq!(ours(number, [0; 6]), libc::SECCOMP_RET_USER_NOTIF, "{number}");
    }
    let socket = |family: i32| ours(libc::SYS_socket, [family as u64, 1, 0, 0, 0, 0]);
    assert_eq!(socket(libc::AF_INET), libc::SECCOMP_RET_USER_NOTIF);
    assert_eq!(socket(libc::AF_INET6), libc::SECCOMP_RET_USER_NOTIF);
    assert_eq!(socket(libc::AF_UNIX), libc::SECCOMP_RET_ALLOW);
    assert_eq!(socket(libc::AF_NETLINK), libc::SECCOMP_RET_ALLOW);
}

#[test]
fn reads_and_writes_go_to_the_kernel() {
    for number in [libc::SYS_read, libc::SYS_write, libc::SYS_close, libc::SYS_epoll_wait] {
        assert_eq!(ours(number, [3; 6]), libc::SECCOMP_RET_ALLOW, "{number}");
    }
    for number in [libc::SYS_recvfrom, libc::SYS_sendto] {
        let judged = |flags: i32, address: u64| ours(number, [3, 1, 1, flags as u64, address, 0]);
        assert_eq!(judged(0, 0), libc::SECCOMP_RET_ALLOW);
        assert_eq!(judged(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT, 0), libc::SECCOMP_RET_ALLOW);
        for special in [libc::MSG_OOB, libc::MSG_ERRQUEUE, libc::MSG_FASTOPEN, libc::MSG_TRUNC] {
            assert_eq!(judged(special, 0), libc::SECCOMP_RET_USER_NOTIF, "{special:#x}");
        }
        for address in [1, 1 << 31, 1 << 32, 1 << 63] {
            assert_eq!(judged(0, address), libc::SECCOMP_RET_USER_NOTIF, "{address:#x}");
        }
    }
}

#[test]
fn calls_of_other_interfaces_fail() {
    let failed = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    assert_eq!(judge(0x4000_0003, libc::SYS_read, [0; 6]), failed);
    assert_eq!(ours(i64::from(X32) + 41, [2; 6]), failed);
}
