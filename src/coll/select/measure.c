/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/measure.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/prefetch.h"
#include "device/host/bulk_copy.h"
#include "os/affinity.h"
#include "os/cma.h"
#include "os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Everything is measured some times, and the least counts: other ranks are not idle yet.
 *
 * LINE_MS      at most, for lines
 * EXCHANGES    of a line, of which a time is the mean
 * SMALL, LARGE bytes of a copy within a core's own cache, and of the kernel's shortest
 * MOST_OUT     bytes of each buffer beyond it
 * MOST_MS      after so much nothing more is begun
 */
enum { TIMES = 5, LINE_MS = 1, EXCHANGES = 64, SMALL = 4 << 10, LARGE = 128 << 10, MOST_OUT = 4 << 20, MOST_MS = 3 };

static uint64_t since(uint64_t began)
{
    return kl_now_ns() - began;
}

static uint32_t at_least_1(uint64_t n)
{
    return n > INT32_MAX ? INT32_MAX : n ? (uint32_t)n : 1;
}

/* ---- a line ---- */

/* Nobody waits for the other thread to end: it may not even have begun, where other ranks use its CPU. */
static struct line {
    alignas(KL_LINE) _Atomic uint64_t count; /* odd: the other's turn */
    alignas(KL_LINE) _Atomic bool runs;
    _Atomic bool ended;
    int cpu;
} line;

static void answer(void *arg)
{
    struct line *l = arg;
    struct kl_cpuset set = {0};

    kl_cpuset_add(&set, l->cpu);
    const bool pinned = !kl_affinity_pin(&set, NULL);
    kl_store_release(&l->runs, pinned); /* pairs with exchange_lines */
    while (pinned && !kl_load_relaxed(&l->ended)) {
        const uint64_t count = kl_load_acquire(&l->count); /* pairs with exchange */
        if (count % 2) kl_store_release(&l->count, count + 1);
    }
}

/* ns of a line; UINT64_MAX: the other thread does not answer. */
static uint64_t exchange(struct line *l, uint64_t deadline)
{
    const uint64_t began = kl_now_ns(), first = kl_load_relaxed(&l->count);
    uint64_t looks = 0;

    for (uint64_t count = first; count < first + 2 * (uint64_t)EXCHANGES; count += 2) {
        kl_store_release(&l->count, count + 1); /* pairs with answer */
        while (kl_load_acquire(&l->count) != count + 2)
            if (++looks % 1024 == 0 && kl_now_ns() > deadline) return UINT64_MAX;
    }
    return since(began) / (2 * (uint64_t)EXCHANGES);
}

static uint64_t exchange_lines(struct line *l)
{
    const uint64_t deadline = kl_now_ns() + (uint64_t)LINE_MS * 1000000u;
    uint64_t least = UINT64_MAX;

    while (!kl_load_acquire(&l->runs)) /* pairs with answer */
        if (kl_now_ns() > deadline) return UINT64_MAX;
    for (int i = 0; i < TIMES; i++) {
        const uint64_t ns = exchange(l, deadline);
        if (ns == UINT64_MAX) break; /* the line is not in order any more */
        if (ns < least) least = ns;
    }
    return least;
}

/* A CPU that is not this thread's; -1: there is none. */
static int other_cpu(void)
{
    const int own = sched_getcpu();
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (own < 0 || cpus < 2) return -1;
    return (int)((own + 1) % cpus);
}

static uint32_t measure_line(void)
{
    struct kl_cpuset own = {0}, before;

    line.cpu = other_cpu();
    if (line.cpu < 0) return 0;
    kl_cpuset_add(&own, sched_getcpu());
    if (kl_affinity_pin(&own, &before)) return 0;
    uint64_t ns = UINT64_MAX;
    if (!kl_thread_start_detached("kolo-measure", answer, &line)) ns = exchange_lines(&line);
    kl_store_relaxed(&line.ended, true);
    (void)kl_affinity_pin(&before, NULL);
    return ns == UINT64_MAX ? 0 : at_least_1(ns);
}

