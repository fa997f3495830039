/* select, poll and epoll in all kinds. */
#include "check.h"
#include <sys/prctl.h>

static int set_of(int fd, uint32_t events, int data) {
    int set = epoll_create1(0);
    struct epoll_event e = {.events = events, .data.u32 = data};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
    return set;
}

static void add(int set, int fd, uint32_t events) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
}

/* One event within ten seconds. */
static struct epoll_event one(int set) {
    struct epoll_event e;
    EQUAL(epoll_wait(set, &e, 1, 10000), 1);
    return e;
}

static void none(int set) {
    struct epoll_event e;
    EQUAL(epoll_wait(set, &e, 1, 30), 0);
}

static void level(void) {
    int fds[2];
    connected(fds);
    int set = set_of(fds[1], EPOLLIN, 42);
    none(set);
    write_all(fds[0], "abcd", 4);
    EQUAL(one(set).data.u32, 42);
    EQUAL(one(set).events, EPOLLIN);
    char to[4];
    EQUAL(await(fds[1], POLLIN), POLLIN);
    settle();
    read_all(fds[1], to, 2);
    EQUAL(one(set).events, EPOLLIN);
    read_all(fds[1], to, 2);
    none(set);
    /* To take out, nothing is read of the event. */
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, fds[1], (void *)1) == 0);
    add(set, fds[1], EPOLLIN);
    int undecided = socket(family, SOCK_STREAM, 0);
    add(set, undecided, EPOLLIN);
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, undecided, (void *)1) == 0);
    close(fds[0]);
    one(set);
    one(set);
    EQUAL(read(fds[1], to, 1), 0);
    one(set);
    close(fds[1]);
    none(set);
}

static void edge(void) {
    int fds[2];
    connected(fds);
    nonblocking(fds[1]);
    int set = set_of(fds[1], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 1);
    EQUAL(one(set).events, EPOLLOUT);
    none(set);
    char to[100];
    for (int i = 0; i < 50; i++) {
        write_all(fds[0], "abc", 3);
        CHECK(one(set).events & EPOLLIN);
        /* A short read says that nothing is left: programs go back to waiting on that. */
        EQUAL(read(fds[1], to, 100), 3);
        none(set);
        if (i > 3) i += 10;
    }
    shutdown(fds[0], SHUT_WR);
    CHECK(one(set).events & (EPOLLIN | EPOLLRDHUP));
    EQUAL(read(fds[1], to, 100), 0);
}

/* News are an edge also while older ones are not taken. */
static void edge_unread(void) {
    int fds[2];
    connected(fds);
    int set = set_of(fds[1], EPOLLIN | EPOLLET, 1);
    none(set);
    char to[100];
    for (int i = 0; i < 3; i++) {
        write_all(fds[0], "abc", 3);
        CHECK(one(set).events & EPOLLIN);
        none(set);
    }
    for (int i = 0; i < 10; i++) {
        read_all(fds[1], to, 1);
        none(set);
        write_all(fds[0], "a", 1);
        CHECK(one(set).events & EPOLLIN);
        none(set);
    }
    read_all(fds[1], to, 9);
    none(set);
    EQUAL(now(fds[1], POLLIN), 0);
    FAILS(recv(fds[1], to, 1, MSG_DONTWAIT), EAGAIN);
    write_all(fds[0], "a", 1);
    CHECK(one(set).events & EPOLLIN);
    read_all(fds[1], to, 1);
    none(set);
}

static void edge_unread_datagram(void) {
    int in = bound(SOCK_DGRAM, host), out = bound(SOCK_DGRAM, host);
    union address a = at(host, port_of(in));
    int set = set_of(in, EPOLLIN | EPOLLET, 1);
    none(set);
    char to[100];
    for (int i = 0; i < 6; i++) {
        EQUAL(sendto(out, "abc", 3, 0, (void *)&a, sizeof a), 3);
        CHECK(one(set).events & EPOLLIN);
        none(set);
        if (i > 1) EQUAL(recv(in, to, 100, 0), 3);
    }
    for (int i = 0; i < 2; i++) EQUAL(recv(in, to, 100, 0), 3);
    none(set);
    EQUAL(now(in, POLLIN), 0);
}

static void edge_unread_listener(void) {
    int listener = listening();
    union address a = at(host, port_of(listener));
    int set = set_of(listener, EPOLLIN | EPOLLET, 1);
    for (int i = 0; i < 5; i++) {
        int client = socket(family, SOCK_STREAM, 0);
        CHECK(connect(client, (void *)&a, sizeof a) == 0);
        CHECK(one(set).events & EPOLLIN);
        none(set);
        if (i > 1) CHECK(accept(listener, 0, 0) >= 0);
    }
    for (int i = 0; i < 2; i++) CHECK(accept(listener, 0, 0) >= 0);
    none(set);
    EQUAL(now(listener, POLLIN), 0);
}

