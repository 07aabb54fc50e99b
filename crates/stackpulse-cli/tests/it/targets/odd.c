/* Stacks that are made in odd ways. usage: odd SECONDS aligned|large|signal|coroutine|clone|stack|vfork|spawn */
#define _GNU_SOURCE
#include "burn.h"
#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;
static double seconds;

BURN(odd_leaf)

/* The canonical frame address is behind a saved register; the frame's size is known at run time alone. */
__attribute__((noinline)) void aligned_frame(double until) {
    volatile char aligned[64] __attribute__((aligned(128)));
    volatile char *more = alloca(16 + (size_t)(seconds * 8));
    aligned[0] = more[0] = 1;
    odd_leaf(until);
    sink += aligned[0] + more[0];
}

/* Larger than what is captured of it. */
__attribute__((noinline)) void large_frame(double until) {
    volatile char large[96 << 10];
    large[0] = large[sizeof large - 1] = 1;
    odd_leaf(until);
    sink += large[0];
}

static void handler(int signal) { odd_leaf(cpu() + seconds); sink += signal; }

__attribute__((noinline)) void interrupted(void) { raise(SIGUSR1); sink++; }

static ucontext_t here, there;

static void coroutine(void) { odd_leaf(cpu() + seconds); sink++; }

static int cloned(void *unused) { odd_leaf(cpu() + seconds); sink++; return unused != 0; }

static void *on_own_stack(void *unused) { odd_leaf(cpu() + seconds); sink++; return unused; }

__attribute__((noinline)) void borrowing_parent(void) {
    pid_t child = vfork();
    if (child == 0) { odd_leaf(cpu() + seconds); _exit(0); }
    waitpid(child, 0, 0);
    sink++;
}

int main(int count, char **words) {
    if (count < 3) return 1;
    seconds = atof(words[1]);
    size_t size = 256 << 10;
    char *stack = aligned_alloc(4096, size);
    if (!strcmp(words[2], "aligned")) aligned_frame(cpu() + seconds);
    if (!strcmp(words[2], "large")) large_frame(cpu() + seconds);
    if (!strcmp(words[2], "signal")) { signal(SIGUSR1, handler); interrupted(); }
    if (!strcmp(words[2], "coroutine")) {
        getcontext(&there);
        there.uc_stack.ss_sp = stack;
        there.uc_stack.ss_size = size;
        there.uc_link = &here;
        makecontext(&there, coroutine, 0);
        swapcontext(&here, &there);
    }
    if (!strcmp(words[2], "clone")) {
        pid_t child = clone(cloned, stack + size, CLONE_VM | SIGCHLD, 0);
        waitpid(child, 0, 0);
    }
    if (!strcmp(words[2], "stack")) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack, size);
        pthread_create(&thread, &attributes, on_own_stack, 0);
        pthread_join(thread, 0);
    }
    if (!strcmp(words[2], "vfork")) borrowing_parent();
    if (!strcmp(words[2], "spawn")) {
        char *again[] = {words[0], words[1], "aligned", 0};
        pid_t child;
        if (posix_spawn(&child, words[0], 0, 0, again, environ)) return 1;
        waitpid(child, 0, 0);
    }
    return 0;
}
