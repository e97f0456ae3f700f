/* Threads that call a network of a shared library without an interpreter: what tools/deployment_tables.py compares with.
 *
 *     callers LIBRARY NAME THREADS SECONDS INPUT_BYTES OUTPUT_BYTES
 *
 * The network has one input and one output. Prints the calls a second of all threads together.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARGUMENTS = 7, MOST_THREADS = 64, LINE = 64, NAME_BYTES = 256 };

typedef int run_function(const void *const *, void *const *, void *);
typedef size_t size_function(void);

struct caller {
  pthread_t thread;
  run_function *run;
  void *input, *output, *workspace;
  long calls;
};

static pthread_barrier_t start;
static atomic_int has_ended;

static void fail(const char *what) {
  fprintf(stderr, "callers: %s\n", what);
  exit(1);
}

static void *memory(size_t bytes) {
  size_t size = (bytes / LINE + 1) * LINE;
  void *found = aligned_alloc(LINE, size);
  if (!found) fail("out of memory");
  return memset(found, 1, size);
}

static void *symbol(void *library, const char *name, const char *suffix) {
  char full[NAME_BYTES];
  snprintf(full, sizeof full, "%s_%s", name, suffix);
  void *found = dlsym(library, full);
  if (!found) fail(dlerror());
  return found;
}

static void *call(void *argument) {
  struct caller *caller = argument;
  const void *inputs[] = {caller->input};
  void *outputs[] = {caller->output};
  caller->run(inputs, outputs, caller->workspace);
  pthread_barrier_wait(&start);
  while (!atomic_load_explicit(&has_ended, memory_order_relaxed)) {
    caller->run(inputs, outputs, caller->workspace);
    caller->calls++;
  }
  return NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
  if (count != ARGUMENTS) fail("usage: callers LIBRARY NAME THREADS SECONDS INPUT_BYTES OUTPUT_BYTES");
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library) fail(dlerror());
  int threads = atoi(arguments[3]);
  if (threads < 1 || threads > MOST_THREADS) fail("THREADS must be from 1 to 64");
  run_function *run = (run_function *)symbol(library, arguments[2], "run");
  size_t workspace = ((size_function *)symbol(library, arguments[2], "workspace_size"))();
  struct caller callers[MOST_THREADS] = {0};
  pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    callers[i].run = run;
    callers[i].input = memory(strtoul(arguments[5], NULL, 10));
    callers[i].output = memory(strtoul(arguments[6], NULL, 10));
    callers[i].workspace = memory(workspace);
    if (pthread_create(&callers[i].thread, NULL, call, &callers[i])) fail("cannot start a thread");
  }
  pthread_barrier_wait(&start);
  double seconds = atof(arguments[4]), began = now();
  struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&pause, NULL);
  atomic_store(&has_ended, 1);
  double taken = now() - began;
  long calls = 0;
  for (int i = 0; i < threads; i++) {
    pthread_join(callers[i].thread, NULL);
    calls += callers[i].calls;
  }
  printf("%.17g\n", (double)calls / taken);
  return 0;
}
