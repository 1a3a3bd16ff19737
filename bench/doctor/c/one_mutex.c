/*
 * Fault (lock-contention): four threads update one table under one mutex, and they compute each
 * new value inside the critical section. So about one thread runs, the others wait for the mutex.
 * fixed: the threads compute outside and hold the mutex only for the update itself.
 * twin: eight workers wait on a condition variable for work that comes every 20 ms and takes
 * 2 ms. They wait long, but there is nothing to do, and the mutex is free nearly all the time.
 */
#include "common.h"

enum {
    THREADS = 4,
    TABLE_SLOTS = 1024,
    WORK_US = 40,               /* per update */
    TOTAL_WORK_US = 4100000,    /* of all threads */
    TWIN_WORKERS = 8,
    TWIN_JOBS = 195,
    JOB_PERIOD_US = 20000,
    JOB_US = 2000,
};

static struct {
    enum variant variant;
    uint64_t updates, work_us, jobs;
} plan;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_came = PTHREAD_COND_INITIALIZER;
static uint64_t table[TABLE_SLOTS];
static uint64_t jobs_made, jobs_taken;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.work_us = vary(&state, WORK_US, 40);
    plan.updates = vary(&state, TOTAL_WORK_US, 18) / plan.work_us / THREADS;
    plan.jobs = vary(&state, TWIN_JOBS, 20);
    if (options.variant == TWIN)
        plan.work_us = JOB_US;
}

static void update_inside(uint64_t item)
{
    pthread_mutex_lock(&mutex);
    table[item % TABLE_SLOTS] += work_us(item, plan.work_us);
    pthread_mutex_unlock(&mutex);
}

static void update_outside(uint64_t item)
{
    uint64_t value = work_us(item, plan.work_us);
    pthread_mutex_lock(&mutex);
    table[item % TABLE_SLOTS] += value;
    pthread_mutex_unlock(&mutex);
}

static void *updater(void *argument)
{
    uint64_t first = (uint64_t)(uintptr_t)argument * plan.updates;
    for (uint64_t i = 0; i < plan.updates; i++) {
        if (plan.variant == SICK)
            update_inside(first + i);
        else
            update_outside(first + i);
    }
    return NULL;
}

/* Takes jobs until all of the plan are taken. */
static void *pool_worker(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (jobs_taken == jobs_made && jobs_taken < plan.jobs)
            pthread_cond_wait(&job_came, &mutex);
        uint64_t job = jobs_taken;
        if (job < plan.jobs)
            jobs_taken++;
        pthread_mutex_unlock(&mutex);
        if (job == plan.jobs)
            return NULL;
        update_outside(job);
    }
}

/* Adds a job per period. When the last one is there, all workers wake up and end. */
static void make_jobs(void)
{
    struct timespec tick;
    clock_gettime(CLOCK_MONOTONIC, &tick);
    for (uint64_t i = 0; i < plan.jobs; i++) {
        wait_tick(&tick, JOB_PERIOD_US);
        pthread_mutex_lock(&mutex);
        jobs_made++;
        if (jobs_made == plan.jobs)
            pthread_cond_broadcast(&job_came);
        else
            pthread_cond_signal(&job_came);
        pthread_mutex_unlock(&mutex);
    }
}

int main(int argc, char **argv)
{
    make_plan(start("one_mutex", argc, argv));
    bool twin = plan.variant == TWIN;
    unsigned count = twin ? TWIN_WORKERS : THREADS;
    pthread_t threads[TWIN_WORKERS];
    for (unsigned t = 0; t < count; t++)
        threads[t] = start_thread(twin ? pool_worker : updater, (void *)(uintptr_t)t);
    if (twin)
        make_jobs();
    for (unsigned t = 0; t < count; t++)
        join_thread(threads[t]);
    uint64_t checksum = 0;
    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        checksum = mix(checksum + table[i], 1);
    print_checksum(checksum);
    return 0;
}
