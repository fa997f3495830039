// SPDX-License-Identifier: GPL-2.0
/*
 * The oracles of churn, each a thread that has to make progress within
 * PATIENCE_S:
 *   walkers    say where they run; none may run on a CPU that is offline
 *   timers     arm timers on all CPUs and count those that come: timerfd for
 *              hrtimers, a socket's timeout for the timer wheel
 *   users      use CPU time up to a timer that counts it: a CPU's tick looks
 *   disk       reads /dev/vda past the caches: an interrupt that nobody answers
 *              is a read that does not end
 *   files      fill and empty a tmpfs, whose exact sum must be 0 afterwards
 *   perf       counts on single CPUs
 *   events     never become less, as the kernel adds them up over its CPUs
 *   barriers   wait for all CPUs: membarrier, drop_caches, sync
 *   kmsg       a warning of the kernel ends the run
 */
#include "churn.h"

#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#define WALKERS 6
/* CPU time that a thread may use past a timer of it. */
#define LATE_S 10

/* What a thread reports: when it was last seen to get on, and where. */
struct worker {
	const char *name;
	_Atomic double seen;
	_Atomic unsigned long rounds;
	_Atomic int cpu;
};
static struct worker workers[32];
static _Atomic int worker_count;

static struct worker *begin(const char *name)
{
	struct worker *w = &workers[worker_count++];

	w->name = name;
	w->seen = now();
	return w;
}

static void done(struct worker *w)
{
	w->cpu = sched_getcpu();
	w->rounds++;
	w->seen = now();
}

/* An offline CPU is refused, and any other may go before we are there. */
static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < cpus; i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *walk(void *argument)
{
	struct worker *w = begin("walker");
	unsigned int state = seed + (intptr_t)argument;

	for (;;) {
		/* The first stays where it is put until its CPU goes. */
		if (argument && !pick(&state, 20))
			bind_to(pick(&state, 2) ? (int)pick(&state, cpus) : -1);
		for (volatile int i = 0; i < 20000; i++)
			;
		done(w);
		if (pick(&state, 4))
			pause_ms(1 + pick(&state, 10));
	}
	return NULL;
}

static void *time_out(void *argument)
{
	struct worker *w = begin("timers");
	unsigned int state = seed + 100 + (intptr_t)argument;
	struct pollfd polls[MAX_CPUS];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		failed("socketpair: %s", strerror(errno));
	for (int i = 0; i < cpus; i++)
		polls[i] = (struct pollfd){ timerfd_create(CLOCK_MONOTONIC, 0), POLLIN, 0 };
	for (;;) {
		struct timeval wheel = { 0, 1000 * (1 + pick(&state, 200)) };
		uint64_t count;
		char byte;

		/* Armed there, they hang on that CPU, which may go before they come. */
		for (int i = 0; i < cpus; i++) {
			struct itimerspec at = { .it_value.tv_nsec = 1000000L * (1 + pick(&state, 300)) };

			bind_to(i);
			timerfd_settime(polls[i].fd, 0, &at, NULL);
		}
		bind_to(pick(&state, cpus));
		setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wheel, sizeof(wheel));
		if (recv(pair[0], &byte, 1, 0) != -1 || errno != EAGAIN)
			failed("recv: %s", strerror(errno));
		for (int i = 0; i < cpus; i++) {
			if (poll(&polls[i], 1, patience * 1000) != 1)
				failed("a timer armed on CPU %d is lost", i);
			if (read(polls[i].fd, &count, sizeof(count)) != sizeof(count) || count != 1)
				failed("timerfd of CPU %d", i);
		}
		done(w);
	}
	return NULL;
}

