/* Programs that wait for streams in an epoll set, and others that wait for the same streams or the same set in other ways. */
#include "check.h"

#define MANY 20

static void add(int set, int fd, uint32_t events) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0);
}

static void modify(int set, int fd, uint32_t events) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, fd, &e) == 0);
}

/* One event within ten seconds, of this descriptor. */
static void one(int set, int fd, uint32_t events) {
    struct epoll_event e;
    EQUAL(epoll_wait(set, &e, 1, 10000), 1);
    EQUAL(e.data.fd, fd);
    EQUAL(e.events, events);
}

static void none(int set) {
    struct epoll_event e;
    EQUAL(epoll_wait(set, &e, 1, 30), 0);
}

static void take(int fd, int n) {
    char to[100];
    EQUAL(recv(fd, to, n, MSG_DONTWAIT), n);
}

/* Streams that a set has; its program has been woken once and is awake. */
static int awake(int fds[][2], int n, uint32_t events) {
    int set = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        connected(fds[i]);
        add(set, fds[i][1], events);
    }
    write_all(fds[0][0], "x", 1);
    one(set, fds[0][1], EPOLLIN);
    take(fds[0][1], 1);
    return set;
}

/* Each stream that has input is reported once in a call, and again until it is all taken. */
static void rests(void) {
    int fds[MANY][2];
    int set = awake(fds, MANY, EPOLLIN);
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < MANY; i++) write_all(fds[i][0], "abc", 3);
        int left[MANY], all = 3 * MANY;
        for (int i = 0; i < MANY; i++) left[i] = 3;
        while (all > 0) {
            struct epoll_event e[7];
            int n = epoll_wait(set, e, 7, 10000);
            CHECK(n > 0);
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < i; j++) CHECK(e[i].data.fd != e[j].data.fd);
                for (int j = 0; j < MANY; j++)
                    if (fds[j][1] == e[i].data.fd) {
                        CHECK(e[i].events == EPOLLIN && left[j] > 0);
                        take(fds[j][1], 1);
                        left[j]--, all--;
                    }
            }
        }
        none(set);
    }
}

/* Returns when the byte has come. */
static void send_one(const int ends[2]) {
    write_all(ends[0], "a", 1);
    int there = 0;
    while (!there) CHECK(ioctl(ends[1], FIONREAD, &there) == 0);
}

/* What came first is reported first, whichever stream is the older one. */
static void order(void) {
    int fds[MANY][2], beside[2];
    int set = awake(fds, MANY, EPOLLIN);
    connected(beside);
    for (int round = 0; round < 50; round++) {
        int came[MANY];
        for (int i = 0; i < MANY; i++) send_one(fds[came[i] = (round + 7 * i) % MANY]);
        /* Whatever came before this was also told of. */
        send_one(beside);
        take(beside[1], 1);
        struct epoll_event e[MANY];
        EQUAL(epoll_wait(set, e, MANY, 10000), MANY);
        for (int i = 0; i < MANY; i++) {
            EQUAL(e[i].data.fd, fds[came[i]][1]);
            take(e[i].data.fd, 1);
        }
        /* What was reported keeps its place until it is found to have nothing left. */
        EQUAL(epoll_wait(set, e, MANY, 0), 0);
    }
}

