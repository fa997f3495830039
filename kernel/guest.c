// SPDX-License-Identifier: GPL-2.0
/*
 * The measuring half of kernel/bench: runs in the guest, changes CPUs by each
 * way in turn, and prints one line for each operation. Statically linked.
 *
 * usage: guest measure ROUNDS GAP_MS WAYS [trace]
 *        guest burn THREADS
 *
 * Lines: "op WAY WHICH down|up US", and with trace the raw events between
 * "trace WAY WHICH down|up" and "end".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPU "/sys/devices/system/cpu/"
#define BULK CPU "bolt/"
#define TRACE "/sys/kernel/tracing/"

static int tracing;

static void die(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int done;

	if (fd < 0)
		return -1;
	done = write(fd, text, strlen(text)) < 0 ? -1 : 0;
	close(fd);
	return done;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Copies the ring buffer to standard output. */
static void show_trace(const char *head)
{
	static char buffer[1 << 16];
	ssize_t n;
	int fd = open(TRACE "trace", O_RDONLY);

	if (fd < 0)
		die(TRACE "trace");
	printf("trace %s\n", head);
	fflush(stdout);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(1, buffer, n) < 0)
			die("standard output");
	close(fd);
	printf("end\n");
}

/* One way to change CPUs: what it sets before, and how it writes. */
struct way {
	const char *name;
	const char *bolt;	/* kernel.cpu_bolt: 0 off, 1 on, 2 premature start */
	const char *expedited;
};

static const struct way ways[] = {
	{ "native", "0", "0" },
	{ "expedited", "0", "1" },
	{ "bolt", "1", "0" },
	{ "bolt-ready", "2", "0" },
};

static void choose(const struct way *way)
{
	if (put("/sys/kernel/rcu_expedited", way->expedited))
		die("rcu_expedited");
	/* A kernel without the series knows only the first two ways. */
	if (put("/proc/sys/kernel/cpu_bolt", way->bolt) && *way->bolt != '0')
		die("kernel.cpu_bolt");
}

static int write_online(int cpu, int up)
{
	char path[64];

	snprintf(path, sizeof(path), CPU "cpu%d/online", cpu);
	return put(path, up ? "1" : "0");
}

/* Changes CPUs 1 to count; bulk is one write where the way knows it. */
static void change(const struct way *way, int count, int bulk, int up, long gap)
{
	char head[64], list[16];
	double start, took;
	int cpu, failed = 0;

	snprintf(head, sizeof(head), "%s %s%d %s", way->name, bulk ? "bulk" : "seq", count, up ? "up" : "down");
	pause_ms(gap);
	if (tracing) {
		put(TRACE "trace", "");
		put(TRACE "tracing_on", "1");
		put(TRACE "trace_marker", "begin");
	}
	start = now_us();
	if (bulk) {
		snprintf(list, sizeof(list), count > 1 ? "1-%d" : "1", count);
		failed = put(up ? BULK "online" : BULK "offline", list);
	} else {
		for (cpu = 1; cpu <= count; cpu++)
			failed |= write_online(cpu, up);
	}
	took = now_us() - start;
	if (failed)
		die(head);
	if (tracing) {
		put(TRACE "trace_marker", "end");
		put(TRACE "tracing_on", "0");
		show_trace(head);
	}
	printf("op %s %.3f\n", head, took);
	fflush(stdout);
}

static void measure(int rounds, long gap, const char *wanted)
{
	static const struct { int count, bulk; } cases[] = { { 1, 0 }, { 3, 0 }, { 3, 1 }, { 7, 0 }, { 7, 1 } };
	int cpus = sysconf(_SC_NPROCESSORS_CONF);
	int round;

	for (round = 0; round < rounds; round++) {
		for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
			const struct way *way = &ways[w];
			int has_bulk = *way->bolt != '0';
			char mark[32];

			snprintf(mark, sizeof(mark), ",%s,", way->name);
			if (!strstr(wanted, mark))
				continue;
			choose(way);
			for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
				if (cases[c].count >= cpus || (cases[c].bulk && !has_bulk))
					continue;
				change(way, cases[c].count, cases[c].bulk, 0, gap);
				change(way, cases[c].count, cases[c].bulk, 1, gap);
			}
		}
	}
}

static void *burner(void *unused)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
	return unused;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "measure")) {
		char wanted[128];

		snprintf(wanted, sizeof(wanted), ",%s,", argv[4]);
		tracing = argc > 5;
		measure(atoi(argv[2]), atol(argv[3]), wanted);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "burn")) {
		pthread_t t;

		for (int i = atoi(argv[2]); i > 0; i--)
			if ((errno = pthread_create(&t, NULL, burner, NULL)))
				die("pthread_create");
		pause();
	}
	fprintf(stderr, "usage: guest measure ROUNDS GAP_MS WAYS [trace] | guest burn THREADS\n");
	return 2;
}
