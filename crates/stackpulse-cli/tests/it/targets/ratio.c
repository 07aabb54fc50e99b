/* parse burns PARSE percent of the CPU time, work the rest. usage: ratio SECONDS */
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

BURN(parse)
BURN(work)

int main(int count, char **words) {
    double end = cpu() + (count > 1 ? atof(words[1]) : 1);
    while (cpu() < end) {
        parse(cpu() + 0.0001 * PARSE);
        work(cpu() + 0.0001 * (100 - PARSE));
    }
    return 0;
}