static void *use_up(void *argument)
{
	struct worker *w = begin("users");
	unsigned int state = seed + 500 + (intptr_t)argument;
	struct sigevent by = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	struct timespec used = { 0 };
	sigset_t set;
	timer_t timer;

	by._sigev_un._tid = gettid();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &by, &timer))
		failed("timer_create: %s", strerror(errno));
	for (;;) {
		struct itimerspec in = { .it_value.tv_nsec = 1000000L * (1 + pick(&state, 30)) };
		time_t limit = used.tv_sec + LATE_S;
		sigset_t pending;

		/* Its CPU may go, and the next one's tick has to see the timer. */
		bind_to(pick(&state, cpus));
		timer_settime(timer, 0, &in, NULL);
		do {
			for (volatile int i = 0; i < 5000; i++)
				;
			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
			if (used.tv_sec > limit)
				failed("a timer of CPU time is lost on CPU %d", sched_getcpu());
			sigpending(&pending);
		} while (!sigismember(&pending, SIGRTMIN));
		sigwaitinfo(&set, NULL);
		done(w);
		pause_ms(1 + pick(&state, 100));
	}
	return NULL;
}

static void *read_disk(void *argument)
{
	struct worker *w = begin("disk");
	unsigned int state = seed + 200 + (intptr_t)argument;
	int fd = open("/dev/vda", O_RDONLY | O_DIRECT);
	void *page = NULL;

	if (fd < 0 || posix_memalign(&page, 4096, 4096))
		failed("/dev/vda: %s", strerror(errno));
	for (;;) {
		bind_to(pick(&state, cpus));
		for (int i = 0; i < 10; i++)
			if (pread(fd, page, 4096, pick(&state, 256) * 4096L) != 4096)
				failed("read of /dev/vda: %s", strerror(errno));
		done(w);
		pause_ms(5);
	}
	return NULL;
}

static void *fill(void *argument)
{
	struct worker *w = begin("files");
	unsigned int state = seed + 300 + (intptr_t)argument;
	static char data[16 * 4096];
	struct statfs is, was;
	char path[64];

	mkdir("/run/files", 0700);
	if (mount("tmpfs", "/run/files", "tmpfs", 0, "size=64M") || statfs("/run/files", &was))
		failed("tmpfs: %s", strerror(errno));
	for (;;) {
		for (int i = 0; i < 2 * cpus; i++) {
			bind_to(i % cpus);
			snprintf(path, sizeof(path), "/run/files/%d", i);
			must(path, mknod(path, S_IFREG | 0600, 0) ? errno : 0);
			int fd = open(path, O_WRONLY);

			if (write(fd, data, 4096 * (1 + pick(&state, 16))) < 0)
				failed("tmpfs: %s", strerror(errno));
			close(fd);
		}
		for (int i = 0; i < 2 * cpus; i++) {
			bind_to(pick(&state, cpus));
			snprintf(path, sizeof(path), "/run/files/%d", i);
			must(path, unlink(path) ? errno : 0);
		}
		/* An inode may live a little longer: drop_caches and sync hold some. */
		do {
			pause_ms(1);
			if (statfs("/run/files", &is))
				failed("statfs: %s", strerror(errno));
		} while (is.f_ffree != was.f_ffree && now() - w->seen < patience / 2);
		/* No inode is left, and the blocks go first. */
		if (statfs("/run/files", &is) || is.f_bfree != was.f_bfree || is.f_ffree != was.f_ffree)
			failed("a counter drifts: %ld blocks and %ld inodes of an empty tmpfs are in use",
			       (long)(was.f_bfree - is.f_bfree), (long)(was.f_ffree - is.f_ffree));
		done(w);
		pause_ms(20);
	}
	return NULL;
}

static void *count_events(void *argument)
{
	struct worker *w = begin("perf");
	unsigned int state = seed + 400 + (intptr_t)argument;

	for (;;) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK,
		};
		int fd = syscall(SYS_perf_event_open, &attr, -1, pick(&state, cpus), -1, PERF_FLAG_FD_CLOEXEC);
		uint64_t before, after;

		pause_ms(10);
		if (fd >= 0 && read(fd, &before, 8) == 8) {
			pause_ms(10);
			if (read(fd, &after, 8) == 8 && after < before)
				failed("a perf counter runs backwards");
		}
		if (fd >= 0)
			close(fd);
		done(w);
	}
	return NULL;
}

