/* What is shown of a connection that is over, and of errors: by poll, ppoll, select, epoll. */
#include "check.h"
#include <linux/errqueue.h>

enum {
    ASKED = POLLIN | POLLOUT | POLLRDHUP | POLLPRI,
    OVER = POLLIN | POLLOUT | POLLRDHUP | POLLHUP,
};

/* Sets that the descriptor is in from the beginning: level- and edge-triggered, and one that asks for nothing. */
struct sets {
    int level, edge, nothing;
};

static int set_with(int fd, uint32_t events) {
    int set = epoll_create1(0);
    struct epoll_event e = {.events = events, .data.u64 = 77ull << 32 | (uint32_t)fd};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
    return set;
}

static struct sets sets_of(int fd) {
    struct sets s = {set_with(fd, ASKED), set_with(fd, ASKED | EPOLLET), set_with(fd, 0)};
    return s;
}

/* What a set says within ten seconds. */
static int said(int set) {
    struct epoll_event e;
    EQUAL(epoll_wait(set, &e, 1, 10000), 1);
    EQUAL(e.data.u64 >> 32, 77);
    return e.events;
}

/* All ways to ask say that it is over, with an error or without. */
static void shows(int fd, struct sets sets, int error) {
    EQUAL(await(fd, 0), POLLHUP | error);
    EQUAL(now(fd, ASKED), OVER | error);
    EQUAL(now(fd, POLLOUT), POLLOUT | POLLHUP | error);
    struct pollfd p = {.fd = fd, .events = ASKED};
    struct timespec at_once = {0, 0};
    EQUAL(ppoll(&p, 1, &at_once, NULL), 1);
    EQUAL(p.revents, OVER | error);
    EQUAL(said(sets.nothing), EPOLLHUP | error);
    EQUAL(said(sets.level), OVER | error);
    EQUAL(said(sets.level), OVER | error);
    struct epoll_event e;
    EQUAL(epoll_pwait(sets.level, &e, 1, -1, NULL), 1);
    EQUAL(e.events, OVER | error);
    /* An edge tells of all; it may come after others. */
    for (int seen = 0; seen != (OVER | error);) seen = said(sets.edge);
    fd_set r, w, x;
    FD_ZERO(&r);
    FD_ZERO(&w);
    FD_ZERO(&x);
    FD_SET(fd, &r), FD_SET(fd, &w), FD_SET(fd, &x);
    EQUAL(select(fd + 1, &r, &w, &x, NULL), 2);
    CHECK(FD_ISSET(fd, &r) && FD_ISSET(fd, &w) && !FD_ISSET(fd, &x));
}

static void closes(struct sets sets, int fd) {
    CHECK(close(fd) == 0);
    struct epoll_event e;
    EQUAL(epoll_wait(sets.level, &e, 1, 0), 0);
}

static int pending(int fd) {
    int e;
    socklen_t len = sizeof e;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0);
    return e;
}

/* The other end closes with something unread: a reset. */
static void reset_by(int fds[2]) {
    write_all(fds[0], "unread", 6);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    settle();
    close(fds[1]);
}

