/*
 * Fault (lock-step): a parent prepares items and a child computes them. Each item is a request
 * of 16 bytes over one pipe and a reply of 16 bytes over another, and the parent waits for the
 * reply before it goes on. Only one process runs at any time, and the hand-overs dominate.
 * fixed: batches of 1000 items. The parent prepares a batch while the child computes another.
 * twin: the parent thinks 5 ms between two requests, and an answer takes 0.2 ms. The pattern is
 * the same, but the think time decides the pace.
 */
#include "common.h"

enum {
    ITEMS = 120000,
    PREPARE_US = 4,             /* per item, in the parent */
    COMPUTE_US = 4,             /* per item, in the child */
    BATCH = 1000,               /* items per message in the fixed variant */
    TWIN_REQUESTS = 720,
    THINK_US = 5000,
    ANSWER_US = 200,
};

struct item {
    uint64_t index;
    uint64_t value;
};

static struct {
    enum variant variant;
    uint64_t items, batch, prepare_us, compute_us, think_us;
} plan;

static int to_child[2], to_parent[2];

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.items = vary(&state, ITEMS, 20);
    plan.prepare_us = vary(&state, PREPARE_US, 40);
    plan.compute_us = vary(&state, COMPUTE_US, 40);
    plan.batch = options.variant == FIXED ? BATCH : 1;
    if (options.variant == TWIN) {
        plan.items = vary(&state, TWIN_REQUESTS, 10);
        plan.think_us = vary(&state, THINK_US, 10);
        plan.compute_us = ANSWER_US;
    }
}

static size_t batch_size(uint64_t first)
{
    uint64_t rest = plan.items - first;
    return rest < plan.batch ? rest : plan.batch;
}

static void serve(void)
{
    static struct item items[BATCH];
    for (uint64_t first = 0; first < plan.items; first += plan.batch) {
        size_t size = batch_size(first);
        require(read_all(to_child[0], items, size * sizeof items[0]), "read");
        for (size_t i = 0; i < size; i++)
            items[i].value = work_us(items[i].value, plan.compute_us);
        write_all(to_parent[1], items, size * sizeof items[0]);
    }
}

static void prepare_and_send(uint64_t first)
{
    static struct item items[BATCH];
    size_t size = batch_size(first);
    for (size_t i = 0; i < size; i++) {
        items[i].index = first + i;
        items[i].value = work_us(first + i, plan.prepare_us);
    }
    write_all(to_child[1], items, size * sizeof items[0]);
}

static uint64_t receive(uint64_t first)
{
    static struct item items[BATCH];
    size_t size = batch_size(first);
    require(read_all(to_parent[0], items, size * sizeof items[0]), "read");
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += items[i].value ^ items[i].index;
    return sum;
}

/* One item at a time. The twin thinks before each. */
static uint64_t run_one_by_one(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plan.items; i++) {
        if (plan.think_us > 0)
            sleep_us((long)plan.think_us);
        prepare_and_send(i);
        sum += receive(i);
    }
    return sum;
}

/* Two batches are on the way, so that both processes have work. */
static uint64_t run_batches(void)
{
    uint64_t sum = 0;
    prepare_and_send(0);
    for (uint64_t first = 0; first < plan.items; first += plan.batch) {
        if (first + plan.batch < plan.items)
            prepare_and_send(first + plan.batch);
        sum += receive(first);
    }
    return sum;
}

int main(int argc, char **argv)
{
    make_plan(start("pipe_ping_pong", argc, argv));
    require(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipe");
    pid_t child = start_child();
    if (child == 0) {
        serve();
        _exit(0);
    }
    uint64_t checksum = plan.variant == FIXED ? run_batches() : run_one_by_one();
    wait_child(child);
    print_checksum(checksum);
    return 0;
}
