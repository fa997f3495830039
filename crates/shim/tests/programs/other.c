/* A library that makes system calls past libc. */
#include "past.h"

long other_kernel(long n, long a, long b, long c, long d, long e, long f) { return past_kernel(n, a, b, c, d, e, f); }
