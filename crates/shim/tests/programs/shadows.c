/* Datagram sockets, and a listener of both IP versions, that speak to the network and to the loopback at once. On the
 * kernel both are the loopback, and what is expected is the same. */
#include "check.h"
#include <sys/resource.h>

static char **arguments;

static void send_to(int fd, const char *text, const char *address, int port) {
    union address to = at(address, port);
    EQUAL(sendto(fd, text, strlen(text), 0, (void *)&to, sizeof to), strlen(text));
}

/* Takes one datagram, which is `text`, and tells from where it came. */
static union address take(int fd, const char *text) {
    char got[200];
    union address from;
    socklen_t len = sizeof from;
    ssize_t n = recvfrom(fd, got, sizeof got, 0, (void *)&from, &len);
    EQUAL(n, strlen(text));
    CHECK(memcmp(got, text, n) == 0);
    return from;
}

static void take_from(int fd, const char *text, const char *address, int port) {
    union address from = take(fd, text);
    CHECK(is_at(&from, address));
    EQUAL(ntohs(from.v4.sin_port), port);
}

static void nothing_at(int fd) {
    char b;
    settle();
    EQUAL(now(fd, POLLIN), 0);
    FAILS(recv(fd, &b, 1, MSG_DONTWAIT), EAGAIN);
}

/* A client that speaks to `address` only. */
static int client_of(const char *address, int port) {
    int fd = socket(family, SOCK_DGRAM, 0);
    union address to = at(address, port);
    CHECK(connect(fd, (void *)&to, sizeof to) == 0);
    return fd;
}

/* A server on the wildcard address hears both, with every kind of epoll. */
static void beside(void) {
    int s = bound(SOCK_DGRAM, everywhere());
    nonblocking(s);
    int level = epoll_create1(0), edge = epoll_create1(0), on = 1;
    struct epoll_event e = {.events = EPOLLIN}, edged = {.events = EPOLLIN | EPOLLET};
    CHECK(epoll_ctl(level, EPOLL_CTL_ADD, s, &e) == 0);
    CHECK(epoll_ctl(edge, EPOLL_CTL_ADD, s, &edged) == 0);
    CHECK(setsockopt(s, IP_LEVEL, EITHER(IP_PKTINFO, IPV6_RECVPKTINFO), &on, sizeof on) == 0);
    CHECK(setsockopt(s, IP_LEVEL, EITHER(IP_RECVTTL, IPV6_RECVHOPLIMIT), &on, sizeof on) == 0);
    int clients[2] = {client_of(host, port_of(s)), client_of(near, port_of(s))};
    for (int i = 0; i < 40; i++) {
        int c = clients[i % 3 != 0];
        const char *address = i % 3 ? near : host;
        EQUAL(send(c, "question", 8, 0), 8);
        EQUAL(epoll_wait(level, &e, 1, 10000), 1);
        EQUAL(epoll_wait(edge, &e, 1, 10000), 1);
        char text[4], control[200];
        union address from;
        struct iovec v = {text, i % 2 ? 4 : 8};
        char whole[8];
        if (i % 2 == 0) v.iov_base = whole;
        struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &v,
                           .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        EQUAL(recvmsg(s, &m, 0), i % 2 ? 4 : 8);
        CHECK(memcmp(v.iov_base, "question", v.iov_len) == 0);
        EQUAL(m.msg_flags & MSG_TRUNC, i % 2 ? MSG_TRUNC : 0);
        CHECK(is_at(&from, address));
        EQUAL(ntohs(from.v4.sin_port), port_of(c));
        int seen = 0;
        for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
            int ttl;
            if (says_destination(h, address)) {
                /* The interface lies before an IPv4 address, and behind an IPv6 one. */
                if (i % 3) EQUAL(*(int *)(CMSG_DATA(h) + EITHER(0, 16)), 1);
                seen |= 1;
            } else if (h->cmsg_type == EITHER(IP_TTL, IPV6_HOPLIMIT)) {
                memcpy(&ttl, CMSG_DATA(h), sizeof ttl);
                EQUAL(ttl, 64);
                seen |= 2;
            }
        }
        EQUAL(seen, 3);
        EQUAL(epoll_wait(level, &e, 1, 0), 0);
        FAILS(recv(s, text, 4, 0), EAGAIN);
        EQUAL(sendto(s, "answer", 6, 0, (void *)&from, sizeof from), 6);
        take_from(c, "answer", address, port_of(s));
    }
    EQUAL(epoll_wait(edge, &e, 1, 0), 0);
    /* News before the older ones are taken are an edge, too. */
    for (int i = 0; i < 3; i++) {
        EQUAL(send(clients[i != 1], "more", 4, 0), 4);
        EQUAL(epoll_wait(edge, &e, 1, 10000), 1);
    }
    for (int i = 0; i < 3; i++) take(s, "more");
    nothing_at(s);
    EQUAL(epoll_wait(edge, &e, 1, 0), 0);
    /* Nobody else has the port there; gone is gone. */
    int other = socket(family, SOCK_DGRAM, 0);
    union address a = at(near, port_of(s));
    FAILS(bind(other, (void *)&a, sizeof a), EADDRINUSE);
    close(s);
    for (int i = 0; i < 1000; i++) {
        if (bind(other, (void *)&a, sizeof a) == 0) return;
        usleep(10000);
    }
    CHECK(!"the port is free again");
}

