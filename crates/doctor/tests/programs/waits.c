/* Makes a thread wait for each primitive of glibc and each kind of system call. The thread's name says
 * which. Ends with its standard input, as its child does. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held_recursive, held_robust, held_pi, held_shared;
static pthread_rwlock_t write_locked = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t read_locked = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first, shared_write_locked;
static pthread_barrier_t barrier, barrier_of_two;
static sem_t semaphore;
static pthread_t endless;
static int stream[2], full[2], channel[2], terminal, locked_file;
static pid_t child;

static struct timespec in_an_hour(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 3600;
    return time;
}

static void mutex(void) { pthread_mutex_lock(&held); }
static void recursive(void) { pthread_mutex_lock(&held_recursive); }
static void robust(void) { pthread_mutex_lock(&held_robust); }
static void inheriting(void) { pthread_mutex_lock(&held_pi); }
static void shared(void) { pthread_mutex_lock(&held_shared); }

static void mutex_timed(void) {
    struct timespec limit = in_an_hour(CLOCK_REALTIME);
    pthread_mutex_timedlock(&held, &limit);
}

static void mutex_clock(void) {
    struct timespec limit = in_an_hour(CLOCK_MONOTONIC);
    pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &limit);
}

static void read_lock(void) { pthread_rwlock_rdlock(&write_locked); }
static void write_lock(void) { pthread_rwlock_wrlock(&write_locked); }
static void drain_readers(void) { pthread_rwlock_wrlock(&read_locked); }

static void shared_write(void) { pthread_rwlock_wrlock(&shared_write_locked); }

/* A reader waits for a writer, which waits for a reader. */
static void writer_first(void) { pthread_rwlock_wrlock(&writers_first); }

static void behind_writer(void) {
    while (pthread_rwlock_tryrdlock(&writers_first) == 0) {
        pthread_rwlock_unlock(&writers_first);
        sched_yield();
    }
    pthread_rwlock_rdlock(&writers_first);
}

static void condition(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&own);
    for (;;) pthread_cond_wait(&never, &own);
}

static void condition_timed(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec limit = in_an_hour(CLOCK_REALTIME);
    pthread_mutex_lock(&own);
    pthread_cond_timedwait(&never, &own, &limit);
}

static void condition_clock(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec limit = in_an_hour(CLOCK_MONOTONIC);
    pthread_mutex_lock(&own);
    pthread_cond_clockwait(&never, &own, CLOCK_MONOTONIC, &limit);
}

static void semaphore_wait(void) { sem_wait(&semaphore); }

static void semaphore_timed(void) {
    struct timespec limit = in_an_hour(CLOCK_REALTIME);
    sem_timedwait(&semaphore, &limit);
}

static void barrier_first(void) { pthread_barrier_wait(&barrier); }
static void barrier_second(void) { pthread_barrier_wait(&barrier_of_two); }
static void join(void) { pthread_join(endless, NULL); }

static void nanoseconds(void) {
    struct timespec hour = {.tv_sec = 3600};
    nanosleep(&hour, NULL);
}

static void until(void) {
    struct timespec limit = in_an_hour(CLOCK_MONOTONIC);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &limit, NULL);
}

static void poll_one(void) {
    struct pollfd one = {.fd = stream[0], .events = POLLIN};
    poll(&one, 1, -1);
}

static void poll_none(void) { poll(NULL, 0, 3600 * 1000); }

static void select_one(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(stream[0], &set);
    select(stream[0] + 1, &set, NULL, NULL, NULL);
}

static void epoll(void) {
    struct epoll_event event;
    epoll_wait(epoll_create1(0), &event, 1, -1);
}

static void read_pipe(void) {
    char byte;
    if (read(stream[0], &byte, 1) != 1) abort();
}

static void write_pipe(void) {
    static char much[1 << 20];
    if (write(full[1], much, sizeof much) != sizeof much) abort();
}

static void receive(void) {
    char byte;
    recv(channel[0], &byte, 1, 0);
}

static void accept_one(void) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(listener, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t));
    listen(listener, 1);
    accept(listener, NULL, NULL);
}

static void read_terminal(void) {
    char byte;
    if (read(terminal, &byte, 1) != 1) abort();
}

static void read_timer(void) {
    struct itimerspec hour = {.it_value.tv_sec = 3600};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t count;
    timerfd_settime(timer, 0, &hour, NULL);
    if (read(timer, &count, sizeof count) < 0) abort();
}

static void read_counter(void) {
    uint64_t count;
    if (read(eventfd(0, 0), &count, sizeof count) < 0) abort();
}

/* Opens the locked file a second time, because a lock does not exclude its own description. */
static int locked_again(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", locked_file);
    return open(path, O_RDWR);
}

