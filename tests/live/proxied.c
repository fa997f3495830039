/* What a program that cannot be preloaded does with sockets. Build with `musl-gcc -static`.
 *
 *   serve ADDRESS PORT         echoes TCP streams and datagrams, with epoll
 *   fetch HOST PORT            sends its input, prints the answer
 *   many HOST PORT COUNT       so many connections at once, each with bytes of its own
 *   check HOST PORT CLOSED     looks at single calls; HOST echoes at PORT, nobody listens at CLOSED
 *   hang HOST PORT             reads until the connection breaks, and says how
 *   member HOST PORT GROUP     joins the group, and prints what comes until "end"; the interface is the one with this address
 *   ask HOST PORT COUNT        so many questions on one connection, one after the other; prints how many a second
 *   visit HOST PORT COUNT      as many, each on a connection of its own
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MUST(what) do { if (!(what)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, strerror(errno)); exit(1); } } while (0)

/* AF_INET or AF_INET6: that of the host that the command line names. */
static int family;

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address_t;

/* Bytes of an address. */
static socklen_t size(void) { return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in); }

static int port_of(const address_t *a) { return family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port; }

static int same(const address_t *a, const address_t *b) {
    int ip = family == AF_INET6 ? memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16) : memcmp(&a->v4.sin_addr, &b->v4.sin_addr, 4);
    return a->any.sa_family == family && b->any.sa_family == family && port_of(a) == port_of(b) && !ip;
}

static address_t to(const char *host, const char *port) {
    address_t address = {0};
    address.any.sa_family = family;
    if (family == AF_INET6) {
        address.v6.sin6_port = htons(atoi(port));
        MUST(inet_pton(family, host, &address.v6.sin6_addr) == 1);
    } else {
        address.v4.sin_port = htons(atoi(port));
        MUST(inet_pton(family, host, &address.v4.sin_addr) == 1);
    }
    return address;
}

static void to_loopback(address_t *address) {
    if (family == AF_INET6) address->v6.sin6_addr = in6addr_loopback;
    else address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static int connected(const char *host, const char *port) {
    address_t address = to(host, port);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd >= 0);
    MUST(connect(fd, &address.any, size()) == 0);
    return fd;
}

static void write_all(int fd, const char *bytes, size_t n) {
    while (n) {
        ssize_t done = write(fd, bytes, n);
        MUST(done > 0);
        bytes += done, n -= done;
    }
}

static char buffer[1 << 17];

static int fetch(const char *host, const char *port) {
    int fd = connected(host, port);
    ssize_t n;
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        while ((n = read(0, buffer, sizeof buffer)) > 0) write_all(fd, buffer, n);
        MUST(shutdown(fd, SHUT_WR) == 0);
        _exit(0);
    }
    while ((n = recv(fd, buffer, sizeof buffer, 0)) > 0) write_all(1, buffer, n);
    MUST(n == 0);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

/* Of each connection, what could not be echoed yet. */
static struct { char *bytes; size_t n; } rest[65536];

static void echo(int set, int fd, int datagrams) {
    address_t from;
    if (datagrams) {
        socklen_t len = sizeof from;
        ssize_t n;
        while ((n = recvfrom(fd, buffer, sizeof buffer, 0, &from.any, &len)) >= 0)
            MUST(sendto(fd, buffer, n, 0, &from.any, len) == n);
        MUST(errno == EAGAIN);
        return;
    }
    for (;;) {
        if (!rest[fd].n) {
            ssize_t n = read(fd, buffer, 65536);
            if (n < 0 && errno == EAGAIN) return;
            if (n <= 0) { close(fd); return; }
            if (!rest[fd].bytes) rest[fd].bytes = malloc(65536);
            memcpy(rest[fd].bytes, buffer, rest[fd].n = n);
        }
        ssize_t n = write(fd, rest[fd].bytes, rest[fd].n);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) { rest[fd].n = 0; close(fd); return; }
        rest[fd].n -= n;
        memmove(rest[fd].bytes, rest[fd].bytes + n, rest[fd].n);
    }
    (void)set;
}