/* What waits on both sides comes from both sides, each in its order, none twice. */
static void together(void) {
    enum { COUNT = 50 };
    int s = bound(SOCK_DGRAM, everywhere()), next[2] = {0, 0};
    int clients[2] = {client_of(host, port_of(s)), client_of(near, port_of(s))};
    char text[100];
    for (int i = 0; i < COUNT; i++)
        for (int side = 0; side < 2; side++) {
            snprintf(text, sizeof text, "%d %d", side, i);
            EQUAL(send(clients[side], text, strlen(text) + 1, 0), strlen(text) + 1);
        }
    settle();
    for (int i = 0; i < 2 * COUNT; i++) {
        int side, number;
        CHECK(await(s, POLLIN) == POLLIN);
        CHECK(recv(s, text, sizeof text, 0) > 0);
        CHECK(sscanf(text, "%d %d", &side, &number) == 2);
        EQUAL(number, next[side]++);
        /* Neither waits for the other to be done. */
        CHECK(abs(next[0] - next[1]) < COUNT / 2);
    }
    nothing_at(s);
}

/* What was peeked at, or counted, is what is received next. */
static void peeked(void) {
    int s = bound(SOCK_DGRAM, everywhere()), count;
    int clients[2] = {client_of(host, port_of(s)), client_of(near, port_of(s))};
    char b[100];
    for (int i = 0; i < 8; i++) {
        int first = clients[i & 1], second = clients[!(i & 1)];
        EQUAL(send(first, "the first", 9, 0), 9);
        CHECK(await(s, POLLIN) == POLLIN);
        if (i & 2) {
            EQUAL(recv(s, b, 3, MSG_PEEK | MSG_TRUNC), 9);
        } else {
            CHECK(ioctl(s, FIONREAD, &count) == 0);
            EQUAL(count, 9);
        }
        EQUAL(send(second, "2nd", 3, 0), 3);
        settle();
        EQUAL(recv(s, b, 3, MSG_PEEK | MSG_TRUNC), 9);
        if (i & 4) EQUAL(recv(s, b, 0, MSG_TRUNC), 9);
        else take(s, "the first");
        CHECK(ioctl(s, FIONREAD, &count) == 0);
        EQUAL(count, 3);
        take(s, "2nd");
        nothing_at(s);
        CHECK(ioctl(s, FIONREAD, &count) == 0);
        EQUAL(count, 0);
    }
}

/* A client that was never bound speaks to both, whichever comes first, from one port. */
static void either_first(void) {
    int servers[2] = {bound(SOCK_DGRAM, host), bound(SOCK_DGRAM, near)};
    const char *addresses[2] = {host, near};
    for (int i = 0; i < 4; i++) {
        int c = socket(family, SOCK_DGRAM, 0), one = 1, set = epoll_create1(0);
        struct epoll_event e = {.events = EPOLLIN};
        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, c, &e) == 0);
        CHECK(setsockopt(c, IP_LEVEL, EITHER(IP_RECVTTL, IPV6_RECVHOPLIMIT), &one, sizeof one) == 0);
        for (int k = 0; k < 6; k++) {
            int side = (i + k) & 1;
            union address a = at(addresses[side], port_of(servers[side]));
            if (i & 2 && k == 0) {
                /* The first one by a connection, which is then dissolved. */
                CHECK(connect(c, (void *)&a, sizeof a) == 0);
                EQUAL(send(c, "ask", 3, 0), 3);
                take(servers[side], "ask");
                struct sockaddr none = {.sa_family = AF_UNSPEC};
                CHECK(connect(c, &none, sizeof none) == 0);
            }
            send_to(c, "ask", addresses[side], port_of(servers[side]));
            union address from = take(servers[side], "ask");
            CHECK(is_at(&from, addresses[side]));
            EQUAL(ntohs(from.v4.sin_port), port_of(c));
            EQUAL(sendto(servers[side], "told", 4, 0, (void *)&from, sizeof from), 4);
            EQUAL(epoll_wait(set, &e, 1, 10000), 1);
            take_from(c, "told", addresses[side], port_of(servers[side]));
            EQUAL(epoll_wait(set, &e, 1, 0), 0);
        }
        close(c), close(set);
    }
}

