/* Calls past libc: from where they may come, and what of signals they live with. */
#ifndef PAST_LIBC
#define PAST_LIBC
#endif
#include "check.h"
#include <dlfcn.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <sched.h>
#include <spawn.h>
#include <threads.h>

static char **arguments;

/* Both ways over a pair, past libc. */
static void exchange(int fds[2]) {
    char to[8] = "";
    write_all(fds[0], "there", 5);
    read_all(fds[1], to, 5);
    CHECK(!memcmp(to, "there", 5));
    write_all(fds[1], "back", 4);
    read_all(fds[0], to, 4);
    CHECK(!memcmp(to, "back", 4));
}

static void new_exchange(void) {
    int fds[2];
    connected(fds);
    exchange(fds);
    close(fds[0]);
    char c;
    EQUAL(read(fds[1], &c, 1), 0);
    close(fds[1]);
}

/* What is not eft's is as ever, errno too: it belongs to libc. */
static void others(void) {
    int p[2], f;
    char to[8];
    EQUAL(PAST(SYS_pipe2, p, 0), 0);
    EQUAL(write(p[1], "pipe", 4), 4);
    EQUAL(read(p[0], to, 8), 4);
    CHECK((f = PAST(SYS_openat, AT_FDCWD, arguments[0], O_RDONLY)) >= 0);
    EQUAL(read(f, to, 4), 4);
    CHECK(!memcmp(to, "\177ELF", 4));
    EQUAL(past(SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
    errno = 77;
    EQUAL(past_kernel(SYS_read, -1, 0, 0, 0, 0, 0), -EBADF);
    EQUAL(past_kernel(SYS_write, p[1], 1, 4, 0, 0, 0), -EFAULT);
    EQUAL(past_kernel(9999, 0, 0, 0, 0, 0, 0), -ENOSYS);
    EQUAL(errno, 77);
    int fds[2];
    connected(fds);
    nonblocking(fds[0]);
    errno = 77;
    EQUAL(past_kernel(SYS_read, fds[0], (long)to, 8, 0, 0, 0), -EAGAIN);
    EQUAL(errno, 77);
}

static void *in_thread(void *pair) {
    exchange(pair);
    return pair;
}

static int in_c11_thread(void *pair) {
    exchange(pair);
    return 7;
}

static void *ends_itself(void *count) {
    new_exchange();
    ++*(int *)count;
    pthread_exit(count);
}

static void add_one(void *count) { ++*(int *)count; }

static void *waits(void *count) {
    pthread_cleanup_push(add_one, count);
    for (;;) pause();
    pthread_cleanup_pop(0);
}

static void threads(void) {
    int fds[2], many[8][2], result = 0, count = 0;
    connected(fds);
    pthread_t t[8];
    pthread_create(&t[0], NULL, in_thread, fds);
    void *got;
    pthread_join(t[0], &got);
    CHECK(got == fds);
    for (int i = 0; i < 8; i++) connected(many[i]);
    for (int i = 0; i < 8; i++) CHECK(!pthread_create(&t[i], NULL, in_thread, many[i]));
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    thrd_t c11;
    CHECK(thrd_create(&c11, in_c11_thread, fds) == thrd_success);
    thrd_join(c11, &result);
    EQUAL(result, 7);
    /* The ways in which a thread ends early unwind what lies below its function. */
    pthread_create(&t[0], NULL, ends_itself, &count);
    pthread_join(t[0], &got);
    CHECK(got == &count);
    EQUAL(count, 1);
    pthread_create(&t[0], NULL, waits, &count);
    usleep(1000);
    pthread_cancel(t[0]);
    pthread_join(t[0], &got);
    CHECK(got == PTHREAD_CANCELED);
    EQUAL(count, 2);
    exchange(fds);
}

static void children(void) {
    int fds[2];
    connected(fds);
    for (int how = 0; how < 4; how++) {
        pid_t pid = how == 0   ? fork()
                    : how == 1 ? past(SYS_fork, 0, 0, 0, 0, 0, 0)
                    : how == 2 ? PAST(SYS_clone, SIGCHLD)
                               : _Fork();
        if (pid == 0) {
            exchange(fds);
            new_exchange();
            _exit(0);
        }
        CHECK(pid > 0);
        reap(pid);
        exchange(fds);
    }
    volatile pid_t pid = past(SYS_vfork, 0, 0, 0, 0, 0, 0);
    if (pid == 0) {
        PAST(SYS_execve, "/bin/true", ((char *[]){"true", NULL}), environ);
        past(SYS_exit, 1, 0, 0, 0, 0, 0);
    }
    reap(pid);
    /* libc's borrows our memory; what it does not change is changed by nobody. */
    pid = vfork();
    if (pid == 0) {
        past(SYS_getpid, 0, 0, 0, 0, 0, 0);
        past(SYS_close, fds[0], 0, 0, 0, 0, 0);
        _exit(0);
    }
    reap(pid);
    exchange(fds);
}

/* A thread made by hand: it has neither libc's memory nor anything else. */
static int by_hand_fds[2];
static volatile int by_hand_done, by_hand_left;

__attribute__((noinline, noreturn, used)) static void by_hand(void) {
    /* Without memory of libc's, but with its own: on the parent's. */
    char c;
    long n = past_kernel(SYS_read, by_hand_fds[1], (long)&c, 1, 0, 0, 0);
    by_hand_done = n == 1 && c == 'h' ? 1 : -1;
    past_kernel(SYS_futex, (long)&by_hand_done, FUTEX_WAKE, 1, 0, 0, 0);
    past_kernel(SYS_exit, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

static void cloned(void) {
#ifdef __x86_64__
    connected(by_hand_fds);
    char *stack = malloc(1 << 20);
    long *top = (long *)(stack + (1 << 20)), tid;
    *--top = 0;
    register long r10 __asm__("r10") = (long)&by_hand_left, r8 __asm__("r8") = 0;
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                 CLONE_CHILD_CLEARTID;
    by_hand_left = 1;
    /* All registers but the result are the child's, too. */
    __asm__ volatile("mov $0x1234, %%r12\n\t"
                     "mov $0x5678, %%rbx\n\t"
                     "syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "cmp $0x1234, %%r12\n\t"
                     "jne 2f\n\t"
                     "cmp $0x5678, %%rbx\n\t"
                     "jne 2f\n\t"
                     "cmp %%rsi, %%rsp\n\t"
                     "jne 2f\n\t"
                     "call by_hand\n"
                     "2: ud2\n"
                     "1:"
                     : "=a"(tid)
                     : "a"(SYS_clone), "D"(flags), "S"(top), "d"(0), "r"(r10), "r"(r8)
                     : "rcx", "r11", "r12", "rbx", "memory");
    CHECK(tid > 0);
    write_all(by_hand_fds[0], "h", 1);
    while (by_hand_left) past(SYS_futex, (long)&by_hand_left, 0, 1, 0, 0, 0);
    EQUAL(by_hand_done, 1);
    exchange(by_hand_fds);
#endif
}

/* In a library of its own, opened late. */
static void library(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.so", arguments[0]);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    long (*other)(long, long, long, long, long, long, long) = dlsym(handle, "other_kernel");
    CHECK(other);
    int fds[2];
    connected(fds);
    char to[4];
    EQUAL(other(SYS_write, fds[0], (long)"lib", 3, 0, 0, 0), 3);
    EQUAL(other(SYS_read, fds[1], (long)to, 4, 0, 0, 0), 3);
    CHECK(!memcmp(to, "lib", 3));
    dlclose(handle);
}

static int handler_fds[2];
static volatile int handled;

static void exchanges(int signal) {
    (void)signal;
    exchange(handler_fds);
    handled++;
}

static int blocks_sigsys(const sigset_t *set) { return sigismember(set, SIGSYS) == 1; }

/* With every signal blocked, in every way there is. */
static void masks(void) {
    connected(handler_fds);
    sigset_t all, old, none;
    sigfillset(&all);
    sigemptyset(&none);
    CHECK(!pthread_sigmask(SIG_SETMASK, &all, &old));
    CHECK(!blocks_sigsys(&old));
    exchange(handler_fds);
    CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &old));
    CHECK(sigismember(&old, SIGTERM) == 1 && sigismember(&old, SIGUSR1) == 1);
    pthread_t t;
    pthread_create(&t, NULL, in_thread, handler_fds);
    pthread_join(t, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        exchange(handler_fds);
        _exit(0);
    }
    reap(pid);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigprocmask(SIG_BLOCK, &all, NULL);
    exchange(handler_fds);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Past libc: it holds after the call. */
    uint64_t word = ~0ul, before = 1;
    EQUAL(PAST(SYS_rt_sigprocmask, SIG_SETMASK, &word, &before, 8), 0);
    EQUAL(before, 0);
    exchange(handler_fds);
    sigprocmask(SIG_SETMASK, NULL, &old);
    CHECK(sigismember(&old, SIGTERM) == 1);
    EQUAL(PAST(SYS_rt_sigprocmask, SIG_UNBLOCK, &word, NULL, 8), 0);
    FAILS(PAST(SYS_rt_sigprocmask, SIG_UNBLOCK, 1, NULL, 8), EFAULT);
    sigprocmask(SIG_SETMASK, NULL, &old);
    CHECK(sigismember(&old, SIGTERM) == 0);
    /* In handlers that block everything, by whichever way they were set. */
    struct sigaction action = {.sa_handler = exchanges, .sa_flags = SA_RESTART}, now;
    sigfillset(&action.sa_mask);
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    raise(SIGUSR1);
    EQUAL(handled, 1);
    CHECK(!sigaction(SIGUSR1, NULL, &now));
    CHECK(now.sa_handler == exchanges && now.sa_flags & SA_RESTART && sigismember(&now.sa_mask, SIGTERM));
    signal(SIGUSR1, exchanges);
    raise(SIGUSR1);
    EQUAL(handled, 2);
    /* While a call waits with another mask. */
    sigset_t but = all;
    sigdelset(&but, SIGUSR1);
    CHECK(!sigprocmask(SIG_SETMASK, &all, NULL));
    raise(SIGUSR1);
    EQUAL(handled, 2);
    FAILS(sigsuspend(&but), EINTR);
    EQUAL(handled, 3);
    raise(SIGUSR1);
    FAILS(ppoll(NULL, 0, NULL, &but), EINTR);
    EQUAL(handled, 4);
    raise(SIGUSR1);
    FAILS(pselect(0, NULL, NULL, NULL, NULL, &but), EINTR);
    EQUAL(handled, 5);
    int set = epoll_create1(0);
    struct epoll_event event;
    raise(SIGUSR1);
    FAILS(epoll_pwait(set, &event, 1, -1, &but), EINTR);
    EQUAL(handled, 6);
    raise(SIGUSR1);
    FAILS(PAST(SYS_ppoll, NULL, 0, NULL, &but, 8), EINTR);
    EQUAL(handled, 7);
    raise(SIGUSR1);
    void *pair[2] = {&but, (void *)8};
    FAILS(PAST(SYS_pselect6, 0, NULL, NULL, NULL, NULL, pair), EINTR);
    EQUAL(handled, 8);
    /* A program that begins with them blocked. */
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    CHECK(!posix_spawn(&pid, arguments[0], NULL, &attributes, (char *[]){arguments[0], "others", arguments[2], NULL}, environ));
    reap(pid);
}

#ifdef __x86_64__
void own_restorer(void);
__asm__("own_restorer: mov $15, %eax\n syscall");
#define RESTORER 0x04000000, own_restorer
#else
#define RESTORER 0, NULL
#endif

static volatile int told, told_code;

static void on_sigsys(int signal, siginfo_t *info, void *context) {
    CHECK(signal == SIGSYS && context);
    told++;
    told_code = info->si_code;
    new_exchange();
}

static void on_sigsys_simply(int signal) { told += signal == SIGSYS ? 10 : 1000; }

static void dies_of_sigsys(void (*setup)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        setup();
        new_exchange();
        raise(SIGSYS);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static void nothing(void) {}
static void defaults(void) { signal(SIGSYS, SIG_DFL); }
static void only_once(void) {
    struct sigaction action = {.sa_handler = on_sigsys_simply, .sa_flags = SA_RESETHAND};
    sigaction(SIGSYS, &action, NULL);
    raise(SIGSYS);
}

/* The program has SIGSYS for itself. */
static void sigsys(void) {
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO}, now;
    dies_of_sigsys(nothing);
    sigaddset(&action.sa_mask, SIGTERM);
    CHECK(!sigaction(SIGSYS, &action, &now));
    CHECK(now.sa_handler == SIG_DFL);
    new_exchange();
    EQUAL(told, 0);
    raise(SIGSYS);
    EQUAL(told, 1);
    EQUAL(told_code, SI_TKILL);
    kill(getpid(), SIGSYS);
    EQUAL(told, 2);
    EQUAL(told_code, SI_USER);
    CHECK(!sigaction(SIGSYS, NULL, &now));
    CHECK(now.sa_sigaction == on_sigsys && now.sa_flags & SA_SIGINFO && sigismember(&now.sa_mask, SIGTERM));
    new_exchange();
    CHECK(signal(SIGSYS, on_sigsys_simply) == (void *)on_sigsys);
    raise(SIGSYS);
    EQUAL(told, 12);
    CHECK(signal(SIGSYS, SIG_IGN) == on_sigsys_simply);
    raise(SIGSYS);
    EQUAL(told, 12);
    new_exchange();
    /* Past libc. */
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } raw = {on_sigsys_simply, RESTORER, 0}, was;
    EQUAL(PAST(SYS_rt_sigaction, SIGSYS, &raw, &was, 8), 0);
    CHECK(was.handler == SIG_IGN);
    raise(SIGSYS);
    EQUAL(told, 22);
    new_exchange();
    dies_of_sigsys(defaults);
    dies_of_sigsys(only_once);
}

static char *alternate;
static size_t alternate_len;
static volatile int on_alternate;

static void looks(int signal) {
    char here;
    (void)signal;
    on_alternate += &here > alternate && &here < alternate + alternate_len;
}

/* Small alternate stacks and large ones; other handlers have them meanwhile. */
static void alternates(void) {
    for (alternate_len = 8192; alternate_len <= 8192 * 8; alternate_len *= 8) {
        /* What lies below it is not touched. */
        char *memory = malloc(65536 + alternate_len);
        memset(memory, 0x5a, 65536);
        alternate = memory + 65536;
        stack_t stack = {.ss_sp = alternate, .ss_size = alternate_len}, now;
        CHECK(!sigaltstack(&stack, NULL));
        new_exchange();
        threads();
        children();
        struct sigaction action = {.sa_handler = looks, .sa_flags = SA_ONSTACK | SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        int fds[2];
        connected(fds);
        pid_t pid = fork();
        if (pid == 0) {
            usleep(100000);
            write_all(fds[0], "x", 1);
            _exit(0);
        }
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 30000}}, NULL);
        char c;
        EQUAL(read(fds[1], &c, 1), 1);
        reap(pid);
        on_alternate = 0;
        raise(SIGALRM);
        EQUAL(on_alternate, 1);
        CHECK(!sigaltstack(NULL, &now) && now.ss_sp == alternate && now.ss_size == alternate_len);
        for (int i = 0; i < 65536; i++) EQUAL(memory[i], 0x5a);
        stack.ss_flags = SS_DISABLE;
        CHECK(!sigaltstack(&stack, NULL));
        free(memory);
    }
}