static void edge_out(void) {
    int fds[2];
    connected(fds);
    nonblocking(fds[0]);
    int set = set_of(fds[0], EPOLLOUT | EPOLLET, 1);
    one(set);
    char *bytes = pattern(1 << 16, 3);
    size_t sent = 0;
    for (;;) {
        ssize_t n = write(fds[0], bytes, 1 << 16);
        if (n < 0) {
            settle();
            n = write(fds[0], bytes, 1);
            if (n < 0) break;
        }
        sent += n;
    }
    EQUAL(errno, EAGAIN);
    struct epoll_event e;
    while (epoll_wait(set, &e, 1, 30) > 0) {
    }
    static char to[65536];
    while (sent > 0) {
        ssize_t n = read(fds[1], to, sizeof to);
        CHECK(n > 0);
        sent -= n;
    }
    EQUAL(one(set).events, EPOLLOUT);
}

static void oneshot(void) {
    int fds[2];
    connected(fds);
    int set = set_of(fds[1], EPOLLIN | EPOLLONESHOT, 1);
    write_all(fds[0], "x", 1);
    one(set);
    none(set);
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 2};
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, fds[1], &e) == 0);
    EQUAL(one(set).data.u32, 2);
    none(set);
}

static void nested(void) {
    int fds[2], p[2];
    connected(fds);
    CHECK(pipe(p) == 0);
    int inner = set_of(fds[1], EPOLLIN, 1);
    add(inner, p[0], EPOLLIN);
    int outer = set_of(inner, EPOLLIN, 7);
    none(outer);
    EQUAL(now(outer, POLLIN), 0);
    write_all(fds[0], "x", 1);
    EQUAL(one(outer).data.u32, 7);
    EQUAL(one(inner).data.u32, 1);
    char to;
    read_all(fds[1], &to, 1);
    none(outer);
    write_all(p[1], "y", 1);
    one(outer);
    EQUAL(one(inner).data.fd, p[0]);
}

/* Registered before the first address shows whose socket it is. */
static void early(void) {
    int set = epoll_create1(0);
    int l = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    add(set, l, EPOLLIN);
    union address any = at(everywhere(), 0);
    CHECK(bind(l, (void *)&any, sizeof any) == 0);
    CHECK(listen(l, 5) == 0);
    int c = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int again = dup(c);
    struct epoll_event e;
    while (epoll_wait(set, &e, 1, 0) > 0) {
        /* A fresh kernel socket says that it has hung up. */
        EQUAL(e.data.fd, l);
        usleep(1000);
    }
    union address a = at(host, port_of(l));
    int r = connect(c, (void *)&a, sizeof a);
    CHECK(r == 0 || errno == EINPROGRESS);
    EQUAL(one(set).data.fd, l);
    int s = accept(l, NULL, NULL);
    CHECK(s >= 0);
    none(set);
    CHECK(await(again, POLLOUT) & POLLOUT);
    write_all(again, "dup", 3);
    char to[3];
    read_all(s, to, 3);
    struct epoll_event mod = {.events = EPOLLIN | EPOLLOUT, .data.fd = l};
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, l, &mod) == 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, l, NULL) == 0);
}

static void selecting(void) {
    int fds[2], p[2];
    connected(fds);
    CHECK(pipe(p) == 0);
    fd_set r, w;
    FD_ZERO(&r);
    FD_ZERO(&w);
    FD_SET(fds[1], &r), FD_SET(p[0], &r), FD_SET(fds[0], &w);
    struct timeval t = {10, 0};
    EQUAL(select(FD_SETSIZE, &r, &w, NULL, &t), 1);
    CHECK(FD_ISSET(fds[0], &w) && !FD_ISSET(fds[1], &r));
    write_all(fds[0], "x", 1);
    FD_ZERO(&r);
    FD_SET(fds[1], &r), FD_SET(p[0], &r);
    EQUAL(select(FD_SETSIZE, &r, NULL, NULL, &t), 1);
    CHECK(FD_ISSET(fds[1], &r));
    char to;
    read_all(fds[1], &to, 1);
    t = (struct timeval){0, 20000};
    FD_SET(fds[1], &r);
    FD_CLR(p[0], &r);
    EQUAL(select(FD_SETSIZE, &r, NULL, NULL, &t), 0);
    struct pollfd poll_fds[2] = {{fds[1], POLLIN, 0}, {p[0], POLLIN, 0}};
    struct timespec ts = {0, 20000000};
    EQUAL(ppoll(poll_fds, 2, &ts, NULL), 0);
}