static void reset(void) {
    int fds[2];
    connected(fds);
    struct sets sets = sets_of(fds[0]);
    EQUAL(said(sets.edge), EPOLLOUT);
    reset_by(fds);
    shows(fds[0], sets, POLLERR);
    /* Who asks for the error takes it. */
    EQUAL(pending(fds[0]), ECONNRESET);
    EQUAL(now(fds[0], ASKED), OVER);
    EQUAL(said(sets.level), OVER);
    char to;
    EQUAL(read(fds[0], &to, 1), 0);
    FAILS(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    closes(sets, fds[0]);
}

/* Bytes that came before are read first. */
static void reset_unread(void) {
    int fds[2];
    connected(fds);
    write_all(fds[1], "left", 4);
    EQUAL(await(fds[0], POLLIN), POLLIN);
    struct sets sets = sets_of(fds[0]);
    reset_by(fds);
    shows(fds[0], sets, POLLERR);
    char to[4];
    EQUAL(read(fds[0], to, 2), 2);
    EQUAL(now(fds[0], ASKED), OVER | POLLERR);
    EQUAL(read(fds[0], to, 4), 2);
    FAILS(read(fds[0], to, 4), ECONNRESET);
    EQUAL(now(fds[0], ASKED), OVER);
    EQUAL(read(fds[0], to, 4), 0);
    closes(sets, fds[0]);
}

/* Both sides finished, either first. */
static void finished(void) {
    for (int first = 0; first < 2; first++) {
        int fds[2];
        connected(fds);
        struct sets sets[2] = {sets_of(fds[0]), sets_of(fds[1])};
        write_all(fds[!first], "left", 4);
        CHECK(shutdown(fds[first], SHUT_WR) == 0);
        EQUAL(await(fds[!first], POLLRDHUP), POLLRDHUP);
        EQUAL(now(fds[!first], ASKED), POLLIN | POLLOUT | POLLRDHUP);
        EQUAL(await(fds[first], POLLIN), POLLIN);
        EQUAL(now(fds[first], ASKED), POLLIN | POLLOUT);
        CHECK(shutdown(fds[!first], SHUT_WR) == 0);
        shows(fds[!first], sets[!first], 0);
        shows(fds[first], sets[first], 0);
        char to[4];
        read_all(fds[first], to, 4);
        EQUAL(read(fds[first], to, 4), 0);
        EQUAL(now(fds[first], ASKED), OVER);
        closes(sets[0], fds[0]);
        closes(sets[1], fds[1]);
    }
}

/* One's own shutdown, at once or in two steps; the other end learns of half of it. */
static void by_oneself(void) {
    for (int steps = 0; steps < 3; steps++) {
        int fds[2];
        connected(fds);
        struct sets sets = sets_of(fds[0]);
        if (steps == 0) {
            CHECK(shutdown(fds[0], SHUT_RDWR) == 0);
        } else {
            CHECK(shutdown(fds[0], steps == 1 ? SHUT_RD : SHUT_WR) == 0);
            settle();
            EQUAL(now(fds[0], ASKED), steps == 1 ? POLLIN | POLLOUT | POLLRDHUP : POLLOUT);
            CHECK(shutdown(fds[0], steps == 1 ? SHUT_WR : SHUT_RD) == 0);
        }
        shows(fds[0], sets, 0);
        EQUAL(pending(fds[0]), 0);
        char to;
        EQUAL(read(fds[0], &to, 1), 0);
        EQUAL(await(fds[1], POLLRDHUP), POLLRDHUP);
        EQUAL(now(fds[1], ASKED), POLLIN | POLLOUT | POLLRDHUP);
        closes(sets, fds[0]);
        close(fds[1]);
    }
}

/* Nobody listens. The descriptor may try again, where it is registered. */
static void refused(void) {
    int l = listening(), other = listening();
    union address good = at(host, port_of(l)), bad = at(host, port_of(other));
    close(other);
    settle();
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int r = connect(fd, (void *)&bad, sizeof bad);
    CHECK(r == -1);
    if (errno == EINPROGRESS) {
        struct sets sets = sets_of(fd);
        shows(fd, sets, POLLERR);
        EQUAL(pending(fd), ECONNREFUSED);
        EQUAL(now(fd, ASKED), OVER);
        close(sets.level), close(sets.edge), close(sets.nothing);
    } else {
        EQUAL(errno, ECONNREFUSED);
    }
    int set = set_with(fd, EPOLLOUT | EPOLLIN);
    r = connect(fd, (void *)&good, sizeof good);
    /* Linux says once more that the first attempt came to nothing. */
    if (r < 0 && errno == ECONNABORTED) r = connect(fd, (void *)&good, sizeof good);
    CHECK(r == 0 || errno == EINPROGRESS);
    EQUAL(await(fd, POLLOUT), POLLOUT);
    EQUAL(said(set), EPOLLOUT);
    int s = accept(l, NULL, NULL);
    write_all(s, "hi", 2);
    EQUAL(await(fd, POLLIN), POLLIN);
    EQUAL(said(set), EPOLLIN | EPOLLOUT);
}

/* Whoever holds a descriptor of what is over holds it until the end: duplicates, children, killed ones. */
static void held(void) {
    int fds[2], other[2];
    connected(fds);
    connected(other);
    int copy = dup(fds[0]);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[1]), close(other[1]);
        for (;;) pause();
    }
    settle();
    reset_by(fds);
    CHECK(shutdown(other[0], SHUT_RDWR) == 0);
    close(other[1]);
    EQUAL(await(fds[0], 0), POLLHUP | POLLERR);
    EQUAL(await(other[0], 0), POLLHUP);
    CHECK(close(fds[0]) == 0);
    CHECK(close(other[0]) == 0);
    settle();
    EQUAL(now(copy, ASKED), OVER | POLLERR);
    union address a;
    socklen_t len = sizeof a;
    CHECK(getsockname(copy, (void *)&a, &len) == 0);
    EQUAL(pending(copy), ECONNRESET);
    /* The child is the last holder of one, and dies. */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    EQUAL(now(copy, ASKED), OVER);
}

