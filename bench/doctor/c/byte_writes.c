/*
 * Fault (tiny-io): the program makes a stream of bytes and writes one byte per system call. The
 * sink is the null device, so the calls themselves take nearly all the time.
 * fixed: a buffer of 64 KiB.
 * twin: messages of 1 byte to a child that sends each byte back, with a think time of 2 ms. The
 * calls are as small, but they are rare, and the think time decides the pace.
 */
#include "common.h"

#include <fcntl.h>

enum {
    BYTES = 16000000,
    BUFFER_BYTES = 65536,
    ROUNDS_PER_BYTE = 8,        /* mixing rounds to make one byte */
    TWIN_MESSAGES = 1750,
    THINK_US = 2000,
};

static struct {
    enum variant variant;
    uint64_t bytes, messages, think_us;
} plan;

static int to_child[2], to_parent[2];

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.bytes = vary(&state, BYTES, 20);
    plan.messages = vary(&state, TWIN_MESSAGES, 10);
    plan.think_us = vary(&state, THINK_US, 10);
}

static uint64_t write_stream(size_t buffer_bytes)
{
    static char buffer[BUFFER_BYTES];
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    require(sink >= 0, "open");
    uint64_t value = 1;
    size_t used = 0;
    for (uint64_t i = 0; i < plan.bytes; i++) {
        value = mix(value, ROUNDS_PER_BYTE);
        buffer[used++] = (char)value;
        if (used == buffer_bytes) {
            write_all(sink, buffer, used);
            used = 0;
        }
    }
    write_all(sink, buffer, used);
    close(sink);
    return value;
}

static void echo(void)
{
    char byte;
    close(to_child[1]);
    while (read_all(to_child[0], &byte, 1))
        write_all(to_parent[1], &byte, 1);
}

static uint64_t talk_with_think_time(void)
{
    require(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipe");
    pid_t child = start_child();
    if (child == 0) {
        echo();
        _exit(0);
    }
    uint64_t value = 1;
    for (uint64_t i = 0; i < plan.messages; i++) {
        char byte = (char)value;
        sleep_us((long)plan.think_us);
        write_all(to_child[1], &byte, 1);
        require(read_all(to_parent[0], &byte, 1), "read");
        value = mix(value + (unsigned char)byte, ROUNDS_PER_BYTE);
    }
    close(to_child[1]);
    wait_child(child);
    return value;
}

int main(int argc, char **argv)
{
    make_plan(start("byte_writes", argc, argv));
    if (plan.variant == TWIN)
        print_checksum(talk_with_think_time());
    else
        print_checksum(write_stream(plan.variant == SICK ? 1 : BUFFER_BYTES));
    return 0;
}
