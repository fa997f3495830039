/* Datagram sockets. */
#include "check.h"
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

/* One byte more than an IP packet has room for; the length of an IPv6 one does not count its header. */
#define TOO_MUCH EITHER(65508, 65528)

static void echo(void) {
    int s = bound(SOCK_DGRAM, host), c = socket(family, SOCK_DGRAM, 0);
    union address to = at(host, port_of(s)), from;
    socklen_t len = sizeof from;
    char buffer[2000];
    FAILS(send(c, "x", 1, 0), EDESTADDRREQ);
    EQUAL(sendto(c, "hello", 5, 0, (void *)&to, sizeof to), 5);
    EQUAL(recvfrom(s, buffer, 3, 0, (void *)&from, &len), 3);
    EQUAL(len, size());
    EQUAL(ntohs(from.v4.sin_port), port_of(c));
    EQUAL(sendto(s, "", 0, 0, (void *)&from, sizeof from), 0);
    EQUAL(recv(c, buffer, 100, 0), 0);
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    EQUAL(send(c, "again", 5, 0), 5);
    EQUAL(await(s, POLLIN), POLLIN);
    EQUAL(recv(s, buffer, 2, MSG_PEEK | MSG_TRUNC), 5);
    /* Datagrams are never urgent: a receive does not look at the flag. */
    EQUAL(recv(s, buffer, 9, MSG_PEEK | MSG_OOB), 5);
    EQUAL(recv(s, buffer, 2, MSG_TRUNC), 5);
    /* Of an IPv6 socket a send does not look either. */
    if (family == AF_INET) FAILS(send(c, "x", 1, MSG_OOB), EOPNOTSUPP);
    else EQUAL(send(c, "x", 1, MSG_OOB) + recv(s, buffer, 2, 0), 2);
    EQUAL(now(s, POLLIN), 0);
    FAILS(recv(s, buffer, 2, MSG_DONTWAIT), EAGAIN);
    union address peer;
    len = sizeof peer;
    CHECK(getpeername(c, (void *)&peer, &len) == 0);
    CHECK(same(&peer, &to));
    char *big = pattern(TOO_MUCH, 1);
    FAILS(send(c, big, TOO_MUCH, 0), EMSGSIZE);
    EQUAL(send(c, big, 60000, 0), 60000);
    static char back[65536];
    EQUAL(recv(s, back, sizeof back, 0), 60000);
    CHECK(memcmp(back, big, 60000) == 0);
}

static void messages(void) {
    int s = bound(SOCK_DGRAM, host), c = socket(family, SOCK_DGRAM, 0);
    int on = 1;
    CHECK(setsockopt(s, IP_LEVEL, EITHER(IP_PKTINFO, IPV6_RECVPKTINFO), &on, sizeof on) == 0);
    union address to = at(host, port_of(s)), from;
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    struct mmsghdr many[3];
    struct iovec v[3] = {{"a", 1}, {"bb", 2}, {"ccc", 3}};
    memset(many, 0, sizeof many);
    for (int i = 0; i < 3; i++) {
        many[i].msg_hdr.msg_iov = &v[i];
        many[i].msg_hdr.msg_iovlen = 1;
    }
    EQUAL(sendmmsg(c, many, 3, 0), 3);
    EQUAL(many[2].msg_len, 3);
    char text[4], control[200];
    struct iovec r = {text, 4};
    struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &r,
                       .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    EQUAL(recvmsg(s, &m, 0), 1);
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    CHECK(h && says_destination(h, host));
    char buffers[3][8];
    for (int i = 0; i < 3; i++) v[i] = (struct iovec){buffers[i], 8};
    memset(many, 0, sizeof many);
    for (int i = 0; i < 3; i++) {
        many[i].msg_hdr.msg_iov = &v[i];
        many[i].msg_hdr.msg_iovlen = 1;
    }
    settle();
    EQUAL(recvmmsg(s, many, 3, MSG_WAITFORONE, NULL), 2);
    EQUAL(many[1].msg_len, 3);
    CHECK(sendto(c, "to", 2, 0, (void *)&to, sizeof to) == 2);
    m.msg_controllen = 0;
    r.iov_len = 1;
    EQUAL(recvmsg(s, &m, 0), 1);
    CHECK(m.msg_flags & MSG_TRUNC);
}

