/* Streams: bytes, flags, ends, errors, options. */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <linux/sockios.h>

static void *sender(void *arg) {
    int fd = *(int *)arg;
    char *bytes = pattern(3000000, 5);
    write_all(fd, bytes, 3000000);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    return NULL;
}

static void large(void) {
    int fds[2];
    connected(fds);
    pthread_t t;
    pthread_create(&t, NULL, sender, &fds[0]);
    char *got = malloc(3000000), *want = pattern(3000000, 5);
    read_all(fds[1], got, 3000000);
    CHECK(memcmp(got, want, 3000000) == 0);
    EQUAL(read(fds[1], got, 1), 0);
    EQUAL(read(fds[1], got, 1), 0);
    pthread_join(t, NULL);
    /* Half closed: the other way still works. */
    write_all(fds[1], "back", 4);
    read_all(fds[0], got, 4);
    CHECK(memcmp(got, "back", 4) == 0);
    FAILS(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
}

static void full(void) {
    int fds[2];
    connected(fds);
    nonblocking(fds[0]);
    EQUAL(now(fds[0], POLLOUT), POLLOUT);
    char *bytes = pattern(10000, 1);
    size_t sent = 0;
    for (;;) {
        ssize_t n = write(fds[0], bytes, 10000);
        if (n < 0) {
            EQUAL(errno, EAGAIN);
            /* The kernel moves on behind our back for a while. */
            settle();
            if (write(fds[0], bytes, 1) < 0) break;
            n = 1;
        }
        sent += n;
    }
    EQUAL(now(fds[0], POLLOUT), 0);
    nonblocking(fds[1]);
    size_t got = 0;
    static char to[65536];
    while (got < sent) {
        ssize_t n = read(fds[1], to, sizeof to);
        if (n < 0) {
            EQUAL(errno, EAGAIN);
            EQUAL(await(fds[1], POLLIN), POLLIN);
            continue;
        }
        CHECK(n > 0);
        got += n;
    }
    FAILS(read(fds[1], to, 1), EAGAIN);
    EQUAL(now(fds[1], POLLIN), 0);
    EQUAL(await(fds[0], POLLOUT), POLLOUT);
    EQUAL(write(fds[0], "x", 1), 1);
}

static void flags(void) {
    int fds[2];
    connected(fds);
    char to[100];
    FAILS(recv(fds[1], to, 10, MSG_DONTWAIT), EAGAIN);
    write_all(fds[0], "hello world", 11);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    settle();
    EQUAL(recv(fds[1], to, 5, MSG_PEEK), 5);
    EQUAL(recv(fds[1], to, 100, MSG_PEEK), 11);
    EQUAL(recv(fds[1], NULL, 6, MSG_TRUNC), 6);
    EQUAL(recv(fds[1], to, 100, MSG_PEEK | MSG_DONTWAIT), 5);
    CHECK(memcmp(to, "world", 5) == 0);
    EQUAL(now(fds[1], POLLIN), POLLIN);
    EQUAL(read(fds[1], to, 0), 0);
    struct iovec v[3] = {{to, 2}, {to + 50, 0}, {to + 10, 20}};
    EQUAL(readv(fds[1], v, 3), 5);
    CHECK(memcmp(to, "wo", 2) == 0 && memcmp(to + 10, "rld", 3) == 0);
    EQUAL(now(fds[1], POLLIN), 0);
    EQUAL(send(fds[0], "a", 1, MSG_MORE), 1);
    EQUAL(send(fds[0], "b", 1, 0), 1);
    EQUAL(recv(fds[1], to, 2, MSG_WAITALL), 2);
    struct iovec w[2] = {{"12", 2}, {"345", 3}};
    struct msghdr m = {.msg_iov = w, .msg_iovlen = 2};
    EQUAL(sendmsg(fds[0], &m, 0), 5);
    union address name;
    char control[100];
    struct iovec r = {to, 100};
    m = (struct msghdr){.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &r,
                        .msg_iovlen = 1, .msg_control = control, .msg_controllen = 100};
    EQUAL(recvmsg(fds[1], &m, MSG_WAITALL & 0), 5);
    EQUAL(m.msg_namelen, 0);
    EQUAL(m.msg_controllen, 0);
    FAILS(pread(fds[1], to, 1, 0), ESPIPE);
    FAILS(lseek(fds[1], 0, SEEK_SET), ESPIPE);
    FAILS(recv(fds[1], to, 1, MSG_OOB), EINVAL);
}

static volatile sig_atomic_t signals;
static void count(int s) { (void)s, signals++; }

static void ended(void) {
    int fds[2];
    connected(fds);
    signal(SIGPIPE, count);
    close(fds[1]);
    /* On eft it is readable a moment before it shows the end. */
    EQUAL(await(fds[0], POLLRDHUP), POLLRDHUP);
    EQUAL(await(fds[0], POLLIN), POLLIN);
    char to[10];
    EQUAL(read(fds[0], to, 10), 0);
    /* The first write is answered by a reset, the second meets it. */
    (void)!write(fds[0], "x", 1);
    settle();
    EQUAL(send(fds[0], "x", 1, MSG_NOSIGNAL), -1);
    EQUAL(signals, 0);
    EQUAL(write(fds[0], "x", 1), -1);
    EQUAL(errno, EPIPE);
    EQUAL(signals, 1);
    int fresh = socket(family, SOCK_STREAM, 0);
    FAILS(write(fresh, "x", 1), EPIPE);
    EQUAL(signals, 2);
    FAILS(read(fresh, to, 1), ENOTCONN);
}

static void reset(void) {
    int fds[2];
    connected(fds);
    char to[10];
    write_all(fds[0], "unread", 6);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    settle();
    close(fds[1]);
    CHECK(await(fds[0], POLLIN) & POLLIN);
    settle();
    FAILS(read(fds[0], to, 10), ECONNRESET);
    EQUAL(read(fds[0], to, 10), 0);
    int e;
    socklen_t len = sizeof e;
    CHECK(getsockopt(fds[0], SOL_SOCKET, SO_ERROR, &e, &len) == 0);
    EQUAL(e, 0);
    union address a;
    len = sizeof a;
    FAILS(getpeername(fds[0], (void *)&a, &len), ENOTCONN);
}

/* connect() to AF_UNSPEC resets a connection; the socket connects again, with the options that it had. */
static void dissolved(void) {
    int fds[2], l = bound(SOCK_STREAM, host);
    connected(fds);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    CHECK(connect(fds[0], &none, sizeof none) == 0);
    CHECK(await(fds[1], POLLIN) & POLLIN);
    char b;
    FAILS(read(fds[1], &b, 1), ECONNRESET);
    struct linger back = {.l_onoff = 1};
    socklen_t len = sizeof back;
    CHECK(getsockopt(fds[0], SOL_SOCKET, SO_LINGER, &back, &len) == 0);
    EQUAL(back.l_onoff, 0);
    CHECK(listen(l, 5) == 0);
    union address a = at(host, port_of(l));
    CHECK(connect(fds[0], (void *)&a, sizeof a) == 0);
    int fd = accept(l, NULL, NULL);
    write_all(fds[0], "x", 1);
    read_all(fd, &b, 1);
    CHECK(getsockopt(fds[0], SOL_SOCKET, SO_LINGER, &back, &len) == 0);
    EQUAL(back.l_onoff, 0);
}

static void timeouts(void) {
    int fds[2];
    connected(fds);
    struct timeval t = {.tv_usec = 30000};
    CHECK(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
    char to[4];
    FAILS(read(fds[0], to, 4), EAGAIN);
    struct timeval back;
    socklen_t len = sizeof back;
    CHECK(getsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &back, &len) == 0);
    CHECK(back.tv_sec == 0 && back.tv_usec >= 28000 && back.tv_usec <= 40000);
    CHECK(setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0);
    char *bytes = pattern(1 << 20, 1);
    ssize_t n = 0;
    for (int i = 0; i < 100 && n >= 0; i++) n = write(fds[0], bytes, 1 << 20);
    EQUAL(n, -1);
    EQUAL(errno, EAGAIN);
    /* Set before it was decided: carried over. */
    int l = listening();
    CHECK(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
    FAILS(accept(l, NULL, NULL), EAGAIN);
    int fresh = socket(family, SOCK_STREAM, 0);
    CHECK(setsockopt(fresh, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
    union address a = at(host, port_of(l));
    CHECK(connect(fresh, (void *)&a, sizeof a) == 0);
    FAILS(recv(fresh, to, 4, 0), EAGAIN);
}

static void alarm_in(int ms, int flags) {
    struct sigaction action = {.sa_handler = count, .sa_flags = flags};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval i = {.it_value = {.tv_usec = ms * 1000}};
    CHECK(setitimer(ITIMER_REAL, &i, NULL) == 0);
}

static void *write_later(void *arg) {
    usleep(100000);
    write_all(*(int *)arg, "late", 4);
    return NULL;
}

static void interrupted(void) {
    int fds[2];
    connected(fds);
    char to[10];
    alarm_in(20, 0);
    FAILS(read(fds[0], to, 4), EINTR);
    EQUAL(signals, 1);
    /* With SA_RESTART the call goes on. */
    alarm_in(20, SA_RESTART);
    pthread_t t;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&t, NULL, write_later, &fds[1]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    EQUAL(read(fds[0], to, 4), 4);
    EQUAL(signals, 2);
    pthread_join(t, NULL);
    int l = listening();
    alarm_in(20, 0);
    FAILS(accept(l, NULL, NULL), EINTR);
    /* A full buffer. */
    char *bytes = pattern(1 << 20, 1);
    nonblocking(fds[0]);
    while (write(fds[0], bytes, 1 << 20) > 0) settle();
    CHECK(fcntl(fds[0], F_SETFL, 0) == 0);
    alarm_in(20, 0);
    FAILS(write(fds[0], bytes, 1 << 20), EINTR);
}

static void names(void) {
    int l = listening();
    int c = connect_to(port_of(l));
    union address peer, a, b;
    socklen_t len = sizeof peer;
    int s = accept4(l, (void *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(s >= 0);
    EQUAL(len, size());
    CHECK(fcntl(s, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(s, F_GETFD) & FD_CLOEXEC);
    len = sizeof a;
    CHECK(getsockname(c, (void *)&a, &len) == 0);
    CHECK(same(&a, &peer));
    CHECK(getpeername(s, (void *)&b, &len) == 0);
    CHECK(same(&a, &b));
    CHECK(getpeername(c, (void *)&a, &len) == 0);
    CHECK(getsockname(s, (void *)&b, &len) == 0);
    CHECK(same(&a, &b));
    EQUAL(ntohs(a.v4.sin_port), port_of(l));
    union address want = at(host, 0);
    CHECK(same_host(&a, &want));
    FAILS(getpeername(l, (void *)&a, &len), ENOTCONN);
    /* A short buffer is filled as far as it goes, and the length says how long it would be. */
    memset(&a, 7, sizeof a);
    len = 4;
    CHECK(getsockname(c, (void *)&a, &len) == 0);
    EQUAL(len, size());
    EQUAL(a.v4.sin_addr.s_addr, 0x07070707);
    struct stat st;
    CHECK(fstat(c, &st) == 0 && S_ISSOCK(st.st_mode));
    CHECK(connect(c, (void *)&want, sizeof want) == -1 && errno == EISCONN);
}

static void queues(void) {
    int fds[2], n;
    connected(fds);
    CHECK(ioctl(fds[1], FIONREAD, &n) == 0);
    EQUAL(n, 0);
    write_all(fds[0], "12345", 5);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    settle();
    CHECK(ioctl(fds[1], FIONREAD, &n) == 0);
    EQUAL(n, 5);
    CHECK(ioctl(fds[0], SIOCOUTQ, &n) == 0);
    EQUAL(n, 0);
    n = 1;
    CHECK(ioctl(fds[0], FIONBIO, &n) == 0);
    char to[4];
    FAILS(read(fds[0], to, 4), EAGAIN);
    CHECK(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    /* A listener has no queue of bytes. */
    int l = bound(SOCK_STREAM, host);
    CHECK(listen(l, 1) == 0);
    FAILS(ioctl(l, FIONREAD, &n), EINVAL);
    FAILS(ioctl(l, SIOCOUTQ, &n), EINVAL);
}

static int unused_port(void) {
    int fd = bound(SOCK_STREAM, everywhere());
    int port = port_of(fd);
    close(fd);
    return port;
}

static void refused(void) {
    union address a = at(host, unused_port());
    int fd = socket(family, SOCK_STREAM, 0);
    FAILS(connect(fd, (void *)&a, sizeof a), ECONNREFUSED);
    int e;
    socklen_t len = sizeof e;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0);
    EQUAL(e, 0);
    /* The same descriptor may try again, and reach somebody. */
    int l = listening();
    union address good = at(host, port_of(l));
    CHECK(connect(fd, (void *)&good, sizeof good) == 0);
    int s = accept(l, NULL, NULL);
    write_all(s, "hi", 2);
    char to[2];
    read_all(fd, to, 2);
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int r = connect(fd, (void *)&a, sizeof a);
    CHECK(r == -1 && (errno == EINPROGRESS || errno == ECONNREFUSED));
    if (errno == EINPROGRESS) {
        CHECK(await(fd, POLLOUT) & POLLOUT);
        len = sizeof e;
        CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0);
        EQUAL(e, ECONNREFUSED);
    }
}

static void connecting(void) {
    int l = listening();
    union address a = at(host, port_of(l));
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int r = connect(fd, (void *)&a, sizeof a);
    CHECK(r == 0 || errno == EINPROGRESS);
    CHECK(await(fd, POLLOUT) & POLLOUT);
    int e;
    socklen_t len = sizeof e;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0);
    EQUAL(e, 0);
    r = connect(fd, (void *)&a, sizeof a);
    CHECK(r == 0 || errno == EISCONN);
    FAILS(connect(fd, (void *)&a, sizeof a), EISCONN);
    int s = accept(l, NULL, NULL);
    write_all(fd, "x", 1);
    char to;
    read_all(s, &to, 1);
    /* shutdown wakes whoever waits in accept. */
    CHECK(shutdown(l, SHUT_RD) == 0);
    FAILS(accept(l, NULL, NULL), EINVAL);
}

static int get(int fd, int level, int name) {
    int v = -1;
    socklen_t len = sizeof v;
    CHECK(getsockopt(fd, level, name, &v, &len) == 0);
    EQUAL(len, sizeof v);
    return v;
}

static void set(int fd, int level, int name, int v) {
    CHECK(setsockopt(fd, level, name, &v, sizeof v) == 0);
}

/* Beside type of service and time to live, whose names have versions. */
static const struct { int level, name, value; } numbers[] = {
    {SOL_SOCKET, SO_KEEPALIVE, 1},    {SOL_SOCKET, SO_REUSEADDR, 1},
    {IPPROTO_TCP, TCP_NODELAY, 1},    {IPPROTO_TCP, TCP_KEEPIDLE, 33},
    {IPPROTO_TCP, TCP_KEEPINTVL, 11}, {IPPROTO_TCP, TCP_KEEPCNT, 4},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 5000}, {SOL_SOCKET, SO_RCVLOWAT, 3},
    {SOL_SOCKET, SO_OOBINLINE, 1},    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 70000},
};
#define NUMBERS (int)(sizeof numbers / sizeof *numbers)

static void check_options(int fd) {
    for (int i = 0; i < NUMBERS; i++)
        EQUAL(get(fd, numbers[i].level, numbers[i].name), numbers[i].value);
    EQUAL(get(fd, IP_LEVEL, EITHER(IP_TOS, IPV6_TCLASS)), 16);
    EQUAL(get(fd, IP_LEVEL, EITHER(IP_TTL, IPV6_UNICAST_HOPS)), 33);
    struct linger linger;
    socklen_t len = sizeof linger;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0);
    CHECK(linger.l_onoff && linger.l_linger == 7);
    char name[16];
    len = sizeof name;
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0);
    CHECK(!strcmp(name, "reno"));
    EQUAL(get(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
    EQUAL(get(fd, SOL_SOCKET, SO_DOMAIN), family);
    EQUAL(get(fd, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
}

static void set_options(int fd) {
    for (int i = 0; i < NUMBERS; i++)
        set(fd, numbers[i].level, numbers[i].name, numbers[i].value);
    set(fd, IP_LEVEL, EITHER(IP_TOS, IPV6_TCLASS), 16);
    set(fd, IP_LEVEL, EITHER(IP_TTL, IPV6_UNICAST_HOPS), 33);
    struct linger linger = {1, 7};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) == 0);
}

static void options(void) {
    /* Before the first address, they go along; an accepted connection has its listener's. */
    int l = socket(family, SOCK_STREAM, 0);
    set_options(l);
    set(l, IPPROTO_TCP, TCP_MAXSEG, 1000);
    EQUAL(get(l, SOL_SOCKET, SO_ACCEPTCONN), 0);
    union address a = at(everywhere(), 0);
    CHECK(bind(l, (void *)&a, sizeof a) == 0);
    check_options(l);
    CHECK(listen(l, 5) == 0);
    EQUAL(get(l, SOL_SOCKET, SO_ACCEPTCONN), 1);
    EQUAL(get(l, IPPROTO_TCP, TCP_MAXSEG), 1000);
    int c = connect_to(port_of(l));
    EQUAL(get(c, IPPROTO_TCP, TCP_NODELAY), 0);
    EQUAL(get(c, IPPROTO_TCP, TCP_KEEPIDLE), 7200);
    set_options(c);
    check_options(c);
    int s = accept(l, NULL, NULL);
    check_options(s);
    set(s, IPPROTO_TCP, TCP_NOTSENT_LOWAT, -1);
    EQUAL(get(s, IPPROTO_TCP, TCP_NOTSENT_LOWAT), -1);
    set(s, SOL_SOCKET, SO_SNDBUF, 20000);
    EQUAL(get(s, SOL_SOCKET, SO_SNDBUF), 40000);
    struct tcp_info info;
    socklen_t len = sizeof info;
    CHECK(getsockopt(c, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    CHECK(len >= 104);
    FAILS(setsockopt(c, 999, 1, &len, 4), EOPNOTSUPP * 0 + ENOPROTOOPT);
    FAILS(setsockopt(c, IPPROTO_TCP, 9999, &len, 4), ENOPROTOOPT);
    FAILS(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &len, 0), EINVAL);
}

/* An IPv6 socket and an IPv4 host. */
static void six(void) {
    if (family == AF_INET6) return;
    /* A dual-stack wildcard listener serves IPv4; addresses are mapped. */
    int l = socket(AF_INET6, SOCK_STREAM, 0);
    if (l < 0) return;
    int off = 0;
    CHECK(setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    CHECK(bind(l, (void *)&any, sizeof any) == 0);
    CHECK(listen(l, 5) == 0);
    struct sockaddr_in6 a;
    socklen_t len = sizeof a;
    CHECK(getsockname(l, (void *)&a, &len) == 0);
    EQUAL(len, sizeof a);
    EQUAL(a.sin6_family, AF_INET6);
    int c = connect_to(ntohs(a.sin6_port));
    len = sizeof a;
    int s = accept(l, (void *)&a, &len);
    CHECK(s >= 0 && IN6_IS_ADDR_V4MAPPED(&a.sin6_addr));
    EQUAL(get(s, SOL_SOCKET, SO_DOMAIN), AF_INET6);
    write_all(c, "six", 3);
    char to[3];
    read_all(s, to, 3);
    /* And an IPv6 socket connects to a mapped address, though not by an IPv4 socket's. */
    int l4 = listening();
    int six = socket(AF_INET6, SOCK_STREAM, 0), u = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in v4 = at(host, 0).v4;
    union address either = at(host, port_of(l4));
    FAILS(bind(six, (void *)&v4, sizeof v4), EINVAL);
    FAILS(bind(u, (void *)&v4, sizeof v4), EINVAL);
    FAILS(bind(six, (void *)&either, sizeof either), EAFNOSUPPORT);
    FAILS(connect(six, (void *)&either.v4, sizeof either.v4), EINVAL);
    FAILS(connect(six, (void *)&either, sizeof either), EAFNOSUPPORT);
    CHECK(connect(u, (void *)&either.v4, sizeof either.v4) == 0);
    FAILS(bind(u, (void *)&v4, sizeof v4), EINVAL);
    a = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port_of(l4))};
    a.sin6_addr.s6_addr[10] = a.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&a.sin6_addr.s6_addr[12], &v4.sin_addr, 4);
    CHECK(connect(six, (void *)&a, sizeof a) == 0);
    CHECK(accept(l4, NULL, NULL) >= 0);
}

/* TCP_INQ: each recvmsg tells what it left; at the end of the stream there is one more to read. */
static int left_by(int fd, int want) {
    char to[16], control[CMSG_SPACE(sizeof(int))];
    struct iovec v = {to, want};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    CHECK(recvmsg(fd, &m, 0) >= 0);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (!c) return -1;
    EQUAL(c->cmsg_level, IPPROTO_TCP);
    EQUAL(c->cmsg_type, TCP_CM_INQ);
    EQUAL(c->cmsg_len, CMSG_LEN(sizeof(int)));
    EQUAL(m.msg_controllen, CMSG_SPACE(sizeof(int)));
    return *(int *)CMSG_DATA(c);
}

static void left(void) {
    int fds[2], one = 1, two = 2;
    connected(fds);
    FAILS(setsockopt(fds[1], IPPROTO_TCP, TCP_INQ, &two, sizeof two), EINVAL);
    write_all(fds[0], "12345678", 8);
    EQUAL(left_by(fds[1], 1), -1);
    CHECK(setsockopt(fds[1], IPPROTO_TCP, TCP_INQ, &one, sizeof one) == 0);
    EQUAL(left_by(fds[1], 3), 4);
    EQUAL(left_by(fds[1], 4), 0);
    /* Without room for it. */
    write_all(fds[0], "9", 1);
    struct iovec v = {(char[1]){0}, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    EQUAL(recvmsg(fds[1], &m, 0), 1);
    EQUAL(m.msg_flags & MSG_CTRUNC, MSG_CTRUNC);
    CHECK(shutdown(fds[0], SHUT_WR) == 0);
    EQUAL(await(fds[1], POLLRDHUP), POLLRDHUP);
    EQUAL(left_by(fds[1], 1), 1);
}

/* Vectors, their limits, and the flags of preadv2 and pwritev2. */
static void vectors(void) {
    int fds[2];
    connected(fds);
    char to[10];
    volatile int negative = -1;
    struct iovec v = {to, sizeof to}, none = {to, 0}, many[1025];
    for (int i = 0; i < 1025; i++) many[i] = (struct iovec){"x", 1};
    FAILS(readv(fds[1], &v, negative), EINVAL);
    FAILS(writev(fds[0], &v, negative), EINVAL);
    FAILS(readv(fds[1], many, 1025), EINVAL);
    FAILS(writev(fds[0], many, 1025), EINVAL);
    struct msghdr m = {.msg_iov = many, .msg_iovlen = 1025};
    FAILS(sendmsg(fds[0], &m, 0), EMSGSIZE);
    EQUAL(writev(fds[0], NULL, 0), 0);
    /* Nothing is there: a read of no bytes does not mind, a recv of none does. */
    EQUAL(read(fds[1], to, 0), 0);
    EQUAL(readv(fds[1], &none, 1), 0);
    FAILS(recv(fds[1], to, 0, MSG_DONTWAIT), EAGAIN);
    FAILS(preadv2(fds[1], &v, 1, -1, RWF_NOWAIT), EAGAIN);
    FAILS(preadv2(fds[1], &v, 1, -1, 1 << 30), EOPNOTSUPP);
    FAILS(pwritev2(fds[0], &v, 1, -1, 1 << 30), EOPNOTSUPP);
    v = (struct iovec){"abc", 3};
    EQUAL(pwritev2(fds[0], &v, 1, -1, RWF_NOWAIT | RWF_DSYNC), 3);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    EQUAL(recv(fds[1], to, 0, 0), 0);
    v = (struct iovec){to, sizeof to};
    EQUAL(preadv2(fds[1], &v, 1, -1, RWF_NOWAIT), 3);
    EQUAL(now(fds[1], POLLIN), 0);
    v.iov_base = pattern(v.iov_len = 1 << 16, 3);
    ssize_t n;
    while ((n = pwritev2(fds[0], &v, 1, -1, RWF_NOWAIT)) > 0) {}
    EQUAL(n, -1);
    EQUAL(errno, EAGAIN);
}

static void *receives(void *fd) {
    char to;
    EQUAL(recv(*(int *)fd, &to, 1, 0), 0);
    return NULL;
}

/* shutdown(SHUT_RD) is an end of the stream on this side alone, also to those who wait. */
static void shut_read(void) {
    alarm(20);
    int fds[2];
    connected(fds);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, receives, &fds[0]) == 0);
    settle();
    EQUAL(now(fds[0], POLLIN | POLLRDHUP), 0);
    CHECK(shutdown(fds[0], SHUT_RD) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        EQUAL(now(fds[0], POLLIN | POLLOUT | POLLRDHUP), POLLIN | POLLOUT | POLLRDHUP);
        EQUAL(recv(fds[0], (char[1]){0}, 1, 0), 0);
    }
    int more[2];
    connected(more);
    CHECK(shutdown(more[0], SHUT_RD) == 0);
    EQUAL(now(more[0], POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
    char to[3];
    write_all(fds[0], "out", 3);
    read_all(fds[1], to, 3);
    /* What comes nevertheless is there, but the descriptor shows no more than before. */
    write_all(fds[1], "in", 2);
    settle();
    EQUAL(recv(fds[0], to, 3, 0), 2);
    EQUAL(recv(fds[0], to, 3, 0), 0);
    EQUAL(now(fds[0], POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
    EQUAL(now(fds[1], POLLIN | POLLRDHUP), 0);
    CHECK(shutdown(fds[0], SHUT_WR) == 0);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    EQUAL(read(fds[1], to, 1), 0);
}

/* A listener that chose no port of its own is at the loopback's address, too. */
static void automatic(void) {
    int l = socket(family, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0);
    for (int i = 0; i < 2; i++) {
        int listener = i == 0 ? l : six;
        CHECK(listen(listener, 5) == 0);
        struct sockaddr_in6 name;
        socklen_t len = sizeof name;
        CHECK(getsockname(listener, (void *)&name, &len) == 0);
        int port = ntohs(name.sin6_port);
        CHECK(port != 0);
        close(connect_to(port));
        int local = socket(family, SOCK_STREAM, 0);
        union address a = at(near, port);
        CHECK(connect(local, (void *)&a, sizeof a) == 0);
        CHECK(accept(listener, NULL, NULL) >= 0);
        CHECK(accept(listener, NULL, NULL) >= 0);
        close(local);
    }
}

/* accept without a descriptor to give: at once, and the connection stays. */
static void exhausted(void) {
    alarm(20);
    int l = listening(), local = socket(family, SOCK_STREAM, 0);
    int c = socket(family, SOCK_STREAM, 0);
    struct rlimit few = {32, 32};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int last = -1, before = -1, fd;
    while ((fd = dup(2)) >= 0) before = last, last = fd;
    FAILS(accept(l, NULL, NULL), EMFILE);
    close(last), close(before);
    union address a = at(host, port_of(l));
    CHECK(connect(c, (void *)&a, sizeof a) == 0);
    EQUAL(await(l, POLLIN), POLLIN);
    CHECK(dup(2) >= 0 && dup(2) >= 0);
    FAILS(accept(l, NULL, NULL), EMFILE);
    EQUAL(now(l, POLLIN), POLLIN);
    close(last), close(before);
    CHECK((fd = accept(l, NULL, NULL)) >= 0);
    close(fd);
    EQUAL(now(l, POLLIN), 0);
    a = at(near, port_of(l));
    CHECK(connect(local, (void *)&a, sizeof a) == 0);
    EQUAL(await(l, POLLIN), POLLIN);
    CHECK(dup(2) >= 0 && dup(2) >= 0);
    FAILS(accept(l, NULL, NULL), EMFILE);
    close(last);
    CHECK(accept(l, NULL, NULL) >= 0);
}

/* AF_UNSPEC names the wildcard address where one binds, and an address where one sends; to an IPv6 socket it names none. */
static void unspecified(void) {
    int l = socket(family, SOCK_STREAM, 0), u = bound(SOCK_DGRAM, host), s = socket(family, SOCK_DGRAM, 0);
    union address none = {.any.sa_family = AF_UNSPEC}, a = at(host, port_of(u));
    a.any.sa_family = AF_UNSPEC;
    if (family == AF_INET6) {
        FAILS(bind(l, (void *)&none, sizeof none), EAFNOSUPPORT);
        FAILS(sendto(s, "y", 1, 0, (void *)&a, sizeof a), EDESTADDRREQ);
        return;
    }
    CHECK(bind(l, (void *)&none, sizeof none) == 0);
    CHECK(listen(l, 5) == 0);
    int c = connect_to(port_of(l)), fd = accept(l, NULL, NULL);
    write_all(c, "x", 1);
    char b;
    read_all(fd, &b, 1);
    EQUAL(sendto(s, "y", 1, 0, (void *)&a, sizeof a), 1);
    EQUAL(await(u, POLLIN), POLLIN);
    EQUAL(recv(u, &b, 1, 0), 1);
    EQUAL(sendto(s, "z", 1, 0, (void *)&a, sizeof a), 1);
    EQUAL(recv(u, &b, 1, 0), 1);
    EQUAL(b, 'z');
    s = socket(family, SOCK_STREAM, 0);
    FAILS(bind(s, (void *)&a, sizeof a), EAFNOSUPPORT);
}

/* Whoever connects to the loopback after the last close is refused. */
static void closed_listener(void) {
    for (int i = 0; i < 50; i++) {
        /* A port that is free there; another program may take it in between, which is no fault of the listener. */
        int l, taken, tries = 0;
        union address a;
        do {
            l = bound(SOCK_STREAM, near);
            a = at(everywhere(), port_of(l));
            close(l);
            l = socket(family, SOCK_STREAM, 0);
            taken = bind(l, (void *)&a, sizeof a) != 0;
            CHECK(!taken || (errno == EADDRINUSE && ++tries < 20));
            if (taken) close(l);
        } while (taken);
        CHECK(listen(l, 5) == 0);
        int copy = dup(l);
        a = at(near, port_of(l));
        close(l);
        int c = socket(family, SOCK_STREAM, 0);
        CHECK(connect(c, (void *)&a, sizeof a) == 0);
        close(c);
        close(copy);
        c = socket(family, SOCK_STREAM, 0);
        FAILS(connect(c, (void *)&a, sizeof a), ECONNREFUSED);
        close(c);
    }
}

/* One number is enough to accept, and none is not. */
static void last_number(void) {
    int l = listening(), c[2] = {connect_to(port_of(l)), connect_to(port_of(l))}, last = -1, fd;
    struct rlimit few = {32, 64}, now_is;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    while ((fd = dup(2)) >= 0) last = fd;
    FAILS(accept(l, NULL, NULL), EMFILE);
    close(last);
    EQUAL(accept(l, NULL, NULL), last);
    write_all(c[0], "x", 1);
    char b;
    read_all(last, &b, 1);
    FAILS(dup(2), EMFILE);
    FAILS(accept(l, NULL, NULL), EMFILE);
    CHECK(getrlimit(RLIMIT_NOFILE, &now_is) == 0);
    EQUAL(now_is.rlim_cur, 32);
}

/* Addresses that nobody has mapped. */
static void bad_addresses(void) {
    int fds[2], s = bound(SOCK_DGRAM, host);
    connected(fds);
    void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *bad[] = {(void *)-1, (void *)8, nowhere};
    union address a;
    socklen_t len = sizeof a;
    int value;
    struct iovec v = {&value, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    for (int i = 0; i < 3; i++) {
        int fresh = socket(family, SOCK_STREAM, 0);
        FAILS(bind(fresh, bad[i], sizeof a), EFAULT);
        FAILS(connect(fresh, bad[i], sizeof a), EFAULT);
        FAILS(connect(fds[0], bad[i], sizeof a), EFAULT);
        FAILS(setsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, bad[i], 4), EFAULT);
        FAILS(getsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, bad[i], &len), EFAULT);
        FAILS(getsockopt(fds[0], SOL_SOCKET, SO_KEEPALIVE, &value, bad[i]), EFAULT);
        FAILS(getsockname(fds[0], (void *)&a, bad[i]), EFAULT);
        len = sizeof a;
        close(fresh);
    }
    /* On the way of data only what cannot be anybody's is looked for. */
    for (int i = 0; i < 2; i++) {
        FAILS(send(fds[0], bad[i], 1, 0), EFAULT);
        FAILS(sendto(s, "x", 1, 0, bad[i], sizeof a), EFAULT);
        v.iov_base = bad[i];
        FAILS(sendmsg(fds[0], &m, 0), EFAULT);
        v.iov_base = &value, m.msg_iov = bad[i];
        FAILS(sendmsg(fds[0], &m, 0), EFAULT);
        FAILS(recvmsg(fds[0], &m, 0), EFAULT);
        m.msg_iov = &v;
        FAILS(sendmsg(fds[0], bad[i], 0), EFAULT);
        FAILS(recvmsg(fds[0], bad[i], 0), EFAULT);
        FAILS(writev(fds[0], bad[i], 1), EFAULT);
        EQUAL(send(fds[1], "x", 1, 0), 1);
        EQUAL(await(fds[0], POLLIN), POLLIN);
        FAILS(recv(fds[0], bad[i], 1, 0), EFAULT);
        EQUAL(recv(fds[0], &value, 1, 0), 1);
    }
}

static void *closer(void *arg) {
    int fd = *(int *)arg;
    CHECK(close(fd) == 0);
    return NULL;
}

/* Sends until the peer takes no more, either. */
static size_t fill(int fd, const char *from, size_t len) {
    size_t n = 0, before;
    do {
        before = n;
        ssize_t more;
        while ((more = send(fd, from + n, len - n, 0)) > 0) n += more;
        EQUAL(errno, EAGAIN);
        settle();
    } while (n > before);
    return n;
}

/* SO_LINGER with a time: close waits until the peer has everything, or the time is over. */
static void lingering(void) {
    size_t len = 32 << 20;
    char *sent = pattern(len, 9), *got = malloc(len);
    for (int blocking = 0; blocking < 2; blocking++) {
        int fds[2];
        connected(fds);
        struct linger on = {1, 60};
        CHECK(setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &on, sizeof on) == 0);
        nonblocking(fds[0]);
        size_t n = fill(fds[0], sent, len);
        if (blocking) CHECK(fcntl(fds[0], F_SETFL, 0) == 0);
        pthread_t t;
        CHECK(pthread_create(&t, NULL, closer, &fds[0]) == 0);
        usleep(100000);
        EQUAL(pthread_tryjoin_np(t, NULL), EBUSY);
        read_all(fds[1], got, n);
        CHECK(memcmp(got, sent, n) == 0);
        EQUAL(read(fds[1], got, 1), 0);
        /* The kernel waits for the acknowledgment of the end as well. */
        close(fds[1]);
        pthread_join(t, NULL);
    }
    int fds[2];
    connected(fds);
    struct linger on = {1, 1};
    CHECK(setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &on, sizeof on) == 0);
    nonblocking(fds[0]);
    fill(fds[0], sent, len);
    CHECK(close(fds[0]) == 0);
}

/* splice between a pipe and a socket, both ways, in pieces of its choice. */
static void splicing(void) {
    size_t len = 3 << 20;
    char *sent = pattern(len, 10), *got = malloc(len);
    int fds[2], p[2], q[2];
    connected(fds);
    CHECK(pipe(p) == 0 && pipe(q) == 0);
    pid_t feeder = fork();
    if (feeder == 0) {
        close(p[0]);
        write_all(p[1], sent, len);
        _exit(0);
    }
    pid_t mover = fork();
    if (mover == 0) {
        close(p[1]);
        size_t moved = 0;
        ssize_t n;
        while ((n = splice(p[0], NULL, fds[0], NULL, 100000, SPLICE_F_MORE)) > 0) moved += n;
        EQUAL(n, 0);
        EQUAL(moved, len);
        _exit(0);
    }
    pid_t other = fork();
    if (other == 0) {
        close(q[0]);
        size_t moved = 0;
        while (moved < len) {
            ssize_t n = splice(fds[1], NULL, q[1], NULL, 70000, SPLICE_F_MOVE);
            CHECK(n > 0);
            moved += n;
        }
        _exit(0);
    }
    close(p[1]), close(q[1]);
    read_all(q[0], got, len);
    CHECK(memcmp(got, sent, len) == 0);
    reap(feeder), reap(mover), reap(other);
    /* What cannot be, and what must not wait. */
    loff_t at = 0;
    CHECK(pipe(p) == 0);
    FAILS(splice(fds[1], &at, p[1], NULL, 10, 0), EINVAL);
    FAILS(splice(fds[1], NULL, p[1], &at, 10, 0), ESPIPE);
    FAILS(splice(fds[1], NULL, fds[0], NULL, 10, 0), EINVAL);
    FAILS(splice(p[0], NULL, fds[0], NULL, 10, SPLICE_F_NONBLOCK), EAGAIN);
    nonblocking(fds[1]);
    FAILS(splice(fds[1], NULL, p[1], NULL, 10, 0), EAGAIN);
    nonblocking(fds[0]);
    nonblocking(p[1]);
    while (write(p[1], sent, 4096) > 0) {}
    write_all(fds[0], "kept", 4);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    FAILS(splice(fds[1], NULL, p[1], NULL, 10, 0), EAGAIN);
    read_all(fds[1], got, 4);
    CHECK(memcmp(got, "kept", 4) == 0);
    /* A socket that has no room keeps the pipe as it is. */
    fill(fds[0], sent, len);
    nonblocking(p[0]);
    size_t eaten = 0;
    ssize_t n;
    while ((n = splice(p[0], NULL, fds[0], NULL, 10, 0)) > 0) eaten += n;
    EQUAL(errno, EAGAIN);
    for (; read(p[0], got, 1) == 1; eaten++) EQUAL(*got, sent[eaten % 4096]);
    EQUAL(eaten % 4096, 0);
    shutdown(fds[0], SHUT_WR);
    close(p[0]), close(p[1]);
    CHECK(fcntl(fds[1], F_SETFL, 0) == 0);
    CHECK(pipe(p) == 0);
    while ((n = splice(fds[1], NULL, p[1], NULL, 4096, 0)) > 0) read_all(p[0], got, n);
    EQUAL(n, 0);
}

static void refuse(int fd, int level, int option, int value) {
    FAILS(setsockopt(fd, level, option, &value, sizeof value), EINVAL);
}

/* Values and lengths that are none. */
static void bad_options(void) {
    int fds[2];
    connected(fds);
    int c = fds[0], before = get(c, IPPROTO_IP, IP_TTL), value = 1;
    refuse(c, IPPROTO_IP, IP_TTL, 0);
    refuse(c, IPPROTO_IP, IP_TTL, 256);
    set(c, IPPROTO_IP, IP_TTL, 33);
    EQUAL(get(c, IPPROTO_IP, IP_TTL), 33);
    set(c, IPPROTO_IP, IP_TTL, -1);
    EQUAL(get(c, IPPROTO_IP, IP_TTL), before);
    CHECK(setsockopt(c, IPPROTO_IP, IP_TTL, &(char){34}, 1) == 0);
    EQUAL(get(c, IPPROTO_IP, IP_TTL), 34);
    refuse(c, IPPROTO_TCP, TCP_KEEPIDLE, 0);
    refuse(c, IPPROTO_TCP, TCP_KEEPIDLE, 32768);
    refuse(c, IPPROTO_TCP, TCP_KEEPINTVL, 0);
    refuse(c, IPPROTO_TCP, TCP_KEEPCNT, 0);
    refuse(c, IPPROTO_TCP, TCP_KEEPCNT, 128);
    refuse(c, IPPROTO_TCP, TCP_USER_TIMEOUT, -1);
    refuse(c, SOL_SOCKET, SO_LINGER, 1);
    FAILS(setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &value, 1), EINVAL);
    FAILS(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &value, 3), EINVAL);
    FAILS(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &value, -1), EINVAL);
    socklen_t len = sizeof value;
    FAILS(getsockopt(c, 9999, 1, &value, &len), EITHER(EOPNOTSUPP, ENOPROTOOPT));
    FAILS(getsockopt(c, IPPROTO_UDP, 1, &value, &len), EITHER(EOPNOTSUPP, ENOPROTOOPT));
    FAILS(getsockopt(c, IPPROTO_TCP, 9999, &value, &len), ENOPROTOOPT);
    len = -1;
    FAILS(getsockopt(c, IPPROTO_TCP, TCP_NODELAY, &value, &len), EINVAL);
    union address a;
    FAILS(getsockname(c, (void *)&a, &len), EINVAL);
    FAILS(getpeername(c, (void *)&a, &len), EINVAL);
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"large", large},         {"full", full},           {"flags", flags},
        {"ended", ended},         {"reset", reset},         {"timeouts", timeouts},
        {"interrupted", interrupted}, {"names", names},     {"queues", queues},
        {"refused", refused},     {"connecting", connecting}, {"options", options},
        {"six", six},             {"left", left}, {"vectors", vectors}, {"shut_read", shut_read}, {"automatic", automatic}, {"exhausted", exhausted}, {"bad_options", bad_options},
        {"last_number", last_number}, {"unspecified", unspecified}, {"closed_listener", closed_listener}, {"bad_addresses", bad_addresses}, {"lingering", lingering},
        {"splicing", splicing},   {"dissolved", dissolved},   {0},
    };
    return run_case(cases, argc, argv);
}
