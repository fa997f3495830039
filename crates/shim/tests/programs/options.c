/* Rows of docs/options.md, tried: PROGRAM rows ADDRESS LEVEL:NUMBER:STREAM:DATAGRAMS:NAME…, where the
 * verdicts are done, read only or refused. What is done or read only is so on the kernel, too. */
#include "check.h"

struct row {
    int level, number;
    char verdict[2][16], name[40];
};

static struct row rows[400];
static int count, on_kernel;

/* A fresh socket for the row, and one that has its address. */
static int fresh(const struct row *r, int type) {
    int fd = socket(r->level == IPPROTO_IPV6 ? AF_INET6 : AF_INET, type, 0);
    CHECK(fd >= 0);
    return fd;
}

static void decide(const struct row *r, int fd) {
    if (r->level == IPPROTO_IPV6) {
        struct sockaddr_in6 any = {.sin6_family = AF_INET6};
        CHECK(bind(fd, (void *)&any, sizeof any) == 0);
    } else {
        union address a = at(host, 0);
        CHECK(bind(fd, (void *)&a, sizeof a) == 0);
    }
}

static int is(const struct row *r, const char *name) { return !strcmp(r->name, name); }

#define FAIL(r, type, what)                                                                        \
    do {                                                                                           \
        fprintf(stderr, "%s on a %s socket: %s (errno %d: %s)\n", (r)->name,                       \
                (type) == SOCK_STREAM ? "stream" : "datagram", what, errno, strerror(errno));      \
        _exit(1);                                                                                  \
    } while (0)

static void refused(const struct row *r, int type, int fd) {
    char value[128] = {1};
    socklen_t len = sizeof value;
    errno = 0;
    if (setsockopt(fd, r->level, r->number, value, 4) == 0 || errno != ENOPROTOOPT) FAIL(r, type, "can be set");
    if (getsockopt(fd, r->level, r->number, value, &len) == 0 || (errno != ENOPROTOOPT && errno != EOPNOTSUPP))
        FAIL(r, type, "can be read");
}

static void read_only(const struct row *r, int type, int fd) {
    char value[256];
    socklen_t len = sizeof value;
    int one = 1, refusal = is(r, "IP_MULTICAST_IF") || is(r, "IP_MULTICAST_TTL") ? EINVAL : ENOPROTOOPT;
    /* Keys of which there are none. */
    int is_absent = is(r, "TCP_AO_GET_KEYS") && !on_kernel;
    errno = 0;
    if (getsockopt(fd, r->level, r->number, value, &len) &&
        !((is(r, "IP_MTU") || is(r, "IPV6_PATHMTU")) && errno == ENOTCONN) && !(is_absent && (errno == EINVAL || errno == ENOENT)))
        FAIL(r, type, "cannot be read");
    /* The kernel lets some of these be set; then nothing may come of it. */
    if (!on_kernel && (setsockopt(fd, r->level, r->number, &one, 4) == 0 || errno != refusal))
        FAIL(r, type, "can be set");
}

/* A membership: what is too short for one is invalid, and none can be read. */
static void set_only(const struct row *r, int type, int fd) {
    char value[128] = {1};
    socklen_t len = sizeof value;
    errno = 0;
    if (setsockopt(fd, r->level, r->number, value, 4) == 0 || errno != EINVAL) FAIL(r, type, "is not invalid");
    if (getsockopt(fd, r->level, r->number, value, &len) == 0 || errno != ENOPROTOOPT)
        /* The kernel, which has the socket until its first address, reads a request in it. */
        if (!is(r, "IPV6_FLOWLABEL_MGR")) FAIL(r, type, "can be read");
}

/* What the option reads as; those that cannot be read show in another. */
static int value_of(const struct row *r, int fd, char to[64]) {
    int number = is(r, "SO_SNDBUFFORCE") ? SO_SNDBUF : is(r, "SO_RCVBUFFORCE") ? SO_RCVBUF : r->number;
    socklen_t len = 64;
    memset(to, 0, 64);
    return getsockopt(fd, r->level, number, to, &len) ? -1 : (int)len;
}

