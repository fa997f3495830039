/* Urgent data: MSG_OOB, SO_OOBINLINE, SIOCATMARK, and who is told of it. */
#include "check.h"

#ifndef SIOCATMARK
#define SIOCATMARK 0x8905
#endif

static void in_line_of(int fd) {
    CHECK(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){1}, sizeof(int)) == 0);
}

static int at_mark(int fd) {
    int at = -1;
    CHECK(ioctl(fd, SIOCATMARK, &at) == 0);
    return at;
}

static int unread(int fd) {
    int n = -1;
    CHECK(ioctl(fd, FIONREAD, &n) == 0);
    return n;
}

static void urgent(int fd, const char *bytes) {
    EQUAL(send(fd, bytes, strlen(bytes), MSG_OOB), strlen(bytes));
}

static void expect(int fd, const char *bytes, int flags) {
    char got[100] = {0};
    EQUAL(recv(fd, got, sizeof got - 1, flags), strlen(bytes));
    CHECK(!strcmp(got, bytes));
}

/* Until the urgent byte is there. */
static void await_urgent(int fd) { EQUAL(await(fd, POLLPRI), POLLPRI); }

static void taken(void) {
    int fds[2];
    connected(fds);
    char c = 0;
    FAILS(recv(fds[1], &c, 1, MSG_OOB), EINVAL);
    write_all(fds[0], "ab", 2);
    urgent(fds[0], "cd!");
    write_all(fds[0], "ef", 2);
    await_urgent(fds[1]);
    while (unread(fds[1]) < 4) settle();
    /* Read early, the byte is gone; what comes before it can still be read, then what comes after. */
    expect(fds[1], "!", MSG_OOB | MSG_PEEK);
    expect(fds[1], "!", MSG_OOB);
    FAILS(recv(fds[1], &c, 1, MSG_OOB), EINVAL);
    EQUAL(now(fds[1], POLLPRI | POLLIN), POLLIN);
    expect(fds[1], "abcd", MSG_PEEK);
    expect(fds[1], "abcd", 0);
    expect(fds[1], "ef", 0);
}

/* Sends an urgent byte between others, and waits until it is there. */
static void send_around(int fds[2]) {
    write_all(fds[0], "ab", 2);
    urgent(fds[0], "!");
    write_all(fds[0], "cd", 2);
    await_urgent(fds[1]);
}

/* A read stops before the urgent byte, and the next one leaves it out. */
static void left_out(void) {
    int fds[2];
    char got[10];
    connected(fds);
    send_around(fds);
    EQUAL(at_mark(fds[1]), 0);
    EQUAL(unread(fds[1]), 2);
    expect(fds[1], "ab", 0);
    EQUAL(at_mark(fds[1]), 1);
    while (now(fds[1], POLLIN) != POLLIN) settle();
    EQUAL(now(fds[1], POLLIN | POLLPRI), POLLIN | POLLPRI);
    expect(fds[1], "cd", MSG_PEEK);
    expect(fds[1], "cd", 0);
    EQUAL(at_mark(fds[1]), 0);
    FAILS(recv(fds[1], got, 1, MSG_OOB), EINVAL);
    EQUAL(now(fds[1], POLLIN | POLLPRI), 0);
}

/* A splice stops there, too, and goes no further. */
static void spliced(void) {
    int fds[2], p[2];
    char got[2];
    connected(fds);
    CHECK(pipe(p) == 0);
    send_around(fds);
    EQUAL(splice(fds[1], NULL, p[1], NULL, 10, 0), 2);
    EQUAL(splice(fds[1], NULL, p[1], NULL, 10, 0), 0);
    read_all(p[0], got, 2);
    expect(fds[1], "cd", 0);
}

/* Even one that waits for more. */
static void waits_for_all(void) {
    int fds[2];
    char got[10];
    connected(fds);
    send_around(fds);
    EQUAL(recv(fds[1], got, 4, MSG_WAITALL), 2);
    EQUAL(recv(fds[1], got, 2, MSG_WAITALL), 2);
    CHECK(!memcmp(got, "cd", 2));
}