/* Bound to a port that was asked for, which outlives a connection. */
static int bound_by_number(void) {
    for (int port = 10000 + getpid() % 9000;; port++) {
        int fd = socket(family, SOCK_DGRAM, 0);
        union address a = at(everywhere(), port);
        if (bind(fd, (void *)&a, sizeof a) == 0) return fd;
        EQUAL(errno, EADDRINUSE);
        close(fd);
    }
}

/* Connected to one on the network, a socket hears nobody else, not on the loopback either. */
static void connected_peer(void) {
    int s = bound_by_number(), peer = bound(SOCK_DGRAM, host);
    int port = port_of(s);
    send_to(bound(SOCK_DGRAM, near), "early", near, port);
    CHECK(await(s, POLLIN) == POLLIN);
    union address a = at(host, port_of(peer));
    CHECK(connect(s, (void *)&a, sizeof a) == 0);
    /* What came before stays. */
    take(s, "early");
    int c = client_of(near, port);
    EQUAL(send(c, "no", 2, 0), 2);
    CHECK(await(c, POLLIN) != 0);
    char b;
    FAILS(recv(c, &b, 1, 0), ECONNREFUSED);
    nothing_at(s);
    send_to(peer, "yes", host, port);
    take_from(s, "yes", host, port_of(peer));
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    CHECK(connect(s, &none, sizeof none) == 0);
    EQUAL(port_of(s), port);
    EQUAL(send(c, "again", 5, 0), 5);
    take_from(s, "again", near, port_of(c));
    send_to(peer, "both", host, port);
    take_from(s, "both", host, port_of(peer));
}

/* Connected to one on the loopback, it hears nobody on the network. */
static void loopback_peer(void) {
    int s = bound(SOCK_DGRAM, everywhere()), peer = bound(SOCK_DGRAM, near), far = bound(SOCK_DGRAM, host);
    union address a = at(near, port_of(peer)), b;
    socklen_t len = sizeof b;
    int port = port_of(s);
    CHECK(connect(s, (void *)&a, sizeof a) == 0);
    CHECK(getpeername(s, (void *)&b, &len) == 0);
    CHECK(memcmp(&a, &b, 8) == 0);
    CHECK(getsockname(s, (void *)&b, &len) == 0);
    CHECK(is_at(&b, near));
    EQUAL(ntohs(b.v4.sin_port), port);
    EQUAL(send(s, "one", 3, 0), 3);
    take_from(peer, "one", near, port);
    EQUAL(write(s, "two", 3), 3);
    take_from(peer, "two", near, port);
    send_to(far, "no", host, port);
    nothing_at(s);
    send_to(peer, "yes", near, port);
    take_from(s, "yes", near, port_of(peer));
    /* To a third party only by name; then to another peer. */
    send_to(s, "aside", host, port_of(far));
    take(far, "aside");
    a = at(host, port_of(far));
    CHECK(connect(s, (void *)&a, sizeof a) == 0);
    EQUAL(send(s, "three", 5, 0), 5);
    take_from(far, "three", host, port);
    EQUAL(port_of(s), port);
    CHECK(shutdown(s, SHUT_WR) == 0);
    FAILS(send(s, "x", 1, 0), EPIPE);
    send_to(far, "still", host, port);
    take(s, "still");
}

static int waiting_for;
static void *late(void *arg) {
    (void)arg;
    usleep(30000);
    send_to(bound(SOCK_DGRAM, near), "late", near, waiting_for);
    return NULL;
}

