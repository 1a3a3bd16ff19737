/*
 * Two threads that compute, and meet at a barrier about every 10 ms. The work is fixed.
 *
 * Usage: compute
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { THREADS = 2, PHASES = 600, ROUNDS = 4000000 };

static pthread_barrier_t barrier;

static void *run(void *argument)
{
    uint64_t value = (uintptr_t)argument;
    for (int phase = 0; phase < PHASES; phase++) {
        for (int i = 0; i < ROUNDS; i++)
            value = (value ^ (value >> 29)) * UINT64_C(0xBF58476D1CE4E5B9) + 0x632BE5AB;
        pthread_barrier_wait(&barrier);
    }
    return (void *)(uintptr_t)value;
}

int main(void)
{
    pthread_t threads[THREADS];
    uintptr_t sum = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *value;
        pthread_join(threads[i], &value);
        sum += (uintptr_t)value;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