/* Handlers, their stacks and their returns without libc. */
static void handlers(void) {
#ifdef __x86_64__
    connected(handler_fds);
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, now;
    EQUAL(PAST(SYS_sigaltstack, &stack, &now), 0);
    EQUAL(now.ss_flags, SS_DISABLE);
    CHECK(!sigaltstack(NULL, &now) && now.ss_sp == memory && now.ss_size == sizeof memory);
    EQUAL(now.ss_flags, 0);
    /* Another one, while there is one. */
    stack.ss_size = 32768;
    EQUAL(PAST(SYS_sigaltstack, &stack, &now), 0);
    EQUAL(now.ss_size, sizeof memory);
    EQUAL(PAST(SYS_sigaltstack, NULL, &now), 0);
    CHECK(now.ss_sp == memory && now.ss_size == 32768 && now.ss_flags == 0);
    FAILS(PAST(SYS_sigaltstack, (&(stack_t){.ss_sp = memory, .ss_size = 10}), NULL), ENOMEM);
    EQUAL(PAST(SYS_sigaltstack, &(stack_t){.ss_flags = SS_DISABLE}, &now), 0);
    EQUAL(now.ss_size, 32768);
    CHECK(!sigaltstack(NULL, &now) && now.ss_flags == SS_DISABLE);
    EQUAL(PAST(SYS_sigaltstack, &stack, NULL), 0);
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } raw = {exchanges, 0x04000000 | SA_ONSTACK, own_restorer, ~0ul}, got;
    EQUAL(PAST(SYS_rt_sigaction, SIGUSR2, &raw, NULL, 8), 0);
    for (int i = 1; i <= 3; i++) {
        raise(SIGUSR2);
        EQUAL(handled, i);
        exchange(handler_fds);
    }
    EQUAL(PAST(SYS_rt_sigaction, SIGUSR2, NULL, &got, 8), 0);
    CHECK(got.handler == exchanges && got.restorer == own_restorer && got.mask & 1 << (SIGTERM - 1));
    FAILS(PAST(SYS_rt_sigaction, SIGUSR2, 1, NULL, 8), EFAULT);
    FAILS(PAST(SYS_rt_sigaction, 99, &raw, NULL, 8), EINVAL);
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    CHECK(sigismember(&mask, SIGTERM) == 0 && sigismember(&mask, SIGUSR2) == 0);
#endif
}

