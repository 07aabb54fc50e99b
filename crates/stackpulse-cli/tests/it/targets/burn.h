/* CPU time, and functions that burn it until a moment of it. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

volatile uint64_t sink;

#define BURN(name)                                              \
    __attribute__((noinline)) void name(double until) {         \
        while (cpu() < until)                                   \
            for (int i = 0; i < 20000; i++) sink = sink * 33 + 17; \
        sink++;                                                 \
    }
