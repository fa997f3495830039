/* What only a program on eft sees: its names, its interfaces, the loopback beside it. */
#include "check.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>

static char **arguments;

static int resolve(const char *name, int flags, int family, char *to, char *canonical) {
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list;
    int r = getaddrinfo(name, "8080", &hints, &list);
    if (r != 0) return r;
    int count = 0;
    for (struct addrinfo *a = list; a; a = a->ai_next) count++;
    CHECK(getnameinfo(list->ai_addr, list->ai_addrlen, to, 100, NULL, 0, NI_NUMERICHOST) == 0);
    struct sockaddr_in *in = (void *)list->ai_addr;
    EQUAL(ntohs(in->sin_port), 8080);
    if (canonical) strcpy(canonical, list->ai_canonname);
    freeaddrinfo(list);
    return -1000 * 0 + 100 + count;
}

static void names(void) {
    char to[100], canonical[100];
    EQUAL(resolve("web.test", 0, AF_UNSPEC, to, NULL), 101);
    CHECK(!strcmp(to, "10.78.0.2"));
    EQUAL(resolve("many.test", 0, AF_INET, to, NULL), 102);
    EQUAL(resolve("alias.test", AI_CANONNAME, AF_INET, to, canonical), 101);
    CHECK(!strcmp(canonical, "web.test"));
    EQUAL(resolve("localhost", 0, AF_INET, to, NULL), 101);
    CHECK(!strcmp(to, "127.0.0.1"));
    EQUAL(resolve("10.1.2.3", 0, AF_UNSPEC, to, NULL), 101);
    EQUAL(resolve("nobody.test", 0, AF_UNSPEC, to, NULL), EAI_NONAME);
    EQUAL(resolve("web.test", AI_NUMERICHOST, AF_UNSPEC, to, NULL), EAI_NONAME);
    EQUAL(resolve("web.test", 0, AF_INET6, to, NULL), EAI_NODATA);
    EQUAL(resolve("web.test", AI_V4MAPPED, AF_INET6, to, NULL), 101);
    CHECK(!strcmp(to, "::ffff:10.78.0.2"));
    EQUAL(resolve("big.test", 0, AF_INET, to, NULL), 120);
    union address a = at("10.78.0.2", 80);
    char host_name[100], service[100];
    CHECK(getnameinfo((void *)&a, sizeof a, host_name, 100, service, 100, NI_NUMERICSERV) == 0);
    CHECK(!strcmp(host_name, "web.test") && !strcmp(service, "80"));
    a = at("10.78.0.77", 80);
    EQUAL(getnameinfo((void *)&a, sizeof a, host_name, 100, NULL, 0, NI_NAMEREQD), EAI_NONAME);
    struct hostent *h = gethostbyname("many.test");
    CHECK(h && h->h_length == 4 && h->h_addr_list[1] && !h->h_addr_list[2]);
    h = gethostbyname("nobody.test");
    CHECK(!h && h_errno == HOST_NOT_FOUND);
    struct hostent entry;
    char small[20], large[2000];
    int error;
    EQUAL(gethostbyname_r("web.test", &entry, small, sizeof small, &h, &error), ERANGE);
    EQUAL(gethostbyname_r("alias.test", &entry, large, sizeof large, &h, &error), 0);
    CHECK(h == &entry && !strcmp(h->h_name, "web.test") && !strcmp(h->h_aliases[0], "alias.test"));
    struct in_addr address = {htonl(0x0a4e0002)};
    h = gethostbyaddr(&address, 4, AF_INET);
    CHECK(h && !strcmp(h->h_name, "web.test"));
}

