// Templates, lambdas, member functions, a local class, and inlined library code.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace geometry {
template <typename T>
struct Box {
    T width, height;
    __attribute__((noinline)) T area() const { return width * height; }
    template <typename F>
    T with(F f) const { return f(width) + f(height); }
};

struct Shape {
    virtual ~Shape() = default;
    virtual double measure(int n) const = 0;
};

struct Round : Shape {
    double measure(int n) const override {
        Box<double> box{1.5 * n, 2.0};
        return box.area() + box.with([n](double side) { return side * n + 1; });
    }
};
}  // namespace geometry

static double local(int n) {
    struct Counter {
        int calls = 0;
        __attribute__((noinline)) int next(int by) { return calls += by; }
    } counter;
    for (int i = 0; i < n; i++) counter.next(i);
    return counter.calls;
}

int main(int argc, char **) {
    std::vector<std::string> words;
    std::map<std::string, int> counts;
    for (int i = 0; i < 50; i++) words.push_back("word" + std::to_string(i * argc % 7));
    std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return b < a; });
    for (const auto &word : words) counts[word]++;
    geometry::Round round;
    const geometry::Shape &shape = round;
    std::printf("%zu %f %f\n", counts.size(), shape.measure(argc), local(argc + 3));
}
