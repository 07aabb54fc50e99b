/* What the tests attach to: `target MODE [N]`. `burn N` works for N milliseconds of CPU time. Else it says "ready", then obeys the letters it reads, and says each when it is done. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t begun;

static _Noreturn void *idle(void *unused) {
    (void)unused;
    pthread_barrier_wait(&begun);
    for (;;) pause();
}

static _Noreturn void *spin(void *is_counted) {
    if (is_counted) pthread_barrier_wait(&begun);
    for (volatile unsigned long turns = 0;; turns++) {}
}

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

/* How long this thread has waited for a CPU in all: the second number of its schedstat. */
static unsigned long waited(int schedstat) {
    char text[96] = {0};
    if (pread(schedstat, text, sizeof text - 1, 0) <= 0) _exit(8);
    return strtoul(strchr(text, ' '), NULL, 10);
}

static void say(const char *word) {
    size_t length = strlen(word);
    if (write(1, word, length) != (ssize_t)length) _exit(4);
}

/* Looks at the clock without end. What it misses, without the time it waited for a CPU, it stood still: `g` asks for the longest. */
static _Noreturn void watch_clock(void) {
    int schedstat = open("/proc/self/schedstat", O_RDONLY);
    unsigned long longest_stop = 0, waited_before = waited(schedstat);
    fcntl(0, F_SETFL, O_NONBLOCK);
    say("ready\n");
    for (unsigned long last = now();; last = now()) {
        char letter = 0;
        ssize_t length = read(0, &letter, 1);
        unsigned long missed = now() - last;
        if (missed > 20000) {
            unsigned long waited_now = waited(schedstat);
            unsigned long waited_for = waited_now - waited_before;
            waited_before = waited_now;
            if (missed > waited_for && missed - waited_for > longest_stop) longest_stop = missed - waited_for;
        }
        if (length == 0) _exit(0);
        if (letter == 'g') {
            char stop[32];
            snprintf(stop, sizeof stop, "g\n%lu\n", longest_stop);
            longest_stop = 0;
            say(stop);
        }
    }
}

/* Mappings of code, all of them touched, of so many MiB. */
static void map_code(int mebibytes) {
    for (int i = 0; i < mebibytes; i++) {
        volatile char *code = mmap(NULL, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (code == MAP_FAILED) _exit(7);
        for (int page = 0; page < 1 << 20; page += 4096) (void)code[page];
        int file = open("/proc/self/exe", O_RDONLY);
        if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) _exit(7);
        close(file);
    }
}

static void *nothing(void *unused) {
    return unused;
}

/* Each thread makes the next, then works on: whoever lists them sees another number each time. */
static void *breed(void *left) {
    if (left) {
        pthread_t next;
        pthread_create(&next, NULL, breed, (void *)((long)left - 1));
    }
    spin(NULL);
}

static void start(int count, void *(*body)(void *)) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_barrier_init(&begun, NULL, count + 1);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attr, body, &begun)) _exit(3);
    }
    pthread_barrier_wait(&begun);
}

static void obey(char letter, char *self) {
    pthread_t thread;
    switch (letter) {
    case 'm': {
        int file = open("/proc/self/exe", O_RDONLY);
        if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) _exit(5);
        close(file);
        break;
    }
    case 'n': prctl(PR_SET_NAME, "renamed"); break;
    case 't': pthread_create(&thread, NULL, nothing, NULL); pthread_join(thread, NULL); break;
    case 'f': {
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
        break;
    }
    case 'x': execl("/proc/self/exe", self, "idle", "0", (char *)NULL); _exit(6);
    case 'u': execl(self, self, "idle", "0", (char *)NULL); _exit(6);
    default: break; /* 'p': only to see that it runs */
    }
    char done[2] = {letter, '\n'};
    if (write(1, done, 2) != 2) _exit(4);
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "idle";
    int number = count > 2 ? atoi(words[2]) : 0;
    char *self = count > 3 ? words[3] : words[0];
    if (!strcmp(mode, "idle")) start(number, idle);
    if (!strcmp(mode, "spin")) start(number, spin);
    if (!strcmp(mode, "clock")) {
        map_code(number);
        watch_clock();
    }
    if (!strcmp(mode, "fork"))
        for (int i = 0; i < number; i++)
            if (fork() == 0)
                for (;;) {
                    prctl(PR_SET_PDEATHSIG, 9);
                    if (getppid() == 1) _exit(0);
                    pause();
                }
    if (!strcmp(mode, "leaderless")) {
        start(1, spin);
        say("ready\n");
        pthread_exit(NULL);
    }
    if (!strcmp(mode, "zombie")) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        siginfo_t info;
        waitid(P_PID, child, &info, WEXITED | WNOWAIT);
        char line[32];
        snprintf(line, sizeof line, "%d\n", child);
        say(line);
    }
    if (!strcmp(mode, "burn")) {
        while (clock() < number * (CLOCKS_PER_SEC / 1000)) {}
        return 0;
    }
    say("ready\n");
    if (!strcmp(mode, "breed")) {
        pthread_t thread;
        pthread_create(&thread, NULL, breed, (void *)(long)number);
    }
    for (char letter; read(0, &letter, 1) == 1;)
        if (letter != '\n') obey(letter, self);
    _exit(0);
}