/* Whoever waits is woken: in recv, in recv with a limit, in select. */
static void waits(void) {
    int s = bound(SOCK_DGRAM, everywhere());
    waiting_for = port_of(s);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        struct timeval limit = {i == 1 ? 20 : 0, 0};
        CHECK(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
        CHECK(pthread_create(&t, NULL, late, NULL) == 0);
        if (i == 2) {
            fd_set set;
            FD_ZERO(&set);
            FD_SET(s, &set);
            EQUAL(select(s + 1, &set, NULL, NULL, NULL), 1);
        }
        take(s, "late");
        pthread_join(t, NULL);
    }
    struct timeval limit = {0, 20000};
    CHECK(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    char b;
    FAILS(recv(s, &b, 1, 0), EAGAIN);
}

/* Started over a server socket: hears what is sent from both sides. */
static void heir(void) {
    int s = atoi(arguments[3]);
    take(s, "to the heir");
    take(s, "to the heir");
    int c = socket(family, SOCK_DGRAM, 0);
    union address a = at(near, port_of(s));
    EQUAL(sendto(c, "own", 3, 0, (void *)&a, sizeof a), 3);
    take_from(s, "own", near, port_of(c));
}

/* Children have the shadow, too: inherited, over exec, and if it was made by another of them. */
static void domain(void) {
    int s = bound(SOCK_DGRAM, everywhere());
    pid_t child = fork();
    if (child == 0) {
        take(s, "to the child");
        take(s, "to the child");
        _exit(0);
    }
    send_to(bound(SOCK_DGRAM, near), "to the child", near, port_of(s));
    send_to(bound(SOCK_DGRAM, host), "to the child", host, port_of(s));
    reap(child);
    child = fork();
    if (child == 0) {
        char number[20];
        snprintf(number, sizeof number, "%d", s);
        execl(arguments[0], arguments[0], "(heir)", host, number, (char *)NULL);
        _exit(1);
    }
    send_to(bound(SOCK_DGRAM, near), "to the heir", near, port_of(s));
    send_to(bound(SOCK_DGRAM, host), "to the heir", host, port_of(s));
    reap(child);
    /* The child makes the shadow, the parent gets what comes. */
    int peers[2] = {bound(SOCK_DGRAM, host), bound(SOCK_DGRAM, near)};
    int c = socket(family, SOCK_DGRAM, 0);
    send_to(c, "parent", host, port_of(peers[0]));
    take(peers[0], "parent");
    child = fork();
    if (child == 0) {
        send_to(c, "child", near, port_of(peers[1]));
        _exit(0);
    }
    reap(child);
    union address from = take(peers[1], "child");
    EQUAL(sendto(peers[1], "thanks", 6, 0, (void *)&from, sizeof from), 6);
    CHECK(await(c, POLLIN) == POLLIN);
    take_from(c, "thanks", near, port_of(peers[1]));
    send_to(c, "parent", near, port_of(peers[1]));
    EQUAL(take(peers[1], "parent").v4.sin_port, from.v4.sin_port);
}

static void pass(int over, int fd) {
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {"d", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    EQUAL(sendmsg(over, &m, 0), 1);
}

static int passed(int over) {
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    EQUAL(recvmsg(over, &m, 0), 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

/* A process that was sent a socket hears the loopback, too: datagrams and connections. */
static void handed(void) {
    int over[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
    pid_t child = fork();
    if (child == 0) {
        int s = passed(over[1]), l = passed(over[1]);
        take(s, "handed");
        take(s, "handed");
        int c = accept(l, NULL, NULL);
        write_all(c, "answer", 6);
        _exit(0);
    }
    int s = bound(SOCK_DGRAM, everywhere()), l = listening();
    union address a = at(near, port_of(l));
    int port = port_of(s), c = socket(family, SOCK_STREAM, 0);
    pass(over[0], s), pass(over[0], l);
    close(s), close(l);
    send_to(bound(SOCK_DGRAM, near), "handed", near, port);
    send_to(bound(SOCK_DGRAM, host), "handed", host, port);
    CHECK(connect(c, (void *)&a, sizeof a) == 0);
    char got[6];
    read_all(c, got, 6);
    CHECK(memcmp(got, "answer", 6) == 0);
    reap(child);
}

/* An IPv6 socket sees mapped addresses. */
static void six(void) {
    if (family == AF_INET6) return; /* The clients are IPv4's. */
    int s = socket(AF_INET6, SOCK_DGRAM, 0), off = 0, on = 1;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6}, from;
    CHECK(setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
    CHECK(setsockopt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) == 0);
    CHECK(bind(s, (void *)&any, sizeof any) == 0);
    socklen_t len = sizeof any;
    CHECK(getsockname(s, (void *)&any, &len) == 0);
    int c = client_of(near, ntohs(any.sin6_port));
    EQUAL(send(c, "six", 3, 0), 3);
    char text[10], control[200];
    struct iovec v = {text, sizeof text};
    struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &v, .msg_iovlen = 1,
                       .msg_control = control, .msg_controllen = sizeof control};
    EQUAL(recvmsg(s, &m, 0), 3);
    struct in6_addr mapped;
    CHECK(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped) == 1);
    CHECK(memcmp(&from.sin6_addr, &mapped, 16) == 0);
    EQUAL(ntohs(from.sin6_port), port_of(c));
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    CHECK(h && h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO);
    CHECK(memcmp(CMSG_DATA(h), &mapped, 16) == 0);
    EQUAL(sendto(s, "seven", 5, 0, (void *)&from, sizeof from), 5);
    take_from(c, "seven", near, ntohs(any.sin6_port));
}

/* MSG_MORE and UDP_CORK over the loopback; the parts stay together. */
static void held(void) {
    int s = bound(SOCK_DGRAM, near), far = bound(SOCK_DGRAM, host), c = bound(SOCK_DGRAM, everywhere());
    union address to = at(near, port_of(s)), other = at(host, port_of(far));
    EQUAL(sendto(c, "ab", 2, MSG_MORE, (void *)&to, sizeof to), 2);
    EQUAL(sendto(c, "c", 1, MSG_MORE, (void *)&other, sizeof other), 1);
    nothing_at(s);
    EQUAL(send(c, "d", 1, 0), 1);
    take(s, "abcd");
    EQUAL(sendto(c, "12", 2, MSG_MORE, (void *)&other, sizeof other), 2);
    EQUAL(sendto(c, "3", 1, 0, (void *)&to, sizeof to), 1);
    take(far, "123");
    nothing_at(s);
    FAILS(send(c, "x", 1, 0), EDESTADDRREQ);
}

/* Nobody listens on the loopback: the error comes back, once. */
static void refused(void) {
    int gone = bound(SOCK_DGRAM, near), c = bound(SOCK_DGRAM, everywhere()), error;
    union address to = at(near, port_of(gone));
    socklen_t len = sizeof error;
    close(gone);
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    EQUAL(send(c, "x", 1, 0), 1);
    CHECK(await(c, POLLIN) != 0);
    char b;
    FAILS(recv(c, &b, 1, 0), ECONNREFUSED);
    nothing_at(c);
    EQUAL(send(c, "x", 1, 0), 1);
    CHECK(await(c, POLLIN) != 0);
    errno = 0;
    CHECK(getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &len) == 0);
    EQUAL(error, ECONNREFUSED);
    nothing_at(c);
}

static struct sockaddr_in6 at_six(const char *address, int port) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    CHECK(inet_pton(AF_INET6, address, &a.sin6_addr) == 1);
    return a;
}