static int try_to_set(const struct row *r, int fd, int round) {
    static const int numbers[] = {1, 0, 2, 16, 33, 1000};
    int of_buffer = !!strstr(r->name, "BUF"), v = of_buffer ? 20000 + 1000 * round : numbers[round];
    struct linger linger = {1, round};
    struct timeval patience = {round + 1, 0};
    if (is(r, "SO_LINGER")) return setsockopt(fd, r->level, r->number, &linger, sizeof linger);
    if (strstr(r->name, "TIMEO")) return setsockopt(fd, r->level, r->number, &patience, sizeof patience);
    if (is(r, "TCP_CONGESTION"))
        return setsockopt(fd, r->level, r->number, round % 2 ? "cubic" : "reno", round % 2 ? 5 : 4);
    if (is(r, "IP_MULTICAST_IF")) {
        struct in_addr named = at(host, 0).v4.sin_addr, none = {0};
        return setsockopt(fd, r->level, r->number, round % 2 ? &none : &named, sizeof named);
    }
    if (is(r, "TCP_FASTOPEN_KEY")) return setsockopt(fd, r->level, r->number, &"0123456789abcdefg"[round % 2], 16);
    return setsockopt(fd, r->level, r->number, &v, sizeof v);
}

/* Sets a value that shows, and says what it reads as then. */
static void change(const struct row *r, int type, int fd, char to[64]) {
    char before[64];
    int len = value_of(r, fd, before), tried = 0;
    if (len < 0) FAIL(r, type, "cannot be read");
    /* There is none before. */
    if (is(r, "TCP_FASTOPEN_KEY")) len = 16;
    for (int round = 0; round < 6; round++) {
        if (try_to_set(r, fd, round)) continue;
        tried = 1;
        CHECK(value_of(r, fd, to) == len);
        if (memcmp(before, to, 64)) return;
    }
    FAIL(r, type, tried ? "is taken, and reads as before" : "cannot be set");
}

/* `struct tcp_ao_info_opt`: there is none at first. */
static void authentication(const struct row *r, int fd) {
    unsigned char wishes[48] = {4 | 16}, told[64];
    socklen_t len = sizeof told;
    FAILS(getsockopt(fd, r->level, r->number, told, &len), ENOENT);
    CHECK(setsockopt(fd, r->level, r->number, wishes, sizeof wishes) == 0);
    for (int decided = 0; decided < 2; decided++) {
        len = sizeof told;
        CHECK(getsockopt(fd, r->level, r->number, told, &len) == 0 && len == sizeof wishes);
        CHECK(!memcmp(told, wishes, sizeof wishes));
        if (!decided) decide(r, fd);
    }
    wishes[0] = 1;
    FAILS(setsockopt(fd, r->level, r->number, wishes, sizeof wishes), ENOENT);
}

static void done(const struct row *r, int type) {
    char set[64], kept[64];
    int fd = fresh(r, type);
    if (strstr(r->name, "MSFILTER")) {
        /* What is too short for a filter is invalid. */
        socklen_t len = 4;
        for (int decided = 0; decided < 2; decided++) {
            FAILS(setsockopt(fd, r->level, r->number, set, 4), EINVAL);
            FAILS(getsockopt(fd, r->level, r->number, kept, &len), EINVAL);
            if (!decided) decide(r, fd);
        }
        close(fd);
        return;
    }
    if (is(r, "TCP_AO_INFO")) {
        authentication(r, fd);
        close(fd);
        return;
    }
    if (is(r, "IPV6_MTU")) {
        /* What is set does not read back, since the path's is told. */
        for (int decided = 0; decided < 2; decided++) {
            int mtu = 1280, less = 1279, none = 0;
            FAILS(setsockopt(fd, r->level, r->number, &less, 4), EINVAL);
            CHECK(setsockopt(fd, r->level, r->number, &mtu, 4) == 0);
            CHECK(setsockopt(fd, r->level, r->number, &none, 4) == 0);
            FAILS(getsockopt(fd, r->level, r->number, kept, &(socklen_t){sizeof kept}), ENOTCONN);
            if (!decided) decide(r, fd);
        }
        close(fd);
        return;
    }
    if (is(r, "IPV6_V6ONLY")) {
        int off = 0;
        CHECK(setsockopt(fd, r->level, r->number, &off, 4) == 0);
        decide(r, fd);
        FAILS(setsockopt(fd, r->level, r->number, &off, 4), EINVAL);
        EQUAL(value_of(r, fd, kept), 4);
        EQUAL(*(int *)kept, 0);
    } else if (is(r, "IP_OPTIONS") || is(r, "SO_BINDTODEVICE")) {
        for (int decided = 0; decided < 2; decided++) {
            CHECK(setsockopt(fd, r->level, r->number, NULL, 0) == 0);
            EQUAL(value_of(r, fd, kept), 0);
            if (!decided) decide(r, fd);
        }
    } else {
        /* What is set before the first address is there after it, and can be changed. */
        change(r, type, fd, set);
        decide(r, fd);
        if (value_of(r, fd, kept) < 0 || memcmp(set, kept, 64)) FAIL(r, type, "was set, and is lost");
        change(r, type, fd, set);
    }
    close(fd);
}