/* ---- copies ---- */

enum how { ORDINARY, NT, KERNEL };

struct copy {
    char *to, *from;
    struct kl_cma_process self;
    struct kl_cma_cache seen;
};

static bool copy_once(struct copy *c, enum how how, size_t bytes)
{
    if (how == KERNEL) return kl_cma_read(&c->self, &c->seen, c->to, (uint64_t)(uintptr_t)c->from, bytes);
    if (how == NT) {
        kl_copy_nontemporal(c->to, c->from, bytes, NULL);
        kl_nontemporal_fence();
    } else {
        kl_copy_bulk(c->to, c->from, bytes);
    }
    return true;
}

/* ns, the least; 0: it does not work. */
static uint64_t time_copy(struct copy *c, enum how how, size_t bytes, int times)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i <= times; i++) {
        const uint64_t began = kl_now_ns();
        if (!copy_once(c, how, bytes)) return 0;
        const uint64_t ns = since(began);
        if (i && ns < least) least = ns; /* the first one touches memory */
    }
    return least;
}

static uint32_t per_kib(uint64_t ns, size_t bytes)
{
    return at_least_1(ns / (bytes >> 10));
}

static void measure_cached(struct copy *c, struct kl_profile *p)
{
    const uint64_t small = time_copy(c, KERNEL, SMALL, TIMES), large = time_copy(c, KERNEL, LARGE, TIMES);

    p->copy_kib_ns = per_kib(time_copy(c, ORDINARY, LARGE, TIMES), LARGE);
    if (!small || !large) return;
    p->cma_kib_ns = large > small ? per_kib(large - small, LARGE - SMALL) : 1;
    p->cma_ns = at_least_1(small - (small > p->cma_kib_ns * (SMALL >> 10) ? p->cma_kib_ns * (SMALL >> 10) : 0));
}

/* More than a core's own cache holds; pages are huge where the system gives such. */
static void measure_beyond(struct copy *c, size_t bytes, struct kl_profile *p)
{
    p->out_kib_ns = per_kib(time_copy(c, ORDINARY, bytes, 1), bytes);
    p->nt_kib_ns = per_kib(time_copy(c, NT, bytes, 1), bytes);
    const uint64_t huge = time_copy(c, KERNEL, LARGE, TIMES);
    if (huge > p->cma_ns) p->huge_kib_ns = per_kib(huge - p->cma_ns, LARGE);
}

static void *map(size_t bytes, bool huge)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) return NULL;
    (void)madvise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return at;
}

static void measure_copies(struct kl_profile *p, size_t bytes, bool huge, uint64_t mark)
{
    char *memory = map(2 * bytes, huge);
    struct copy c = {.to = memory, .from = memory + bytes, .self = kl_cma_self(&mark)};

    if (!memory) return;
    memset(c.from, 1, bytes);
    if (huge)
        measure_beyond(&c, bytes, p);
    else
        measure_cached(&c, p);
    munmap(memory, 2 * bytes);
}

/* ---- all ---- */

static struct kl_profile measured;

static void measure(void)
{
    const size_t own = kl_cache_own_bytes(1), twice = 2 * own < MOST_OUT ? 2 * own : MOST_OUT;
    const uint64_t began = kl_now_ns(), mark = began ^ (uint64_t)(uintptr_t)&measured;
    const int quiet = kl_error_quiet(1);

    measured = (struct kl_profile){.own_kib = (uint32_t)(own >> 10),
                                   .last_kib = (uint32_t)(kl_cache_bytes() >> 10),
                                   .cpus = (uint32_t)kl_cache_cores(),
                                   .source = KL_PROFILE_MEASURED};
    measured.line_ns = measure_line();
    measure_copies(&measured, LARGE, false, mark);
    if (since(began) < (uint64_t)MOST_MS * 1000000u) measure_copies(&measured, twice, true, mark);
    kl_error_quiet(quiet);
}

struct kl_profile kl_profile_measured(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, measure);
    return measured;
}
