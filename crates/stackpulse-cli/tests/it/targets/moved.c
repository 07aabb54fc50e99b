// A library whose text is moved into memory of no file: moved_outer calls moved_inner calls moved_leaf, each in pages of its own.
// Compiled with -DPROGRAM it is the program that loads the library, or moves its own pages, and calls it.
#define _GNU_SOURCE
#ifndef PROGRAM

#ifndef PLACE
#define PLACE
#endif
#define PAGE __attribute__((noinline, aligned(4096))) PLACE

static volatile unsigned long sink;

PAGE void moved_leaf(long count) {
    for (long at = 0; at < count; at++) sink = sink * 3 + (unsigned long)at;
}
PAGE void moved_inner(long count) {
    moved_leaf(count);
    sink++;
}
PAGE void moved_outer(long count) {
    moved_inner(count);
    sink++;
}
PAGE void moved_end(void) { sink++; }

#else

#define main program_main
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#undef main
#undef PROGRAM
#define PLACE __attribute__((section(".moved")))
#include "moved.c"

typedef struct {
    char *start, *end;
} range;

// The executable segment that an address is in.
static int find(struct dl_phdr_info *info, size_t size, void *data) {
    range *found = data;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[at];
        char *start = (char *)(info->dlpi_addr + header->p_vaddr), *end = start + header->p_memsz;
        if (header->p_type == PT_LOAD && header->p_flags & PF_X && start <= found->start && found->start < end) {
            found->start = (char *)((unsigned long)start & -4096UL);
            found->end = (char *)(((unsigned long)end + 4095) & -4096UL);
            return 1;
        }
    }
    return 0;
}

static void move(range text, int by_mremap) {
    size_t length = (size_t)(text.end - text.start);
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC, own = MAP_PRIVATE | MAP_ANONYMOUS;
    char *copy = mmap(NULL, length, all, own, -1, 0);
    if (copy == MAP_FAILED) exit(3);
    memcpy(copy, text.start, length);
    if (by_mremap) {
        mprotect(copy, length, PROT_READ | PROT_EXEC);
        if (mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, text.start) == MAP_FAILED) exit(4);
    } else {
        if (mmap(text.start, length, all, own | MAP_FIXED, -1, 0) == MAP_FAILED) exit(5);
        memcpy(text.start, copy, length);
        mprotect(text.start, length, PROT_READ | PROT_EXEC);
    }
    __builtin___clear_cache(text.start, text.end);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Arguments: how long, what is moved, how, and the library, if it is not the program's own text.
int main(int count, char **arguments) {
    void (*outer)(long) = moved_outer;
    char *leaf = (char *)moved_leaf, *inner = (char *)moved_inner, *behind = (char *)moved_end;
    if (count > 4) {
        void *library = dlopen(arguments[4], RTLD_NOW);
        if (!library) exit(2);
        outer = (void (*)(long))dlsym(library, "moved_outer");
        leaf = dlsym(library, "moved_leaf");
        inner = dlsym(library, "moved_inner");
        behind = dlsym(library, "moved_end");
    }
    range text = {leaf, NULL};
    dl_iterate_phdr(find, &text);
    const char *part = arguments[2];
    if (!strcmp(part, "beginning")) text.end = inner;
    if (!strcmp(part, "end")) text.start = inner;
    if (!strcmp(part, "middle")) text = (range){leaf, behind};
    move(text, !strcmp(arguments[3], "mremap"));
    puts("moved");
    fflush(stdout);
    for (double start = now(), end = start + atof(arguments[1]); now() < end;) outer(300000);
    return 0;
}

#endif
