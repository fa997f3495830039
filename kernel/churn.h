/* SPDX-License-Identifier: GPL-2.0 */
/* What churn.c and oracles.c share. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CPUS 16

extern int cpus, cycle;
extern unsigned int seed;
extern double patience;

double now(void);
void pause_ms(double ms);
void failed(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
int put(const char *path, const char *text);
void must(const char *what, int error);
unsigned int pick(unsigned int *state, unsigned int below);
const char *list_of(unsigned int mask);

void oracles_start(void);
void look(unsigned int mask);
void oracles_show(void);
