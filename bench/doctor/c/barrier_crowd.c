/*
 * Fault (oversubscription): 48 threads on 2 CPUs do 20 us of work each, then meet at a barrier,
 * thousands of times. Each round costs dozens of context switches and wake-ups.
 * fixed: 2 threads divide the same pieces, so a round costs one or two wake-ups.
 * twin: 2 threads with the same barrier, but with 2 ms of even work per round. They hardly wait.
 */
#include "common.h"

enum {
    THREADS = 48,
    MAX_THREADS = 60,
    CPUS = 2,                   /* threads in the fixed variant and in the twin */
    PIECE_US = 20,              /* per round and thread */
    TOTAL_WORK_US = 5600000,    /* of all threads */
    TWIN_PIECE_US = 2000,
    TWIN_ROUNDS = 1950,
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

static pthread_barrier_t barrier;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.pieces = vary(&state, THREADS, 25);
    plan.piece_us = vary(&state, PIECE_US, 40);
    plan.rounds = vary(&state, TOTAL_WORK_US, 18) / (plan.pieces * plan.piece_us);
    plan.threads = options.variant == SICK ? (unsigned)plan.pieces : CPUS;
    if (options.variant == TWIN) {
        plan.pieces = CPUS;
        plan.piece_us = TWIN_PIECE_US;
        plan.rounds = vary(&state, TWIN_ROUNDS, 20);
    }
}

/* A thread takes every n-th piece of a round; n is the number of threads. */
static void *run_rounds(void *argument)
{
    struct worker *self = argument;
    for (uint64_t round = 0; round < plan.rounds; round++) {
        for (uint64_t piece = self->number; piece < plan.pieces; piece += plan.threads)
            self->sum += work_us(round * plan.pieces + piece, plan.piece_us);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    make_plan(start("barrier_crowd", argc, argv));
    static struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    pthread_barrier_init(&barrier, NULL, plan.threads);
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