/* Page faults of all CPUs, or 0 in a kernel that does not count them. */
static unsigned long faults(void)
{
	FILE *file = fopen("/proc/vmstat", "r");
	unsigned long count = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "pgfault %lu", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

static void *add_up(void *argument)
{
	struct worker *w = begin("events");
	unsigned long before = 0, after;

	for (;;) {
		after = faults();
		if (after < before)
			failed("a counter drifts: %lu page faults, and there were %lu before", after, before);
		before = after;
		done(w);
		pause_ms(10);
	}
	return argument;
}

static void *wait_for_all(void *argument)
{
	struct worker *w = begin("barriers");

	for (int i = 0;; i++) {
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
		if (i % 16 == 0)
			put("/proc/sys/vm/drop_caches", "3");
		if (i % 16 == 8)
			sync();
		done(w);
		pause_ms(50);
	}
	return argument;
}

static void *watch_kmsg(void *argument)
{
	static const char *const bad[] = {
		"WARNING", "BUG", "Oops", "Call Trace", "stall", "lockup", "INFO: task", "possible recursive",
		"possible circular", "possible irq", "inconsistent lock", "nobody cared", "No irq handler", "Bad rss",
		"KASAN", "KFENCE: ", "ODEBUG", "leaked", "hung", "failed to report", "softirq work is pending",
	};
	char line[8192];
	int fd = open("/dev/kmsg", O_RDONLY);
	int tail = 0;
	ssize_t n;

	lseek(fd, 0, SEEK_DATA);
	for (;;) {
		n = read(fd, line, sizeof(line) - 1);
		if (n < 0)
			continue;
		line[n] = 0;
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad) && !tail; i++)
			tail = !!strstr(line, bad[i]);
		/* The record says what; those that follow say where. */
		if (tail)
			printf("%s", strchr(line, ';') ? strchr(line, ';') + 1 : line);
		if (tail && ++tail == 60)
			failed("the kernel warns");
		struct pollfd more = { fd, POLLIN, 0 };

		if (tail && poll(&more, 1, 3000) == 0)
			failed("the kernel warns");
	}
	return argument;
}

static void *watch_workers(void *argument)
{
	for (;; pause_ms(1000))
		for (int i = 0; i < worker_count; i++)
			if (now() - workers[i].seen > patience)
				failed("%s %d made no progress in %.0f s", workers[i].name, i, patience);
	return argument;
}

static void start(void *(*body)(void *), intptr_t argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, (void *)argument))
		failed("pthread_create");
}

/* Every walker says anew where it is: not on a CPU of the mask. */
void look(unsigned int mask)
{
	unsigned long rounds[32];
	double limit = now() + patience;

	for (int i = 0; i < worker_count; i++)
		rounds[i] = workers[i].rounds;
	for (int i = 0; i < worker_count; i++) {
		/* The first round may have begun before. */
		while (workers[i].rounds < rounds[i] + 2 && !strcmp(workers[i].name, "walker")) {
			pause_ms(1);
			if (now() > limit)
				failed("%s %d does not run while CPUs %s are away", workers[i].name, i, list_of(mask));
		}
		if (workers[i].rounds >= rounds[i] + 2 && mask & 1u << workers[i].cpu)
			failed("%s %d runs on CPU %d, which is offline", workers[i].name, i, workers[i].cpu);
	}
}

void oracles_start(void)
{
	start(watch_kmsg, 0);
	for (int i = 0; i < WALKERS; i++)
		start(walk, i);
	start(time_out, 0);
	start(time_out, 1);
	start(use_up, 0);
	if (!access("/dev/vda", R_OK))
		start(read_disk, 0);
	start(fill, 0);
	start(count_events, 0);
	start(add_up, 0);
	start(wait_for_all, 0);
	pause_ms(500);
	start(watch_workers, 0);
}

void oracles_show(void)
{
	for (int i = 0; i < worker_count; i++)
		printf(" %s %lu", workers[i].name, workers[i].rounds);
	printf("\n");
}
