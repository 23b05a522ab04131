// SPDX-License-Identifier: GPL-2.0-only
// Prints the host's TSC frequency in kHz. A guest that calibrates its TSC against emulated timers
// on a loaded host may be wrong by a factor of two and more, so it is told.
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

int main(void)
{
	struct timespec a, b;
	unsigned long long t0, t1;
	double ns;

	clock_gettime(CLOCK_MONOTONIC_RAW, &a);
	t0 = __rdtsc();
	do {
		clock_gettime(CLOCK_MONOTONIC_RAW, &b);
		t1 = __rdtsc();
		ns = (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
	} while (ns < 3e8);
	printf("%.0f\n", (t1 - t0) / ns * 1e6);
	return 0;
}
