/*
 * Fault (spinning): two threads take turns. While one computes an item of 1 ms, the other tests
 * an atomic flag in a tight loop. Both use a whole CPU, but only one makes progress.
 * fixed: each thread computes its own half and never waits.
 * twin: two threads that compute all the time. They use the CPUs in the same way, for real work.
 */
#include "common.h"

enum {
    THREADS = 2,
    ITEM_US = 1000,
    TOTAL_WORK_US = 4200000,    /* of both threads */
    TWIN_US = 3900000,          /* of each of the two threads */
};

static struct {
    enum variant variant;
    uint64_t items, item_us;
} plan;

struct worker {
    _Alignas(CACHE_LINE_BYTES) uint64_t sum;
    unsigned number;
};

static _Atomic unsigned turn;   /* the number of the thread that may compute */

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.item_us = vary(&state, ITEM_US, 40);
    uint64_t total_us = options.variant == TWIN ? TWIN_US * THREADS : TOTAL_WORK_US;
    plan.items = vary(&state, total_us, 20) / plan.item_us;
}

static void *compute(void *argument)
{
    struct worker *self = argument;
    for (uint64_t i = self->number; i < plan.items; i += THREADS) {
        if (plan.variant == SICK) {
            while (atomic_load(&turn) != self->number)
                continue;
        }
        self->sum += work_us(i, plan.item_us);
        if (plan.variant == SICK)
            atomic_store(&turn, (self->number + 1) % THREADS);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    make_plan(start("spin_flag", argc, argv));
    struct worker workers[THREADS] = { { .number = 0 }, { .number = 1 } };
    pthread_t thread = start_thread(compute, &workers[1]);
    compute(&workers[0]);
    join_thread(thread);
    print_checksum(workers[0].sum + workers[1].sum);
    return 0;
}
