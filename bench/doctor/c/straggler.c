/*
 * Fault (uneven-work): four threads get the same number of pieces each, but the pieces in the
 * first quarter take five times as long. So one thread works long after the others ended, and
 * one CPU is idle.
 * fixed: each thread takes the next piece from an atomic counter.
 * twin: two threads with the same, static division of pieces that all take the same time. They
 * end together.
 */
#include "common.h"

enum {
    THREADS = 4,
    TWIN_THREADS = 2,
    SLOW_FACTOR = 5,
    PIECE_US = 300,
    QUARTER_US = 720000,        /* the time that a quarter of cheap pieces takes */
    TWIN_US = 3900000,          /* the work of each of the two threads */
};

static struct {
    enum variant variant;
    unsigned threads;
    uint64_t pieces_per_thread, piece_us, slow_pieces;
} plan;

struct worker {
    _Alignas(CACHE_LINE_BYTES) uint64_t sum;
    uint64_t first_piece;
};

static _Atomic uint64_t next_piece;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.threads = THREADS;
    plan.piece_us = vary(&state, PIECE_US, 40);
    plan.pieces_per_thread = vary(&state, QUARTER_US, 18) / plan.piece_us;
    plan.slow_pieces = plan.pieces_per_thread;
    if (options.variant == TWIN) {
        plan.threads = TWIN_THREADS;
        plan.pieces_per_thread = vary(&state, TWIN_US, 20) / plan.piece_us;
        plan.slow_pieces = 0;
    }
}

static uint64_t compute_piece(uint64_t piece)
{
    return work_us(piece, piece < plan.slow_pieces ? plan.piece_us * SLOW_FACTOR : plan.piece_us);
}

static void *work_static(void *argument)
{
    struct worker *self = argument;
    for (uint64_t i = 0; i < plan.pieces_per_thread; i++)
        self->sum += compute_piece(self->first_piece + i);
    return NULL;
}

static void *work_dynamic(void *argument)
{
    struct worker *self = argument;
    uint64_t pieces = plan.pieces_per_thread * plan.threads;
    uint64_t piece;
    while ((piece = atomic_fetch_add(&next_piece, 1)) < pieces)
        self->sum += compute_piece(piece);
    return NULL;
}

int main(int argc, char **argv)
{
    make_plan(start("straggler", argc, argv));
    struct worker workers[THREADS] = { { 0, 0 } };
    pthread_t threads[THREADS];
    for (unsigned t = 0; t < plan.threads; t++) {
        workers[t].first_piece = t * plan.pieces_per_thread;
        threads[t] = start_thread(plan.variant == FIXED ? work_dynamic : work_static, &workers[t]);
    }
    uint64_t sum = 0;
    for (unsigned t = 0; t < plan.threads; t++) {
        join_thread(threads[t]);
        sum += workers[t].sum;
    }
    print_checksum(sum);
    return 0;
}