/* An edge for each new input, with what else the kernel says of the stream. */
static void edges(void) {
    int fds[1][2];
    int set = epoll_create(1);
    connected(fds[0]);
    nonblocking(fds[0][1]);
    add(set, fds[0][1], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    one(set, fds[0][1], EPOLLOUT);
    for (int i = 0; i < 50; i++) {
        write_all(fds[0][0], "ab", 2);
        one(set, fds[0][1], EPOLLIN | EPOLLOUT);
        if (i % 10 == 0) none(set);
        take(fds[0][1], 2);
    }
    write_all(fds[0][0], "ab", 2);
    one(set, fds[0][1], EPOLLIN | EPOLLOUT);
    take(fds[0][1], 1);
    write_all(fds[0][0], "c", 1);
    one(set, fds[0][1], EPOLLIN | EPOLLOUT);
    /* A change tells of input that was reported before. */
    modify(set, fds[0][1], EPOLLIN | EPOLLET);
    one(set, fds[0][1], EPOLLIN);
    none(set);
    take(fds[0][1], 2);
    /* One edge for input that comes while the program is busy, or asleep, however it is told of. */
    for (int i = 0; i < 20; i++) {
        write_all(fds[0][0], "a", 1);
        if (i % 2) usleep(5000);
        one(set, fds[0][1], EPOLLIN);
        struct epoll_event e[9];
        EQUAL(epoll_wait(set, e, 9, 5), 0);
        if (i % 4 > 1) take(fds[0][1], 2);
    }
}

/* A stream that is taken out, closed or not asked about is not reported; what comes back is. */
static void changes(void) {
    int fds[3][2];
    int set = awake(fds, 3, EPOLLIN);
    for (int round = 0; round < 20; round++) {
        modify(set, fds[0][1], EPOLLRDHUP);
        CHECK(epoll_ctl(set, EPOLL_CTL_DEL, fds[1][1], NULL) == 0);
        for (int i = 0; i < 3; i++) write_all(fds[i][0], "a", 1);
        one(set, fds[2][1], EPOLLIN);
        take(fds[2][1], 1);
        if (round % 4 == 0) none(set);
        modify(set, fds[0][1], EPOLLIN);
        one(set, fds[0][1], EPOLLIN);
        take(fds[0][1], 1);
        add(set, fds[1][1], EPOLLIN | (round % 2 ? EPOLLET : 0));
        one(set, fds[1][1], EPOLLIN);
        take(fds[1][1], 1);
    }
    write_all(fds[1][0], "a", 1);
    write_all(fds[2][0], "a", 1);
    close(fds[1][1]);
    one(set, fds[2][1], EPOLLIN);
    /* The number comes back for another stream, which is in no set. */
    int other[2];
    connected(other);
    write_all(other[0], "a", 1);
    EQUAL(await(other[1], POLLIN), POLLIN);
    one(set, fds[2][1], EPOLLIN);
    one(set, fds[2][1], EPOLLIN);
}

/* Descriptors of the kernel do not starve beside streams that always have input. */
static void kernels(void) {
    int fds[2][2], ends[2];
    int set = awake(fds, 2, EPOLLIN);
    CHECK(pipe(ends) == 0);
    add(set, ends[0], EPOLLIN);
    write_all(fds[0][0], "a", 1);
    one(set, fds[0][1], EPOLLIN);
    write_all(ends[1], "a", 1);
    int seen = 0;
    for (int i = 0; i < 200 && !seen; i++) {
        struct epoll_event e;
        EQUAL(epoll_wait(set, &e, 1, 1000), 1);
        seen = e.data.fd == ends[0];
    }
    CHECK(seen);
    /* The end of a stream shows beside its input, and room to write does. */
    write_all(fds[1][0], "a", 1);
    shutdown(fds[1][0], SHUT_WR);
    modify(set, fds[1][1], EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    uint32_t all = 0;
    for (int i = 0; all != (EPOLLIN | EPOLLOUT | EPOLLRDHUP); i++) {
        struct epoll_event e;
        if (i > 200) usleep(1000);
        CHECK(i < 10000);
        EQUAL(epoll_wait(set, &e, 1, 1000), 1);
        if (e.data.fd == fds[1][1]) all |= e.events;
    }
}

static int selected(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval none = {0};
    return select(fd + 1, &set, NULL, NULL, &none);
}

/* Input that the set has not reported is seen in every other way, at once. */
static void seen(void) {
    for (int way = 0; way < 8; way++) {
        int fds[1][2];
        int set = awake(fds, 1, EPOLLIN);
        int other = epoll_create1(0), fd = fds[0][1], n = 0;
        struct epoll_event e;
        write_all(fds[0][0], "abcd", 4);
        settle();
        switch (way) {
        case 0: n = now(fd, POLLIN) == POLLIN; break;
        case 1: n = selected(fd); break;
        case 2: add(other, fd, EPOLLIN), n = epoll_wait(other, &e, 1, 0); break;
        case 3: add(other, set, EPOLLIN), n = epoll_wait(other, &e, 1, 100); break;
        case 4: n = now(set, POLLIN) == POLLIN || await(set, POLLIN) == POLLIN; break;
        case 5: other = dup(set), n = epoll_wait(other, &e, 1, 100); break;
        case 6: n = selected(dup(fd)); break;
        case 7: n = selected(set) || await(set, POLLIN) == POLLIN; break;
        }
        EQUAL(n, 1);
        one(set, fd, EPOLLIN);
        take(fd, 4);
        none(set);
        write_all(fds[0][0], "abcd", 4);
        one(set, fd, EPOLLIN);
    }
}

static void *write_late(void *fd) {
    usleep(20000);
    write_all(*(int *)fd, "abcd", 4);
    return NULL;
}

/* Who waits in another way is woken in time, while the program of the set does not look. */
static void others(void) {
    for (int way = 0; way < 5; way++) {
        int fds[1][2];
        int set = awake(fds, 1, EPOLLIN), other = epoll_create1(0), fd = fds[0][1];
        pthread_t t;
        char to[4];
        struct epoll_event e;
        CHECK(pthread_create(&t, NULL, write_late, &fds[0][0]) == 0);
        switch (way) {
        case 0: read_all(fd, to, 4); break;
        case 1: EQUAL(await(fd, POLLIN), POLLIN); break;
        case 2: add(other, set, EPOLLIN); EQUAL(epoll_wait(other, &e, 1, 10000), 1); break;
        case 3: EQUAL(await(set, POLLIN), POLLIN); break;
        case 4: add(other, fd, EPOLLIN); EQUAL(epoll_wait(other, &e, 1, 10000), 1); break;
        }
        pthread_join(t, NULL);
    }
}

static void *wait_for_one(void *set) {
    struct epoll_event e;
    EQUAL(epoll_wait(*(int *)set, &e, 1, 10000), 1);
    take(e.data.fd, 4);
    return NULL;
}

/* Two threads wait in one set: the second input finds the second thread, while the first one is busy. */
static void threads(void) {
    int fds[2][2];
    int set = awake(fds, 2, EPOLLIN | EPOLLET);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&t[i], NULL, wait_for_one, &set) == 0);
    settle();
    for (int i = 0; i < 2; i++) write_all(fds[i][0], "abcd", 4);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
}

