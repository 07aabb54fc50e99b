// Code made at run time, in memory of one kind or another, named by a perf map: caller calls jitted_loop. Or a library without a
// name: library_loop. Arguments: the kind, and a library for the last two.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static size_t length = 4096;

// A frame record, a loop as long as the argument says, and back.
static const uint8_t code[] = {
#if defined(__x86_64__)
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3,
#else
    0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x04, 0x00, 0xf1,
    0xe1, 0xff, 0xff, 0x54, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
#endif
};

typedef void loop(long);

__attribute__((noinline)) void caller(loop *called) {
    volatile char frame[64];
    frame[0] = 1;
    called(3000000);
    frame[1] = 2;
}

static void *map(int protection, int flags, int fd) {
    void *at = mmap(NULL, length, protection, flags, fd, 0);
    if (at == MAP_FAILED) exit(2);
    return at;
}

// The same file mapped twice: writable, and executable.
static void *twice(int fd) {
    if (fd < 0 || ftruncate(fd, length)) exit(3);
    memcpy(map(PROT_READ | PROT_WRITE, MAP_SHARED, fd), code, sizeof code);
    return map(PROT_READ | PROT_EXEC, MAP_SHARED, fd);
}

static int unlinked(const char *directory) {
    char path[200];
    snprintf(path, sizeof path, "%s/generatedXXXXXX", directory);
    int fd = mkstemp(path);
    unlink(path);
    return fd;
}

static void *generate(const char *kind) {
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC, own = MAP_PRIVATE | MAP_ANONYMOUS;
    void *at = NULL;
    if (!strcmp(kind, "anonymous")) at = map(all, own, -1);
    if (!strcmp(kind, "shared")) at = map(all, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!strcmp(kind, "named")) {
        at = map(all, own, -1);
        prctl(0x53564d41 /* PR_SET_VMA */, 0, at, length, "code");
    }
    if (!strcmp(kind, "heap")) {
        at = (void *)(((uintptr_t)sbrk(2 * length) + length - 1) & -length);
        mprotect(at, length, all);
    }
    if (at) {
        memcpy(at, code, sizeof code);
        __builtin___clear_cache(at, (char *)at + sizeof code);
        return at;
    }
    if (kind[0] == '/') {
        // A directory of huge pages, where the file keeps its name.
        char path[200];
        snprintf(path, sizeof path, "%s/generated", kind);
        length = 2 << 20;
        return twice(open(path, O_CREAT | O_RDWR, 0600));
    }
    if (!strcmp(kind, "memfd")) return twice(memfd_create("doublemapper", 0));
    if (!strcmp(kind, "shm")) return twice(unlinked("/dev/shm"));
    if (!strcmp(kind, "tmp")) return twice(unlinked("/tmp"));
    int fd = memfd_create("sealed", 0);
    if (fd < 0 || ftruncate(fd, length) || pwrite(fd, code, sizeof code, 0) < 0) exit(4);
    at = map(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd);
    close(fd);
    return at;
}

// Loads a library from a file that has no name; it may stay open.
static loop *load(const char *library, int stays_open) {
    static char bytes[1 << 20];
    int from = open(library, O_RDONLY), fd = memfd_create("library", 0);
    ssize_t size = read(from, bytes, sizeof bytes);
    if (size <= 0 || write(fd, bytes, size) != size) exit(5);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *handle = dlopen(path, RTLD_NOW);
    if (!handle) exit(6);
    if (!stays_open) close(fd);
    return (loop *)dlsym(handle, "library_loop");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    loop *called;
    if (count > 2) {
        called = load(arguments[2], !strcmp(arguments[1], "open"));
    } else {
        called = (loop *)generate(arguments[1]);
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
        FILE *file = fopen(path, "w");
        fprintf(file, "%lx %zx jitted_loop\n", (unsigned long)called, sizeof code);
        fclose(file);
    }
    for (double start = now(); now() - start < 0.5;) caller(called);
    return 0;
}
