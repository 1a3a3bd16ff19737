/*
 * Fault (oversubscription): 8 threads on 2 CPUs do a small piece of work, then meet at a barrier
 * that spins, as OpenMP runtimes have it. A thread that waits tests the barrier 1000 times, then
 * calls sched_yield, again and again. It takes the CPU from the threads that still have work.
 * fixed: 2 threads, one per CPU, divide the same pieces.
 * twin: 2 threads that compute, without a barrier.
 */
#include "common.h"

#include <sched.h>

enum {
    THREADS = 8,
    MAX_THREADS = 11,
    CPUS = 2,                   /* threads in the fixed variant and in the twin */
    PIECE_US = 30,              /* per round and thread */
    SPINS_PER_YIELD = 1000,
    TOTAL_WORK_US = 4000000,    /* of all threads */
    TWIN_PIECE_US = 1000,
    TWIN_ROUNDS = 3900,
};

static struct {
    enum variant variant;
    unsigned threads;
    uint64_t rounds, pieces, piece_us;
} plan;

struct worker {
    _Alignas(CACHE_LINE_BYTES) uint64_t sum;
    unsigned number;
};

static _Atomic unsigned arrived;
static _Atomic unsigned phase;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.pieces = vary(&state, THREADS, 38);
    plan.piece_us = vary(&state, PIECE_US, 40);
    plan.rounds = vary(&state, TOTAL_WORK_US, 18) / (plan.pieces * plan.piece_us);
    plan.threads = options.variant == SICK ? (unsigned)plan.pieces : CPUS;
    if (options.variant == TWIN) {
        plan.pieces = CPUS;
        plan.piece_us = TWIN_PIECE_US;
        plan.rounds = vary(&state, TWIN_ROUNDS, 20);
    }
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* The last thread that arrives begins the next phase; the others spin until then. */
static void spin_barrier(void)
{
    unsigned old_phase = atomic_load(&phase);
    if (atomic_fetch_add(&arrived, 1) + 1 == plan.threads) {
        atomic_store(&arrived, 0);
        atomic_store(&phase, old_phase + 1);
        return;
    }
    for (unsigned spins = 1; atomic_load(&phase) == old_phase; spins++) {
        pause_cpu();
        if (spins % SPINS_PER_YIELD == 0)
            sched_yield();
    }
}

static void *run_rounds(void *argument)
{
    struct worker *self = argument;
    for (uint64_t round = 0; round < plan.rounds; round++) {
        for (uint64_t piece = self->number; piece < plan.pieces; piece += plan.threads)
            self->sum += work_us(round * plan.pieces + piece, plan.piece_us);
        if (plan.variant != TWIN)
            spin_barrier();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    make_plan(start("spin_crowd", argc, argv));
    static struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    for (unsigned t = 1; t < plan.threads; t++) {
        workers[t].number = t;
        threads[t] = start_thread(run_rounds, &workers[t]);
    }
    run_rounds(&workers[0]);
    uint64_t sum = workers[0].sum;
    for (unsigned t = 1; t < plan.threads; t++) {
        join_thread(threads[t]);
        sum += workers[t].sum;
    }
    print_checksum(sum);
    return 0;
}
