/* Repeats an operation of `contend lab run units/create` with n = 1, to compare it with the lab:
   units KIND MILLISECONDS [PROGRAM]. Prints the mean time of one operation in nanoseconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int null_device;
static const char *program;

static void work(void) {
  if (write(null_device, "x", 1) != 1) _exit(1);
}

static void await(pid_t pid) {
  int status;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    perror("a process");
    exit(1);
  }
}

static void forked(void) {
  pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  await(pid);
}

static void executed(void) {
  pid_t pid = fork();
  if (pid == 0) {
    char *const arguments[] = {"tiny", NULL};
    execve(program, arguments, environ);
    _exit(127);
  }
  await(pid);
}

static void *run(void *unused) {
  work();
  return unused;
}

static void threaded(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL)) {
    perror("a thread");
    exit(1);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words) {
  if (count < 3) return 2;
  null_device = open("/dev/null", O_WRONLY | O_CLOEXEC);
  program = count > 3 ? words[3] : "/bin/true";
  void (*operation)(void) = !strcmp(words[1], "fork")        ? forked
                            : !strcmp(words[1], "fork+exec") ? executed
                            : !strcmp(words[1], "thread")    ? threaded
                                                             : NULL;
  if (!operation) return 2;
  double limit = atof(words[2]) * 1e6;
  for (int i = 0; i < 50; i++) operation();
  double began = now(), ended;
  long done = 0;
  do {
    operation();
    done++;
    ended = now();
  } while (ended - began < limit);
  printf("%.1f\n", (ended - began) / done);
  return 0;
}