static int serve(const char *host, const char *port) {
    address_t address = to(host, port), peer, named;
    int set = epoll_create1(0), one = 1;
    int listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0), datagrams = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
    MUST(bind(listener, &address.any, size()) == 0 && listen(listener, 512) == 0);
    MUST(bind(datagrams, &address.any, size()) == 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == 0);
    event.data.fd = datagrams;
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, datagrams, &event) == 0);
    for (;;) {
        int n = epoll_wait(set, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) { echo(set, fd, fd == datagrams); continue; }
            for (;;) {
                socklen_t len = sizeof peer, again = sizeof named;
                fd = accept4(listener, &peer.any, &len, SOCK_NONBLOCK);
                if (fd < 0) { MUST(errno == EAGAIN); break; }
                MUST(len == size() && getpeername(fd, &named.any, &again) == 0 && same(&peer, &named));
                event = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
                MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
            }
        }
    }
}

static int many(const char *host, const char *port, int count) {
    address_t address = to(host, port);
    int set = epoll_create1(0), left = count, *got = calloc(65536, sizeof *got);
    struct epoll_event events[64];
    for (int i = 0; i < count; i++) {
        int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        MUST(fd >= 0);
        MUST(connect(fd, &address.any, size()) == -1 && errno == EINPROGRESS);
        struct epoll_event event = {.events = EPOLLOUT, .data.fd = fd};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
    }
    while (left) {
        int n = epoll_wait(set, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd, error;
            socklen_t len = sizeof error;
            if (events[i].events & EPOLLOUT) {
                MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
                memset(buffer, fd & 255, 1000);
                write_all(fd, buffer, 1000);
                struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
                MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event) == 0);
                continue;
            }
            ssize_t n = recv(fd, buffer, 1000, 0);
            MUST(n > 0);
            for (ssize_t k = 0; k < n; k++) MUST(buffer[k] == (char)(fd & 255));
            if ((got[fd] += n) == 1000) { close(fd); left--; got[fd] = 0; }
        }
    }
    puts("all echoed");
    return 0;
}

static int error_of(int fd) {
    int error;
    socklen_t len = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && len == sizeof error);
    return error;
}

static int events_of(int fd, int events, int milliseconds) {
    struct pollfd asked = {.fd = fd, .events = events};
    MUST(poll(&asked, 1, milliseconds) >= 0);
    return asked.revents;
}

static void refused(const char *host, const char *closed) {
    address_t address = to(host, closed);
    int fd = socket(family, SOCK_STREAM, 0);
    MUST(connect(fd, &address.any, size()) == -1 && errno == ECONNREFUSED);
    close(fd);
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    MUST(connect(fd, &address.any, size()) == -1 && errno == EINPROGRESS);
    MUST(events_of(fd, POLLOUT, 5000) & POLLOUT);
    MUST(error_of(fd) == ECONNREFUSED);
    MUST(read(fd, buffer, 1) <= 0);
    close(fd);
}

static void names_and_options(const char *host, const char *port) {
    address_t own, peer, want = to(host, port);
    socklen_t len = sizeof own;
    int fd = connected(host, port), value = 1;
    MUST(getpeername(fd, &peer.any, &len) == 0 && len == size() && same(&peer, &want));
    MUST(getsockname(fd, &own.any, &len) == 0 && own.any.sa_family == family && port_of(&own));
    len = 3;
    MUST(getsockname(fd, &own.any, &len) == 0 && len == size());
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value) == 0);
    len = sizeof value, value = 0;
    MUST(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len) == 0 && value);
    MUST(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) == 0 && value == SOCK_STREAM);
    MUST(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len) == 0 && value == family);
    MUST(setsockopt(fd, SOL_SOCKET, 200, &value, sizeof value) == -1 && errno == ENOPROTOOPT);
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, (void *)8, 8) == -1 && errno == EFAULT);
    MUST(connect(fd, &want.any, size()) == -1 && errno == EISCONN);
    close(fd);
    fd = socket(family, SOCK_STREAM, 0);
    MUST(connect(fd, (void *)8, sizeof want) == -1 && errno == EFAULT);
    MUST(bind(fd, &want.any, -1) == -1 && errno == EINVAL);
    MUST(shutdown(fd, SHUT_WR) == -1 && errno == ENOTCONN);
    close(fd);
}

