// A probe for C++20's coroutines: creates units of concurrency for contend to measure. README.md describes the
// protocol.
//
//     g++ -std=c++20 -O2 -o probe coroutine.cpp && ./probe coroutine

#include <malloc.h>  // glibc's

#include <chrono>
#include <coroutine>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

long long nanoseconds_since(Clock::time_point began) {
    return std::chrono::nanoseconds(Clock::now() - began).count();
}

// A kind of unit. To add one, add a class and its line in `kinds`.
struct Kind {
    virtual ~Kind() = default;
    virtual void prepare(std::size_t n) = 0;  // allocates what only the probe needs for n units
    virtual void start() = 0;                 // creates one unit
    virtual std::size_t waiting() = 0;        // number of waiting units
    virtual void wake() = 0;                  // lets all units end
    virtual void forget() = 0;                // undoes `prepare`
    virtual std::string trips(long m) = 0;    // exchanges m messages with one unit; returns the answer after `trips `

    std::size_t ended = 0;  // number of units that have ended, counted by themselves
};

// Empty return type of coroutines that nothing owns: the frame lives from the call until the coroutine ends.
struct Detached {
    struct promise_type {
        Detached get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
};

// Suspends the coroutines that await it, and keeps their handles to resume them. `handles` must have room for all.
// There is no separate awaiter, which would enlarge each frame.
struct Gate {
    std::vector<std::coroutine_handle<>> handles;
    std::size_t waiting = 0;

    bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { handles[waiting++] = handle; }
    void await_resume() noexcept {}
};

class Coroutine : public Kind {
public:
    void prepare(std::size_t n) override { gate_ = {std::vector<std::coroutine_handle<>>(n)}; }
    void start() override { unit(*this); }
    std::size_t waiting() override { return gate_.waiting; }
    void wake() override {
        for (auto handle : gate_.handles) handle.resume();
    }
    void forget() override { gate_ = {}; }
    std::string trips(long m) override;

private:
    static Detached unit(Coroutine& kind) {
        co_await kind.gate_;
        ++kind.ended;
    }

    Gate gate_;
};

// State that the driver and one coroutine share. The driver writes `message`, the coroutine `answer`, each before it
// lets the other continue.
struct Exchange {
    std::coroutine_handle<> unit;
    long message = 0;
    long answer = 0;

    bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { unit = handle; }
    long await_resume() noexcept { return message; }
};

Detached echo(Exchange& exchange, long m) {
    for (long i = 0; i < m; ++i) exchange.answer = co_await exchange;
}

std::string Coroutine::trips(long m) {
    Exchange exchange;
    echo(exchange, m);
    auto began = Clock::now();
    for (long i = 0; i < m; ++i) {
        exchange.message = i;
        exchange.unit.resume();
        if (exchange.answer != i)
            return "none message " + std::to_string(i) + " was answered by " + std::to_string(exchange.answer);
    }
    auto took = nanoseconds_since(began);
    return std::to_string(m) + " " + std::to_string(took);
}

// Returns the number of bytes that malloc has allocated, from its heap and as separate mappings, or "-" before glibc
// 2.33. The probe's array of handles is in one or the other.
std::string used() {
#if __GLIBC_PREREQ(2, 33)
    auto info = mallinfo2();
    return std::to_string(info.uordblks + info.hblkhd);
#else
    return "-";
#endif
}

std::string park(Kind& kind, std::size_t n) {
    kind.ended = 0;
    kind.prepare(n);
    auto began = Clock::now();
    for (std::size_t i = 0; i < n; ++i) kind.start();
    auto took = nanoseconds_since(began);
    return "parked " + std::to_string(kind.waiting()) + " " + std::to_string(took) + " " + used();
}

std::string wake(Kind& kind) {
    auto began = Clock::now();
    auto early = kind.ended;
    kind.wake();
    auto took = nanoseconds_since(began);
    return "woken " + std::to_string(early) + " " + std::to_string(kind.ended) + " " + std::to_string(took);
}

std::string rest(Kind& kind) {
    kind.forget();
    malloc_trim(0);
    return "rested " + used();
}

std::string answer(Kind& kind, const std::string& command) {
    std::istringstream words(command);
    std::string word;
    long n = 0;
    words >> word;
    if (word == "park" && words >> n) return park(kind, n);
    if (word == "wake") return wake(kind);
    if (word == "rest") return rest(kind);
    if (word == "trips" && words >> n) return "trips " + kind.trips(n);
    throw std::runtime_error("no such command: " + command);
}

std::string version() {
#if defined(__clang__)
    return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
           std::to_string(__clang_patchlevel__);
#else
    return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
           std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

int main(int count, char** arguments) try {
    std::map<std::string, std::unique_ptr<Kind>> kinds;
    kinds["coroutine"] = std::make_unique<Coroutine>();

    std::string name = count == 2 ? arguments[1] : "";
    auto found = kinds.find(name);
    if (found == kinds.end()) throw std::runtime_error("no such kind of unit: " + name);
    Kind& kind = *found->second;

    park(kind, 100);
    wake(kind);
    rest(kind);
    std::cout << "ready " << version() << std::endl;
    for (std::string command; std::getline(std::cin, command);) std::cout << answer(kind, command) << std::endl;
} catch (const std::exception& why) {
    std::cerr << why.what() << std::endl;
    return 1;
}