/* The byte alone is no input. */
static void alone(void) {
    int fds[2];
    char c;
    connected(fds);
    urgent(fds[0], "!");
    await_urgent(fds[1]);
    EQUAL(now(fds[1], POLLIN | POLLPRI), POLLPRI);
    EQUAL(now(fds[1], POLLIN), 0);
    EQUAL(at_mark(fds[1]), 1);
    EQUAL(unread(fds[1]), 0);
    expect(fds[1], "!", MSG_OOB);
    EQUAL(now(fds[1], POLLIN | POLLPRI), 0);
    EQUAL(at_mark(fds[1]), 1);
    write_all(fds[0], "x", 1);
    EQUAL(await(fds[1], POLLIN | POLLPRI), POLLIN);
    expect(fds[1], "x", 0);
    urgent(fds[0], "?");
    await_urgent(fds[1]);
    /* A read passes it. */
    FAILS(recv(fds[1], &c, 1, MSG_DONTWAIT), EAGAIN);
    FAILS(recv(fds[1], &c, 1, MSG_OOB), EINVAL);
    close(fds[0]);
    EQUAL(recv(fds[1], &c, 1, 0), 0);
}

static void in_line(void) {
    int fds[2];
    char c;
    connected(fds);
    in_line_of(fds[1]);
    send_around(fds);
    FAILS(recv(fds[1], &c, 1, MSG_OOB), EINVAL);
    while (unread(fds[1]) < 5) settle();
    expect(fds[1], "ab", 0);
    EQUAL(at_mark(fds[1]), 1);
    EQUAL(now(fds[1], POLLIN | POLLPRI), POLLIN | POLLPRI);
    expect(fds[1], "!cd", 0);
    EQUAL(at_mark(fds[1]), 0);
    EQUAL(now(fds[1], POLLIN | POLLPRI), 0);
    urgent(fds[0], "?");
    EQUAL(await(fds[1], POLLIN), POLLIN);
    expect(fds[1], "?", 0);
}

/* A listener's connections inherit it. */
static void inherited(void) {
    int l = listening();
    in_line_of(l);
    int c = connect_to(port_of(l)), s = accept(l, NULL, NULL);
    urgent(c, "!");
    EQUAL(await(s, POLLIN), POLLIN);
    expect(s, "!", 0);
}

/* Of two urgent bytes the last is urgent. One that was read by itself does not come again. */
static void two(void) {
    int fds[2];
    connected(fds);
    urgent(fds[0], "a1");
    await_urgent(fds[1]);
    while (unread(fds[1]) < 1) settle();
    expect(fds[1], "a", 0);
    expect(fds[1], "1", MSG_OOB);
    urgent(fds[0], "b2");
    await_urgent(fds[1]);
    expect(fds[1], "2", MSG_OOB);
    expect(fds[1], "b", 0);
    urgent(fds[0], "3");
    await_urgent(fds[1]);
    expect(fds[1], "3", MSG_OOB);
}

static void messages(void) {
    int fds[2];
    char got[4];
    connected(fds);
    urgent(fds[0], "!");
    await_urgent(fds[1]);
    struct iovec v = {got, sizeof got};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    EQUAL(recvmsg(fds[1], &m, MSG_OOB), 1);
    EQUAL(m.msg_flags & MSG_OOB, MSG_OOB);
    urgent(fds[0], "!");
    await_urgent(fds[1]);
    v.iov_len = 0;
    EQUAL(recvmsg(fds[1], &m, MSG_OOB), 0);
    EQUAL(m.msg_flags & (MSG_OOB | MSG_TRUNC), MSG_OOB | MSG_TRUNC);
}

static void *later(void *fd) {
    usleep(100000);
    urgent(*(int *)fd, "!");
    return NULL;
}

static void *data_then_later(void *fd) {
    usleep(50000);
    write_all(*(int *)fd, "data", 4);
    return later(fd);
}

static int selecting(int fd, fd_set *read, fd_set *except) {
    struct timeval limit = {10, 0};
    FD_ZERO(read);
    FD_ZERO(except);
    FD_SET(fd, read);
    FD_SET(fd, except);
    return select(fd + 1, read, NULL, except, &limit);
}