/* Every connection is accepted once, by whichever process wakes. */
static void exclusive(void) {
    enum { WORKERS = 3, EACH = 60 };
    int l = listening();
    nonblocking(l);
    int done[2];
    CHECK(pipe(done) == 0);
    pid_t pids[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int set = set_of(l, EPOLLIN | EPOLLEXCLUSIVE, 1);
        for (;;) {
            struct epoll_event e;
            if (epoll_wait(set, &e, 1, -1) != 1) continue;
            int s = accept(l, NULL, NULL);
            if (s < 0) {
                EQUAL(errno, EAGAIN);
                continue;
            }
            char to;
            read_all(s, &to, 1);
            write_all(s, &to, 1);
            close(s);
        }
    }
    for (int i = 0; i < EACH; i++) {
        int c[4];
        for (int k = 0; k < 4; k++) c[k] = connect_to(port_of(l));
        for (int k = 0; k < 4; k++) write_all(c[k], "q", 1);
        for (int k = 0; k < 4; k++) {
            char to;
            read_all(c[k], &to, 1);
            EQUAL(to, 'q');
            close(c[k]);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

/* Of those that wait exclusively a connection wakes one. If that leaves without it, the next one wakes another. */
static void exclusive_left(void) {
    enum { WORKERS = 3 };
    int l = listening();
    int said[2];
    CHECK(pipe(said) == 0);
    for (int i = 0; i < WORKERS; i++) {
        if (fork() != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int set = set_of(l, EPOLLIN | EPOLLEXCLUSIVE, 1);
        write_all(said[1], "w", 1);
        one(set);
        write_all(said[1], "e", 1);
        _exit(0);
    }
    char word;
    for (int i = 0; i < WORKERS; i++) read_all(said[0], &word, 1);
    settle();
    for (int i = 0; i < WORKERS; i++) {
        connect_to(port_of(l));
        EQUAL(await(said[0], POLLIN), POLLIN);
        read_all(said[0], &word, 1);
        EQUAL(word, 'e');
        CHECK(wait(NULL) > 0);
    }
}

/* A set that parent and child share. */
static void shared_set(void) {
    int fds[2];
    connected(fds);
    int set = set_of(fds[1], EPOLLIN, 5);
    pid_t pid = fork();
    if (pid == 0) {
        EQUAL(one(set).data.u32, 5);
        char to;
        read_all(fds[1], &to, 1);
        write_all(fds[1], &to, 1);
        _exit(0);
    }
    write_all(fds[0], "x", 1);
    char to;
    read_all(fds[0], &to, 1);
    reap(pid);
    none(set);
    write_all(fds[0], "y", 1);
    EQUAL(one(set).data.u32, 5);
}

static volatile sig_atomic_t signals;
static void count(int s) { (void)s, signals++; }

static void own_signal(void) {
    int fds[2];
    connected(fds);
    signal(SIGIO, count);
    CHECK(fcntl(fds[1], F_SETOWN, getpid()) == 0);
    CHECK(fcntl(fds[1], F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
    write_all(fds[0], "x", 1);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    settle();
    CHECK(signals >= 1);
}

/* Who gets the signal, and which, was said before the socket had an address. */
static void own_signal_from_the_start(void) {
    struct f_owner_ex owner = {F_OWNER_PID, getpid()}, told = {0};
    int l = listening(), fd = socket(family, SOCK_STREAM, 0);
    union address to = at(host, port_of(l));
    signal(SIGUSR1, count);
    signals = 0;
    CHECK(fcntl(fd, F_SETOWN_EX, &owner) == 0);
    CHECK(fcntl(fd, F_SETSIG, SIGUSR1) == 0);
    CHECK(connect(fd, (void *)&to, sizeof to) == 0);
    EQUAL(fcntl(fd, F_GETOWN), getpid());
    CHECK(fcntl(fd, F_GETOWN_EX, &told) == 0 && told.type == owner.type && told.pid == owner.pid);
    EQUAL(fcntl(fd, F_GETSIG), SIGUSR1);
    CHECK(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
    int other = accept(l, NULL, NULL);
    write_all(other, "x", 1);
    EQUAL(await(fd, POLLIN), POLLIN);
    settle();
    CHECK(signals >= 1);
    close(fd), close(other), close(l);
}

/* A listener is readable while a connection waits, and never writable. */
static void listener(void) {
    int l = listening();
    int set = set_of(l, EPOLLIN | EPOLLOUT, 1);
    EQUAL(now(l, POLLIN | POLLOUT | POLLRDHUP), 0);
    none(set);
    int c = connect_to(port_of(l));
    EQUAL(await(l, POLLIN | POLLOUT), POLLIN);
    EQUAL(one(set).events, EPOLLIN);
    int s = accept(l, NULL, NULL);
    CHECK(s >= 0);
    EQUAL(now(s, POLLIN | POLLOUT), POLLOUT);
    EQUAL(now(l, POLLIN | POLLOUT), 0);
    none(set);
    CHECK(listen(l, 7) == 0);
    none(set);
    int on = 1;
    CHECK(setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    none(set);
    close(l);
    write_all(c, "a", 1);
    char to;
    read_all(s, &to, 1);
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"level", level},         {"edge", edge},           {"edge_out", edge_out},
        {"edge_unread", edge_unread},
        {"edge_unread_datagram", edge_unread_datagram},
        {"edge_unread_listener", edge_unread_listener},
        {"oneshot", oneshot},     {"nested", nested},       {"early", early},
        {"selecting", selecting}, {"exclusive", exclusive}, {"exclusive_left", exclusive_left}, {"shared_set", shared_set},
        {"own_signal", own_signal}, {"own_signal_from_the_start", own_signal_from_the_start}, {"listener", listener},   {0},
    };
    return run_case(cases, argc, argv);
}
