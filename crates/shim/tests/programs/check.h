/* Helpers of the test programs. Each program runs one named case: PROGRAM CASE ADDRESS. (`PROGRAM
 * list .` names them; those in parentheses are run by others.) The same cases run on the kernel (ADDRESS 127.0.0.1) and on eft, so what they
 * expect is what Linux does. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "past.h"

#define CHECK(c)                                                                                   \
    do {                                                                                           \
        if (!(c)) {                                                                                \
            fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #c, errno,            \
                    strerror(errno));                                                              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define EQUAL(a, b)                                                                                \
    do {                                                                                           \
        long long x_ = (long long)(a), y_ = (long long)(b);                                        \
        if (x_ != y_) {                                                                            \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (errno %d: %s)\n", __FILE__, __LINE__, #a, \
                    x_, y_, errno, strerror(errno));                                               \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
/* The call fails with this error. */
#define FAILS(c, e)                                                                                \
    do {                                                                                           \
        errno = 0;                                                                                 \
        EQUAL(c, -1);                                                                              \
        EQUAL(errno, e);                                                                           \
    } while (0)

static const char *host;

static inline struct sockaddr_in at(const char *address, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    CHECK(inet_pton(AF_INET, address, &a.sin_addr) == 1);
    return a;
}

static inline int port_of(int fd) {
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    CHECK(getsockname(fd, (void *)&a, &len) == 0);
    return ntohs(a.sin_port);
}

static inline int bound(int type, const char *address) {
    int fd = socket(AF_INET, type, 0);
    CHECK(fd >= 0);
    struct sockaddr_in a = at(address, 0);
    CHECK(bind(fd, (void *)&a, sizeof a) == 0);
    return fd;
}

static inline int listening(void) {
    int fd = bound(SOCK_STREAM, "0.0.0.0");
    CHECK(listen(fd, 64) == 0);
    return fd;
}

static inline int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    struct sockaddr_in a = at(host, port);
    CHECK(connect(fd, (void *)&a, sizeof a) == 0);
    return fd;
}

/* A connected pair: fds[0] the client's, fds[1] the server's. */
static inline void connected(int fds[2]) {
    int l = listening();
    fds[0] = connect_to(port_of(l));
    fds[1] = accept(l, NULL, NULL);
    CHECK(fds[1] >= 0);
    close(l);
}

static inline void nonblocking(int fd) {
    CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

/* Events within ten seconds (none: 0), or right now. */
static inline int await(int fd, int events) {
    struct pollfd p = {.fd = fd, .events = events};
    CHECK(poll(&p, 1, 10000) >= 0);
    return p.revents;
}

static inline int now(int fd, int events) {
    struct pollfd p = {.fd = fd, .events = events};
    CHECK(poll(&p, 1, 0) >= 0);
    return p.revents;
}

/* Waits until nothing is readable any more, for states that settle behind the program's back. */
static inline void settle(void) { usleep(20000); }

static inline void write_all(int fd, const void *from, size_t len) {
    const char *p = from;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        CHECK(n > 0);
        p += n, len -= n;
    }
}

static inline void read_all(int fd, void *to, size_t len) {
    char *p = to;
    while (len > 0) {
        ssize_t n = read(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        CHECK(n > 0);
        p += n, len -= n;
    }
}

static inline char *pattern(size_t len, unsigned seed) {
    char *p = malloc(len);
    CHECK(p);
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = seed >> 24;
    }
    return p;
}

static inline void reap(pid_t pid) {
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct test {
    const char *name;
    void (*run)(void);
};

static inline int run_case(const struct test *cases, int argc, char **argv) {
    CHECK(argc >= 3);
    host = argv[2];
    for (; cases->name; cases++) {
        if (!strcmp("list", argv[1])) {
            if (cases->name[0] != '(') puts(cases->name);
            continue;
        }
        if (!strcmp(cases->name, argv[1])) {
            cases->run();
            return 0;
        }
    }
    if (!strcmp("list", argv[1])) return 0;
    fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