static void selected(void) {
    int fds[2];
    char c;
    fd_set read, except;
    pthread_t thread;
    connected(fds);
    CHECK(pthread_create(&thread, NULL, later, &fds[0]) == 0);
    EQUAL(selecting(fds[1], &read, &except), 1);
    CHECK(!FD_ISSET(fds[1], &read) && FD_ISSET(fds[1], &except));
    CHECK(pthread_join(thread, NULL) == 0);
    write_all(fds[0], "x", 1);
    while (now(fds[1], POLLIN) != POLLIN) settle();
    EQUAL(selecting(fds[1], &read, &except), 2);
    CHECK(FD_ISSET(fds[1], &read) && FD_ISSET(fds[1], &except));
    expect(fds[1], "!", MSG_OOB);
    EQUAL(selecting(fds[1], &read, &except), 1);
    CHECK(FD_ISSET(fds[1], &read) && !FD_ISSET(fds[1], &except));
    EQUAL(recv(fds[1], &c, 1, 0), 1);
    struct timeval limit = {0, 30000};
    FD_ZERO(&except);
    FD_SET(fds[1], &except);
    EQUAL(select(fds[1] + 1, NULL, NULL, &except, &limit), 0);
    CHECK(!FD_ISSET(fds[1], &except) && limit.tv_sec == 0 && limit.tv_usec < 30000);
    /* The end of the stream is input, and nothing urgent. */
    close(fds[0]);
    EQUAL(selecting(fds[1], &read, &except), 1);
    CHECK(FD_ISSET(fds[1], &read) && !FD_ISSET(fds[1], &except));
    struct timespec short_limit = {0, 1000000};
    FD_ZERO(&except);
    FD_SET(fds[1], &except);
    EQUAL(pselect(fds[1] + 1, NULL, NULL, &except, &short_limit, NULL), 0);
}

/* Also behind data that nobody reads. */
static void behind(void) {
    int fds[2];
    pthread_t thread;
    connected(fds);
    CHECK(pthread_create(&thread, NULL, data_then_later, &fds[0]) == 0);
    await_urgent(fds[1]);
    CHECK(pthread_join(thread, NULL) == 0);
    expect(fds[1], "!", MSG_OOB);
    expect(fds[1], "data", 0);
}

static void in_a_set(void) {
    int fds[2], set = epoll_create1(0);
    char c;
    pthread_t thread;
    connected(fds);
    struct epoll_event event = {.events = EPOLLPRI, .data.fd = fds[1]};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fds[1], &event) == 0);
    CHECK(pthread_create(&thread, NULL, later, &fds[0]) == 0);
    EQUAL(epoll_wait(set, &event, 1, 10000), 1);
    EQUAL(event.events, EPOLLPRI);
    CHECK(pthread_join(thread, NULL) == 0);
    EQUAL(epoll_wait(set, &event, 1, 10), 1);
    expect(fds[1], "!", MSG_OOB);
    EQUAL(epoll_wait(set, &event, 1, 10), 0);
    event.events = EPOLLIN | EPOLLPRI;
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, fds[1], &event) == 0);
    EQUAL(epoll_wait(set, &event, 1, 10), 0);
    write_all(fds[0], "x", 1);
    EQUAL(epoll_wait(set, &event, 1, 10000), 1);
    EQUAL(event.events, EPOLLIN);
    EQUAL(recv(fds[1], &c, 1, 0), 1);
    urgent(fds[0], "?");
    EQUAL(epoll_wait(set, &event, 1, 10000), 1);
    EQUAL(event.events, EPOLLPRI);
}

static void behind_in_a_set(void) {
    int fds[2], set = epoll_create1(0);
    pthread_t thread;
    connected(fds);
    struct epoll_event event = {.events = EPOLLPRI, .data.fd = fds[1]};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fds[1], &event) == 0);
    CHECK(pthread_create(&thread, NULL, data_then_later, &fds[0]) == 0);
    EQUAL(epoll_wait(set, &event, 1, 10000), 1);
    EQUAL(event.events, EPOLLPRI);
    CHECK(pthread_join(thread, NULL) == 0);
    expect(fds[1], "!", MSG_OOB);
    expect(fds[1], "data", 0);
}

/* Much of it, through a buffer that is smaller: each urgent byte comes once, by itself or in line. */
static void *sends_much(void *fd) {
    char *bytes = pattern(1 << 20, 1);
    for (int at = 0; at < 1 << 20; at += 1 << 14) {
        int done = 0;
        while (done < 1 << 14) {
            ssize_t n = send(*(int *)fd, bytes + at + done, (1 << 14) - done, MSG_OOB);
            CHECK(n > 0);
            done += n;
        }
    }
    free(bytes);
    shutdown(*(int *)fd, SHUT_WR);
    return NULL;
}

static void much(void) {
    int fds[2];
    pthread_t thread;
    connected(fds);
    in_line_of(fds[1]);
    char *expected = pattern(1 << 20, 1), *got = malloc(1 << 20);
    CHECK(pthread_create(&thread, NULL, sends_much, &fds[0]) == 0);
    read_all(fds[1], got, 1 << 20);
    CHECK(!memcmp(expected, got, 1 << 20));
    EQUAL(recv(fds[1], got, 1, 0), 0);
    CHECK(pthread_join(thread, NULL) == 0);
    free(expected), free(got);
}

