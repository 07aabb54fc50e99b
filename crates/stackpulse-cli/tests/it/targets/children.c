/* Children that burn after a fork, and children that exec this program anew. usage: children COUNT */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

volatile uint64_t sink;

__attribute__((noinline)) void burn_after_fork(double s) {
    double end = cpu() + s;
    while (cpu() < end) for (int i = 0; i < 10000; i++) sink = sink * 33 + 1;
    sink++;
}

__attribute__((noinline)) void burn_after_exec(double s) {
    double end = cpu() + s;
    while (cpu() < end) for (int i = 0; i < 10000; i++) sink = sink * 31 + 1;
    sink++;
}

int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "burn")) { burn_after_exec(atof(words[2])); return 0; }
    for (int i = 0; i < atoi(words[1]); i++) {
        pid_t child = fork();
        if (!child) {
            if (i % 2) { execl("/proc/self/exe", "again", "burn", "0.05", (char *)0); _exit(9); }
            burn_after_fork(0.05);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}
