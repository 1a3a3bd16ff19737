/*
 * Fault (not-concurrency): each round maps 64 MB, touches every page and unmaps the memory. The
 * time goes into page faults and into the clearing of pages, not into waiting for other threads.
 * fixed: all rounds use one mapping.
 * twin: touches the memory once, then computes on it.
 */
#include "common.h"

#include <sys/mman.h>

enum {
    PAGE_BYTES = 4096,
    MAP_PAGES = 16384,          /* 64 MB */
    TOTAL_PAGES = 9000000,      /* page touches in all rounds */
    TWIN_US = 3800000,
    TWIN_STEP_US = 20,
};

static struct {
    enum variant variant;
    uint64_t pages, rounds, twin_steps;
} plan;

static void make_plan(struct options options)
{
    uint64_t state = random_start(options.seed);
    plan.variant = options.variant;
    plan.pages = vary(&state, MAP_PAGES, 40);
    plan.rounds = vary(&state, TOTAL_PAGES, 20) / plan.pages;
    plan.twin_steps = vary(&state, TWIN_US, 20) / TWIN_STEP_US;
}

/* Small pages, so that the number of page faults does not depend on the settings of the system. */
static unsigned char *map_pages(void)
{
    size_t size = plan.pages * PAGE_BYTES;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "mmap");
    madvise(memory, size, MADV_NOHUGEPAGE);
    return memory;
}

/* Writes a number into each page, then reads all of them. */
static uint64_t touch_pages(unsigned char *memory, uint64_t value)
{
    for (uint64_t page = 0; page < plan.pages; page++) {
        value = mix(value, 1);
        memcpy(memory + page * PAGE_BYTES, &value, sizeof value);
    }
    uint64_t sum = 0;
    for (uint64_t page = 0; page < plan.pages; page++) {
        memcpy(&value, memory + page * PAGE_BYTES, sizeof value);
        sum += value;
    }
    return sum;
}

static uint64_t run_rounds(void)
{
    unsigned char *memory = map_pages();
    uint64_t checksum = 0;
    for (uint64_t round = 0; round < plan.rounds; round++) {
        if (plan.variant == SICK && round > 0)
            memory = map_pages();
        checksum += touch_pages(memory, checksum + round);
        if (plan.variant == SICK)
            require(munmap(memory, plan.pages * PAGE_BYTES) == 0, "munmap");
    }
    return checksum;
}

/* Each step takes a number from a page that the step before chose. */
static uint64_t compute_on_pages(void)
{
    unsigned char *memory = map_pages();
    uint64_t value = touch_pages(memory, 1);
    for (uint64_t step = 0; step < plan.twin_steps; step++) {
        uint64_t stored;
        memcpy(&stored, memory + value % plan.pages * PAGE_BYTES, sizeof stored);
        value = work_us(value + stored, TWIN_STEP_US);
    }
    return value;
}

int main(int argc, char **argv)
{
    make_plan(start("page_faults", argc, argv));
    print_checksum(plan.variant == TWIN ? compute_on_pages() : run_rounds());
    return 0;
}
