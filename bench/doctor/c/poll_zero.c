/*
 * Fault (lock-polling): a consumer has two queues, a rare control queue and a data queue. It
 * calls poll only for the control queue, with a time-out of 1 ms, and looks into the data queue
 * after that. Nearly all calls return 0. The producer waits for the answer to each item before
 * it makes the next one, so the late reaction decides the pace.
 * fixed: poll waits for both queues, without a time-out.
 * twin: a server waits with epoll for three clients that think. It reacts at once.
 */
#include "common.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    TIMEOUT_MS = 1,
    MAKE_US = 1300,             /* work of the producer per item */
    ANSWER_US = 200,            /* work of the consumer per item */
    ITEMS = 1750,
    CONTROL_INTERVAL = 100,     /* items between two control messages */
    TWIN_CLIENTS = 3,
    TWIN_REQUESTS = 440,        /* per client */
    THINK_US = 8000,
};

static struct {
    enum variant variant;
    uint64_t items, make_us, answer_us, requests, think_us;
} plan;

static uint64_t control_sum, data_sum;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.items = vary(&state, ITEMS, 20);
    plan.make_us = vary(&state, MAKE_US, 15);
    plan.answer_us = vary(&state, ANSWER_US, 40);
    plan.requests = vary(&state, TWIN_REQUESTS, 10);
    plan.think_us = vary(&state, THINK_US, 10);
}

static void produce(int control, int data)
{
    for (uint64_t i = 0; i < plan.items; i++) {
        uint64_t message = work_us(i, plan.make_us);
        if (i % CONTROL_INTERVAL == CONTROL_INTERVAL - 1)
            write_all(control, &i, sizeof i);
        write_all(data, &message, sizeof message);
        require(read_all(data, &message, sizeof message), "read");
    }
}

/* Returns false at the end of the control queue. */
static bool handle_control(int control)
{
    uint64_t message;
    if (!read_all(control, &message, sizeof message))
        return false;
    control_sum += message;
    return true;
}

/* Answers an item if there is one. */
static bool handle_data(int data)
{
    uint64_t message;
    ssize_t size = recv(data, &message, sizeof message, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN)
        return false;
    require(size == sizeof message, "recv");
    message = work_us(message, plan.answer_us);
    data_sum += message;
    write_all(data, &message, sizeof message);
    return true;
}

/* Sick: one descriptor and a time-out. Fixed: both descriptors, no time-out. */
static void consume(int control, int data)
{
    struct pollfd fds[2] = {
        { .fd = control, .events = POLLIN },
        { .fd = data, .events = POLLIN },
    };
    bool fixed = plan.variant == FIXED;
    for (uint64_t handled = 0; handled < plan.items;) {
        int ready = poll(fds, fixed ? 2 : 1, fixed ? -1 : TIMEOUT_MS);
        require(ready >= 0, "poll");
        if (fds[0].revents & POLLIN)
            handle_control(control);
        if (!fixed || (fds[1].revents & POLLIN))
            handled += handle_data(data);
    }
    while (handle_control(control))
        continue;
}

static uint64_t run_producer_and_consumer(void)
{
    int control[2], data[2];
    require(pipe(control) == 0, "pipe");
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, data) == 0, "socketpair");
    pid_t child = start_child();
    if (child == 0) {
        close(data[0]);
        produce(control[1], data[1]);
        _exit(0);
    }
    close(control[1]);
    close(data[1]);
    consume(control[0], data[0]);
    wait_child(child);
    return control_sum + data_sum;
}

static void run_client(int fd, uint64_t number)
{
    for (uint64_t i = 0; i < plan.requests; i++) {
        uint64_t message = number * plan.requests + i;
        sleep_us((long)(plan.think_us + number * 100));
        write_all(fd, &message, sizeof message);
        require(read_all(fd, &message, sizeof message), "read");
    }
}

/* Starts a client and adds its connection to the epoll set. */
static pid_t start_client(int epoll, uint64_t number)
{
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    pid_t child = start_child();
    if (child == 0) {
        close(ends[0]);
        run_client(ends[1], number);
        _exit(0);
    }
    close(ends[1]);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = ends[0] };
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0, "epoll_ctl");
    return child;
}

/* Answers requests until the last client closes its connection. */
static void serve_clients(int epoll)
{
    for (unsigned open_clients = TWIN_CLIENTS; open_clients > 0;) {
        struct epoll_event event;
        require(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
        int fd = event.data.fd;
        char probe;
        if (recv(fd, &probe, 1, MSG_PEEK) > 0) {
            handle_data(fd);
        } else {
            epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
            close(fd);
            open_clients--;
        }
    }
}

static uint64_t run_server_and_clients(void)
{
    int epoll = epoll_create1(0);
    require(epoll >= 0, "epoll_create1");
    pid_t children[TWIN_CLIENTS];
    for (uint64_t c = 0; c < TWIN_CLIENTS; c++)
        children[c] = start_client(epoll, c);
    serve_clients(epoll);
    for (unsigned c = 0; c < TWIN_CLIENTS; c++)
        wait_child(children[c]);
    return data_sum;
}

int main(int argc, char **argv)
{
    make_plan(start("poll_zero", argc, argv));
    if (plan.variant == TWIN)
        print_checksum(run_server_and_clients());
    else
        print_checksum(run_producer_and_consumer());
    return 0;
}