static void interfaces(void) {
    struct ifaddrs *list;
    CHECK(getifaddrs(&list) == 0);
    int found = 0;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        CHECK(!strcmp(i->ifa_name, "lo") || !strcmp(i->ifa_name, "eft0"));
        if (strcmp(i->ifa_name, "eft0")) continue;
        if (i->ifa_addr->sa_family == AF_INET) {
            EQUAL(((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr, inet_addr("10.78.0.2"));
            EQUAL(((struct sockaddr_in *)i->ifa_netmask)->sin_addr.s_addr, inet_addr("255.255.255.0"));
            EQUAL(((struct sockaddr_in *)i->ifa_broadaddr)->sin_addr.s_addr, inet_addr("10.78.0.255"));
            CHECK(i->ifa_flags & IFF_UP);
            found |= 1;
        } else {
            EQUAL(i->ifa_addr->sa_family, AF_PACKET);
            EQUAL(((struct sockaddr_ll *)i->ifa_addr)->sll_addr[0], 2);
            found |= 2;
        }
    }
    EQUAL(found, 3);
    freeifaddrs(list);
    EQUAL(if_nametoindex("eft0"), 7);
    EQUAL(if_nametoindex("eth0"), 0);
    char name[IF_NAMESIZE];
    CHECK(if_indextoname(7, name) && !strcmp(name, "eft0"));
    struct if_nameindex *names = if_nameindex();
    CHECK(names && !strcmp(names[0].if_name, "lo") && !strcmp(names[1].if_name, "eft0"));
    EQUAL(names[2].if_index, 0);
    if_freenameindex(names);
    int fd = socket(family, SOCK_DGRAM, 0);
    struct ifreq r;
    memset(&r, 0, sizeof r);
    strcpy(r.ifr_name, "eft0");
    CHECK(ioctl(fd, SIOCGIFADDR, &r) == 0);
    EQUAL(((struct sockaddr_in *)&r.ifr_addr)->sin_addr.s_addr, inet_addr("10.78.0.2"));
    CHECK(ioctl(fd, SIOCGIFMTU, &r) == 0);
    EQUAL(r.ifr_mtu, 1500);
    CHECK(ioctl(fd, SIOCGIFFLAGS, &r) == 0);
    CHECK(r.ifr_flags & IFF_UP);
    struct ifreq all[10];
    struct ifconf c = {.ifc_len = sizeof all, .ifc_req = all};
    CHECK(ioctl(fd, SIOCGIFCONF, &c) == 0);
    EQUAL(c.ifc_len, 2 * sizeof all[0]);
    strcpy(r.ifr_name, "nope");
    FAILS(ioctl(fd, SIOCGIFADDR, &r), ENODEV);
}

/* One listener, two networks. */
static void loopback(void) {
    int l = listening();
    nonblocking(l);
    int set = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, l, &e) == 0);
    for (int i = 0; i < 30; i++) {
        const char *from = i % 3 ? near : host;
        union address a = at(from, port_of(l)), peer;
        int c = socket(family, SOCK_STREAM, 0);
        CHECK(connect(c, (void *)&a, sizeof a) == 0);
        EQUAL(epoll_wait(set, &e, 1, 10000), 1);
        socklen_t len = sizeof peer;
        int s = accept(l, (void *)&peer, &len);
        CHECK(s >= 0);
        CHECK(is_at(&peer, from));
        FAILS(accept(l, NULL, NULL), EAGAIN);
        EQUAL(epoll_wait(set, &e, 1, 0), 0);
        write_all(c, "x", 1);
        char to;
        read_all(s, &to, 1);
        close(c), close(s);
    }
    /* Both at once: two in the queues, one event, two accepts. */
    union address a = at(near, port_of(l)), b = at(host, port_of(l));
    int c = socket(family, SOCK_STREAM, 0), d = socket(family, SOCK_STREAM, 0);
    CHECK(connect(c, (void *)&a, sizeof a) == 0 && connect(d, (void *)&b, sizeof b) == 0);
    for (int i = 0; i < 2; i++) {
        EQUAL(epoll_wait(set, &e, 1, 10000), 1);
        int s = accept(l, NULL, NULL);
        CHECK(s >= 0 || errno == EAGAIN);
        if (s < 0) i--;
    }
    EQUAL(epoll_wait(set, &e, 1, 50), 0);
    /* Nobody else can listen there now; a loopback bind is the kernel's alone. */
    int k = socket(family, SOCK_STREAM, 0);
    FAILS(bind(k, (void *)&a, sizeof a), EADDRINUSE);
    k = bound(SOCK_STREAM, near);
    CHECK(listen(k, 1) == 0);
    b = at(host, port_of(k));
    d = socket(family, SOCK_STREAM, 0);
    FAILS(connect(d, (void *)&b, sizeof b), ECONNREFUSED);
    close(l);
    /* The stack's duplicate of the kernel's listener goes a moment later. */
    for (int i = 0; i < 1000; i++) {
        c = socket(family, SOCK_STREAM, 0);
        if (connect(c, (void *)&a, sizeof a) != 0 && errno == ECONNREFUSED) break;
        close(c);
        usleep(10000);
    }
    EQUAL(errno, ECONNREFUSED);
    /* Bound to the wildcard for eft, then connected to the loopback after all. */
    c = bound(SOCK_STREAM, everywhere());
    a = at(near, port_of(k));
    CHECK(connect(c, (void *)&a, sizeof a) == 0);
    int s = accept(k, NULL, NULL);
    write_all(c, "y", 1);
    char to;
    read_all(s, &to, 1);
}

