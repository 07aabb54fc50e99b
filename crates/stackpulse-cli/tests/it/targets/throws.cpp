// Exceptions that fly through many frames all the time. usage: throws SECONDS
#include <chrono>
#include <cstdlib>

struct Guard {
    ~Guard() { ++count; }
    static inline volatile long count = 0;
};

__attribute__((noinline)) long thrower(int depth) {
    Guard guard;
    if (depth == 0) throw 7;
    return thrower(depth - 1) + Guard::count;
}

__attribute__((noinline)) long catcher() {
    try {
        return thrower(12);
    } catch (int value) {
        return value;
    }
}

int main(int count, char **words) {
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(count > 1 ? std::atof(words[1]) : 1);
    long sum = 0;
    while (std::chrono::steady_clock::now() < end) sum += catcher();
    return sum == 0;
}
