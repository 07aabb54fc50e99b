/* Three known chains that burn 60, 30 and 10 percent of the CPU time. usage: shares SECONDS */
#include "burn.h"

BURN(leaf_sixty)
BURN(leaf_thirty)
BURN(leaf_ten)

__attribute__((noinline)) void middle_sixty(double q) { leaf_sixty(cpu() + q * 0.6); sink++; }
__attribute__((noinline)) void middle_thirty(double q) { leaf_thirty(cpu() + q * 0.3); sink++; }
__attribute__((noinline)) void middle_ten(double q) { leaf_ten(cpu() + q * 0.1); sink++; }
__attribute__((noinline)) void outer(double q) { middle_sixty(q); middle_thirty(q); middle_ten(q); sink++; }

int main(int count, char **words) {
    double end = cpu() + (count > 1 ? atof(words[1]) : 1);
    while (cpu() < end) outer(0.02);
    return 0;
}