static volatile int interruptions, writes;

static void interrupts(int signal) {
    (void)signal;
    interruptions++;
    if (writes) write_all(handler_fds[0], "x", 1);
}

/* A handler comes while a call past libc waits. */
static void interrupted(void) {
    connected(handler_fds);
    struct sigaction action = {.sa_handler = interrupts};
    sigaction(SIGALRM, &action, NULL);
    /* Again and again: the first may come before the call. */
    struct itimerval often = {{.tv_usec = 20000}, {.tv_usec = 20000}}, once = {.it_value = {.tv_usec = 20000}};
    setitimer(ITIMER_REAL, &often, NULL);
    char c;
    FAILS(read(handler_fds[1], &c, 1), EINTR);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    CHECK(interruptions > 0);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    interruptions = 0;
    writes = 1;
    setitimer(ITIMER_REAL, &once, NULL);
    EQUAL(read(handler_fds[1], &c, 1), 1);
    EQUAL(interruptions, 1);
}

/* What cannot be done says so: the kernel's own asynchronous calls, and another one's dispatch. */
static void refused(void) {
    int fds[2], p[2];
    connected(fds);
    aio_context_t context = 0;
    EQUAL(PAST(SYS_io_setup, 4, &context), 0);
    char to[4];
    struct iocb on_socket = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fds[1], .aio_buf = (long)to, .aio_nbytes = 4};
    struct iocb on_file = on_socket;
    on_file.aio_fildes = PAST(SYS_openat, AT_FDCWD, arguments[0], O_RDONLY);
    EQUAL(PAST(SYS_io_submit, context, 1, (&(struct iocb *){&on_file})), 1);
    struct io_event event;
    EQUAL(PAST(SYS_io_getevents, context, 1, 1, &event, NULL), 1);
    EQUAL(event.res, 4);
    CHECK(!memcmp(to, "\177ELF", 4));
    if (strcmp(host, near)) {
        FAILS(PAST(SYS_io_submit, context, 1, (&(struct iocb *){&on_socket})), EINVAL);
        FAILS(PAST(SYS_prctl, 59, 0, 0, 0, 0), EINVAL);
        FAILS(PAST(SYS_clone3, p, 88), ENOSYS);
    }
    struct iovec part = {.iov_base = to, .iov_len = 4};
    write_all(fds[0], "v2", 2);
    EQUAL(await(fds[1], POLLIN), POLLIN);
    EQUAL(PAST(SYS_preadv2, fds[1], &part, 1, -1, 0, 0), 2);
    part.iov_len = 2;
    EQUAL(PAST(SYS_pwritev2, fds[1], &part, 1, -1, 0, 0), 2);
    read_all(fds[0], to, 2);
    CHECK(!memcmp(to, "v2", 2));
}

int main(int argc, char **argv) {
    arguments = argv;
    static const struct test cases[] = {
        {"others", others},     {"threads", threads},         {"children", children}, {"cloned", cloned},
        {"library", library},   {"masks", masks},             {"sigsys", sigsys},     {"handlers", handlers},
        {"refused", refused},   {"interrupted", interrupted}, {"alternates", alternates}, {0},
    };
    return run_case(cases, argc, argv);
}
