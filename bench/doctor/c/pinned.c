/*
 * Fault (cpu-limit): the program restricts itself to one CPU, then starts two threads that
 * compute. Both are always ready, but only one can run. The other CPU is idle.
 * fixed: no restriction.
 * twin: the same restriction, but only one thread computes a chain. It loses nothing.
 */
#include "common.h"

#include <sched.h>

enum {
    THREADS = 2,
    PIECE_US = 1000,
    TOTAL_WORK_US = 4200000,    /* of all threads */
    TWIN_US = 3900000,
};

static struct {
    enum variant variant;
    unsigned threads;
    uint64_t pieces, piece_us;
} plan;

struct worker {
    _Alignas(CACHE_LINE_BYTES) uint64_t value;
};

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.threads = options.variant == TWIN ? 1 : THREADS;
    plan.piece_us = vary(&state, PIECE_US, 40);
    uint64_t total_us = vary(&state, options.variant == TWIN ? TWIN_US : TOTAL_WORK_US, 20);
    plan.pieces = total_us / plan.piece_us / plan.threads;
}

/* Takes the first CPU that the process may use. */
static void pin_to_one_cpu(void)
{
    cpu_set_t allowed, one;
    require(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    require(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

static void *compute(void *argument)
{
    struct worker *self = argument;
    for (uint64_t i = 0; i < plan.pieces; i++)
        self->value = work_us(self->value, plan.piece_us);
    return NULL;
}

int main(int argc, char **argv)
{
    make_plan(start("pinned", argc, argv));
    if (plan.variant != FIXED)
        pin_to_one_cpu();
    struct worker workers[THREADS];
    pthread_t thread = 0;
    for (unsigned t = 0; t < plan.threads; t++)
        workers[t].value = t;
    if (plan.threads > 1)
        thread = start_thread(compute, &workers[1]);
    compute(&workers[0]);
    uint64_t sum = workers[0].value;
    if (plan.threads > 1) {
        join_thread(thread);
        sum += workers[1].value;
    }
    print_checksum(sum);
    return 0;
}
