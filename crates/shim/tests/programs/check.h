/* Helpers of the test programs. Each program runs one named case: PROGRAM CASE ADDRESS. (`PROGRAM
 * list .` names them; those in parentheses are run by others.) The same cases run on the kernel (ADDRESS 127.0.0.1 or ::1) and on eft, so what they
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

/* The address that the command line names, its version, and the loopback's address of that version. */
static const char *host, *near;
static int family;

/* An address of either version; the port lies at the same place in both. */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* A level or an option of IP, by its names in both versions. */
#define EITHER(four, six) (family == AF_INET6 ? (six) : (four))
#define IP_LEVEL EITHER(IPPROTO_IP, IPPROTO_IPV6)

static inline socklen_t size(void) { return EITHER(sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6)); }

static inline const char *everywhere(void) { return EITHER("0.0.0.0", "::"); }

static inline union address at(const char *address, int port) {
    int six = strchr(address, ':') != NULL;
    union address a = {.v6 = {.sin6_family = six ? AF_INET6 : AF_INET, .sin6_port = htons(port)}};
    CHECK(inet_pton(a.any.sa_family, address, six ? (void *)&a.v6.sin6_addr : &a.v4.sin_addr) == 1);
    return a;
}

/* Whether both name the same address, whatever the ports. */
static inline int same_host(const union address *a, const union address *b) {
    if (a->any.sa_family != b->any.sa_family) return 0;
    if (a->any.sa_family == AF_INET6) return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

static inline int is_at(const union address *a, const char *address) {
    union address other = at(address, 0);
    return same_host(a, &other);
}

static inline int same(const union address *a, const union address *b) {
    return same_host(a, b) && a->v4.sin_port == b->v4.sin_port;
}

/* Whether it is the control message that says to which of our addresses a datagram came, and to this. */
static inline int says_destination(const struct cmsghdr *h, const char *address) {
    if (h->cmsg_level != IP_LEVEL || h->cmsg_type != EITHER(IP_PKTINFO, IPV6_PKTINFO)) return 0;
    union address to = {.any.sa_family = family};
    if (family == AF_INET6) to.v6.sin6_addr = ((struct in6_pktinfo *)CMSG_DATA(h))->ipi6_addr;
    else to.v4.sin_addr = ((struct in_pktinfo *)CMSG_DATA(h))->ipi_addr;
    CHECK(is_at(&to, address));
    return 1;
}

static inline int port_of(int fd) {
    union address a;
    socklen_t len = sizeof a;
    CHECK(getsockname(fd, (void *)&a, &len) == 0);
    return ntohs(a.v4.sin_port);
}

static inline int bound(int type, const char *address) {
    union address a = at(address, 0);
    int fd = socket(a.any.sa_family, type, 0);
    CHECK(fd >= 0);
    CHECK(bind(fd, (void *)&a, sizeof a) == 0);
    return fd;
}

static inline int listening(void) {
    int fd = bound(SOCK_STREAM, everywhere());
    CHECK(listen(fd, 64) == 0);
    return fd;
}

static inline int connect_to(int port) {
    int fd = socket(family, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    union address a = at(host, port);
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
    family = strchr(host, ':') ? AF_INET6 : AF_INET;
    near = EITHER("127.0.0.1", "::1");
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
