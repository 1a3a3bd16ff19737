/*
 * Fault (sleep-polling): a producer and a consumer process share memory. The consumer tests a
 * flag in it and sleeps 2 ms between two tests, so it notices each item late. The producer waits
 * for the answer before it hands over the next item, so the whole program runs at that pace.
 * fixed: a semaphore in the shared memory wakes the consumer at once.
 * twin: a child computes a chain, and the parent takes a measurement every 5 ms. The parent
 * sleeps often, but the period is its purpose, and the child never waits for it.
 */
#include "common.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    POLL_US = 2000,             /* sleep between two tests of the flag */
    ITEMS = 1650,
    WORK_US = 500,              /* per item, in each of the two processes */
    TWIN_PIECES = 3900,
    TWIN_PIECE_US = 1000,
    MEASURE_PERIOD_US = 5000,
    MEASURE_WORK_US = 50,
};

struct shared {
    _Atomic bool full;          /* an item is there */
    sem_t filled;               /* the same as a semaphore, for the fixed variant */
    sem_t answered;
    uint64_t item, answer;
    _Atomic uint64_t progress;
};

static struct {
    enum variant variant;
    uint64_t items, make_us, answer_us, twin_pieces;
} plan;

static struct shared *shared;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.items = vary(&state, ITEMS, 20);
    plan.make_us = vary(&state, WORK_US, 40);
    plan.answer_us = vary(&state, WORK_US, 40);
    plan.twin_pieces = vary(&state, TWIN_PIECES, 20);
}

static void map_shared(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(shared != MAP_FAILED, "mmap");
    sem_init(&shared->filled, 1, 0);
    sem_init(&shared->answered, 1, 0);
}

static void wait_semaphore(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static void wait_item(void)
{
    if (plan.variant == FIXED) {
        wait_semaphore(&shared->filled);
    } else {
        while (!atomic_load(&shared->full))
            sleep_us(POLL_US);
    }
    atomic_store(&shared->full, false);
}

static void consume(void)
{
    for (uint64_t i = 0; i < plan.items; i++) {
        wait_item();
        shared->answer = work_us(shared->item, plan.answer_us);
        sem_post(&shared->answered);
    }
}

/* Makes an item while the consumer works on the one before. */
static uint64_t produce(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plan.items; i++) {
        uint64_t item = work_us(i, plan.make_us);
        if (i > 0) {
            wait_semaphore(&shared->answered);
            sum += shared->answer;
        }
        shared->item = item;
        atomic_store(&shared->full, true);
        if (plan.variant == FIXED)
            sem_post(&shared->filled);
    }
    wait_semaphore(&shared->answered);
    return sum + shared->answer;
}

static void compute_chain(void)
{
    uint64_t value = 1;
    for (uint64_t i = 0; i < plan.twin_pieces; i++) {
        value = work_us(value, TWIN_PIECE_US);
        atomic_store(&shared->progress, i + 1);
    }
    shared->answer = value;
}

/* Takes a measurement of memory and progress per period, until the computation is complete. */
static void measure(void)
{
    static volatile uint64_t statistics;
    struct timespec tick;
    clock_gettime(CLOCK_MONOTONIC, &tick);
    uint64_t progress;
    do {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        progress = atomic_load(&shared->progress);
        statistics = work_us(statistics + (uint64_t)usage.ru_maxrss + progress, MEASURE_WORK_US);
        wait_tick(&tick, MEASURE_PERIOD_US);
    } while (progress < plan.twin_pieces);
}

int main(int argc, char **argv)
{
    make_plan(start("shared_poll", argc, argv));
    map_shared();
    pid_t child = start_child();
    if (child == 0) {
        if (plan.variant == TWIN)
            compute_chain();
        else
            consume();
        _exit(0);
    }
    uint64_t checksum = 0;
    if (plan.variant == TWIN)
        measure();
    else
        checksum = produce();
    wait_child(child);
    print_checksum(plan.variant == TWIN ? shared->answer : checksum);
    return 0;
}