static volatile sig_atomic_t signals, from_descriptor;
static volatile pid_t signalled_thread;

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    signals++;
    from_descriptor = info->si_fd;
    signalled_thread = syscall(SYS_gettid);
}

static void catch(int number) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK(sigaction(number, &action, NULL) == 0);
}

/* Until there were so many signals, and no more. */
static void signalled(int count) {
    for (int i = 0; signals < count && i < 1000; i++) usleep(10000);
    settle();
    EQUAL(signals, count);
}

/* SIGURG goes to the owner: named before the connection and after it, in each way, and named again. */
static void owned(void) {
    int fds[2], group[2];
    catch(SIGURG);
    connected(fds);
    urgent(fds[0], "nobody");
    await_urgent(fds[1]);
    signalled(0);
    CHECK(fcntl(fds[1], F_SETOWN, getpid()) == 0);
    EQUAL(fcntl(fds[1], F_GETOWN), getpid());
    for (int i = 1; i < 4; i++) {
        urgent(fds[0], "!");
        signalled(i);
    }
    /* Ordinary data are none. */
    write_all(fds[0], "abc", 3);
    settle();
    signalled(3);
    /* A duplicate is the same descriptor; its owner is this thread, which gets the signal. */
    struct f_owner_ex thread = {F_OWNER_TID, syscall(SYS_gettid)};
    int copy = dup(fds[1]);
    CHECK(fcntl(copy, F_SETOWN_EX, &thread) == 0);
    urgent(fds[0], "!");
    signalled(4);
    EQUAL(signalled_thread, thread.pid);
    /* A group, by ioctl; who belongs to another one gets none. */
    CHECK(pipe(group) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(setpgid(0, 0) == 0);
        signals = 0;
        int number = -getpid();
        CHECK(ioctl(fds[1], FIOSETOWN, &number) == 0);
        write_all(group[1], "x", 1);
        signalled(1);
        _exit(0);
    }
    char byte;
    read_all(group[0], &byte, 1);
    urgent(fds[0], "!");
    reap(child);
    signalled(4);
    CHECK(fcntl(fds[1], F_SETOWN, 0) == 0);
    EQUAL(fcntl(fds[1], F_GETOWN), 0);
    urgent(fds[0], "!");
    settle();
    signalled(4);
    /* The other way round, by a socket that had its owner before its address. */
    int l = listening(), c = socket(family, SOCK_STREAM, 0);
    union address to = at(host, port_of(l));
    CHECK(fcntl(c, F_SETOWN, getpid()) == 0);
    CHECK(connect(c, (void *)&to, sizeof to) == 0);
    int s = accept(l, NULL, NULL);
    urgent(s, "!");
    signalled(5);
    /* Which what was accepted does not inherit. */
    urgent(c, "!");
    await_urgent(s);
    signalled(5);
}

/* SIGIO, or another signal that was asked for, tells of input, each time. */
static void asynchronous(void) {
    int fds[2];
    char got[100];
    catch(SIGIO), catch(SIGUSR1);
    connected(fds);
    CHECK(fcntl(fds[1], F_SETOWN, getpid()) == 0);
    CHECK(fcntl(fds[1], F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
    for (int i = 1; i < 4; i++) {
        int before = signals;
        write_all(fds[0], "abc", 3);
        for (int k = 0; signals == before && k < 1000; k++) usleep(10000);
        CHECK(signals > before);
        read_all(fds[1], got, 3);
        settle();
    }
    CHECK(fcntl(fds[1], F_SETSIG, SIGUSR1) == 0);
    EQUAL(fcntl(fds[1], F_GETSIG), SIGUSR1);
    from_descriptor = -1;
    write_all(fds[0], "abc", 3);
    for (int k = 0; from_descriptor != fds[1] && k < 1000; k++) usleep(10000);
    EQUAL(from_descriptor, fds[1]);
}

int main(int argc, char **argv) {
    static const struct test cases[] = {
        {"taken", taken},       {"left_out", left_out}, {"waits_for_all", waits_for_all}, {"alone", alone},
        {"in_line", in_line},   {"inherited", inherited}, {"two", two},  {"messages", messages},
        {"selected", selected}, {"behind", behind},     {"in_a_set", in_a_set},
        {"behind_in_a_set", behind_in_a_set}, {"much", much}, {"spliced", spliced},
        {"owned", owned},       {"asynchronous", asynchronous}, {0},
    };
    return run_case(cases, argc, argv);
}
