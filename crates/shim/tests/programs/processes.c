/* Descriptors over processes: dup, fork, exec, spawn, passing; and stdio, signals, threads. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
static char **arguments;

static void dups(void) {
    int fds[2];
    connected(fds);
    int a = dup(fds[0]), b = dup2(fds[0], 100), c = fcntl(fds[0], F_DUPFD_CLOEXEC, 200);
    EQUAL(b, 100);
    CHECK(c >= 200 && fcntl(c, F_GETFD) == FD_CLOEXEC);
    EQUAL(dup3(c, 300, O_CLOEXEC), 300);
    FAILS(dup3(c, c, 0), EINVAL);
    EQUAL(dup2(c, c), c);
    FAILS(dup2(999, 100), EBADF);
    close(fds[0]);
    char to[8];
    write_all(a, "1", 1), write_all(b, "2", 1), write_all(c, "3", 1), write_all(300, "4", 1);
    read_all(fds[1], to, 4);
    CHECK(memcmp(to, "1234", 4) == 0);
    close(a), close(b), close(c);
    settle();
    EQUAL(now(fds[1], POLLIN), 0);
    /* A file takes the number; it is a file then. */
    int null = open("/dev/null", O_RDWR);
    EQUAL(dup2(null, 300), 300);
    EQUAL(read(300, to, 1), 0);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    EQUAL(read(fds[1], to, 1), 0);
    FAILS(write(c, "x", 1), EBADF);
}

static void forks(void) {
    int l = listening();
    pid_t pid = fork();
    if (pid == 0) {
        int s = accept(l, NULL, NULL);
        char to[5];
        read_all(s, to, 5);
        write_all(s, to, 5);
        int out = connect_to(port_of(l));
        write_all(out, "child", 5);
        _exit(0);
    }
    int c = connect_to(port_of(l));
    write_all(c, "hello", 5);
    char to[5];
    read_all(c, to, 5);
    int s = accept(l, NULL, NULL);
    read_all(s, to, 5);
    CHECK(memcmp(to, "child", 5) == 0);
    EQUAL(read(s, to, 1), 0);
    EQUAL(read(c, to, 1), 0);
    reap(pid);
    /* Both ends in both processes: each takes what it finds. */
    int fds[2];
    connected(fds);
    pid = fork();
    if (pid == 0) {
        close(fds[1]);
        for (int i = 0; i < 1000; i++) write_all(fds[0], "abcdefgh", 8);
        _exit(0);
    }
    for (int i = 0; i < 1000; i++) write_all(fds[0], "abcdefgh", 8);
    close(fds[0]);
    static char bytes[16001];
    read_all(fds[1], bytes, 16000);
    EQUAL(read(fds[1], bytes, 1), 0);
    for (int i = 0; i < 16000; i += 8) CHECK(memcmp(bytes + i, "abcdefgh", 8) == 0);
    reap(pid);
}

static char *text(const char *format, int n) {
    char *s;
    CHECK(asprintf(&s, format, n) > 0);
    return s;
}

/* The new program: uses the connection and the listener that it was given. */
static void after_exec(void) {
    int c = atoi(arguments[3]), l = atoi(arguments[4]);
    char to[5];
    read_all(c, to, 5);
    write_all(c, to, 5);
    int on;
    socklen_t len = sizeof on;
    CHECK(getsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, &len) == 0);
    EQUAL(on, 1);
    int out = connect_to(port_of(l));
    int s = accept(l, NULL, NULL);
    write_all(out, "x", 1);
    read_all(s, to, 1);
    /* The listener still has its shadow socket on the loopback. */
    union address a = at(near, port_of(l));
    int local = socket(family, SOCK_STREAM, 0);
    CHECK(connect(local, (void *)&a, sizeof a) == 0);
    CHECK(accept(l, NULL, NULL) >= 0);
}