static void lock_file(void) { flock(locked_again(), LOCK_EX); }

static void lock_record(void) {
    struct flock all = {.l_type = F_WRLCK};
    fcntl(locked_file, F_SETLKW, &all);
}

static void lock_description(void) {
    struct flock all = {.l_type = F_WRLCK};
    fcntl(locked_again(), F_OFD_SETLKW, &all);
}

static void child_end(void) { waitpid(child, NULL, 0); }

static void signal_wait(void) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigwait(&set, &number);
}

static const struct {
    const char *name;
    void (*wait)(void);
} waits[] = {
    {"mutex", mutex}, {"recursive", recursive}, {"robust", robust}, {"inheriting", inheriting},
    {"shared", shared}, {"mutex_timed", mutex_timed}, {"mutex_clock", mutex_clock},
    {"read_lock", read_lock}, {"write_lock", write_lock}, {"drain_readers", drain_readers},
    {"shared_write", shared_write}, {"writer_first", writer_first}, {"behind_writer", behind_writer},
    {"condition", condition}, {"cond_timed", condition_timed}, {"cond_clock", condition_clock},
    {"semaphore", semaphore_wait}, {"sem_timed", semaphore_timed}, {"barrier", barrier_first},
    {"barrier_second", barrier_second}, {"join", join}, {"nanosleep", nanoseconds},
    {"sleep_until", until}, {"poll", poll_one}, {"poll_none", poll_none}, {"select", select_one},
    {"epoll", epoll}, {"read_pipe", read_pipe}, {"write_pipe", write_pipe}, {"receive", receive},
    {"accept", accept_one}, {"terminal", read_terminal}, {"timerfd", read_timer},
    {"eventfd", read_counter}, {"flock", lock_file}, {"fcntl", lock_record},
    {"fcntl_ofd", lock_description}, {"child", child_end}, {"sigwait", signal_wait},
};

static void *run(void *index) {
    pthread_setname_np(pthread_self(), waits[(size_t)index].name);
    waits[(size_t)index].wait();
    /* Its name shows that it did not wait. */
    pthread_setname_np(pthread_self(), "returned");
    pause();
    return NULL;
}

static void *enter_barrier(void *unused) {
    pthread_barrier_wait(&barrier_of_two);
    return unused;
}

static void make_mutexes(void) {
    pthread_mutexattr_t recursive, robust, pi, shared;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&held_recursive, &recursive);
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&held_robust, &robust);
    pthread_mutexattr_init(&pi);
    pthread_mutexattr_setprotocol(&pi, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&held_pi, &pi);
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&held_shared, &shared);
}

static void make_locks(void) {
    pthread_rwlockattr_t shared, writer;
    pthread_rwlockattr_init(&shared);
    pthread_rwlockattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&shared_write_locked, &shared);
    pthread_rwlockattr_init(&writer);
    pthread_rwlockattr_setkind_np(&writer, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&writers_first, &writer);
    pthread_rwlock_wrlock(&write_locked);
    pthread_rwlock_rdlock(&read_locked);
    pthread_rwlock_wrlock(&shared_write_locked);
    pthread_rwlock_rdlock(&writers_first);
}

/* Starts a child that holds a record lock, which does not exclude threads of the same process. */
static void start_child(void) {
    int ready[2];
    char byte;
    if (pipe(ready) != 0) abort();
    child = fork();
    if (child == 0) {
        struct flock all = {.l_type = F_WRLCK};
        fcntl(locked_file, F_SETLK, &all);
        if (write(ready[1], "", 1) != 1) abort();
        while (read(0, &byte, 1) > 0) {}
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1) abort();
}

int main(void) {
    pthread_t thread;
    char byte;
    FILE *file = tmpfile();
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (!file || master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) abort();
    locked_file = fileno(file);
    terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (pipe(stream) != 0 || pipe(full) != 0) abort();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, channel) != 0) abort();
    start_child();
    flock(locked_file, LOCK_EX);
    make_mutexes();
    pthread_mutex_t *mutexes[] = {&held, &held_recursive, &held_robust, &held_pi, &held_shared};
    for (size_t i = 0; i < sizeof mutexes / sizeof *mutexes; i++) pthread_mutex_lock(mutexes[i]);
    make_locks();
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_barrier_init(&barrier_of_two, NULL, 2);
    pthread_create(&thread, NULL, enter_barrier, NULL);
    pthread_barrier_wait(&barrier_of_two);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        pthread_create(&thread, NULL, run, (void *)i);
        if (i == 0) endless = thread;
    }
    pthread_setname_np(pthread_self(), "main_pipe");
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
