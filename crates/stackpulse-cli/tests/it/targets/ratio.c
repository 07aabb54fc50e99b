/* parse burns PARSE percent of the CPU time, work the rest. usage: ratio SECONDS */
#include "burn.h"

BURN(parse)
BURN(work)

int main(int count, char **words) {
    double end = cpu() + (count > 1 ? atof(words[1]) : 1);
    while (cpu() < end) {
        parse(cpu() + 0.0001 * PARSE);
        work(cpu() + 0.0001 * (100 - PARSE));
    }
    return 0;
}
