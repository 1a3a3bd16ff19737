/*
 * Helpers for the programs with a planted fault: arguments, a random generator with a fixed
 * sequence, computing work, threads, children, timers and a watchdog.
 *
 * Each program has a plan: sizes that depend only on the seed. The variants sick and fixed use
 * the same plan, so they do the same work and print the same checksum.
 */
#ifndef DOCTOR_COMMON_H
#define DOCTOR_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WATCHDOG_S = 30,            /* no process of a program lives longer than this */
    ROUNDS_PER_US = 400,        /* mixing rounds that take about 1 us on a CPU with 3 GHz */
    THREAD_STACK_BYTES = 256 * 1024,
    CACHE_LINE_BYTES = 64,
};

enum variant { SICK, FIXED, TWIN };

struct options {
    enum variant variant;
    uint64_t seed;
};

/* Prints what failed, with errno, and ends the process. */
static inline void require(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static inline bool parse_variant(const char *text, enum variant *variant)
{
    static const char *const names[] = { "sick", "fixed", "twin" };
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *variant = (enum variant)i;
            return true;
        }
    }
    return false;
}

static inline bool parse_seed(const char *text, uint64_t *seed)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Ends the process after WATCHDOG_S, whatever it does. Its children then end, too. */
static inline void start_watchdog(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(WATCHDOG_S);
}

/* Reads VARIANT and SEED and starts the watchdog. Does not return if the arguments are wrong. */
static inline struct options start(const char *name, int argc, char **argv)
{
    struct options options;
    if (argc != 3 || !parse_variant(argv[1], &options.variant)
        || !parse_seed(argv[2], &options.seed)) {
        fprintf(stderr, "usage: %s sick|fixed|twin SEED\n", name);
        exit(2);
    }
    start_watchdog();
    return options;
}

static inline uint64_t random_start(uint64_t seed)
{
    return (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

/* A xorshift generator; the multiplication spreads the bits of small seeds. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (x * UINT64_C(0x2545F4914F6CDD1D)) >> 16;
}

/* Returns a number between base - percent and base + percent. */
static inline uint64_t vary(uint64_t *state, uint64_t base, unsigned percent)
{
    uint64_t span = base * percent / 100;
    return base - span + random_next(state) % (2 * span + 1);
}

/* A chain of rounds. Each round needs the result of the one before. */
static inline uint64_t mix(uint64_t value, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        value = (value ^ (value >> 29)) * UINT64_C(0xBF58476D1CE4E5B9) + 0x632BE5AB;
    return value;
}

/* A fixed amount of computing that takes about `us` microseconds. */
static inline uint64_t work_us(uint64_t value, uint64_t us)
{
    return mix(value, us * ROUNDS_PER_US);
}

static inline void print_checksum(uint64_t checksum)
{
    printf("%016" PRIx64 "\n", checksum);
}

static inline pthread_t start_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    errno = pthread_create(&thread, &attributes, function, argument);
    require(errno == 0, "pthread_create");
    pthread_attr_destroy(&attributes);
    return thread;
}

static inline void join_thread(pthread_t thread)
{
    errno = pthread_join(thread, NULL);
    require(errno == 0, "pthread_join");
}

/* Forks. The child has its own watchdog, and the kernel kills it when its parent ends. */
static inline pid_t start_child(void)
{
    pid_t parent = getpid();
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        start_watchdog();
    }
    return child;
}

static inline void wait_child(pid_t child)
{
    int status;
    require(waitpid(child, &status, 0) == child, "waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "a child failed\n");
        exit(1);
    }
}

static inline void sleep_us(long us)
{
    struct timespec span = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    nanosleep(&span, NULL);
}

/* Waits until the next tick of a periodic timer. The caller sets `tick` to the present first. */
static inline void wait_tick(struct timespec *tick, long period_us)
{
    tick->tv_nsec += period_us * 1000;
    while (tick->tv_nsec >= 1000000000) {
        tick->tv_nsec -= 1000000000;
        tick->tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, tick, NULL);
}

static inline void write_all(int fd, const void *data, size_t size)
{
    const char *from = data;
    while (size > 0) {
        ssize_t n = write(fd, from, size);
        require(n > 0, "write");
        from += n;
        size -= (size_t)n;
    }
}

/* Returns false at the end of the stream. */
static inline bool read_all(int fd, void *data, size_t size)
{
    char *to = data;
    while (size > 0) {
        ssize_t n = read(fd, to, size);
        require(n >= 0, "read");
        if (n == 0)
            return false;
        to += n;
        size -= (size_t)n;
    }
    return true;
}

#endif