static void refused(void) {
    int gone = bound(SOCK_DGRAM, host);
    union address to = at(host, port_of(gone));
    close(gone);
    settle();
    int c = socket(family, SOCK_DGRAM, 0);
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    EQUAL(send(c, "x", 1, 0), 1);
    CHECK(await(c, POLLIN) != 0);
    char b;
    FAILS(recv(c, &b, 1, 0), ECONNREFUSED);
    FAILS(recv(c, &b, 1, MSG_DONTWAIT), EAGAIN);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    CHECK(connect(c, &none, sizeof none) == 0);
    FAILS(send(c, "x", 1, 0), EDESTADDRREQ);
    union address a;
    socklen_t len = sizeof a;
    FAILS(getpeername(c, (void *)&a, &len), ENOTCONN);
}

/* Several threads wait on one socket; each datagram is received once. */
static int shared;
static int received;
static void *receiver(void *arg) {
    (void)arg;
    char b[10];
    for (;;) {
        ssize_t n = recv(shared, b, 10, 0);
        CHECK(n > 0);
        if (b[0] == 'q') return NULL;
        __atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
    }
}

static void many_waiters(void) {
    shared = bound(SOCK_DGRAM, host);
    int c = socket(family, SOCK_DGRAM, 0);
    union address to = at(host, port_of(shared));
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, receiver, NULL);
    for (int i = 0; i < 300; i++) {
        EQUAL(send(c, "d", 1, 0), 1);
        if (i % 50 == 0) usleep(1000);
        while (i - __atomic_load_n(&received, __ATOMIC_SEQ_CST) > 100) usleep(100);
    }
    for (int i = 0; i < 4; i++) EQUAL(send(c, "q", 1, 0), 1);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    EQUAL(received, 300);
}

/* MSG_MORE and UDP_CORK make one datagram of several sends; what was not sent goes with the socket. */
static void more(void) {
    int s = bound(SOCK_DGRAM, host), c = socket(family, SOCK_DGRAM, 0), on = 1, off = 0;
    union address to = at(host, port_of(s)), other = at(host, 9);
    char got[100], *big = pattern(TOO_MUCH, 4);
    EQUAL(sendto(c, "ab", 2, MSG_MORE, (void *)&to, sizeof to), 2);
    settle();
    EQUAL(now(s, POLLIN), 0);
    /* Where the first part goes the rest goes. */
    EQUAL(sendto(c, "c", 1, MSG_MORE, (void *)&other, sizeof other), 1);
    EQUAL(send(c, "de", 2, 0), 2);
    EQUAL(recv(s, got, sizeof got, 0), 5);
    CHECK(memcmp(got, "abcde", 5) == 0);
    FAILS(recv(s, got, sizeof got, MSG_DONTWAIT), EAGAIN);
    FAILS(send(c, "x", 1, 0), EDESTADDRREQ);
    /* Too much in all: nothing is left of it. */
    EQUAL(sendto(c, "ab", 2, MSG_MORE, (void *)&to, sizeof to), 2);
    FAILS(sendto(c, big, TOO_MUCH - 2, MSG_MORE, (void *)&to, sizeof to), EMSGSIZE);
    FAILS(send(c, "x", 1, 0), EDESTADDRREQ);
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    EQUAL(send(c, big, TOO_MUCH - 2, MSG_MORE), TOO_MUCH - 2);
    EQUAL(send(c, big + TOO_MUCH - 2, 1, 0), 1);
    static char back[65536];
    EQUAL(recv(s, back, sizeof back, 0), TOO_MUCH - 1);
    CHECK(memcmp(back, big, TOO_MUCH - 1) == 0);
    CHECK(setsockopt(c, IPPROTO_UDP, UDP_CORK, &on, sizeof on) == 0);
    socklen_t len = sizeof on;
    CHECK(getsockopt(c, IPPROTO_UDP, UDP_CORK, &on, &len) == 0);
    EQUAL(on, 1);
    EQUAL(send(c, "12", 2, 0), 2);
    EQUAL(send(c, "34", 2, 0), 2);
    settle();
    EQUAL(now(s, POLLIN), 0);
    CHECK(setsockopt(c, IPPROTO_UDP, UDP_CORK, &off, sizeof off) == 0);
    EQUAL(recv(s, got, sizeof got, 0), 4);
    CHECK(memcmp(got, "1234", 4) == 0);
    EQUAL(send(c, "lost", 4, MSG_MORE), 4);
    close(c);
    settle();
    EQUAL(now(s, POLLIN), 0);
}

