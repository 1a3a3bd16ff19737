/*
 * Fault (sleep-polling): two threads hand items to each other through mailboxes. To see whether
 * a mailbox is full, each thread tests an atomic flag and sleeps 1 ms between two tests. So an
 * item lies in the mailbox most of the time, and both CPUs are idle.
 * fixed: a semaphore per mailbox wakes the receiver at once.
 * twin: the main thread computes a chain that nobody can divide. A housekeeping thread wakes
 * every 10 ms and does 1 ms of bookkeeping. It sleeps often, but nobody waits for it.
 */
#include "common.h"

#include <semaphore.h>

enum {
    POLL_US = 1000,             /* sleep between two tests of a flag */
    ITEMS = 2800,
    WORK_US = 400,              /* per item, in each of the two threads */
    TWIN_PIECES = 3900,
    TWIN_PIECE_US = 1000,
    TICK_US = 10000,
    BOOKKEEPING_US = 1000,
};

struct mailbox {
    _Atomic bool full;
    sem_t filled;
    uint64_t value;
};

static struct {
    enum variant variant;
    uint64_t items, make_us, finish_us, twin_pieces;
} plan;

static struct mailbox request, reply;
static _Atomic uint64_t progress;
static volatile uint64_t ledger;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.items = vary(&state, ITEMS, 20);
    plan.make_us = vary(&state, WORK_US, 40);
    plan.finish_us = vary(&state, WORK_US, 40);
    plan.twin_pieces = vary(&state, TWIN_PIECES, 20);
}

static void put(struct mailbox *box, uint64_t value)
{
    box->value = value;
    atomic_store(&box->full, true);
    if (plan.variant == FIXED)
        sem_post(&box->filled);
}

static uint64_t take(struct mailbox *box)
{
    if (plan.variant == FIXED) {
        while (sem_wait(&box->filled) != 0)
            continue;
    } else {
        while (!atomic_load(&box->full))
            usleep(POLL_US);
    }
    uint64_t value = box->value;
    atomic_store(&box->full, false);
    return value;
}

/* Finishes the items that the main thread makes, and returns them. */
static void *finisher(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < plan.items; i++)
        put(&reply, work_us(take(&request), plan.finish_us));
    return NULL;
}

/* Makes an item while the other thread finishes the one before. */
static uint64_t hand_over_items(void)
{
    sem_init(&request.filled, 0, 0);
    sem_init(&reply.filled, 0, 0);
    pthread_t thread = start_thread(finisher, NULL);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plan.items; i++) {
        uint64_t item = work_us(i, plan.make_us);
        if (i > 0)
            sum += take(&reply);
        put(&request, item);
    }
    sum += take(&reply);
    join_thread(thread);
    return sum;
}

/* Writes the progress of the main thread into a ledger, in regular intervals. */
static void *housekeeper(void *unused)
{
    (void)unused;
    struct timespec tick;
    clock_gettime(CLOCK_MONOTONIC, &tick);
    while (atomic_load(&progress) < plan.twin_pieces) {
        ledger = work_us(ledger + atomic_load(&progress), BOOKKEEPING_US);
        wait_tick(&tick, TICK_US);
    }
    return NULL;
}

static uint64_t compute_with_housekeeping(void)
{
    pthread_t thread = start_thread(housekeeper, NULL);
    uint64_t value = 1;
    for (uint64_t i = 0; i < plan.twin_pieces; i++) {
        value = work_us(value, TWIN_PIECE_US);
        atomic_store(&progress, i + 1);
    }
    join_thread(thread);
    return value;
}

int main(int argc, char **argv)
{
    make_plan(start("flag_poll", argc, argv));
    print_checksum(plan.variant == TWIN ? compute_with_housekeeping() : hand_over_items());
    return 0;
}