static void silent(void) {
    union address a = at("10.78.0.99", 80);
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    FAILS(connect(fd, (void *)&a, sizeof a), EINPROGRESS);
    FAILS(connect(fd, (void *)&a, sizeof a), EALREADY);
    EQUAL(now(fd, POLLIN | POLLOUT), 0);
    FAILS(write(fd, "x", 1), EAGAIN);
    union address peer;
    socklen_t len = sizeof peer;
    FAILS(getpeername(fd, (void *)&peer, &len), ENOTCONN);
    fd = socket(family, SOCK_STREAM, 0);
    struct timeval t = {0, 30000};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0);
    FAILS(connect(fd, (void *)&a, sizeof a), EINPROGRESS);
    /* What would go past the stack fails. */
    FAILS(socket(family, SOCK_RAW, IPPROTO_ICMP), EPROTONOSUPPORT);
    FAILS(socket(family, SOCK_DGRAM, IPPROTO_ICMP), EPROTONOSUPPORT);
}

/* Started with a connection as standard input and output, knowing nothing of it. */
static void filter(void) {
    char line[100];
    while (fgets(line, sizeof line, stdin)) {
        printf("<%.*s>\n", (int)strlen(line) - 1, line);
        fflush(stdout);
    }
    fprintf(stderr, "end of input\n");
}

static void standard(void) {
    int fds[2];
    connected(fds);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 0), dup2(fds[1], 1), dup2(fds[1], 2);
        execl(arguments[0], arguments[0], "filter", host, (char *)NULL);
        _exit(1);
    }
    close(fds[1]);
    write_all(fds[0], "one\n", 4);
    char to[14];
    read_all(fds[0], to, 6);
    CHECK(!memcmp(to, "<one>\n", 6));
    shutdown(fds[0], SHUT_WR);
    read_all(fds[0], to, 13);
    CHECK(!memcmp(to, "end of input\n", 13));
    EQUAL(read(fds[0], to, 1), 0);
    reap(pid);
}

/* Privileges and the file system given up after the start. */
static void confined(void) {
    CHECK(chroot("/var/empty") == 0 || chroot("/tmp") == 0);
    CHECK(chdir("/") == 0);
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    int fds[2];
    connected(fds);
    pid_t pid = fork();
    if (pid == 0) {
        int more[2];
        connected(more);
        write_all(more[0], "x", 1);
        _exit(0);
    }
    reap(pid);
    /* In here the shim's file cannot be seen, so nothing may be started. */
    FAILS(execl("/program", "program", (char *)NULL), EPERM);
}

/* Runs what it is told to, and reports how that failed. */
static void start(void) {
    execl(arguments[3], arguments[3], (char *)NULL);
    printf("exec: %s\n", strerror(errno));
}

static void start_as_nobody(void) {
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    start();
}