static void half_closed(const char *host, const char *port) {
    int fd = connected(host, port);
    write_all(fd, "question", 8);
    MUST(shutdown(fd, SHUT_WR) == 0);
    for (size_t got = 0; got < 8;) {
        struct iovec part = {buffer + got, 8 - got};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n = recvmsg(fd, &message, 0);
        MUST(n > 0);
        got += n;
    }
    MUST(!memcmp(buffer, "question", 8));
    MUST(recv(fd, buffer, 1, 0) == 0);
    signal(SIGPIPE, SIG_IGN);
    MUST(write(fd, "more", 4) == -1 && errno == EPIPE);
    close(fd);
}

static void listens(void) {
    address_t address = to(family == AF_INET6 ? "::" : "0.0.0.0", "0");
    socklen_t len = sizeof address;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    MUST(listen(fd, 5) == 0);
    MUST(accept(fd, 0, 0) == -1 && errno == EAGAIN);
    MUST(events_of(fd, POLLIN, 0) == 0);
    MUST(getsockname(fd, &address.any, &len) == 0 && port_of(&address));
    /* The wildcard address is reachable on the loopback, too. */
    to_loopback(&address);
    int to = socket(family, SOCK_STREAM, 0);
    MUST(connect(to, &address.any, size()) == 0);
    MUST(events_of(fd, POLLIN, 5000) == POLLIN);
    int from = accept(fd, 0, 0);
    MUST(from >= 0 && events_of(fd, POLLIN, 0) == 0);
    MUST(write(to, "x", 1) == 1 && read(from, buffer, 9) == 1);
    /* A call that waits: the connection comes later. */
    MUST(fcntl(fd, F_SETFL, 0) == 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(100000);
        int late = socket(family, SOCK_STREAM, 0);
        MUST(connect(late, &address.any, size()) == 0);
        _exit(0);
    }
    MUST((from = accept(fd, 0, 0)) >= 0);
    MUST(waitpid(child, 0, 0) == child);
    MUST(recv(from, buffer, 1, 0) == 0);
    close(fd), close(to), close(from);
}

static void datagrams(const char *host, const char *port) {
    address_t address = to(host, port), from;
    socklen_t len = sizeof from;
    int fd = socket(family, SOCK_DGRAM, 0), on = 1;
    struct timeval limit = {.tv_usec = 50000};
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    MUST(recvfrom(fd, buffer, 9, 0, &from.any, &len) == -1 && errno == EAGAIN);
    limit.tv_sec = 5;
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    /* Unconnected. */
    MUST(sendto(fd, "first", 5, 0, &address.any, size()) == 5);
    MUST(recvfrom(fd, buffer, 3, MSG_PEEK | MSG_TRUNC, &from.any, &len) == 5);
    MUST(recvfrom(fd, buffer, 99, 0, &from.any, &len) == 5 && !memcmp(buffer, "first", 5));
    MUST(len == size() && same(&from, &address));
    MUST(sendto(fd, "again", 5, 0, &address.any, size()) == 5);
    MUST(recv(fd, buffer, 99, 0) == 5 && !memcmp(buffer, "again", 5));
    /* With a message, and where it came to. */
    int level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP, told = family == AF_INET6 ? IPV6_PKTINFO : IP_PKTINFO;
    MUST(setsockopt(fd, level, family == AF_INET6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on, sizeof on) == 0);
    char control[64];
    struct iovec parts[2] = {{"sec", 3}, {"ond", 3}};
    struct msghdr message = {.msg_name = &address, .msg_namelen = size(), .msg_iov = parts, .msg_iovlen = 2};
    MUST(sendmsg(fd, &message, 0) == 6);
    parts[0].iov_base = buffer, parts[1].iov_base = buffer + 3, parts[1].iov_len = 99;
    message.msg_name = &from, message.msg_namelen = size(), message.msg_control = control, message.msg_controllen = sizeof control;
    MUST(recvmsg(fd, &message, 0) == 6 && !memcmp(buffer, "second", 6) && same(&from, &address));
    struct cmsghdr *item = CMSG_FIRSTHDR(&message);
    MUST(item && item->cmsg_level == level && item->cmsg_type == told);
    /* Several at once. */
    struct mmsghdr several[3] = {0};
    for (int i = 0; i < 3; i++) {
        several[i].msg_hdr = (struct msghdr){.msg_name = &address, .msg_namelen = size(), .msg_iov = parts, .msg_iovlen = 1};
        parts[0] = (struct iovec){"ttt", 3};
    }
    MUST(sendmmsg(fd, several, 3, 0) == 3 && several[2].msg_len == 3);
    parts[0].iov_base = buffer;
    for (int got = 0; got < 3;) {
        int n = recvmmsg(fd, several, 3 - got, 0, 0);
        MUST(n > 0 && several[0].msg_len == 3);
        got += n;
    }
    /* Connected: plain reads and writes. */
    MUST(connect(fd, &address.any, size()) == 0);
    MUST(write(fd, "third", 5) == 5);
    MUST(events_of(fd, POLLIN, 5000) == POLLIN);
    MUST(read(fd, buffer, 99) == 5 && !memcmp(buffer, "third", 5));
    MUST(send(fd, "", 0, 0) == 0);
    MUST(recvfrom(fd, buffer, 99, 0, &from.any, &len) == 0 && !memcmp(&from, &address, 8));
    memset(buffer, 7, 8000);
    MUST(send(fd, buffer, 8000, 0) == 8000 && recv(fd, buffer, sizeof buffer, 0) == 8000);
    close(fd);
}

