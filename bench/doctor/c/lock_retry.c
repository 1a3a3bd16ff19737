/*
 * Fault (lock-polling): three processes update a record in a file under a lock. They ask for it
 * with F_SETLK; if another process has it, they sleep 3 ms and try again. While they sleep, the
 * lock becomes free, and nobody uses it.
 * fixed: F_SETLKW, so the kernel wakes a waiter when the lock is free.
 * twin: a server waits in poll without a time-out for a client that thinks 10 ms. It waits nearly
 * all the time, but it wakes up as soon as there is a request.
 */
#include "common.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

enum {
    PROCESSES = 3,
    RETRY_US = 3000,            /* sleep after a failed attempt */
    HOLD_US = 300,              /* work while the process has the lock */
    OUTSIDE_US = 200,           /* work between two locks */
    UPDATES = 2600,             /* per process */
    TWIN_REQUESTS = 375,
    THINK_US = 10000,
    ANSWER_US = 300,
    PATH_BYTES = 4096,
};

struct record {
    uint64_t updates;
    uint64_t sum;
};

static struct {
    enum variant variant;
    uint64_t updates, hold_us, outside_us, requests, think_us;
} plan;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.hold_us = vary(&state, HOLD_US, 20);
    plan.outside_us = vary(&state, OUTSIDE_US, 30);
    plan.updates = vary(&state, UPDATES, 15);
    plan.requests = vary(&state, TWIN_REQUESTS, 10);
    plan.think_us = vary(&state, THINK_US, 10);
}

/* The file has no name any more when this returns, so it goes away with its last process. */
static int open_record_file(void)
{
    char path[PATH_BYTES];
    const char *directory = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/lock_retry.XXXXXX", directory ? directory : "/tmp");
    int fd = mkstemp(path);
    require(fd >= 0, "mkstemp");
    unlink(path);
    struct record empty = { 0, 0 };
    require(pwrite(fd, &empty, sizeof empty, 0) == sizeof empty, "pwrite");
    return fd;
}

static void lock_record(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = sizeof(struct record) };
    if (plan.variant == FIXED) {
        require(fcntl(fd, F_SETLKW, &lock) == 0, "fcntl");
        return;
    }
    while (fcntl(fd, F_SETLK, &lock) != 0) {
        require(errno == EAGAIN || errno == EACCES, "fcntl");
        sleep_us(RETRY_US);
    }
}

static void unlock_record(int fd)
{
    struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = sizeof(struct record) };
    require(fcntl(fd, F_SETLK, &lock) == 0, "fcntl");
}

static void update_record(int fd, uint64_t number)
{
    for (uint64_t i = 0; i < plan.updates; i++) {
        struct record record;
        uint64_t value = work_us(number * plan.updates + i, plan.outside_us);
        lock_record(fd);
        require(pread(fd, &record, sizeof record, 0) == sizeof record, "pread");
        record.updates++;
        record.sum += work_us(value, plan.hold_us);
        require(pwrite(fd, &record, sizeof record, 0) == sizeof record, "pwrite");
        unlock_record(fd);
    }
}

static uint64_t run_processes(void)
{
    int fd = open_record_file();
    pid_t children[PROCESSES];
    for (unsigned p = 0; p < PROCESSES; p++) {
        children[p] = start_child();
        if (children[p] == 0) {
            update_record(fd, p);
            _exit(0);
        }
    }
    for (unsigned p = 0; p < PROCESSES; p++)
        wait_child(children[p]);
    struct record record;
    require(pread(fd, &record, sizeof record, 0) == sizeof record, "pread");
    return record.sum + record.updates;
}

/* Thinks, asks, waits for the answer; then closes the connection. */
static void run_client(int fd)
{
    for (uint64_t i = 0; i < plan.requests; i++) {
        uint64_t message = i;
        sleep_us((long)plan.think_us);
        write_all(fd, &message, sizeof message);
        require(read_all(fd, &message, sizeof message), "read");
    }
}

static uint64_t serve(int fd)
{
    uint64_t sum = 0;
    for (;;) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        require(poll(&poll_fd, 1, -1) == 1, "poll");
        uint64_t message;
        if (!read_all(fd, &message, sizeof message))
            return sum;
        message = work_us(message, ANSWER_US);
        sum += message;
        write_all(fd, &message, sizeof message);
    }
}

static uint64_t run_server_and_client(void)
{
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    pid_t child = start_child();
    if (child == 0) {
        close(ends[0]);
        run_client(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    uint64_t sum = serve(ends[0]);
    wait_child(child);
    return sum;
}

int main(int argc, char **argv)
{
    make_plan(start("lock_retry", argc, argv));
    print_checksum(plan.variant == TWIN ? run_server_and_client() : run_processes());
    return 0;
}
