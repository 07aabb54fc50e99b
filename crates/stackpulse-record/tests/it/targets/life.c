/* Lives that processes lead: each mode does one thing, with work in functions whose names say where. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char *self;
static volatile uint64_t sink;

static uint64_t cpu_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* CPU time is what is sampled, so work is measured in it. */
static __attribute__((noinline)) void work(uint64_t ms) {
    uint64_t end = cpu_ms() + ms;
    while (cpu_ms() < end)
        for (int i = 0; i < 20000; i++)
            sink += (uint64_t)i * i;
}

#define PLACE(name)                                   \
    __attribute__((noinline)) void name(uint64_t ms); \
    void name(uint64_t ms) { work(ms); sink++; }
PLACE(in_link)
PLACE(in_last_link)
PLACE(in_parent)
PLACE(in_child)
PLACE(in_survivor)
PLACE(in_first)
PLACE(in_second)
PLACE(in_thread)

static void die(const char *what) {
    perror(what);
    exit(1);
}

static pid_t forked(void) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    return pid;
}

static void reap(pid_t pid) {
    if (waitpid(pid, NULL, 0) < 0) die("waitpid");
}

static void chain(int links) {
    if (links == 0) { in_last_link(60); return; }
    in_link(40);
    char next[16];
    snprintf(next, sizeof next, "%d", links - 1);
    execl(self, self, "chain", next, NULL);
    die("exec");
}

static void tree(int depth) {
    if (depth > 0) {
        pid_t pid = forked();
        if (pid == 0) { tree(depth - 1); _exit(0); }
        in_parent(40);
        reap(pid);
    } else {
        in_child(60);
    }
}

static void *survive(void *argument) {
    pthread_join(*(pthread_t *)argument, NULL);
    in_survivor(120);
    exit(0);
}

static void *short_thread(void *argument) { sink++; return argument; }

static void *busy_thread(void *argument) { in_thread(2); return argument; }

static void call(const char *library, const char *name, uint64_t ms) {
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
    void (*function)(uint64_t) = (void (*)(uint64_t))dlsym(handle, name);
    function(ms);
    dlclose(handle);
}

static void copy(const char *from, const char *to) {
    char command[8192];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    if (system(command) != 0) die("cp");
}

