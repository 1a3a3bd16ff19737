/*
 * Fault (lock-step): two threads take turns on a list of items. Each does a few microseconds of
 * work, then gives the token to the other with a mutex and a condition variable, and waits. Only
 * one thread runs at any time, and each hand-over costs more than the work.
 * fixed: each thread processes its own half, without hand-over.
 * twin: a client thread thinks 5 ms between two requests, a server thread answers in 0.2 ms.
 * Only one of them runs, too, but the think time decides the pace.
 */
#include "common.h"

enum {
    THREADS = 2,
    ITEMS = 300000,
    WORK_US = 5,                /* per item */
    TWIN_REQUESTS = 720,
    THINK_US = 5000,
    ANSWER_US = 200,
};

static struct {
    enum variant variant;
    uint64_t items, work_us, requests, think_us;
} plan;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turn;           /* the number of the thread that has the token */
static uint64_t message;

struct worker {
    unsigned number;
    uint64_t sum;
};

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.items = vary(&state, ITEMS, 20);
    plan.work_us = vary(&state, WORK_US, 40);
    plan.requests = vary(&state, TWIN_REQUESTS, 10);
    plan.think_us = vary(&state, THINK_US, 10);
}

static void wait_token(unsigned number)
{
    pthread_mutex_lock(&mutex);
    while (turn != number)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void give_token(unsigned number)
{
    pthread_mutex_lock(&mutex);
    turn = number;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Processes each second item. */
static void *worker_main(void *argument)
{
    struct worker *self = argument;
    uint64_t sum = 0;
    for (uint64_t i = self->number; i < plan.items; i += THREADS) {
        if (plan.variant == SICK)
            wait_token(self->number);
        sum += work_us(i, plan.work_us);
        if (plan.variant == SICK)
            give_token((self->number + 1) % THREADS);
    }
    self->sum = sum;
    return NULL;
}

static uint64_t process_items(void)
{
    struct worker workers[THREADS] = { { 0, 0 }, { 1, 0 } };
    pthread_t thread = start_thread(worker_main, &workers[1]);
    worker_main(&workers[0]);
    join_thread(thread);
    return workers[0].sum + workers[1].sum;
}

/* Has the number 1. Answers one request after the other. */
static void *server(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < plan.requests; i++) {
        wait_token(1);
        message = work_us(message, ANSWER_US);
        give_token(0);
    }
    return NULL;
}

static uint64_t request_with_think_time(void)
{
    pthread_t thread = start_thread(server, NULL);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plan.requests; i++) {
        sleep_us((long)plan.think_us);
        message = i;
        give_token(1);
        wait_token(0);
        sum += message;
    }
    join_thread(thread);
    return sum;
}

int main(int argc, char **argv)
{
    make_plan(start("condvar_ping_pong", argc, argv));
    print_checksum(plan.variant == TWIN ? request_with_think_time() : process_items());
    return 0;
}
