// SPDX-License-Identifier: GPL-2.0
/*
 * The active half of kernel/safety: runs in the guest, takes CPUs offline and
 * online in every way that the series has, and looks meanwhile for what must
 * not be. Statically linked.
 *
 * usage: churn CYCLES SEED [PATIENCE_S [SECONDS [mixed|sets|native]]]
 *
 * It ends after CYCLES, or after SECONDS with what it has done by then (0: no
 * limit).
 *
 * A cycle takes a CPU or a set away and brings it back: by the online files, by
 * the bulk files, by ioctl, mixed, with a callback that refuses on the way down
 * or up, with a change of kernel.cpu_bolt while CPUs are away. Its course
 * depends on SEED and its number alone. With "sets", each takes two CPUs or more
 * away as one operation. With "native", the kernel's own way by the online files
 * only: what is found then is not the series' doing.
 * oracles.c has what looks on.
 */
#include "churn.h"

#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define CPU "/sys/devices/system/cpu/"

/* As in include/uapi/linux/cpu_bolt.h of the series. */
struct cpu_bolt_set {
	uint64_t mask;
	uint32_t size, flags;
};
#define CPU_BOLT_OFFLINE _IOW(0xBC, 0, struct cpu_bolt_set)
#define CPU_BOLT_ONLINE _IOW(0xBC, 1, struct cpu_bolt_set)

int cpus, cycle;
static int by_one, as_set;
static double offline_s, online_s;
unsigned int seed;
double patience = 60;
static int native, sets;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void pause_ms(double ms)
{
	struct timespec t = { ms / 1000, (long)(ms * 1e6) % 1000000000 };

	nanosleep(&t, NULL);
}

void failed(const char *format, ...)
{
	va_list arguments;

	printf("FAILED in cycle %d of seed %u: ", cycle, seed);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* 0 or the error, as of a shell's echo into a file. */
int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

void must(const char *what, int error)
{
	if (error)
		failed("%s: %s", what, strerror(error));
}

/* Random numbers that depend on the seed and the cycle, each thread its own. */
unsigned int pick(unsigned int *state, unsigned int below)
{
	return rand_r(state) / 7 % below;
}

/* "1-2,5" for a mask */
const char *list_of(unsigned int mask)
{
	static char text[64];
	int at = 0;

	text[0] = 0;
	for (int c = 0; c < cpus; c++)
		if (mask & 1u << c)
			at += snprintf(text + at, sizeof(text) - at, "%s%d", at ? "," : "", c);
	return text;
}

static unsigned int online(void)
{
	char text[128] = "", *at = text;
	FILE *file = fopen(CPU "online", "r");
	unsigned int mask = 0;

	if (!file || !fgets(text, sizeof(text), file))
		failed(CPU "online");
	fclose(file);
	while (*at >= '0' && *at <= '9') {
		int first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		for (; first <= last; first++)
			mask |= 1u << first;
		at += *at == ',';
	}
	return mask;
}

static int by_files(unsigned int mask, int up)
{
	char path[64];
	int error = 0;

	for (int c = 1; c < cpus && !error; c++) {
		snprintf(path, sizeof(path), CPU "cpu%d/online", c);
		if (mask & 1u << c)
			error = put(path, up ? "1" : "0");
	}
	return error;
}

static int by_ioctl(unsigned int mask, int up)
{
	struct cpu_bolt_set set = { (uintptr_t)&mask, sizeof(mask), 0 };
	int fd = open("/dev/cpu_bolt", O_RDWR | O_CLOEXEC);
	int error = ioctl(fd, up ? CPU_BOLT_ONLINE : CPU_BOLT_OFFLINE, &set) ? errno : 0;

	close(fd);
	return error;
}

static int change(unsigned int way, unsigned int mask, int up)
{
	switch (way) {
	case 0: return by_files(mask, up);
	case 1: return by_ioctl(mask, up);
	default: return put(up ? CPU "bolt/online" : CPU "bolt/offline", list_of(mask));
	}
}

static int states[128], state_count, perf_state;

/* States of the CPU's own thread, which may refuse. */
static void read_states(void)
{
	FILE *file = fopen(CPU "hotplug/states", "r");
	int number, in = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		number = atoi(line);
		if (strstr(line, "sched:waitempty"))
			in = 1;
		if (strstr(line, "perf:online"))
			perf_state = number;
		if (in && !strstr(line, ": online") && state_count < 128)
			states[state_count++] = number;
	}
	if (file)
		fclose(file);
}