/* Hands a connection to whoever listens at a Unix address: not of the domain. */
static void hand_over(void) {
    int fds[2];
    connected(fds);
    int over = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, arguments[3]);
    CHECK(connect(over, (void *)&a, sizeof a) == 0);
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {"p", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &fds[0], sizeof(int));
    FAILS(sendmsg(over, &m, 0), EPERM);
    int p[2];
    CHECK(pipe(p) == 0);
    memcpy(CMSG_DATA(h), &p[0], sizeof(int));
    EQUAL(sendmsg(over, &m, 0), 1);
}

/* Not on eft: waits at a Unix address for one message. */
static void unix_listener(void) {
    int l = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, arguments[3]);
    CHECK(bind(l, (void *)&a, sizeof a) == 0 && listen(l, 1) == 0);
    printf("ready\n");
    fflush(stdout);
    int s = accept(l, NULL, NULL);
    char to;
    read_all(s, &to, 1);
    unlink(arguments[3]);
}

static void *reader(void *arg) {
    char to;
    ssize_t n = read(*(int *)arg, &to, 1);
    EQUAL(n, -1);
    return NULL;
}

static void is_told(int l, int fd, const char *what) {
    int there = accept(l, NULL, NULL);
    char got[100] = "";
    read_all(there, got, strlen(what));
    CHECK(!strcmp(got, what));
    write_all(there, "z", 1);
    read_all(fd, got, 1);
    EQUAL(got[0], 'z');
    close(fd), close(there);
}

