/* Inlined calls three deep, a cold part, and code without debug information beside it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    return x ^ (x >> 29);
}

static inline __attribute__((always_inline)) uint64_t twice(uint64_t x) {
    uint64_t first = mix(x + 1);
    return mix(first) + first;
}

__attribute__((noinline)) uint64_t rounds(uint64_t seed, int count) {
    uint64_t sum = seed;
    for (int i = 0; i < count; i++) {
        sum += twice(sum + i);
        if (__builtin_expect(sum == 7, 0)) {
            fprintf(stderr, "unlikely %d\n", i);
            abort();
        }
    }
    return sum;
}

static __attribute__((noinline)) int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    uint64_t values[64];
    (void)argv;
    for (int i = 0; i < 64; i++) values[i] = rounds(i * 31 + argc, 10);
    qsort(values, 64, sizeof values[0], compare);
    printf("%llu\n", (unsigned long long)twice(values[3]));
    return 0;
}
