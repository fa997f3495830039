/* Threads that wait in a read, and others that wait for the same descriptor in other ways. */
#include "check.h"
#include <setjmp.h>

static void *write_late(void *fd) {
    usleep(3000);
    write_all(*(int *)fd, "abcd", 4);
    return NULL;
}

/* A connection on which a read has waited and has left three bytes. */
static void with_a_rest(int fds[2], int flags) {
    pthread_t t;
    char to;
    connected(fds);
    CHECK(pthread_create(&t, NULL, write_late, &fds[0]) == 0);
    EQUAL(recv(fds[1], &to, 1, flags), 1);
    EQUAL(to, 'a');
    pthread_join(t, NULL);
}

static void close_both(int fds[2]) { close(fds[0]), close(fds[1]); }

static int selected(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval none = {0};
    return select(fd + 1, &set, NULL, NULL, &none);
}

static int pselected(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timespec none = {0};
    return pselect(fd + 1, &set, NULL, NULL, &none, NULL);
}

static int ppolled(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec none = {0};
    return ppoll(&p, 1, &none, NULL);
}

static int in_set(int fd, int events) {
    int set = epoll_create1(0);
    struct epoll_event e = {.events = events};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
    int n = epoll_wait(set, &e, 1, 0);
    close(set);
    return n;
}

/* What a read leaves is seen at once, in every way. */
static void rest(void) {
    int fds[2], n;
    char to[4];
    for (int way = 0; way < 8; way++) {
        with_a_rest(fds, way == 7 ? MSG_PEEK : 0);
        switch (way) {
        case 0: EQUAL(now(fds[1], POLLIN), POLLIN); break;
        case 1: EQUAL(selected(fds[1]), 1); break;
        case 2: EQUAL(pselected(fds[1]), 1); break;
        case 3: EQUAL(ppolled(fds[1]), 1); break;
        case 4: EQUAL(in_set(fds[1], EPOLLIN), 1); break;
        case 5: EQUAL(in_set(fds[1], EPOLLIN | EPOLLET), 1); break;
        case 6: CHECK(ioctl(fds[1], FIONREAD, &n) == 0); EQUAL(n, 3); break;
        case 7: EQUAL(now(fds[1], POLLIN), POLLIN); break;
        }
        int left = way == 7 ? 4 : 3;
        EQUAL(recv(fds[1], to, 4, 0), left);
        EQUAL(now(fds[1], POLLIN), 0);
        EQUAL(selected(fds[1]), 0);
        EQUAL(in_set(fds[1], EPOLLIN), 0);
        /* And what comes then, too. */
        write_all(fds[0], "e", 1);
        EQUAL(await(fds[1], POLLIN), POLLIN);
        close_both(fds);
    }
}

/* Sets that the descriptor, or a duplicate, is in before the read. */
static void in_a_set(void) {
    int fds[2];
    char to[4];
    for (int edge = 0; edge < 2; edge++) {
        connected(fds);
        int set = epoll_create1(0), copy = dup(fds[1]);
        struct epoll_event e = {.events = edge ? EPOLLIN | EPOLLET : EPOLLIN};
        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, copy, &e) == 0);
        EQUAL(epoll_wait(set, &e, 1, 0), 0);
        pthread_t t;
        CHECK(pthread_create(&t, NULL, write_late, &fds[0]) == 0);
        EQUAL(recv(fds[1], to, 1, 0), 1);
        pthread_join(t, NULL);
        EQUAL(epoll_wait(set, &e, 1, 1000), 1);
        EQUAL(recv(fds[1], to, 4, 0), 3);
        EQUAL(epoll_wait(set, &e, 1, 0), 0);
        close(copy), close(set), close_both(fds);
    }
}

