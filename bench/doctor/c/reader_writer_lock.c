/*
 * Fault (lock-contention): threads compute a histogram. They take one reader-writer lock for
 * writing around most of their work, so about one of them runs and the others wait.
 * fixed: each thread has a private histogram, and the main thread adds them at the end.
 * twin: two threads compute, and every 5 ms each adds one value to the common histogram. They
 * use the same lock in the same way, but they hold it only for a moment.
 */
#include "common.h"

enum {
    MAX_THREADS = 5,
    TWIN_THREADS = 2,
    BUCKETS = 256,
    STEP_US = 60,               /* work per step, inside and outside of the lock */
    INSIDE_PERCENT = 90,        /* part of the step inside of the lock */
    TOTAL_WORK_US = 4500000,    /* of all threads */
    TWIN_STEPS = 780,
    TWIN_STEP_US = 5000,
};

static struct {
    enum variant variant;
    unsigned threads;
    uint64_t steps, outside_us, inside_us;
} plan;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t common_histogram[BUCKETS];
static uint64_t private_histograms[MAX_THREADS][BUCKETS];

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    uint64_t step_us = vary(&state, STEP_US, 40);
    plan.variant = options.variant;
    plan.threads = (unsigned)vary(&state, 4, 25);
    plan.inside_us = step_us * vary(&state, INSIDE_PERCENT, 5) / 100;
    plan.outside_us = step_us - plan.inside_us;
    plan.steps = vary(&state, TOTAL_WORK_US, 18) / step_us / plan.threads;
    if (options.variant == TWIN) {
        plan.threads = TWIN_THREADS;
        plan.outside_us = TWIN_STEP_US;
        plan.inside_us = 0;
        plan.steps = vary(&state, TWIN_STEPS, 20);
    }
}

static void *worker(void *argument)
{
    uint64_t number = (uint64_t)(uintptr_t)argument;
    bool is_private = plan.variant == FIXED;
    uint64_t *histogram = is_private ? private_histograms[number] : common_histogram;
    for (uint64_t i = 0; i < plan.steps; i++) {
        uint64_t value = work_us(number * plan.steps + i, plan.outside_us);
        if (!is_private)
            pthread_rwlock_wrlock(&lock);
        value = work_us(value, plan.inside_us);
        histogram[value % BUCKETS] += value;
        if (!is_private)
            pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

static uint64_t merge(void)
{
    uint64_t checksum = 0;
    for (unsigned b = 0; b < BUCKETS; b++) {
        uint64_t bucket = common_histogram[b];
        for (unsigned t = 0; t < MAX_THREADS; t++)
            bucket += private_histograms[t][b];
        checksum = mix(checksum + bucket, 1);
    }
    return checksum;
}

int main(int argc, char **argv)
{
    make_plan(start("reader_writer_lock", argc, argv));
    pthread_t threads[MAX_THREADS];
    for (unsigned t = 0; t < plan.threads; t++)
        threads[t] = start_thread(worker, (void *)(uintptr_t)t);
    for (unsigned t = 0; t < plan.threads; t++)
        join_thread(threads[t]);
    print_checksum(merge());
    return 0;
}
