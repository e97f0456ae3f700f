"""An OpenMP runtime whose threads take turns in a given order, each from one barrier to the next.

What one thread does between two barriers is done before the next one begins. So results that depend on a barrier which
is not there are wrong in one of the two orders, every time.
"""

from pathlib import Path

from c_programs import STRICT, ran, tool

_SOURCE = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 1 << 20, MOST = 64 };

/* The network calls these; who runs it reads how many turns there were. */
void GOMP_parallel(void (*task)(void *), void *data, unsigned count, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
extern int turns;
int turns = 0;

static ucontext_t scheduler, fibres[MOST];
static void (*entry)(void *);
static void *argument;
static int threads = 1, left, running, has_begun[MOST], is_done[MOST];

int omp_get_thread_num(void) { return running; }

/* Asked once at the start of the region and once in every barrier, which no thread passes before the others are there:
   that is so when its turn is over, and a barrier of no threads waits for none. */
int omp_get_num_threads(void) {
  if (!has_begun[running]) {
    has_begun[running] = 1;
    return threads;
  }
  swapcontext(&fibres[running], &scheduler);
  return 0;
}

static void run(void) {
  entry(argument);
  is_done[running] = 1;
  swapcontext(&fibres[running], &scheduler);
}

void GOMP_parallel(void (*task)(void *), void *data, unsigned count, unsigned flags) {
  const char *order = getenv("THREAD_ORDER");
  const int is_down = order && !strcmp(order, "down");
  char *stacks = malloc((size_t)count * STACK);
  (void)flags;
  if (!stacks || count > MOST)
    abort();
  entry = task, argument = data, threads = left = (int)count;
  for (int i = 0; i < threads; i++) {
    has_begun[i] = is_done[i] = 0;
    getcontext(&fibres[i]);
    fibres[i].uc_stack.ss_sp = stacks + (size_t)i * STACK;
    fibres[i].uc_stack.ss_size = STACK;
    makecontext(&fibres[i], run, 0);
  }
  while (left) {
    turns++;
    for (int i = 0; i < threads; i++) {
      running = is_down ? threads - 1 - i : i;
      if (is_done[running])
        continue;
      swapcontext(&scheduler, &fibres[running]);
      left -= is_done[running];
    }
  }
  running = 0;
  free(stacks);
}
"""


def ordered_runtime(folder: Path) -> Path:
    """The runtime, built in `folder`; the environment variable `THREAD_ORDER` is ``up`` or ``down``."""
    source, library = folder / "ordered_runtime.c", folder / "ordered_runtime.so"
    source.write_text(_SOURCE)
    ran(tool("cc"), "-std=gnu11", *STRICT, "-O1", "-shared", "-fPIC", source, "-o", library, folder=folder)
    return library