/* A child that inherits the rest. */
static void child(void) {
    int fds[2];
    with_a_rest(fds, 0);
    pid_t pid = fork();
    if (pid == 0) {
        EQUAL(await(fds[1], POLLIN), POLLIN);
        char to[4];
        EQUAL(recv(fds[1], to, 4, 0), 3);
        _exit(0);
    }
    reap(pid);
    EQUAL(now(fds[1], POLLIN), 0);
}

static void *read_one(void *fd) {
    char to;
    read_all(*(int *)fd, &to, 1);
    return NULL;
}

static void *poll_long(void *fd) {
    EQUAL(await(*(int *)fd, POLLIN), POLLIN);
    return NULL;
}

/* Of two threads one reads, and leaves something for the other, which polls. */
static void beside(void) {
    for (int i = 0; i < 2; i++) {
        int fds[2];
        pthread_t reader, poller;
        connected(fds);
        CHECK(pthread_create(i ? &poller : &reader, NULL, i ? poll_long : read_one, &fds[1]) == 0);
        usleep(2000);
        CHECK(pthread_create(i ? &reader : &poller, NULL, i ? read_one : poll_long, &fds[1]) == 0);
        usleep(2000);
        write_all(fds[0], "ab", 2);
        pthread_join(reader, NULL);
        pthread_join(poller, NULL);
        close_both(fds);
    }
}

#define EACH 300

static void *read_each(void *fd) {
    for (int i = 0; i < EACH; i++) read_one(fd);
    return NULL;
}

/* Threads that read from one socket all get something, and no byte is lost. */
static void together(void) {
    int fds[2];
    pthread_t t[4];
    connected(fds);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&t[i], NULL, read_each, &fds[1]) == 0);
    for (int i = 0; i < 4 * EACH; i++) {
        write_all(fds[0], "x", 1);
        if (i % 16 == 0) usleep(200);
    }
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    EQUAL(now(fds[1], POLLIN), 0);
}

static void *answers(void *fd) {
    char to[64];
    for (int i = 0; i < EACH; i++) {
        read_all(*(int *)fd, to, 4);
        read_all(*(int *)fd, to + 4, 60);
        write_all(*(int *)fd, to, 64);
    }
    return NULL;
}

static void *asks(void *fd) {
    char to[64] = {0};
    for (int i = 0; i < EACH; i++) {
        memcpy(to, &i, 4);
        write_all(*(int *)fd, to, 64);
        memset(to, -1, 64);
        read_all(*(int *)fd, to, 64);
        CHECK(memcmp(to, &i, 4) == 0);
    }
    return NULL;
}

/* Many threads that ask and answer each on a connection: a wake that is lost hangs. */
static void many(void) {
    int fds[16][2];
    pthread_t t[16][2];
    for (int i = 0; i < 16; i++) {
        connected(fds[i]);
        CHECK(pthread_create(&t[i][0], NULL, answers, &fds[i][1]) == 0);
        CHECK(pthread_create(&t[i][1], NULL, asks, &fds[i][0]) == 0);
    }
    for (int i = 0; i < 32; i++) pthread_join(t[i / 2][i % 2], NULL);
}

static int cleaned;
static void clean(void *arg) { (void)arg, cleaned++; }

static void *is_cancelled(void *fd) {
    char to;
    pthread_cleanup_push(clean, NULL);
    read(*(int *)fd, &to, 1);
    pthread_cleanup_pop(0);
    return NULL;
}