static void *read_much(void *fd) {
    char to[100];
    for (int left = 2000; left > 0;) {
        ssize_t n = recv(*(int *)fd, to, 100, MSG_DONTWAIT);
        CHECK(n > 0 || errno == EAGAIN);
        if (n > 0) left -= n;
    }
    return NULL;
}

/* A thread takes the input that was to wake another, which sleeps in the set: what comes for other streams wakes it. */
static void stolen(void) {
    int fds[2][2];
    int set = awake(fds, 2, EPOLLIN);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, read_much, &fds[0][1]) == 0);
    for (int i = 0; i < 1000; i++) {
        write_all(fds[0][0], "ab", 2);
        if (i % 10) continue;
        write_all(fds[1][0], "x", 1);
        struct epoll_event e = {0};
        while (e.data.fd != fds[1][1]) CHECK(epoll_wait(set, &e, 1, 10000) == 1);
        take(fds[1][1], 1);
    }
    pthread_join(t, NULL);
}

/* Children that have the set, or one of its streams. */
static void forked(void) {
    for (int way = 0; way < 3; way++) {
        int fds[2][2];
        int set = awake(fds, 2, EPOLLIN), fd = fds[0][1];
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            char to[4];
            switch (way) {
            case 0: one(set, fd, EPOLLIN), take(fd, 4); break;
            case 1: read_all(fd, to, 4); break;
            case 2: EQUAL(await(fd, POLLIN), POLLIN); take(fd, 4); break;
            }
            close(set);
            _exit(0);
        }
        usleep(30000);
        write_all(fds[0][0], "abcd", 4);
        reap(child);
        for (int i = 0; i < 3; i++) {
            write_all(fds[1][0], "a", 1);
            one(set, fds[1][1], EPOLLIN);
            take(fds[1][1], 1);
        }
        none(set);
    }
}

/* Sets come and go, with streams that stay. */
static void sets(void) {
    int fds[2];
    connected(fds);
    for (int i = 0; i < 600; i++) {
        int set = epoll_create1(EPOLL_CLOEXEC);
        add(set, fds[1], EPOLLIN);
        write_all(fds[0], "a", 1);
        one(set, fds[1], EPOLLIN);
        if (i % 3 == 0) take(fds[1], 1);
        if (i % 3 == 1) CHECK(dup2(fds[1], set) == set);
        if (i % 3 == 2) CHECK(close_range(set, set, 0) == 0);
        close(set);
        EQUAL(now(fds[1], POLLIN), i % 3 ? POLLIN : 0);
        if (i % 3) take(fds[1], 1);
    }
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"rests", rests},   {"order", order},     {"edges", edges},     {"changes", changes}, {"kernels", kernels},
        {"seen", seen},     {"others", others},   {"threads", threads}, {"stolen", stolen},
        {"forked", forked}, {"sets", sets},       {0},
    };
    return run_case(cases, argc, argv);
}