static int hang(const char *host, const char *port) {
    int fd = connected(host, port);
    puts("connected"), fflush(stdout);
    ssize_t n;
    while ((n = read(fd, buffer, sizeof buffer)) > 0) {}
    puts(n == 0 ? "end" : strerror(errno));
    return 0;
}

static void nothing(int signal) { (void)signal; }

/* What no honest program does. The kernel gives these errors; libc is left out, since it looks
   into messages itself. */
static void hostile(const char *host, const char *port) {
    address_t address = to(host, port);
    void *bad = (void *)8;
    socklen_t len = -1;
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct iovec part = {buffer, 8};
    struct msghdr message = {.msg_name = &address, .msg_namelen = size(), .msg_iov = &part, .msg_iovlen = 1};
    MUST(syscall(SYS_sendmsg, fd, bad, 0) == -1 && errno == EFAULT);
    message.msg_iov = bad;
    MUST(syscall(SYS_sendmsg, fd, &message, 0) == -1 && errno == EFAULT);
    message.msg_iov = &part, message.msg_iovlen = 5000;
    MUST(syscall(SYS_sendmsg, fd, &message, 0) == -1 && errno == EMSGSIZE);
    part.iov_len = (size_t)1 << 40, message.msg_iovlen = 1;
    MUST(syscall(SYS_sendmsg, fd, &message, 0) == -1 && errno == EMSGSIZE);
    part.iov_len = 8, part.iov_base = bad;
    MUST(syscall(SYS_sendmsg, fd, &message, 0) == -1 && errno == EFAULT);
    part.iov_base = buffer, message.msg_control = buffer, message.msg_controllen = 1 << 30;
    MUST(syscall(SYS_sendmsg, fd, &message, 0) == -1 && errno == ENOBUFS);
    message.msg_controllen = 0;
    MUST(syscall(SYS_sendto, fd, buffer, (size_t)1 << 40, 0, &address.any, size()) == -1 && errno == EMSGSIZE);
    MUST(syscall(SYS_sendto, fd, buffer, 8, 0, bad, sizeof address) == -1 && errno == EFAULT);
    MUST(syscall(SYS_sendto, fd, buffer, 8, 0, &address.any, 1000) == -1 && errno == EINVAL);
    MUST(syscall(SYS_recvmsg, fd, bad, 0) == -1 && errno == EFAULT);
    MUST(syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, buffer, &len) == -1 && errno == EINVAL);
    MUST(syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, buffer, bad) == -1 && errno == EFAULT);
    MUST(syscall(SYS_getsockname, fd, &address.any, bad) == -1 && errno == EFAULT);
    MUST(shutdown(fd, 7) == -1 && errno == EINVAL);
    MUST(accept(fd, 0, 0) == -1 && errno == EOPNOTSUPP);
    MUST(syscall(SYS_bind, 1000, &address.any, size()) == -1 && errno == EBADF);
    MUST(syscall(SYS_bind, 0, &address.any, size()) == -1 && errno == ENOTSOCK);
    /* A datagram does not lose its way when there is no room for its address. */
    MUST(syscall(SYS_sendmsg, fd, &message, 0) == 8);
    MUST(events_of(fd, POLLIN, 5000) == POLLIN);
    MUST(syscall(SYS_recvfrom, fd, bad, 8, MSG_PEEK, 0, 0) == -1 && errno == EFAULT);
    len = 0;
    MUST(syscall(SYS_recvfrom, fd, buffer, 8, 0, &address.any, &len) == 8 && len == size());
    close(fd);
    /* Calls that wait end with a signal, and with their process. */
    fd = socket(family, SOCK_STREAM, 0);
    MUST(listen(fd, 5) == 0);
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGALRM, &action, 0);
    for (int i = 0; i < 3; i++) {
        ualarm(20000, 0);
        MUST(accept(fd, 0, 0) == -1 && errno == EINTR);
        pid_t child = fork();
        if (child == 0) { accept(fd, 0, 0); _exit(0); }
        usleep(20000);
        MUST(kill(child, SIGKILL) == 0 && waitpid(child, 0, 0) == child);
    }
    len = sizeof address;
    MUST(getsockname(fd, &address.any, &len) == 0);
    to_loopback(&address);
    int to = socket(family, SOCK_STREAM, 0);
    MUST(connect(to, &address.any, size()) == 0 && accept(fd, 0, 0) >= 0);
    close(fd);
}