/* A read is a cancellation point, and what then comes is there for others. */
static void cancelled(void) {
    for (int us = 0; us < 60000; us += 10000) {
        int fds[2];
        pthread_t t;
        void *result;
        connected(fds);
        CHECK(pthread_create(&t, NULL, is_cancelled, &fds[1]) == 0);
        usleep(us);
        CHECK(pthread_cancel(t) == 0 && pthread_join(t, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        EQUAL(cleaned, us / 10000 + 1);
        write_all(fds[0], "x", 1);
        EQUAL(await(fds[1], POLLIN), POLLIN);
        read_one(&fds[1]);
        close_both(fds);
    }
}

static volatile sig_atomic_t signals;
static void count(int s) { (void)s, signals++; }

static void every(int ms, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval i = {{.tv_usec = ms * 1000}, {.tv_usec = ms * 1000}};
    CHECK(setitimer(ITIMER_REAL, &i, NULL) == 0);
}

static void *write_later(void *fd) {
    usleep(120000);
    return write_late(fd);
}

/* However late they come. */
static void *write_after_signals(void *fd) {
    while (signals < 5) usleep(5000);
    return write_later(fd);
}

/* Handlers that ask for it are followed by the rest of the wait; others end it, whenever they were set. */
static void restarted(void) {
    int fds[2];
    char to[4];
    pthread_t t;
    connected(fds);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    CHECK(pthread_create(&t, NULL, write_after_signals, &fds[0]) == 0);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    every(3, count, SA_RESTART);
    EQUAL(recv(fds[1], to, 4, 0), 4);
    CHECK(signals >= 5);
    pthread_join(t, NULL);
    for (int ms = 18; ms < 23; ms++) {
        every(ms, count, 0);
        for (int i = 0; i < 3; i++) FAILS(recv(fds[1], to, 4, 0), EINTR);
    }
    siginterrupt(SIGALRM, 0);
    signals = 0;
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    CHECK(pthread_create(&t, NULL, write_after_signals, &fds[0]) == 0);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    EQUAL(recv(fds[1], to, 4, 0), 4);
    CHECK(signals >= 3);
    pthread_join(t, NULL);
}

static sigjmp_buf out;
static void jump(int s) { (void)s, siglongjmp(out, 1); }

/* A handler may leave the read by a jump. */
static void jumps(void) {
    int fds[2];
    char to[4];
    for (int ms = 1; ms < 40; ms += 6) {
        connected(fds);
        if (!sigsetjmp(out, 1)) {
            every(ms, jump, SA_RESTART);
            recv(fds[1], to, 4, 0);
            CHECK(!"there is nothing to read");
        }
        every(0, SIG_DFL, 0);
        write_all(fds[0], "x", 1);
        EQUAL(await(fds[1], POLLIN), POLLIN);
        EQUAL(recv(fds[1], to, 4, 0), 1);
        close_both(fds);
    }
}

/* A receive timeout holds, also one that is set after a read has waited. */
static void limited(void) {
    int fds[2];
    char to[4];
    with_a_rest(fds, 0);
    EQUAL(recv(fds[1], to, 4, 0), 3);
    struct timeval t = {.tv_usec = 30000};
    CHECK(setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
    FAILS(recv(fds[1], to, 4, 0), EAGAIN);
    t.tv_usec = 0;
    CHECK(setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0);
    pthread_t late;
    CHECK(pthread_create(&late, NULL, write_later, &fds[0]) == 0);
    EQUAL(recv(fds[1], to, 4, MSG_WAITALL), 4);
    pthread_join(late, NULL);
}

static void *ends(void *fd) {
    char to;
    EQUAL(recv(*(int *)fd, &to, 1, 0), 0);
    return NULL;
}

/* The end of the stream, from either side, ends the wait. */
static void ended(void) {
    for (int way = 0; way < 4; way++) {
        int fds[2];
        pthread_t t;
        connected(fds);
        CHECK(pthread_create(&t, NULL, ends, &fds[1]) == 0);
        usleep(way % 2 ? 2000 : 40000);
        if (way < 2) close(fds[0]);
        else CHECK(shutdown(fds[1], SHUT_RD) == 0);
        pthread_join(t, NULL);
    }
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"rest", rest},         {"in_a_set", in_a_set}, {"child", child},       {"beside", beside},
        {"together", together}, {"many", many},         {"cancelled", cancelled}, {"restarted", restarted},
        {"jumps", jumps},       {"limited", limited},   {"ended", ended},       {0},
    };
    return run_case(cases, argc, argv);
}
