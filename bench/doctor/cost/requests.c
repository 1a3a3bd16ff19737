/*
 * A server with a thread for each connection, and clients that send their next request when the
 * last one is answered. An answer takes about 100 us of computing. The number of requests is fixed.
 *
 * Usage: requests
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 8, REQUESTS = 16000, ROUNDS = 40000, BYTES = 128 };

static void require(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void *serve(void *argument)
{
    int connection = (int)(intptr_t)argument;
    uint64_t message[BYTES / 8];
    while (recv(connection, message, BYTES, MSG_WAITALL) == BYTES) {
        for (int i = 0; i < ROUNDS; i++)
            message[0] = (message[0] ^ (message[0] >> 29)) * UINT64_C(0xBF58476D1CE4E5B9) + 1;
        require(send(connection, message, BYTES, 0) == BYTES, "send");
    }
    close(connection);
    return NULL;
}

static void *request(void *argument)
{
    int connection = (int)(intptr_t)argument;
    uint64_t message[BYTES / 8] = { 1 };
    for (int i = 0; i < REQUESTS; i++) {
        require(send(connection, message, BYTES, 0) == BYTES, "send");
        require(recv(connection, message, BYTES, MSG_WAITALL) == BYTES, "recv");
    }
    close(connection);
    return NULL;
}

int main(void)
{
    pthread_t threads[2 * CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        int ends[2];
        require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
        pthread_create(&threads[2 * i], NULL, serve, (void *)(intptr_t)ends[0]);
        pthread_create(&threads[2 * i + 1], NULL, request, (void *)(intptr_t)ends[1]);
    }
    for (int i = 0; i < 2 * CONNECTIONS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
