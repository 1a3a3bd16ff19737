/*
 * Fault (fork-storm): for each of thousands of items the program starts a helper program and
 * waits for its exit status. Here, the helper is `true`. The item itself takes microseconds; the
 * kernel spends its time on fork, exec, page faults and exit.
 * fixed: the program decides in its own process.
 * twin: the program starts two children that compute 2 s each, two times. A start costs nothing
 * compared with that.
 */
#include "common.h"

enum {
    ITEMS = 4000,
    WORK_US = 20,               /* per item, in the program itself */
    TWIN_WAVES = 2,
    TWIN_CHILDREN = 2,          /* per wave */
    TWIN_CHILD_US = 1950000,
    TWIN_PIECE_US = 1000,
};

#define HELPER "/bin/true"

static struct {
    enum variant variant;
    uint64_t items, work_us, child_us;
} plan;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.items = vary(&state, ITEMS, 20);
    plan.work_us = vary(&state, WORK_US, 40);
    plan.child_us = vary(&state, TWIN_CHILD_US, 20);
}

static void run_helper(void)
{
    pid_t child = start_child();
    if (child == 0) {
        execl(HELPER, HELPER, (char *)NULL);
        _exit(127);
    }
    wait_child(child);
}

static uint64_t process_items(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < plan.items; i++) {
        sum += work_us(i, plan.work_us);
        if (plan.variant == SICK)
            run_helper();
    }
    return sum;
}

/* Computes, and sends the result to the parent. */
static void compute_in_child(uint64_t value, int out)
{
    for (uint64_t done_us = 0; done_us < plan.child_us; done_us += TWIN_PIECE_US)
        value = work_us(value, TWIN_PIECE_US);
    write_all(out, &value, sizeof value);
}

static uint64_t run_wave(uint64_t wave, const int channel[2])
{
    pid_t children[TWIN_CHILDREN];
    for (uint64_t c = 0; c < TWIN_CHILDREN; c++) {
        children[c] = start_child();
        if (children[c] == 0) {
            compute_in_child(wave * TWIN_CHILDREN + c, channel[1]);
            _exit(0);
        }
    }
    uint64_t sum = 0;
    for (unsigned c = 0; c < TWIN_CHILDREN; c++) {
        uint64_t value;
        require(read_all(channel[0], &value, sizeof value), "read");
        sum += value;
    }
    for (unsigned c = 0; c < TWIN_CHILDREN; c++)
        wait_child(children[c]);
    return sum;
}

static uint64_t run_waves(void)
{
    int channel[2];
    require(pipe(channel) == 0, "pipe");
    uint64_t sum = 0;
    for (uint64_t wave = 0; wave < TWIN_WAVES; wave++)
        sum += run_wave(wave, channel);
    return sum;
}

int main(int argc, char **argv)
{
    make_plan(start("fork_exec", argc, argv));
    print_checksum(plan.variant == TWIN ? run_waves() : process_items());
    return 0;
}