/* Who did not ask for it may not send to everybody; the call itself says so. */
static void broadcast(void) {
    if (family == AF_INET6) return; /* It has none. */
    int c = socket(family, SOCK_DGRAM, 0), s = bound(SOCK_DGRAM, host), on = 1;
    union address first = at(host, port_of(s)), all;
    EQUAL(sendto(c, "x", 1, 0, (void *)&first, sizeof first), 1);
    char address[32];
    snprintf(address, sizeof address, "%s", host);
    int loopback = strncmp(host, "127.", 4) == 0;
    strcpy((loopback ? strchr(address, '.') : strrchr(address, '.')) + 1, loopback ? "255.255.255" : "255");
    all = at(address, 9);
    FAILS(sendto(c, "x", 1, 0, (void *)&all, sizeof all), EACCES);
    EQUAL(sendto(c, "y", 1, 0, (void *)&first, sizeof first), 1);
    CHECK(setsockopt(c, SOL_SOCKET, SO_BROADCAST, &on, sizeof on) == 0);
    EQUAL(sendto(c, "x", 1, 0, (void *)&all, sizeof all), 1);
}

static int group_hops(int fd, int level, int name) {
    int hops = -2;
    socklen_t len = sizeof hops;
    CHECK(getsockopt(fd, level, name, &hops, &len) == 0);
    return hops;
}

/* IP_MULTICAST_TTL is 1 unless it is set, to 0 up to 255; -1 is the default. */
static void group_hops_of(int c, int level, int name) {
    int wrong[] = {-2, 256}, right[] = {0, 255, 7, -1};
    EQUAL(group_hops(c, level, name), 1);
    for (int i = 0; i < 4; i++) {
        CHECK(setsockopt(c, level, name, &right[i], sizeof(int)) == 0);
        EQUAL(group_hops(c, level, name), right[i] < 0 ? 1 : right[i]);
    }
    for (int i = 0; i < 2; i++)
        FAILS(setsockopt(c, level, name, &wrong[i], sizeof(int)), EINVAL);
}

static void groups(void) {
    int c = bound(SOCK_DGRAM, host), fresh = socket(family, SOCK_DGRAM, 0), hops = 9;
    group_hops_of(c, IP_LEVEL, EITHER(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS));
    CHECK(setsockopt(c, IPPROTO_IP, IP_MULTICAST_TTL, &(char){33}, 1) == 0);
    EQUAL(group_hops(c, IPPROTO_IP, IP_MULTICAST_TTL), 33);
    /* What was set before the socket has an address stays. */
    CHECK(setsockopt(fresh, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops) == 0);
    union address here = at(host, 0);
    CHECK(bind(fresh, (void *)&here, sizeof here) == 0);
    EQUAL(group_hops(fresh, IPPROTO_IP, IP_MULTICAST_TTL), 9);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int six = socket(AF_INET6, SOCK_DGRAM, 0);
    CHECK(bind(six, (void *)&any, sizeof any) == 0);
    group_hops_of(six, IPPROTO_IPV6, IPV6_MULTICAST_HOPS);
}

static int mtu_of(int fd) {
    int mtu;
    socklen_t len = sizeof mtu;
    return getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) == 0 ? mtu : -1;
}

/* IP_MTU is the device's, once there is a peer. */
static void mtu(void) {
    if (family == AF_INET6) return; /* eft has no IPV6_MTU. */
    int s = bound(SOCK_DGRAM, host), c = socket(family, SOCK_DGRAM, 0);
    FAILS(mtu_of(s), ENOTCONN);
    FAILS(mtu_of(listening()), ENOTCONN);
    union address to = at(host, port_of(s));
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    EQUAL(mtu_of(c), strcmp(host, near) ? 1500 : 65535);
}

/* An address of this host where nobody listens. */
static union address nobody(void) {
    int gone = bound(SOCK_DGRAM, host);
    union address to = at(host, port_of(gone));
    close(gone);
    settle();
    return to;
}

static int queueing(void) {
    int c = socket(family, SOCK_DGRAM, 0), on = 1;
    socklen_t len = sizeof on;
    CHECK(setsockopt(c, IP_LEVEL, EITHER(IP_RECVERR, IPV6_RECVERR), &on, sizeof on) == 0);
    CHECK(setsockopt(c, IP_LEVEL, EITHER(IP_RECVTTL, IPV6_RECVHOPLIMIT), &on, sizeof on) == 0);
    on = 0;
    CHECK(getsockopt(c, IP_LEVEL, EITHER(IP_RECVERR, IPV6_RECVERR), &on, &len) == 0);
    EQUAL(on, 1);
    return c;
}

