/* A server that echoes and a client that sends its standard input and writes what comes back, both with system
 * calls of their own. They use the ways to read and write in turn. PROGRAM serve|fetch ADDRESS PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "../../crates/shim/tests/programs/past.h"

#define NEEDS(c)                                                                                   \
    do {                                                                                           \
        if ((c) < 0) {                                                                             \
            fprintf(stderr, "%s: %s\n", #c, strerror(errno));                                      \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Moves what it can, in the `way`-th way. */
static long move(int out, int fd, char *bytes, long len, int way) {
    struct iovec parts[2] = {{bytes, len / 2}, {bytes + len / 2, len - len / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    switch (way % 4) {
    case 0: return PAST(out ? SYS_write : SYS_read, fd, bytes, len);
    case 1: return PAST(out ? SYS_writev : SYS_readv, fd, parts, 2);
    case 2: return PAST(out ? SYS_sendto : SYS_recvfrom, fd, bytes, len, 0, NULL, 0);
    default: return PAST(out ? SYS_sendmsg : SYS_recvmsg, fd, &message, 0);
    }
}

/* Until the end of what `from` gives. */
static void pass_on(int from, int from_socket, int to, int to_socket) {
    char bytes[30000];
    for (int way = 0;; way++) {
        long n = move(0, from, bytes, sizeof bytes, from_socket ? way : way & 1);
        NEEDS(n);
        if (n == 0) return;
        for (long done = 0; done < n;) {
            long m = move(1, to, bytes + done, n - done, to_socket ? way / 4 : way & 1);
            NEEDS(m);
            done += m;
        }
    }
}

static void *echo(void *arg) {
    int fd = (long)arg;
    pass_on(fd, 1, fd, 1);
    NEEDS(PAST(SYS_shutdown, fd, SHUT_WR));
    NEEDS(PAST(SYS_close, fd));
    return NULL;
}

/* One client after the other in a thread, a forked child and here. */
static void serve(struct sockaddr *address, socklen_t len) {
    long listener = PAST(SYS_socket, address->sa_family, SOCK_STREAM, 0), set = PAST(SYS_epoll_create1, 0);
    NEEDS(listener);
    NEEDS(PAST(SYS_setsockopt, listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)));
    NEEDS(PAST(SYS_bind, listener, address, len));
    NEEDS(PAST(SYS_listen, listener, 16));
    struct epoll_event event = {.events = EPOLLIN};
    NEEDS(PAST(SYS_epoll_ctl, set, EPOLL_CTL_ADD, listener, &event));
    for (int client = 0;; client++) {
        NEEDS(PAST(SYS_epoll_wait, set, &event, 1, -1));
        long fd = PAST(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC), copy;
        NEEDS(fd);
        NEEDS(copy = PAST(SYS_dup, fd));
        NEEDS(PAST(SYS_close, fd));
        pthread_t thread;
        switch (client % 3) {
        case 0: pthread_create(&thread, NULL, echo, (void *)copy); break;
        case 1:
            if (PAST(SYS_fork) == 0) echo((void *)copy), _exit(0);
            NEEDS(PAST(SYS_close, copy));
            break;
        default: echo((void *)copy);
        }
    }
}

static void *send_input(void *arg) {
    int fd = (long)arg;
    pass_on(0, 0, fd, 1);
    NEEDS(PAST(SYS_shutdown, fd, SHUT_WR));
    return NULL;
}

static void fetch(struct sockaddr *address, socklen_t len) {
    /* Whoever makes calls of its own may have blocked all signals. */
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    long fd = PAST(SYS_socket, address->sa_family, SOCK_STREAM, 0);
    NEEDS(fd);
    NEEDS(PAST(SYS_connect, fd, address, len));
    pthread_t thread;
    pthread_create(&thread, NULL, send_input, (void *)fd);
    pass_on(fd, 1, 1, 0);
    pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    signal(SIGCHLD, SIG_IGN);
    union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } address = {0};
    address.v4.sin_port = htons(atoi(arguments[3]));
    int six = inet_pton(AF_INET6, arguments[2], &address.v6.sin6_addr);
    address.any.sa_family = six ? AF_INET6 : AF_INET;
    if (!six) inet_pton(AF_INET, arguments[2], &address.v4.sin_addr);
    (arguments[1][0] == 's' ? serve : fetch)(&address.any, six ? sizeof address.v6 : sizeof address.v4);
    return 0;
}