/* One connection to the listener, from a client at `address`, and an answer. */
static void visit(int l, int port, const char *address) {
    struct sockaddr_in6 to = at_six(address, port), peer, own;
    socklen_t len = sizeof peer, own_len = sizeof own;
    int c = socket(AF_INET6, SOCK_STREAM, 0);
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    CHECK(getsockname(c, (void *)&own, &own_len) == 0);
    CHECK(await(l, POLLIN) == POLLIN);
    int s = accept(l, (void *)&peer, &len);
    CHECK(s >= 0);
    EQUAL(len, sizeof peer);
    EQUAL(peer.sin6_port, own.sin6_port);
    CHECK(memcmp(&peer.sin6_addr, &own.sin6_addr, 16) == 0);
    write_all(s, "answer", 6);
    char got[6];
    read_all(c, got, 6);
    CHECK(memcmp(got, "answer", 6) == 0);
    close(s), close(c);
}

static void visits(int l) {
    struct sockaddr_in6 own;
    socklen_t len = sizeof own;
    char mapped[40];
    CHECK(getsockname(l, (void *)&own, &len) == 0);
    snprintf(mapped, sizeof mapped, "::ffff:%s", host);
    const char *addresses[3] = {"::1", "::ffff:127.0.0.1", EITHER(mapped, host)};
    for (int i = 0; i < 6; i++) visit(l, ntohs(own.sin6_port), addresses[i % 3]);
    settle();
    EQUAL(now(l, POLLIN), 0);
}

/* Started over such a listener. */
static void heir_of_both(void) { visits(atoi(arguments[3])); }