/* Threads that wait are woken with the error, or the end. */
static void *receives(void *arg) {
    char to;
    *(int *)arg = recv(*(int *)arg, &to, 1, 0) < 0 ? errno : 0;
    return NULL;
}

static void waiting(void) {
    for (int how = 0; how < 2; how++) {
        int fds[2], result;
        connected(fds);
        result = fds[0];
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, receives, &result) == 0);
        settle();
        if (how == 0) reset_by(fds);
        else CHECK(shutdown(fds[0], SHUT_RDWR) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        EQUAL(result, how == 0 ? ECONNRESET : 0);
        EQUAL(await(fds[0], 0), POLLHUP);
        close(fds[0]);
        if (how != 0) close(fds[1]);
    }
}

/* A datagram socket with IP_RECVERR, and nobody at the address that it sends to. */
static union address nobody_there(void) {
    int s = bound(SOCK_DGRAM, host);
    union address a = at(host, port_of(s));
    close(s);
    settle();
    return a;
}

static void take_error(int fd) {
    char bytes[10], control[200];
    struct iovec iov = {bytes, sizeof bytes};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 200};
    EQUAL(recvmsg(fd, &m, MSG_ERRQUEUE), 1);
}

static void queue(void) {
    union address to = nobody_there();
    int c = bound(SOCK_DGRAM, host), s = bound(SOCK_DGRAM, host), on = 1;
    union address us = at(host, port_of(c));
    /* Registered before the option is set, and after. */
    int out = set_with(c, EPOLLOUT | EPOLLET);
    int early = set_with(c, 0);
    CHECK(setsockopt(c, IP_LEVEL, EITHER(IP_RECVERR, IPV6_RECVERR), &on, sizeof on) == 0);
    struct epoll_event e;
    EQUAL(said(out), EPOLLOUT);
    for (int i = 0; i < 3; i++) {
        EQUAL(epoll_wait(early, &e, 1, 20), 0);
        EQUAL(sendto(c, "x", 1, 0, (void *)&to, sizeof to), 1);
        EQUAL(said(early), EPOLLERR);
        EQUAL(said(early), EPOLLERR);
        take_error(c);
        EQUAL(epoll_wait(early, &e, 1, 20), 0);
    }
    /* Data that nobody asked for wakes nobody, and an error beside it does. */
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    settle();
    EQUAL(epoll_wait(early, &e, 1, 50), 0);
    EQUAL(sendto(c, "x", 1, 0, (void *)&to, sizeof to), 1);
    settle();
    EQUAL(now(c, POLLIN), POLLIN | POLLERR);
    char b[10];
    FAILS(recv(c, b, 10, MSG_DONTWAIT), ECONNREFUSED);
    EQUAL(recv(c, b, 10, 0), 4);
    EQUAL(said(early), EPOLLERR);
    take_error(c);
    close(early);
    int data = set_with(c, EPOLLIN);
    EQUAL(epoll_wait(data, &e, 1, 20), 0);
    EQUAL(sendto(c, "x", 1, 0, (void *)&to, sizeof to), 1);
    EQUAL(said(data), EPOLLERR);
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    settle();
    EQUAL(said(data), EPOLLIN | EPOLLERR);
    /* For select, an error is something to read and room to write. */
    fd_set r, x;
    FD_ZERO(&r);
    FD_ZERO(&x);
    FD_SET(c, &r), FD_SET(c, &x);
    EQUAL(select(c + 1, &r, NULL, &x, NULL), 1);
    CHECK(FD_ISSET(c, &r));
    FAILS(recv(c, b, 10, MSG_DONTWAIT), ECONNREFUSED);
    EQUAL(recv(c, b, 10, 0), 4);
    FD_ZERO(&r);
    FD_SET(c, &r);
    EQUAL(select(c + 1, &r, NULL, NULL, NULL), 1);
    take_error(c);
    EQUAL(epoll_wait(data, &e, 1, 20), 0);
    /* A single shot is not wasted on what is no error. */
    struct epoll_event once = {.events = EPOLLONESHOT, .data.u64 = 77ull << 32};
    CHECK(epoll_ctl(data, EPOLL_CTL_MOD, c, &once) == 0);
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    EQUAL(epoll_wait(data, &e, 1, 50), 0);
    EQUAL(recv(c, b, 10, 0), 4);
    EQUAL(sendto(c, "x", 1, 0, (void *)&to, sizeof to), 1);
    EQUAL(said(data), EPOLLERR);
    EQUAL(epoll_wait(data, &e, 1, 20), 0);
}

