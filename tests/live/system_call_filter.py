#!/usr/bin/env python3
"""Runs a program like systemd with SystemCallFilter=@system-service: any other call kills it.

usage: system_call_filter.py [+CALL…] [-CALL…] -- COMMAND…

The calls are those that systemd.exec(5) lists for the group (`systemd-analyze syscall-filter @system-service`), as far
as the machine has them; + adds one, - removes one. Needs libseccomp.so.2."""

import ctypes
import os
import sys

SYSTEM_SERVICE = """
_llseek accept accept4 access add_key alarm arch_prctl bind brk capget capset chdir chmod chown clock_getres
clock_gettime clock_nanosleep clone clone3 close connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1
epoll_ctl epoll_pwait epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate
fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs
fsync ftruncate futex futimesat get_mempolicy get_robust_list get_thread_area getcpu getcwd getdents getdents64
getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid
getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init
inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit io_uring_enter
io_uring_register io_uring_setup ioctl ioprio_get ioprio_set kcmp keyctl kill lchown lgetxattr link linkat listen listxattr
llistxattr lremovexattr lseek lsetxattr lstat madvise mbind membarrier memfd_create migrate_pages mkdir mkdirat mknod mknodat
mlock mlock2 mlockall mmap move_pages mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap
msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause
personality pidfd_open pidfd_send_signal pipe pipe2 poll ppoll prctl pread64 preadv preadv2 prlimit64 process_vm_readv
process_vm_writev pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg
remap_file_pages removexattr rename renameat renameat2 request_key restart_syscall rmdir rseq rt_sigaction rt_sigpending
rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield select semctl semget semop semtimedop sendfile
sendmmsg sendmsg sendto set_mempolicy set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups
setitimer setns setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat
shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socket socketpair splice stat statfs statx symlink symlinkat sync
sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat unshare userfaultfd utime
utimensat utimes vfork vmsplice wait4 waitid write writev
""".split()

KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000


def install(calls):
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))
    for name in calls:
        number = library.seccomp_syscall_resolve_name(name.encode())
        # Some calls exist on other machines only.
        if number >= 0:
            assert library.seccomp_rule_add(context, ctypes.c_uint32(ALLOW), number, 0) == 0, name
    # systemd sets it, too, for a user without the privilege.
    assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
    assert library.seccomp_load(context) == 0, "the filter is refused"


def main():
    at = sys.argv.index("--")
    calls = set(SYSTEM_SERVICE)
    for word in sys.argv[1:at]:
        (calls.add if word[0] == "+" else calls.discard)(word[1:])
    install(sorted(calls))
    command = sys.argv[at + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