static void run_exec(char **envp) {
    int fds[2], l = listening(), on = 1;
    connected(fds);
    CHECK(setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {arguments[0], "(after exec)", (char *)host, text("%d", fds[1]),
                        text("%d", l), NULL};
        execve(arguments[0], argv, envp);
        CHECK(!"execve");
    }
    close(fds[1]);
    write_all(fds[0], "hello", 5);
    char to[5];
    read_all(fds[0], to, 5);
    EQUAL(read(fds[0], to, 1), 0);
    reap(pid);
}

static void execs(void) { run_exec(environ); }

static void scrubbed(void) {
    char *envp[] = {"PATH=/bin", NULL};
    run_exec(envp);
    clearenv();
    EQUAL(system("exit 0"), 0);
    char *const argv[] = {arguments[0], "forks", (char *)host, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execl(arguments[0], arguments[0], "forks", host, NULL);
        CHECK(!"execl");
    }
    reap(pid);
    pid = fork();
    if (pid == 0) {
        execv(arguments[0], argv);
        CHECK(!"execv");
    }
    reap(pid);
}

/* inetd: the connection as standard input and output of a program that knows nothing of it. */
static void start_cat(int fd, int how) {
    pid_t pid = -1;
    if (how == 0) {
        pid = vfork();
        if (pid == 0) {
            dup2(fd, 0);
            dup2(fd, 1);
            close(fd);
            execlp("cat", "cat", (char *)NULL);
            _exit(1);
        }
    } else {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fd, 0);
        posix_spawn_file_actions_adddup2(&actions, fd, 1);
        if (how == 1) posix_spawn_file_actions_addclose(&actions, fd);
        else posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        char *argv[] = {"cat", NULL};
        char *envp[] = {NULL};
        EQUAL(posix_spawnp(&pid, "cat", &actions, NULL, argv, envp), 0);
    }
    /* Nothing of that touched the parent's table. */
    char to[6];
    EQUAL(recv(fd, to, 1, MSG_DONTWAIT | MSG_PEEK), -1);
    EQUAL(errno, EAGAIN);
    close(fd);
}

static void spawns(void) {
    for (int how = 0; how < 3; how++) {
        int fds[2];
        connected(fds);
        start_cat(fds[1], how);
        write_all(fds[0], "meow!", 5);
        char to[6];
        read_all(fds[0], to, 5);
        CHECK(memcmp(to, "meow!", 5) == 0);
        shutdown(fds[0], SHUT_WR);
        EQUAL(read(fds[0], to, 1), 0);
        int status;
        CHECK(wait(&status) > 0);
        EQUAL(status, 0);
    }
}

/* A program that closes everything it does not know. */
static void closes_all(void) {
    int fds[2];
    connected(fds);
    for (int fd = 3; fd < 70000; fd++) {
        if (fd != fds[0] && fd != fds[1]) close(fd);
    }
    closefrom(fds[0] > fds[1] ? fds[0] + 1 : fds[1] + 1);
    write_all(fds[0], "x", 1);
    char to;
    read_all(fds[1], &to, 1);
    syscall(SYS_close_range, 3u, ~0u, 0u);
    FAILS(write(fds[0], "x", 1), EBADF);
    connected(fds);
    /* And one that puts its own on every number. */
    int null = open("/dev/null", O_RDWR);
    for (int fd = 900; fd < 1024; fd++) CHECK(dup2(null, fd) == fd);
    int more[2];
    connected(more);
    write_all(more[0], "y", 1);
    read_all(more[1], &to, 1);
    pid_t pid = fork();
    if (pid == 0) {
        connected(more);
        execl(arguments[0], arguments[0], "forks", host, NULL);
    }
    reap(pid);
}