static void try_row(const struct row *r, int type) {
    const char *verdict = r->verdict[type == SOCK_DGRAM];
    /* Many kernels are built without it. */
    if (on_kernel && !strncmp(r->name, "TCP_AO_", 7)) return;
    if (!strcmp(verdict, "done")) return done(r, type);
    int is_refused = !strcmp(verdict, "refused"), is_set_only = !strcmp(verdict, "set only");
    if (is_refused && on_kernel) return;
    CHECK(is_refused || is_set_only || !strcmp(verdict, "read only"));
    int fd = fresh(r, type);
    void (*try)(const struct row *, int, int) = is_refused ? refused : is_set_only ? set_only : read_only;
    try(r, type, fd);
    decide(r, fd);
    try(r, type, fd);
    close(fd);
}

static void all_rows(void) {
    CHECK(count > 100);
    for (int i = 0; i < count; i++) {
        try_row(&rows[i], SOCK_STREAM);
        try_row(&rows[i], SOCK_DGRAM);
    }
}

/* Values that Linux takes and eft does not are refused before the first address, too. */
static void values(void) {
    for (int decided = 0; decided < 2; decided++) {
        int fd = decided ? bound(SOCK_STREAM, host) : socket(family, SOCK_STREAM, 0);
        int never = IP_PMTUDISC_INTERFACE, may = IP_PMTUDISC_DONT, told = -1;
        FAILS(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &never, sizeof never), EINVAL);
        CHECK(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &may, sizeof may) == 0);
        CHECK(getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &told, &(socklen_t){sizeof told}) == 0);
        EQUAL(told, IP_PMTUDISC_DONT);
        FAILS(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nosuch", 6), ENOENT);
        FAILS(setsockopt(fd, IPPROTO_TCP, 9999, &never, sizeof never), ENOPROTOOPT);
        FAILS(setsockopt(fd, IPPROTO_IP, IP_OPTIONS, "\1\1\1\1", 4), EINVAL);
    }
    /* A stream's ECN bits are TCP's own. */
    int fd = bound(SOCK_STREAM, host), tos = 0x2b;
    CHECK(setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos) == 0);
    CHECK(getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &(socklen_t){sizeof tos}) == 0);
    EQUAL(tos, 0x28);
    /* One for IPv6 only is the kernel's on a stack without IPv6, with all that the kernel has. */
    int six = socket(AF_INET6, SOCK_STREAM, 0), one = 1;
    if (six < 0) return;
    CHECK(setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0);
    CHECK(setsockopt(six, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one, sizeof one) == 0);
    CHECK(setsockopt(six, IPPROTO_IPV6, 75 /* IPV6_TRANSPARENT */, &one, sizeof one) == 0);
}

int main(int argc, char **argv) {
    static const struct test cases[] = {{"rows", all_rows}, {"values", values}, {0}};
    for (; count + 3 < argc; count++) {
        struct row *r = &rows[count];
        CHECK(sscanf(argv[count + 3], "%d:%d:%15[^:]:%15[^:]:%39s", &r->level, &r->number, r->verdict[0],
                     r->verdict[1], r->name) == 5);
    }
    on_kernel = argc > 2 && !strncmp(argv[2], "127.", 4);
    return run_case(cases, argc > 3 ? 3 : argc, argv);
}
