/* A library of one function, whose name is given when it is compiled: two of them have the same layout. */
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

static uint64_t cpu_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

void FUNCTION(uint64_t ms) {
    uint64_t end = cpu_ms() + ms;
    while (cpu_ms() < end)
        for (int i = 0; i < 20000; i++)
            sink += (uint64_t)i * i;
}