/* MSG_FASTOPEN connects on the stack. Past it nothing does but connect: who tries is refused, and can still connect. */
static void fast_open(void) {
    int l = listening();
    union address a = at(host, port_of(l));
    struct iovec v = {.iov_base = "x", .iov_len = 1};
    struct mmsghdr m = {.msg_hdr = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}};
    int fd = socket(family, SOCK_STREAM, 0);
    EQUAL(sendto(fd, "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a), 1);
    FAILS(sendto(fd, "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a), EISCONN);
    is_told(l, fd, "x");
    fd = socket(family, SOCK_STREAM, 0);
    EQUAL(sendmsg(fd, &m.msg_hdr, MSG_FASTOPEN), 1);
    write_all(fd, "y", 1);
    is_told(l, fd, "xy");
    fd = socket(family, SOCK_STREAM, 0);
    EQUAL(sendmmsg(fd, &m, 1, MSG_FASTOPEN), 1);
    is_told(l, fd, "x");
    FAILS(sendto(l, "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a), EISCONN);
    a = at(host, 1);
    fd = socket(family, SOCK_STREAM, 0);
    FAILS(sendto(fd, "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a), ECONNREFUSED);
    close(fd);
    a = at(near, port_of(l));
    fd = socket(family, SOCK_STREAM, 0);
    FAILS(sendto(fd, "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a), EOPNOTSUPP);
    FAILS(sendmsg(fd, &m.msg_hdr, MSG_FASTOPEN), EOPNOTSUPP);
    FAILS(sendmmsg(fd, &m, 1, MSG_FASTOPEN), EOPNOTSUPP);
    CHECK(connect(fd, (void *)&a, sizeof a) == 0);
    write_all(fd, "y", 1);
    is_told(l, fd, "y");
}

static int early(union address *to, int flags) {
    int on = 1, fd = socket(family, SOCK_STREAM | flags, 0);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) == 0);
    CHECK(connect(fd, (void *)to, sizeof *to) == 0);
    FAILS(connect(fd, (void *)to, sizeof *to), EISCONN);
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
    EQUAL(poll(&p, 1, 0), 1);
    EQUAL(p.revents, POLLOUT);
    return fd;
}

/* Without a cookie: a socket that does not wait keeps its bytes, and connects. */
static void fast_open_later(void) {
    int l = listening();
    union address a = at(host, port_of(l));
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    FAILS(sendto(fd, "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a), EINPROGRESS);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    EQUAL(poll(&p, 1, 10000), 1);
    EQUAL(p.revents, POLLOUT);
    CHECK(connect(fd, (void *)&a, sizeof a) == 0);
    FAILS(connect(fd, (void *)&a, sizeof a), EISCONN);
    CHECK(fcntl(fd, F_SETFL, 0) == 0);
    write_all(fd, "y", 1);
    is_told(l, fd, "y");
    int on = 1, two = 2;
    int other = listening();
    a = at(host, port_of(other));
    fd = socket(family, SOCK_STREAM, 0);
    FAILS(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &two, sizeof two), EINVAL);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) == 0);
    CHECK(connect(fd, (void *)&a, sizeof a) == 0);
    FAILS(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on), EINVAL);
    write_all(fd, "w", 1);
    is_told(other, fd, "w");
    close(other);
    /* Now there is one. */
    a = at(host, port_of(l));
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EQUAL(sendto(fd, "xy", 2, MSG_FASTOPEN, (void *)&a, sizeof a), 2);
    EQUAL(poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 10000), 1);
    CHECK(fcntl(fd, F_SETFL, 0) == 0);
    is_told(l, fd, "xy");
    /* What does not go with the SYN is left to the program; the first call after the handshake sends as any other. */
    char much[1500], got[1500];
    for (size_t i = 0; i < sizeof much; i++)
        much[i] = (char)(i / 7);
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EQUAL(sendto(fd, much, sizeof much, MSG_FASTOPEN, (void *)&a, sizeof a), 1000);
    EQUAL(poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 10000), 1);
    EQUAL(sendto(fd, much + 1000, 400, MSG_FASTOPEN, (void *)&a, sizeof a), 400);
    FAILS(sendto(fd, much + 1400, 100, MSG_FASTOPEN, (void *)&a, sizeof a), EISCONN);
    CHECK(fcntl(fd, F_SETFL, 0) == 0);
    write_all(fd, much + 1400, 100);
    int there = accept(l, NULL, NULL);
    CHECK(there >= 0);
    read_all(there, got, sizeof got);
    CHECK(!memcmp(much, got, sizeof got));
    close(fd), close(there);
    /* Without bytes it is a connect. */
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) == 0);
    CHECK(connect(fd, (void *)&a, sizeof a) == 0);
    FAILS(sendto(fd, "", 0, 0, NULL, 0), EINPROGRESS);
    EQUAL(poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 10000), 1);
    CHECK(fcntl(fd, F_SETFL, 0) == 0);
    write_all(fd, "p", 1);
    is_told(l, fd, "p");
    fd = early(&a, 0);
    write_all(fd, "u", 1);
    write_all(fd, "v", 1);
    is_told(l, fd, "uv");
    fd = early(&a, SOCK_NONBLOCK);
    char b;
    FAILS(read(fd, &b, 1), EAGAIN);
    EQUAL(write(fd, "t", 1), 1);
    CHECK(fcntl(fd, F_SETFL, 0) == 0);
    is_told(l, fd, "t");
    fd = early(&a, 0);
    int file = memfd_create("file", 0);
    write_all(file, "file", 4);
    EQUAL(sendfile(fd, file, &(off_t){0}, 4), 4);
    close(file);
    is_told(l, fd, "file");
    fd = early(&a, 0);
    close(fd);
    close(l);
    fd = early(&a, 0);
    FAILS(write(fd, "x", 1), ECONNREFUSED);
    close(fd);
}

/* Waits for a descriptor by epoll and poll, and calls, as event loops do: after a while, nothing wakes it. */
static void falls_asleep(int fd, int set, ssize_t (*call)(int)) {
    struct epoll_event e;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int rounds = 0;
    for (; epoll_wait(set, &e, 1, 300) != 0; rounds++) {
        CHECK(rounds < 100);
        EQUAL(e.data.u32, 5);
        EQUAL(call(fd), -1);
    }
    CHECK(rounds > 0);
    EQUAL(poll(&p, 1, 50), 0);
    FAILS(call(fd), EAGAIN);
    EQUAL(now(fd, POLLIN | POLLRDHUP), 0);
}

static ssize_t accepts(int fd) { return accept(fd, NULL, NULL); }
static ssize_t receives(int fd) { char to; return recv(fd, &to, 1, 0); }
static void *accepts_blocking(void *arg) {
    accept(*(int *)arg, NULL, NULL);
    printf("a blocking accept returned\n");
    _exit(1);
}