/* Takes one "port unreachable" about `text`, sent to `to`, into a buffer of `room` bytes. */
static void take_error(int c, union address to, const char *text, size_t room) {
    char got[100];
    _Alignas(8) char control[200];
    union address name;
    struct iovec v = {got, room};
    struct msghdr m = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &v, .msg_iovlen = 1,
                       .msg_control = control, .msg_controllen = sizeof control};
    size_t len = strlen(text), fits = len < room ? len : room;
    EQUAL(recvmsg(c, &m, MSG_ERRQUEUE), (ssize_t)fits);
    CHECK(memcmp(got, text, fits) == 0);
    EQUAL(m.msg_flags, MSG_ERRQUEUE | (fits < len ? MSG_TRUNC : 0));
    EQUAL(m.msg_namelen, size());
    CHECK(same(&name, &to));
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    CHECK(h && h->cmsg_level == IP_LEVEL && h->cmsg_type == EITHER(IP_TTL, IPV6_HOPLIMIT));
    EQUAL(*(int *)CMSG_DATA(h), 64);
    h = CMSG_NXTHDR(&m, h);
    CHECK(h && h->cmsg_level == IP_LEVEL && h->cmsg_type == EITHER(IP_RECVERR, IPV6_RECVERR));
    EQUAL(h->cmsg_len, CMSG_LEN(sizeof(struct sock_extended_err) + size()));
    struct sock_extended_err e;
    union address offender;
    memcpy(&e, CMSG_DATA(h), sizeof e);
    memcpy(&offender, CMSG_DATA(h) + sizeof e, size());
    EQUAL(e.ee_errno, ECONNREFUSED);
    EQUAL(e.ee_origin, EITHER(SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6));
    EQUAL(e.ee_type, EITHER(ICMP_DEST_UNREACH, ICMP6_DST_UNREACH));
    EQUAL(e.ee_code, EITHER(ICMP_PORT_UNREACH, ICMP6_DST_UNREACH_NOPORT));
    EQUAL(e.ee_info, 0);
    CHECK(same_host(&offender, &to));
    CHECK(CMSG_NXTHDR(&m, h) == NULL);
}

/* IP_RECVERR: what became of datagrams is told to who asks, with a peer or without. */
static void errors(void) {
    union address to = nobody();
    int c = queueing(), off = 0;
    char b[10];
    EQUAL(sendto(c, "quote", 5, 0, (void *)&to, sizeof to), 5);
    EQUAL(await(c, POLLIN), POLLERR);
    FAILS(recv(c, b, 10, MSG_DONTWAIT), ECONNREFUSED);
    EQUAL(now(c, POLLIN), POLLERR);
    take_error(c, to, "quote", 100);
    EQUAL(now(c, POLLIN), 0);
    FAILS(recv(c, b, 10, MSG_ERRQUEUE), EAGAIN);
    FAILS(recv(c, b, 10, MSG_DONTWAIT), EAGAIN);
    /* Who waits for nothing else is woken, and who takes the error has no other. */
    EQUAL(sendto(c, "again", 5, 0, (void *)&to, sizeof to), 5);
    EQUAL(await(c, 0), POLLERR);
    take_error(c, to, "again", 2);
    FAILS(recv(c, b, 10, MSG_DONTWAIT), EAGAIN);
    EQUAL(now(c, POLLIN), 0);
    /* The pending error is that of the next in the queue. */
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    EQUAL(send(c, "one", 3, 0), 3);
    EQUAL(await(c, POLLIN), POLLERR);
    FAILS(send(c, "not", 3, 0), ECONNREFUSED);
    EQUAL(send(c, "two", 3, 0), 3);
    settle();
    take_error(c, to, "one", 100);
    FAILS(recv(c, b, 10, MSG_DONTWAIT), ECONNREFUSED);
    take_error(c, to, "two", 100);
    FAILS(recv(c, b, 10, MSG_ERRQUEUE), EAGAIN);
    /* The queue goes with the option. */
    EQUAL(send(c, "lost", 4, 0), 4);
    EQUAL(await(c, POLLIN), POLLERR);
    CHECK(setsockopt(c, IP_LEVEL, EITHER(IP_RECVERR, IPV6_RECVERR), &off, sizeof off) == 0);
    FAILS(recv(c, b, 10, MSG_ERRQUEUE), EAGAIN);
    FAILS(recv(c, b, 10, MSG_DONTWAIT), ECONNREFUSED);
    EQUAL(now(c, POLLIN), 0);
}