static void pass(int over, int fd) {
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {"p", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    EQUAL(sendmsg(over, &m, 0), 1);
}

static int take(int over) {
    char control[CMSG_SPACE(sizeof(int))], b;
    struct iovec v = {&b, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = sizeof control};
    EQUAL(recvmsg(over, &m, 0), 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static void passing(void) {
    int over[2], fds[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, over) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        int s = take(over[1]);
        int fresh = take(over[1]);
        char to[5];
        read_all(s, to, 5);
        write_all(s, to, 5);
        union address a;
        socklen_t len = sizeof a;
        CHECK(getpeername(s, (void *)&a, &len) == 0);
        CHECK(connect(fresh, (void *)&a, sizeof a) == -1);
        _exit(0);
    }
    connected(fds);
    pass(over[0], fds[1]);
    close(fds[1]);
    pass(over[0], socket(family, SOCK_STREAM, 0));
    write_all(fds[0], "hello", 5);
    char to[5];
    read_all(fds[0], to, 5);
    EQUAL(read(fds[0], to, 1), 0);
    reap(pid);
}

/* A descriptor that is taken from a process, by its number there: from this one, and from a child. */
static void taken(void) {
    int fds[2], other[2], told[2];
    connected(fds);
    CHECK(pipe(told) == 0);
    int own = syscall(SYS_pidfd_open, getpid(), 0), copy = syscall(SYS_pidfd_getfd, own, fds[1], 0);
    CHECK(own >= 0 && copy >= 0);
    char to[5];
    write_all(fds[0], "hello", 5);
    read_all(copy, to, 5);
    close(fds[1]);
    write_all(copy, "again", 5);
    read_all(fds[0], to, 5);
    pid_t pid = fork();
    if (pid == 0) {
        connected(other);
        write_all(other[1], "child", 5);
        CHECK(write(told[1], &other[0], sizeof other[0]) == sizeof other[0]);
        pause();
    }
    int number;
    EQUAL(read(told[0], &number, sizeof number), sizeof number);
    int far = syscall(SYS_pidfd_open, pid, 0), theirs = syscall(SYS_pidfd_getfd, far, number, 0);
    CHECK(theirs >= 0);
    read_all(theirs, to, 5);
    CHECK(!memcmp(to, "child", 5));
    kill(pid, SIGKILL);
    EQUAL(waitpid(pid, NULL, 0), pid);
    FAILS((int)syscall(SYS_pidfd_getfd, own, 9999, 0), EBADF);
}

static void stdio(void) {
    int fds[2];
    connected(fds);
    FILE *out = fdopen(dup(fds[0]), "w"), *in = fdopen(fds[1], "r+");
    CHECK(out && in);
    EQUAL(fileno(in), fds[1]);
    fprintf(out, "%s %d %.1f\n", "line", 1, 2.5);
    CHECK(fflush(out) == 0);
    EQUAL(dprintf(fds[0], "%d %d %d %d %d %.2f %s\n", 1, 2, 3, 4, 5, 6.25, "end"), 19);
    char line[100];
    CHECK(fgets(line, 100, in) && !strcmp(line, "line 1 2.5\n"));
    CHECK(fgets(line, 100, in) && !strcmp(line, "1 2 3 4 5 6.25 end\n"));
    fputs("reply\n", in);
    CHECK(fclose(in) == 0);
    read_all(fds[0], line, 6);
    EQUAL(read(fds[0], line, 1), 0);
    fputs("x", out);
    fclose(out);
    FAILS(fcntl(fds[1], F_GETFD), EBADF);
}

/* What arrived on `fd` is `want`. */
static void arrived(int fd, const char *want) {
    char got[200] = {0};
    read_all(fd, got, strlen(want));
    CHECK(strcmp(got, want) == 0);
    settle();
    EQUAL(now(fd, POLLIN), 0);
}

/* stdin, stdout and stderr follow what their descriptors become. */
static void standard(void) {
    int fds[2], file = fileno(tmpfile()), saved = dup(1), errors = dup(2);
    FILE *remembered = stdout;
    char got[200] = {0}, name[] = "/tmp/eft-standard-XXXXXX";
    connected(fds);
    dup2(file, 1);
    printf("before ");
    EQUAL(dup2(fds[0], 1), 1);
    EQUAL(fileno(stdout), 1);
    printf("after %d\n", 1);
    settle();
    EQUAL(now(fds[1], POLLIN), 0);
    CHECK(fflush(stdout) == 0);
    arrived(fds[1], "before after 1\n");
    /* Who remembers the stream from before is served or told that it is not. */
    if (fputs("remembered\n", remembered) >= 0 && fflush(remembered) == 0)
        arrived(fds[1], "remembered\n");
    clearerr(remembered);
    printf("pending ");
    dup2(file, 1);
    puts("in the file");
    CHECK(fflush(stdout) == 0 && !ferror(stdout));
    EQUAL(pread(file, got, 100, 0), 20);
    CHECK(strcmp(got, "pending in the file\n") == 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    close(1);
    EQUAL(dup(fds[0]), 1);
    fputs("line\nrest", stdout);
    arrived(fds[1], "line\n");
    close(1);
    EQUAL(open("/dev/null", O_WRONLY), 1);
    dup2(fds[0], 1);
    putchar('\n');
    arrived(fds[1], "rest\n");
    pid_t pid = fork();
    if (pid == 0) {
        printf("at exit");
        exit(0);
    }
    reap(pid);
    arrived(fds[1], "at exit");
    close(mkstemp(name));
    CHECK(freopen(name, "w+", stdout) == stdout);
    EQUAL(fileno(stdout), 1);
    CHECK(printf("reopened") == 8 && fflush(stdout) == 0 && ftell(stdout) == 8);
    EQUAL(pread(1, got, 100, 0), 8);
    unlink(name);
    dup2(saved, 1);

    dup2(fds[0], 2);
    errno = ENOENT;
    perror("E1");
    fprintf(stderr, "E%d ", 2);
    write_all(2, "E3\n", 3);
    dup2(errors, 2);
    arrived(fds[1], "E1: No such file or directory\nE2 E3\n");

    int n = 0, pipes[2];
    CHECK(pipe(pipes) == 0);
    write_all(pipes[1], "1 2", 3);
    dup2(pipes[0], 0);
    CHECK(scanf("%d", &n) == 1 && n == 1);
    dup2(fds[0], 0);
    write_all(fds[1], "3 4\n5", 5);
    CHECK(scanf("%d", &n) == 1 && n == 23);
    close(pipes[1]);
    dup2(pipes[0], 0);
    char *line = NULL;
    size_t size = 0;
    EQUAL(getline(&line, &size, stdin), 3);
    CHECK(strcmp(line, " 4\n") == 0);
    EQUAL(getchar(), '5');
    EQUAL(getchar(), EOF);
    CHECK(feof(stdin));

    FILE *stream = fdopen(fds[0], "r+");
    fputs("last", stream);
    CHECK(freopen("/dev/null", "w", stream) == stream);
    EQUAL(fileno(stream), fds[0]);
    CHECK(fputs("nothing", stream) >= 0 && fclose(stream) == 0);
    read_all(fds[1], got, 4);
    CHECK(memcmp(got, "last", 4) == 0 && read(fds[1], got, 1) == 0);
    connected(fds);
    dup2(fds[0], 1);
    printf("closed");
    CHECK(fclose(stdout) == 0);
    arrived(fds[1], "closed");
    FAILS(fcntl(1, F_GETFD), EBADF);
}

static void files(void) {
    enum { SIZE = 1 << 21 };
    int fds[2], file = fileno(tmpfile());
    connected(fds);
    char *bytes = pattern(SIZE, 9), *got = malloc(SIZE);
    write_all(file, bytes, SIZE);
    pid_t pid = fork();
    if (pid == 0) {
        off_t at = 1000;
        while (at < SIZE) CHECK(sendfile(fds[0], file, &at, SIZE) > 0);
        EQUAL(at, SIZE);
        EQUAL(sendfile(fds[0], file, &at, 10), 0);
        EQUAL(lseek(file, 0, SEEK_CUR), SIZE);
        CHECK(lseek(file, 0, SEEK_SET) == 0);
        EQUAL(sendfile(fds[0], file, NULL, 1000), 1000);
        EQUAL(lseek(file, 0, SEEK_CUR), 1000);
        _exit(0);
    }
    read_all(fds[1], got, SIZE - 1000);
    CHECK(memcmp(got, bytes + 1000, SIZE - 1000) == 0);
    read_all(fds[1], got, 1000);
    CHECK(memcmp(got, bytes, 1000) == 0);
    reap(pid);
    nonblocking(fds[0]);
    off_t at = 0;
    ssize_t n;
    do {
        if (at >= SIZE) at = 0;
        n = sendfile(fds[0], file, &at, SIZE);
        if (n < 0 && errno == EAGAIN) {
            settle();
            n = sendfile(fds[0], file, &at, SIZE);
        }
    } while (n > 0);
    EQUAL(errno, EAGAIN);
    EQUAL(now(fds[0], POLLOUT), 0);
    FAILS(sendfile(file, fds[1], NULL, 10), EINVAL);
}

static int ring;
static volatile sig_atomic_t handled;
static void in_handler(int s) {
    (void)s;
    int e = errno;
    ssize_t n = send(ring, "h", 1, MSG_DONTWAIT);
    if (n == 1) handled++;
    char to;
    (void)!recv(ring, &to, 1, MSG_DONTWAIT);
    errno = e;
}

/* A handler that sends on the very socket whose call it interrupted: no deadlock, no byte lost. */
static void handlers(void) {
    int fds[2];
    connected(fds);
    ring = fds[0];
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        static char b[65536];
        long total = 0;
        ssize_t n;
        while ((n = read(fds[1], b, sizeof b)) > 0) total += n;
        char line[32];
        int len = sprintf(line, "%031ld", total);
        write_all(fds[1], line, len);
        _exit(0);
    }
    close(fds[1]);
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval i = {.it_value = {.tv_usec = 200}, .it_interval = {.tv_usec = 200}};
    setitimer(ITIMER_REAL, &i, NULL);
    char *bytes = pattern(30000, 1);
    long total = 0;
    for (int k = 0; k < 3000; k++) {
        write_all(fds[0], bytes, 30000);
        total += 30000;
    }
    memset(&i, 0, sizeof i);
    setitimer(ITIMER_REAL, &i, NULL);
    shutdown(fds[0], SHUT_WR);
    char line[32] = {0};
    read_all(fds[0], line, 31);
    EQUAL(atol(line), total + handled);
    reap(pid);
}

static void *writer(void *arg) {
    char record[1000];
    memset(record, 'a' + (long)arg, sizeof record);
    for (int i = 0; i < 500; i++) write_all(ring, record, sizeof record);
    return NULL;
}

/* A thousand bytes from each of many threads: none is lost. */
static void threads(void) {
    int fds[2];
    connected(fds);
    ring = fds[0];
    pthread_t t[6];
    for (long i = 0; i < 6; i++) pthread_create(&t[i], NULL, writer, (void *)i);
    long counts[256] = {0};
    static char b[10000];
    for (long left = 6 * 500 * 1000; left > 0;) {
        ssize_t n = read(fds[1], b, sizeof b);
        CHECK(n > 0);
        for (ssize_t i = 0; i < n; i++) counts[(unsigned char)b[i]]++;
        left -= n;
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(t[i], NULL);
        EQUAL(counts['a' + i], 500 * 1000);
    }
}

/* Processes that die in the middle of their writes leave the socket usable for the others. */
static void killed(void) {
    int fds[2];
    connected(fds);
    pid_t drain = fork();
    if (drain == 0) {
        close(fds[0]);
        static char b[65536];
        while (read(fds[1], b, sizeof b) > 0) {
        }
        _exit(0);
    }
    close(fds[1]);
    char *bytes = pattern(100000, 1);
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;) write_all(fds[0], bytes, 100000);
        }
        usleep(1000 + i * 37);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        write_all(fds[0], "alive", 5);
    }
    close(fds[0]);
    reap(drain);
}