/* The stack ends: calls on connections return errors; who serves sleeps. */
static void orphaned(void) {
    int fds[2], l = listening(), blocking = listening(), d = bound(SOCK_DGRAM, host), copy = dup(l);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 5};
    connected(fds);
    pthread_t t;
    pthread_create(&t, NULL, reader, &fds[1]);
    nonblocking(l);
    nonblocking(d);
    /* A worker waits for the same listener in a set of its own. */
    pid_t pid = fork();
    int sets[2] = {epoll_create1(0), epoll_create1(0)};
    CHECK(epoll_ctl(sets[0], EPOLL_CTL_ADD, l, &e) == 0);
    CHECK(epoll_ctl(sets[1], EPOLL_CTL_ADD, d, &e) == 0);
    if (pid != 0) {
        pthread_t other;
        pthread_create(&other, NULL, accepts_blocking, &blocking);
        printf("ready\n");
        fflush(stdout);
    }
    EQUAL(await(fds[0], 0), POLLHUP);
    falls_asleep(l, sets[0], accepts);
    EQUAL(now(copy, POLLIN), 0);
    if (pid == 0) _exit(0);
    falls_asleep(d, sets[1], receives);
    reap(pid);
    pthread_join(t, NULL);
    char to;
    EQUAL(read(fds[0], &to, 1), -1);
    EQUAL(send(fds[0], "x", 1, MSG_NOSIGNAL), -1);
    int fd = socket(family, SOCK_STREAM, 0);
    union address a = at(host, 80);
    FAILS(connect(fd, (void *)&a, sizeof a), ENETUNREACH);
    nonblocking(fds[1]);
    int errors = 0;
    for (int i = 0; i < 100; i++) errors += read(fds[1], &to, 1) == -1 && errno != EAGAIN;
    CHECK(errors > 0);
}

static void connect_only(void) {
    for (int i = 0; i < 20; i++) {
        int fds[2];
        connected(fds);
        close(fds[0]), close(fds[1]);
    }
}

/* A network namespace of its own, whose loopback is up. (What asks eft's sockets for interfaces sees the stack's.) */
static void own_network(void) {
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    CHECK(unshare(CLONE_NEWNET) == 0);
    int plain = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(ioctl(plain, SIOCSIFFLAGS, &up) == 0);
    close(plain);
}

/* A socket that leaves its port to the system is reached on the loopback, too, even if every port that the stack would
 * choose is taken there. In a network namespace of its own, since it takes them. */
static void crowded(void) {
    for (int round = 0; round < 2; round++) {
        int type = round ? SOCK_DGRAM : SOCK_STREAM;
        own_network();
        for (int port = 20000; port < 32000; port++) {
            union address taken = at(near, port);
            CHECK(bind(socket(family, type, 0), (void *)&taken, sizeof taken) == 0);
        }
        int s = bound(type, everywhere()), c = socket(family, type, 0);
        CHECK(round || listen(s, 1) == 0);
        union address to = at(near, port_of(s));
        CHECK(connect(c, (void *)&to, sizeof to) == 0);
        EQUAL(send(c, "x", 1, 0), 1);
        char got;
        EQUAL(recv(round ? s : accept(s, NULL, NULL), &got, 1, 0), 1);
        for (int fd = 3; fd < 12100; fd++) close(fd);
    }
}

int main(int argc, char **argv) {
    arguments = argv;
    static const struct test cases[] = {
        {"names", names},       {"interfaces", interfaces}, {"loopback", loopback}, {"fast_open", fast_open},
        {"fast_open_later", fast_open_later},
        {"silent", silent},     {"filter", filter},         {"standard", standard},
        {"confined", confined}, {"start", start},           {"start_as_nobody", start_as_nobody},
        {"hand_over", hand_over}, {"orphaned", orphaned}, {"unix_listener", unix_listener},
        {"connect_only", connect_only}, {"crowded", crowded}, {0},
    };
    return run_case(cases, argc, argv);
}