/* Calls that a program makes by their numbers say the same. */
static int by_poll(int fd, int asked, const sigset_t *mask, size_t len) {
    struct pollfd p = {.fd = fd, .events = asked};
    struct timespec limit = {10, 0};
    EQUAL(syscall(SYS_ppoll, &p, 1, &limit, mask, len), 1);
#ifdef SYS_poll
    int seen = p.revents;
    EQUAL(syscall(SYS_poll, &p, 1, 10000), 1);
    EQUAL(p.revents, seen);
#endif
    return p.revents;
}

static int by_epoll(int set, const sigset_t *mask, size_t len) {
    struct epoll_event e;
    EQUAL(syscall(SYS_epoll_pwait, set, &e, 1, 10000, mask, len), 1);
#ifdef SYS_epoll_wait
    int seen = e.events;
    EQUAL(syscall(SYS_epoll_wait, set, &e, 1, 10000), 1);
    EQUAL(e.events, seen);
#endif
    return e.events;
}

static void by_number(void) {
    int fds[2], other[2];
    connected(fds);
    connected(other);
    struct sets sets = sets_of(fds[0]), others = sets_of(other[0]);
    EQUAL(by_poll(fds[0], ASKED, NULL, 0), POLLOUT);
    EQUAL(by_epoll(sets.level, NULL, 0), POLLOUT);
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    struct timespec short_time = {0, 1000000};
    EQUAL(syscall(SYS_ppoll, &p, 1, &short_time, NULL, 0), 0);
    reset_by(fds);
    CHECK(shutdown(other[0], SHUT_RDWR) == 0);
    sigset_t mask;
    sigfillset(&mask);
    EQUAL(by_poll(fds[0], 0, NULL, 0), POLLHUP | POLLERR);
    EQUAL(by_poll(fds[0], ASKED, &mask, 8), OVER | POLLERR);
    EQUAL(by_epoll(sets.nothing, NULL, 0), EPOLLHUP | EPOLLERR);
    EQUAL(by_epoll(sets.level, &mask, 8), OVER | EPOLLERR);
    /* It shows a little after the call where the transport gets no CPU; it is writable before, too. */
    EQUAL(by_poll(other[0], 0, NULL, 0), POLLHUP);
    EQUAL(by_poll(other[0], ASKED, NULL, 0), OVER);
    EQUAL(by_epoll(others.level, NULL, 0), OVER);
    /* Masks have one length. */
    FAILS(syscall(SYS_ppoll, &p, 1, &short_time, &mask, 4), EINVAL);
    struct epoll_event e;
    FAILS(syscall(SYS_epoll_pwait, sets.level, &e, 1, 0, &mask, 4), EINVAL);
    EQUAL(pending(fds[0]), ECONNRESET);
    EQUAL(by_poll(fds[0], ASKED, NULL, 0), OVER);
    EQUAL(by_epoll(sets.level, NULL, 0), OVER);
    close(fds[0]), close(other[0]), close(other[1]);
    /* Errors that are queued. */
    union address to = nobody_there();
    int c = bound(SOCK_DGRAM, host), on = 1;
    CHECK(setsockopt(c, IP_LEVEL, EITHER(IP_RECVERR, IPV6_RECVERR), &on, sizeof on) == 0);
    EQUAL(sendto(c, "x", 1, 0, (void *)&to, sizeof to), 1);
    EQUAL(by_poll(c, 0, NULL, 0), POLLERR);
    EQUAL(by_poll(c, POLLIN, &mask, 8), POLLERR);
}