/* Obeys letters from standard input until it ends. */
static void obey(char **words) {
    char letter[8];
    printf("ready\n");
    fflush(stdout);
    while (fgets(letter, sizeof letter, stdin)) {
        pid_t pid;
        switch (letter[0]) {
        case 'l': call(words[0], "in_a", 1); break;
        case 'L': call(words[0], "in_a", 80); break;
        case 'f':
            pid = forked();
            if (pid == 0) { in_child(150); _exit(0); }
            break;
        case 'x': execl(self, self, "obey", words[0], NULL); die("exec"); break;
        case 'w': in_parent(80); break;
        case 'r': while (waitpid(-1, NULL, 0) > 0) {} break;
        }
        printf("%c\n", letter[0]);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    self = argv[0];
    const char *mode = argc > 1 ? argv[1] : "";
    char **words = argv + 2;
    int count = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(mode, "chain")) chain(count);
    else if (!strcmp(mode, "tree")) tree(count);
    else if (!strcmp(mode, "work")) in_child((uint64_t)count);
    else if (!strcmp(mode, "spin")) for (;;) in_parent(1000);
    else if (!strcmp(mode, "obey")) obey(words);
    else if (!strcmp(mode, "daemon")) {
        pid_t pid = forked();
        if (pid == 0) {
            setsid();
            if (forked() == 0) { in_survivor(150); _exit(0); }
            _exit(0);
        }
        reap(pid);
        in_parent(20);
    } else if (!strcmp(mode, "vfork")) {
        pid_t pid = vfork();
        if (pid == 0) { execl(self, self, "work", "80", NULL); _exit(1); }
        in_parent(40);
        reap(pid);
    } else if (!strcmp(mode, "spawn")) {
        pid_t pid;
        char *arguments[] = {self, "work", "80", NULL};
        if (posix_spawn(&pid, self, NULL, NULL, arguments, environ) != 0) die("posix_spawn");
        in_parent(40);
        reap(pid);
    } else if (!strcmp(mode, "leader")) {
        static pthread_t leader;
        pthread_t thread;
        leader = pthread_self();
        pthread_create(&thread, NULL, survive, &leader);
        in_parent(20);
        pthread_exit(NULL);
    } else if (!strcmp(mode, "processes")) {
        for (int i = 0; i < count; i++) {
            pid_t pid = forked();
            if (pid == 0) _exit(0);
            reap(pid);
        }
        in_parent(60);
    } else if (!strcmp(mode, "threads")) {
        for (int i = 0; i < count; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, i % 100 == 0 ? busy_thread : short_thread, NULL)) die("thread");
            pthread_join(thread, NULL);
        }
    } else if (!strcmp(mode, "libraries")) {
        for (int i = 0; i < 20; i++) { call(words[0], "in_a", 5); call(words[1], "in_b", 5); }
    } else if (!strcmp(mode, "undumpable")) {
        prctl(PR_SET_DUMPABLE, 0);
        in_parent(60);
        if (forked() == 0) { in_child(60); _exit(0); }
        wait(NULL);
    } else if (!strcmp(mode, "setuid")) {
        if (setgid(65534) || setuid(65534)) die("setuid");
        in_parent(40);
        execl(words[0], words[0], "work", "80", NULL);
        die("exec");
    } else if (!strcmp(mode, "namespaces")) {
        /* Within a mount namespace of its own, a file system that nobody else sees, and the program in it. */
        if (unshare(CLONE_NEWNS)) die("unshare");
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("mount /");
        if (mount("tmpfs", words[0], "tmpfs", 0, NULL)) die("mount tmpfs");
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/inner", words[0]);
        copy(self, inner);
        /* The next child is the first process of the new namespace. */
        if (unshare(CLONE_NEWPID)) die("unshare");
        pid_t pid = forked();
        if (pid == 0) { execl(inner, inner, "work", "80", NULL); die("exec"); }
        reap(pid);
    } else if (!strcmp(mode, "overlay")) {
        if (unshare(CLONE_NEWNS)) die("unshare");
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("mount /");
        if (chdir(words[0]) || mount("tmpfs", ".", "tmpfs", 0, NULL) || chdir(words[0])) die("mount tmpfs");
        if (mkdir("lower", 0755) || mkdir("upper", 0755) || mkdir("work", 0755) || mkdir("root", 0755)) die("mkdir");
        copy(self, "lower/inner");
        if (mount("overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work")) die("mount overlay");
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/root/inner", words[0]);
        execl(inner, inner, "work", "80", NULL);
        die("exec");
    } else if (!strcmp(mode, "deleted")) {
        if (unlink(self)) die("unlink");
        in_parent(80);
    } else if (!strcmp(mode, "replaced")) {
        if (rename(words[0], self)) die("rename");
        in_parent(80);
    } else if (!strcmp(mode, "clocks")) {
        /* Children that tell the longest time between two looks at the clock, when a byte comes. */
        int told[2], ask[2];
        if (pipe(told) || pipe(ask)) die("pipe");
        for (int i = 0; i < count; i++)
            if (forked() == 0) {
                struct timespec last, now, nap = {0, 2000000};
                long longest = 0;
                close(ask[1]);
                fcntl(ask[0], F_SETFL, O_NONBLOCK);
                clock_gettime(CLOCK_MONOTONIC, &last);
                char byte;
                while (read(ask[0], &byte, 1) < 0) {
                    nanosleep(&nap, NULL);
                    clock_gettime(CLOCK_MONOTONIC, &now);
                    long gap = (now.tv_sec - last.tv_sec) * 1000000 + (now.tv_nsec - last.tv_nsec) / 1000;
                    if (gap > longest) longest = gap;
                    last = now;
                }
                if (write(told[1], &longest, sizeof longest) < 0) die("write");
                _exit(0);
            }
        printf("ready\n");
        fflush(stdout);
        getchar();
        close(ask[1]);
        for (int i = 0; i < count; i++) {
            long longest;
            if (read(told[0], &longest, sizeof longest) != sizeof longest) die("read");
            printf("%ld%c", longest, i + 1 < count ? ' ' : '\n');
        }
        fflush(stdout);
        while (waitpid(-1, NULL, 0) > 0) {}
    } else if (!strcmp(mode, "herd")) {
        for (int i = 0; i < count; i++)
            if (forked() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (;;) { work(1); usleep(500000); } }
        printf("ready\n");
        fflush(stdout);
        getchar();
        kill(0, SIGTERM);
    } else {
        fprintf(stderr, "unknown mode %s\n", mode);
        return 2;
    }
    return 0;
}