/* Calls by number. */
static void by_number(void) {
    int fds[2];
    connected(fds);
    EQUAL(syscall(SYS_write, fds[0], "raw", 3), 3);
    char to[4];
    EQUAL(syscall(SYS_read, fds[1], to, 4), 3);
    FAILS(syscall(SYS_recvfrom, fds[1], to, 1, MSG_DONTWAIT, NULL, NULL), EAGAIN);
    EQUAL(syscall(SYS_sendto, fds[0], "six", 3, 0, NULL, 0), 3);
    EQUAL(syscall(SYS_recvfrom, fds[1], to, 4, 0, NULL, NULL), 3);
    pid_t pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        /* A child without fork handlers has tables of its own. */
        close(fds[0]);
        int null = open("/dev/null", O_RDWR);
        CHECK(null >= 0);
        int c[2];
        connected(c);
        write_all(c[0], "k", 1);
        read_all(c[1], to, 1);
        _exit(0);
    }
    reap(pid);
    write_all(fds[0], "x", 1);
    read_all(fds[1], to, 1);
    close(fds[0]);
    EQUAL(read(fds[1], to, 1), 0);
}

/* Any other call than read, write and futex (and the end) kills. */
static void forbid_the_rest(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

enum { ROUNDS = 300, BULK = 6000000 };

/* A program that forbade itself all calls but its own still waits, reads and writes. */
static void sandboxed(void) {
    static char bulk[BULK];
    int fds[2];
    connected(fds);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        forbid_the_rest();
        for (int i = 0; i < ROUNDS; i++) {
            char byte;
            if (read(fds[1], &byte, 1) != 1 || write(fds[1], &byte, 1) != 1) _exit(2);
        }
        for (int done = 0, n; done < BULK; done += n)
            if ((n = read(fds[1], bulk + done, BULK - done)) <= 0) _exit(3);
        for (int done = 0, n; done < BULK; done += n)
            if ((n = write(fds[1], bulk + done, BULK - done)) <= 0) _exit(4);
        if (read(fds[1], bulk, 1) != 0) _exit(5);
        _exit(0);
    }
    close(fds[1]);
    for (int i = 0; i < ROUNDS; i++) {
        char byte = i, back;
        write_all(fds[0], &byte, 1);
        read_all(fds[0], &back, 1);
        EQUAL(back, byte);
    }
    for (int i = 0; i < BULK; i++) bulk[i] = i * 7;
    write_all(fds[0], bulk, BULK);
    usleep(100000); /* Its ring is full by now, and it waits for room. */
    char *back = malloc(BULK);
    read_all(fds[0], back, BULK);
    CHECK(memcmp(bulk, back, BULK) == 0);
    shutdown(fds[0], SHUT_WR);
    reap(pid);
    /* One that must not wait is told so. */
    connected(fds);
    nonblocking(fds[1]);
    pid = fork();
    if (pid == 0) {
        forbid_the_rest();
        char byte;
        for (int i = 0; i < 40; i++)
            if (read(fds[1], &byte, 1) != -1 || errno != EAGAIN) _exit(6);
        int n;
        while ((n = write(fds[1], bulk, BULK)) > 0) {}
        _exit(errno == EAGAIN ? 0 : 7);
    }
    reap(pid);
}

int main(int argc, char **argv) {
    arguments = argv;
    static const struct test cases[] = {
        {"dups", dups},         {"forks", forks},       {"execs", execs},
        {"(after exec)", after_exec}, {"scrubbed", scrubbed}, {"spawns", spawns},
        {"closes_all", closes_all}, {"passing", passing}, {"taken", taken},   {"stdio", stdio},
        {"files", files},       {"handlers", handlers}, {"threads", threads},
        {"killed", killed},     {"by_number", by_number}, {"sandboxed", sandboxed},
        {"standard", standard}, {0},
    };
    return run_case(cases, argc, argv);
}
