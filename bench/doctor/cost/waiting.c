/*
 * Threads that mostly wait: each waits on a condition variable of its own with a time limit, or in
 * epoll_wait, and wakes by that limit.
 *
 * Usage: waiting THREADS PERIOD_MS SECONDS. Prints "ready" once all threads have started.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 16384 };

static long period_ms;

static void require(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void wait_on_condition(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += period_ms % 1000 * 1000000;
        until.tv_sec += period_ms / 1000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&condition, &mutex, &until);
    }
}

static void wait_in_epoll(void)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    require(epoll >= 0, "epoll_create1");
    for (;;)
        epoll_wait(epoll, &event, 1, (int)period_ms);
}

static void *run(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    /* The threads do not wake at the same time. */
    usleep((useconds_t)(number * 7919 % 1000 * (uint64_t)(period_ms < 1000 ? period_ms : 1000)));
    /* Thousands of threads need no descriptors. */
    if (number % 2 == 0 || number > 1000)
        wait_on_condition();
    wait_in_epoll();
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: waiting THREADS PERIOD_MS SECONDS\n");
        return 2;
    }
    long threads = atol(argv[1]);
    period_ms = atol(argv[2]);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        errno = pthread_create(&thread, &attributes, run, (void *)(uintptr_t)i);
        require(errno == 0, "pthread_create");
    }
    puts("ready");
    fflush(stdout);
    sleep((unsigned)atol(argv[3]));
    return 0;
}