/* Errors and data are told apart, by poll and by the calls. */
static void errors_and_data(void) {
    union address to = nobody();
    int c = queueing(), s = bound(SOCK_DGRAM, host);
    char b[10];
    EQUAL(sendto(c, "first", 5, 0, (void *)&to, sizeof to), 5);
    EQUAL(await(c, POLLIN), POLLERR);
    union address us = at(host, port_of(c));
    EQUAL(recv(c, b, 10, MSG_DONTWAIT), -1);
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    settle();
    EQUAL(now(c, POLLIN), POLLIN | POLLERR);
    EQUAL(now(c, 0), POLLERR);
    struct pollfd both[2] = {{.fd = s, .events = POLLIN}, {.fd = c, .events = POLLIN}};
    EQUAL(poll(both, 2, -1), 1);
    EQUAL(both[0].revents, 0);
    EQUAL(recv(c, b, 10, 0), 4);
    EQUAL(now(c, POLLIN), POLLERR);
    take_error(c, to, "first", 100);
    EQUAL(now(c, POLLIN), 0);
    /* The limit holds. */
    struct timespec before, after, limit = {0, 50000000};
    clock_gettime(CLOCK_MONOTONIC, &before);
    EQUAL(ppoll(&both[1], 1, &limit, NULL), 0);
    EQUAL(poll(&both[1], 1, 50), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 100);
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    EQUAL(ppoll(&both[1], 1, NULL, NULL), 1);
    EQUAL(both[1].revents, POLLIN);
}

static void *send_to_nobody(void *fd) {
    union address to = nobody();
    settle();
    EQUAL(sendto(*(int *)fd, "first", 5, 0, (void *)&to, sizeof to), 5);
    return NULL;
}

/* Who waits for errors alone is woken by one while data wait. */
static void error_behind_data(void) {
    int c = queueing(), s = bound(SOCK_DGRAM, host);
    union address us = at(host, 0);
    CHECK(bind(c, (void *)&us, sizeof us) == 0);
    us = at(host, port_of(c));
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    EQUAL(await(c, POLLIN), POLLIN);
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, send_to_nobody, &c) == 0);
    struct pollfd p = {.fd = c};
    EQUAL(poll(&p, 1, -1), 1);
    EQUAL(p.revents, POLLERR);
    CHECK(pthread_join(sender, NULL) == 0);
}

/* So is who waits in a set, each time. */
static void error_behind_data_in_a_set(void) {
    int c = queueing(), s = bound(SOCK_DGRAM, host), set = epoll_create1(0);
    char b[10];
    union address us = at(host, 0);
    struct epoll_event event = {.events = 0, .data.fd = c};
    struct timespec before, after;
    CHECK(bind(c, (void *)&us, sizeof us) == 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, c, &event) == 0);
    us = at(host, port_of(c));
    EQUAL(sendto(s, "data", 4, 0, (void *)&us, sizeof us), 4);
    EQUAL(await(c, POLLIN), POLLIN);
    EQUAL(epoll_wait(set, &event, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        pthread_t sender;
        clock_gettime(CLOCK_MONOTONIC, &before);
        EQUAL(epoll_wait(set, &event, 1, 50), 0);
        clock_gettime(CLOCK_MONOTONIC, &after);
        CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 50);
        CHECK(pthread_create(&sender, NULL, send_to_nobody, &c) == 0);
        EQUAL(epoll_wait(set, &event, 1, -1), 1);
        EQUAL(event.events, EPOLLERR);
        EQUAL(event.data.fd, c);
        EQUAL(epoll_wait(set, &event, 1, -1), 1);
        CHECK(pthread_join(sender, NULL) == 0);
        EQUAL(recv(c, b, 10, MSG_ERRQUEUE), 5);
        FAILS(recv(c, b, 10, MSG_ERRQUEUE), EAGAIN);
    }
    EQUAL(recv(c, b, 10, 0), 4);
    EQUAL(epoll_wait(set, &event, 1, 0), 0);
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"echo", echo}, {"messages", messages}, {"refused", refused},
        {"many_waiters", many_waiters}, {"more", more}, {"broadcast", broadcast}, {"groups", groups}, {"mtu", mtu},
        {"errors", errors}, {"errors_and_data", errors_and_data}, {"error_behind_data", error_behind_data},
        {"error_behind_data_in_a_set", error_behind_data_in_a_set}, {0},
    };
    return run_case(cases, argc, argv);
}
