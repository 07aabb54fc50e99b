// A library of one function, without a frame pointer: its callers are found by its tables.
void library_step(volatile long *left) { --*left; }
void library_loop(long count) {
    volatile long left = count / 8;
    while (left > 0) library_step(&left);
}
