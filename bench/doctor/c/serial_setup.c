/*
 * Fault (serial-section): each round begins with a long part that only the main thread does. The
 * workers wait for it at a barrier, then all threads share a short parallel part. By Amdahl's
 * law the second CPU helps little.
 * fixed: the threads share the first part, too.
 * twin: a single thread computes a chain in which each step needs the step before. It uses one
 * CPU as well, but there is nothing to share.
 */
#include "common.h"

enum {
    MAX_THREADS = 4,
    CHUNK_US = 500,             /* the threads share the work in chunks of this size */
    SERIAL_CHUNKS = 24,         /* per round */
    PARALLEL_CHUNKS = 8,        /* per round */
    TOTAL_US = 4300000,         /* wanted time of the sick variant */
    CPUS = 2,                   /* the plan assumes that this many chunks run at a time */
    TWIN_CHUNKS = 7800,
};

static struct {
    enum variant variant;
    unsigned threads;
    uint64_t rounds, chunk_us, serial_chunks, all_chunks, twin_chunks;
} plan;

struct worker {
    _Alignas(CACHE_LINE_BYTES) uint64_t sum;
    bool is_main;
};

static pthread_barrier_t barrier;
static _Atomic uint64_t next_chunk;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.threads = 2 + (unsigned)(random_next(&state) % (MAX_THREADS - 1));
    plan.chunk_us = vary(&state, CHUNK_US, 40);
    plan.serial_chunks = vary(&state, SERIAL_CHUNKS, 20);
    uint64_t parallel_chunks = vary(&state, PARALLEL_CHUNKS, 40);
    uint64_t round_us = plan.chunk_us * (plan.serial_chunks + parallel_chunks / CPUS);
    plan.all_chunks = plan.serial_chunks + parallel_chunks;
    plan.rounds = vary(&state, TOTAL_US, 18) / round_us;
    plan.twin_chunks = vary(&state, TWIN_CHUNKS, 20);
}

static uint64_t compute_chunk(uint64_t round, uint64_t chunk)
{
    return work_us(round * plan.all_chunks + chunk, plan.chunk_us);
}

/* What the main thread does while the others wait at the barrier. */
static uint64_t begin_round(uint64_t round)
{
    uint64_t sum = 0;
    uint64_t done = 0;
    if (plan.variant == SICK) {
        for (; done < plan.serial_chunks; done++)
            sum += compute_chunk(round, done);
    }
    atomic_store(&next_chunk, done);
    return sum;
}

static void *run_rounds(void *argument)
{
    struct worker *self = argument;
    for (uint64_t round = 0; round < plan.rounds; round++) {
        if (self->is_main)
            self->sum += begin_round(round);
        pthread_barrier_wait(&barrier);
        uint64_t chunk;
        while ((chunk = atomic_fetch_add(&next_chunk, 1)) < plan.all_chunks)
            self->sum += compute_chunk(round, chunk);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static uint64_t run_threads(void)
{
    struct worker workers[MAX_THREADS] = { { .is_main = true } };
    pthread_t threads[MAX_THREADS];
    pthread_barrier_init(&barrier, NULL, plan.threads);
    for (unsigned t = 1; t < plan.threads; t++)
        threads[t] = start_thread(run_rounds, &workers[t]);
    run_rounds(&workers[0]);
    uint64_t sum = workers[0].sum;
    for (unsigned t = 1; t < plan.threads; t++) {
        join_thread(threads[t]);
        sum += workers[t].sum;
    }
    return sum;
}

int main(int argc, char **argv)
{
    make_plan(start("serial_setup", argc, argv));
    if (plan.variant == TWIN)
        print_checksum(work_us(1, plan.twin_chunks * CHUNK_US));
    else
        print_checksum(run_threads());
    return 0;
}
