// Threads, templates and an inlined call. usage: threads SECONDS
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace work {
volatile uint64_t sink;

static inline __attribute__((always_inline)) uint64_t inlined_step(uint64_t value) {
    for (int i = 0; i < 1000; i++) value = value * 6364136223846793005ull + 1442695040888963407ull;
    return value;
}

template <typename T> struct Burner {
    __attribute__((noinline)) T burn(std::chrono::steady_clock::time_point end) {
        T value = 1;
        while (std::chrono::steady_clock::now() < end) { value = inlined_step(value); sink = value; }
        return value;
    }
};
}

int main(int count, char **words) {
    auto end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>(count > 1 ? atof(words[1]) : 1));
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) threads.emplace_back([end] { work::Burner<uint64_t> burner; work::sink = burner.burn(end); });
    for (auto &thread : threads) thread.join();
}