/* Interfaces have the numbers that the kernel tells, by a system call of the program's own. */
static int member(const char *host, const char *port, const char *name) {
    int fd = socket(family, SOCK_DGRAM, 0), on = 1;
    address_t group = to(name, port), own = to(host, port), any = to(family == AF_INET6 ? "::" : "0.0.0.0", port);
    MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    MUST(bind(fd, &any.any, size()) == 0);
    struct ip_mreqn old = {.imr_multiaddr = group.v4.sin_addr, .imr_address = own.v4.sin_addr};
    struct ipv6_mreq six = {.ipv6mr_multiaddr = group.v6.sin6_addr};
    const void *value = family == AF_INET6 ? (void *)&six : &old;
    socklen_t len = family == AF_INET6 ? sizeof six : sizeof old;
    int level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP, join = family == AF_INET6 ? IPV6_ADD_MEMBERSHIP : IP_ADD_MEMBERSHIP;
    MUST(setsockopt(fd, level, join, value, len) == 0);
    MUST(setsockopt(fd, level, join, value, len) == -1 && errno == EADDRINUSE);
    puts("joined"), fflush(stdout);
    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer - 1, 0);
        MUST(n >= 0);
        buffer[n] = 0;
        puts(buffer), fflush(stdout);
        if (!strcmp(buffer, "end")) break;
    }
    MUST(setsockopt(fd, level, family == AF_INET6 ? IPV6_DROP_MEMBERSHIP : IP_DROP_MEMBERSHIP, value, len) == 0);
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void question(int fd) {
    write_all(fd, buffer, 64);
    for (ssize_t got = 0, n; got < 64; got += n) MUST((n = read(fd, buffer, 64)) > 0);
}

static int ask(const char *host, const char *port, int count, int each) {
    int fd = each ? -1 : connected(host, port), one = 1;
    if (!each) MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    double start = now();
    for (int i = 0; i < count; i++) {
        if (each) fd = connected(host, port);
        question(fd);
        if (each) close(fd);
    }
    printf("%.1f\n", count / (now() - start));
    return 0;
}

int main(int count, char **words) {
    const char *what = count > 3 ? words[1] : "";
    family = count > 2 && strchr(words[2], ':') ? AF_INET6 : AF_INET;
    if (!strcmp(what, "serve")) return serve(words[2], words[3]);
    if (!strcmp(what, "fetch")) return fetch(words[2], words[3]);
    if (!strcmp(what, "hang")) return hang(words[2], words[3]);
    MUST(count > 4);
    if (!strcmp(what, "member")) return member(words[2], words[3], words[4]);
    if (!strcmp(what, "many")) return many(words[2], words[3], atoi(words[4]));
    if (!strcmp(what, "ask")) return ask(words[2], words[3], atoi(words[4]), 0);
    if (!strcmp(what, "visit")) return ask(words[2], words[3], atoi(words[4]), 1);
    refused(words[2], words[4]);
    hostile(words[2], words[3]);
    names_and_options(words[2], words[3]);
    half_closed(words[2], words[3]);
    datagrams(words[2], words[3]);
    listens();
    puts("all well");
    return 0;
}
