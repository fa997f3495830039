/* System calls by instructions of the program's own. With PAST_LIBC defined, those of a test program's
 * calls that concern sockets go so. */
#pragma once
#include <errno.h>
#include <sys/syscall.h>

#ifdef __x86_64__
__attribute__((unused)) static long past_kernel(long n, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#else
/* Not seen on this architecture: libc's function keeps the cases alive. */
long syscall(long, ...);
__attribute__((unused)) static long past_kernel(long n, long a, long b, long c, long d, long e, long f) {
    long result = syscall(n, a, b, c, d, e, f);
    return result < 0 ? -errno : result;
}
#endif

__attribute__((unused)) static long past(long n, long a, long b, long c, long d, long e, long f) {
    long result = past_kernel(n, a, b, c, d, e, f);
    if (result >= 0 || result < -4095) return result;
    errno = -result;
    return -1;
}

#define PAST(...) PAST_(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define PAST_(n, a, b, c, d, e, f, ...)                                                            \
    past(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#ifdef PAST_LIBC
#define read(...) PAST(SYS_read, __VA_ARGS__)
#define write(...) PAST(SYS_write, __VA_ARGS__)
#define readv(...) PAST(SYS_readv, __VA_ARGS__)
#define writev(...) PAST(SYS_writev, __VA_ARGS__)
#define recv(...) PAST(SYS_recvfrom, __VA_ARGS__)
#define send(...) PAST(SYS_sendto, __VA_ARGS__)
#define recvfrom(...) PAST(SYS_recvfrom, __VA_ARGS__)
#define sendto(...) PAST(SYS_sendto, __VA_ARGS__)
#define recvmsg(...) PAST(SYS_recvmsg, __VA_ARGS__)
#define sendmsg(...) PAST(SYS_sendmsg, __VA_ARGS__)
#define recvmmsg(...) PAST(SYS_recvmmsg, __VA_ARGS__)
#define sendmmsg(...) PAST(SYS_sendmmsg, __VA_ARGS__)
#define sendfile(...) PAST(SYS_sendfile, __VA_ARGS__)
#define splice(...) PAST(SYS_splice, __VA_ARGS__)
#define close(...) PAST(SYS_close, __VA_ARGS__)
#define dup(...) PAST(SYS_dup, __VA_ARGS__)
#define dup2(...) PAST(SYS_dup2, __VA_ARGS__)
#define dup3(...) PAST(SYS_dup3, __VA_ARGS__)
#define fcntl(...) PAST(SYS_fcntl, __VA_ARGS__)
#define ioctl(...) PAST(SYS_ioctl, __VA_ARGS__)
#define poll(...) PAST(SYS_poll, __VA_ARGS__)
#define epoll_ctl(...) PAST(SYS_epoll_ctl, __VA_ARGS__)
#define epoll_wait(...) PAST(SYS_epoll_wait, __VA_ARGS__)
#define socket(...) PAST(SYS_socket, __VA_ARGS__)
#define bind(...) PAST(SYS_bind, __VA_ARGS__)
#define listen(...) PAST(SYS_listen, __VA_ARGS__)
#define connect(...) PAST(SYS_connect, __VA_ARGS__)
#define accept(...) PAST(SYS_accept, __VA_ARGS__)
#define accept4(...) PAST(SYS_accept4, __VA_ARGS__)
#define shutdown(...) PAST(SYS_shutdown, __VA_ARGS__)
#define getsockname(...) PAST(SYS_getsockname, __VA_ARGS__)
#define getpeername(...) PAST(SYS_getpeername, __VA_ARGS__)
#define setsockopt(...) PAST(SYS_setsockopt, __VA_ARGS__)
#define getsockopt(...) PAST(SYS_getsockopt, __VA_ARGS__)
#endif