/* A datagram socket that is shut down, with a peer or without one, at once or in two steps. */
static void shut_datagrams(void) {
    for (int how = 0; how < 8; how++) {
        int with_peer = how < 4, steps = how % 4;
        int fd = bound(SOCK_DGRAM, host), peer = bound(SOCK_DGRAM, host);
        union address ours = at(host, port_of(fd)), theirs = at(host, port_of(peer));
        if (with_peer) CHECK(connect(fd, (void *)&theirs, sizeof theirs) == 0);
        EQUAL(sendto(peer, "left", 4, 0, (void *)&ours, sizeof ours), 4);
        EQUAL(await(fd, POLLIN), POLLIN);
        struct sets sets = sets_of(fd);
        static const int first[] = {SHUT_RD, SHUT_WR, SHUT_RDWR, SHUT_RD}, second[] = {SHUT_WR, SHUT_RD, -1, -1};
        static const int between[] = {POLLIN | POLLOUT | POLLRDHUP, POLLIN | POLLOUT, 0, POLLIN | POLLOUT | POLLRDHUP};
        errno = 0;
        EQUAL(shutdown(fd, first[steps]), with_peer ? 0 : -1);
        EQUAL(errno, with_peer ? 0 : ENOTCONN);
        settle();
        if (between[steps]) EQUAL(now(fd, ASKED), between[steps]);
        if (steps < 2) EQUAL(shutdown(fd, second[steps]), with_peer ? 0 : -1);
        if (steps < 3) {
            shows(fd, sets, 0);
            FAILS(sendto(fd, "x", 1, MSG_NOSIGNAL, with_peer ? NULL : (void *)&theirs, with_peer ? 0 : sizeof theirs), EPIPE);
        }
        /* What came is there, and it stays readable behind it. */
        char to[10];
        EQUAL(recv(fd, to, 10, 0), 4);
        EQUAL(recv(fd, to, 10, 0), 0);
        FAILS(recv(fd, to, 10, MSG_DONTWAIT), EAGAIN);
        EQUAL(now(fd, ASKED), steps < 3 ? OVER : POLLIN | POLLOUT | POLLRDHUP);
        closes(sets, fd);
        close(peer);
    }
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"reset", reset}, {"reset_unread", reset_unread}, {"finished", finished}, {"by_oneself", by_oneself},
        {"refused", refused}, {"held", held}, {"waiting", waiting}, {"queue", queue},
        {"by_number", by_number}, {"shut_datagrams", shut_datagrams}, {0},
    };
    return run_case(cases, argc, argv);
}