/* A listener of both IP versions is reached at both addresses of the loopback, and by the network. */
static void listener_of_both(void) {
    int l = socket(AF_INET6, SOCK_STREAM, 0), off = 0, on = 1;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6}, taken;
    socklen_t len = sizeof any;
    CHECK(setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
    CHECK(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    CHECK(bind(l, (void *)&any, sizeof any) == 0 && listen(l, 10) == 0);
    CHECK(getsockname(l, (void *)&any, &len) == 0);
    visits(l);
    pid_t child = fork();
    if (child == 0) { visits(l); _exit(0); }
    reap(child);
    child = fork();
    if (child == 0) {
        char number[20];
        snprintf(number, sizeof number, "%d", l);
        execl(arguments[0], arguments[0], "(heir_of_both)", host, number, (char *)NULL);
        _exit(1);
    }
    reap(child);
    visits(l);
    /* Gone is gone. */
    taken = at_six("::1", ntohs(any.sin6_port));
    close(l);
    int c = socket(AF_INET6, SOCK_STREAM, 0);
    FAILS(connect(c, (void *)&taken, sizeof taken), ECONNREFUSED);
}

/* A listener that names no port gets one that is free at both addresses of the loopback. */
static void crowded(void) {
    struct rlimit most;
    CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
    most.rlim_cur = most.rlim_max < 9000 ? most.rlim_max : 9000;
    CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0);
    /* One listener in two would have a port that is taken at ::1, if nobody looked there. */
    struct sockaddr_in6 at_one = at_six("::1", 0);
    for (int i = 0; i < (int)most.rlim_cur - 100; i++)
        CHECK(bind(socket(AF_INET6, SOCK_STREAM, 0), (void *)&at_one, sizeof at_one) == 0);
    for (int i = 0; i < 8; i++) {
        int l = socket(AF_INET6, SOCK_STREAM, 0), off = 0;
        struct sockaddr_in6 any = {.sin6_family = AF_INET6};
        socklen_t len = sizeof any;
        CHECK(setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
        CHECK(bind(l, (void *)&any, sizeof any) == 0 && listen(l, 1) == 0);
        CHECK(getsockname(l, (void *)&any, &len) == 0);
        visit(l, ntohs(any.sin6_port), "::1");
        close(l);
    }
}

static int leaving;

static void *let_go(void *unused) {
    (void)unused;
    usleep(30000);
    return (void *)(long)close(leaving);
}

/* Binds to this port at the wildcard, as soon as it is free there. */
static int bound_when_free(int type, int port) {
    union address any = at("::", port);
    int fd = socket(AF_INET6, type, 0), off = 0;
    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
    for (int i = 0; bind(fd, (void *)&any, sizeof any.v6) != 0; i++) {
        CHECK(errno == EADDRINUSE && i < 1000);
        usleep(10000);
    }
    return fd;
}

/* A port that another socket is about to leave on the loopback: who is bound to it is reached there. */
static void left(void) {
    static const int types[2] = {SOCK_DGRAM, SOCK_STREAM};
    static const char *places[2] = {"127.0.0.1", "::1"};
    for (int i = 0; i < 4; i++) {
        int type = types[i / 2], port;
        pthread_t holder;
        leaving = bound(type, places[i % 2]);
        port = port_of(leaving);
        CHECK(pthread_create(&holder, NULL, let_go, NULL) == 0);
        int s = bound_when_free(type, port);
        pthread_join(holder, NULL);
        if (type == SOCK_STREAM) CHECK(listen(s, 1) == 0);
        for (int to = 0; to < 2; to++) {
            if (type == SOCK_STREAM) { visit(s, port, to ? "::1" : "::ffff:127.0.0.1"); continue; }
            int c = socket(to ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
            send_to(c, "here", places[to], port);
            CHECK(await(s, POLLIN) == POLLIN);
            char got[8];
            EQUAL(recv(s, got, sizeof got, MSG_DONTWAIT), 4);
            close(c);
        }
        close(s);
    }
}

int main(int argc, char **argv) {
    arguments = argv;
    static const struct test cases[] = {
        {"beside", beside}, {"together", together}, {"peeked", peeked}, {"either_first", either_first},
        {"connected_peer", connected_peer}, {"loopback_peer", loopback_peer}, {"waits", waits},
        {"(heir)", heir}, {"domain", domain}, {"handed", handed}, {"six", six}, {"held", held}, {"refused", refused},
        {"listener_of_both", listener_of_both}, {"(heir_of_both)", heir_of_both},
        {"crowded", crowded}, {"left", left}, {0},
    };
    return run_case(cases, argc, argv);
}