/* Lets one CPU refuse: nothing may have changed afterwards. Not every state takes it. */
static void refuse(unsigned int *state, unsigned int way, unsigned int mask, int up)
{
	unsigned int before = online();
	char path[64], text[16];
	int cpu, error, fails;

	do
		cpu = 1 + pick(state, cpus - 1);
	while (!(mask & 1u << cpu));
	/* By the files, those before it would have changed already. */
	if (native)
		mask = 1u << cpu;
	else if (!way)
		way = 2;
	snprintf(path, sizeof(path), CPU "cpu%d/hotplug/fail", cpu);
	fails = states[pick(state, state_count)];
	/*
	 * A CPU that goes back before perf:online is done leaves events active that
	 * somebody has opened meanwhile: so it does with native hotplug.
	 */
	snprintf(text, sizeof(text), "%d", fails);
	if ((up && fails <= perf_state) || put(path, text))
		return;
	error = change(way, mask, up);
	if (error && online() != before)
		failed("CPU %d refused %s to go %s, online is %x, was %x", cpu, text, up ? "up" : "down", online(), before);
	put(path, "-1");
	if (!error)
		must("back after no refusal", change(way, mask, !up));
}

static void one_cycle(void)
{
	unsigned int state = seed * 1000003u + cycle, all = (1u << cpus) - 2, mask;
	unsigned int way;
	double begin;

	for (int i = 0; i < 8; i++)
		rand_r(&state);
	way = native ? 0 : pick(&state, 4);
	mask = pick(&state, 3) ? pick(&state, all) & all : 1u << (1 + pick(&state, cpus - 1));
	if (!mask)
		mask = all;
	if (sets) {
		way = way ? way : 2;
		mask = mask & (mask - 1) ? mask : all;
	}
	if (!pick(&state, 12))
		refuse(&state, way, mask, 0);
	/* CPU by CPU, or more than one as one operation. */
	*(way && mask & (mask - 1) ? &as_set : &by_one) += 1;
	begin = now();
	must("offline", change(way, mask, 0));
	offline_s += now() - begin;
	if (online() != (all & ~mask) + 1)
		failed("%x went, online is %x", mask, online());
	if (!pick(&state, 4))
		look(mask);
	if (!pick(&state, 24) && !native)
		must("switch off", put("/proc/sys/kernel/cpu_bolt", "0"));
	/* Mostly before the lazy part, sometimes after it. */
	pause_ms(pick(&state, 8) ? pick(&state, 20) : 120 + pick(&state, 100));
	if (!native)
		must("switch on", put("/proc/sys/kernel/cpu_bolt", pick(&state, 16) ? "1" : "2"));
	if (!pick(&state, 12))
		refuse(&state, way, mask, 1);
	begin = now();
	must("online", change(native || pick(&state, 2) ? way : pick(&state, 4), mask, 1));
	online_s += now() - begin;
	if (online() != all + 1)
		failed("%x came, online is %x", mask, online());
	if (!pick(&state, 4))
		pause_ms(pick(&state, 30));
}

int main(int argc, char **argv)
{
	int cycles = argc > 1 ? atoi(argv[1]) : 0;
	double from = now(), limit = argc > 4 ? atof(argv[4]) : 0;

	if (argc < 3 || cycles < 1) {
		fprintf(stderr, "usage: churn CYCLES SEED [PATIENCE_S [SECONDS [mixed|sets|native]]]\n");
		return 2;
	}
	seed = atoi(argv[2]);
	if (argc > 3)
		patience = atof(argv[3]);
	cpus = sysconf(_SC_NPROCESSORS_CONF);
	if (cpus < 2 || cpus > MAX_CPUS)
		failed("%d CPUs", cpus);
	read_states();
	native = argc > 5 && !strcmp(argv[5], "native");
	sets = argc > 5 && !strcmp(argv[5], "sets");
	if (!native)
		must("kernel.cpu_bolt", put("/proc/sys/kernel/cpu_bolt", "1"));

	/* Memory is to be short for others, or there are few cycles. */
	must("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) ? errno : 0);
	oracles_start();
	/* Of all threads here, this one alone: what it calls up in the kernel is not before the others. */
	must("setpriority", setpriority(PRIO_PROCESS, 0, -20) ? errno : 0);
	for (cycle = 1; cycle <= cycles && (!limit || now() - from < limit); cycle++) {
		one_cycle();
		if (cycle % 250 == 0) {
			printf("cycle %d after %.0f s\n", cycle, now() - from);
			fflush(stdout);
		}
	}
	/* What is under way still has to come. */
	pause_ms(1000);
	look(0);
	printf("%d cycles of seed %u on %d CPUs, %d CPU by CPU, %d as a set; %.0f ms offline, %.0f ms online; rounds:", cycle - 1,
	       seed, cpus, by_one, as_set, offline_s / (cycle - 1) * 1000, online_s / (cycle - 1) * 1000);
	oracles_show();
	return 0;
}
