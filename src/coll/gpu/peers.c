/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/peers.h"

#include "base/clock.h"
#include "base/log.h"
#include "coll/gpu/far.h"
#include "coll/gpu/mover.h"
#include "coll/gpu/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATTERN = 4096, NAP_NS = 50000 };

/* Of a path. WRITTEN: its reads were right, and the other side is to look whether the writes arrived. */
enum outcome { UNKNOWN, WRITTEN, WORKS, NO_ACCESS, READS_WRONG, WRITES_LOST, LATE, OUTCOMES };
static const char *const outcomes[OUTCOMES] = {
    [UNKNOWN] = "was not tested by its process",
    [WRITTEN] = "was not verified by the other side",
    [WORKS] = "works",
    [NO_ACCESS] = "is not there: the driver gives no access",
    [READS_WRONG] = "is broken: reads are wrong",
    [WRITES_LOST] = "is broken: writes get lost, as by an IOMMU",
    [LATE] = "is broken: a kernel has not ended",
};

/** A GPU's memory for the test. */
struct probe {
    _Atomic uint32_t there; /* 1, or 2: it is not to be had */
    struct kl_gpu_export_handle exported;
};

struct board {
    struct probe probe[KL_CUDA_DEVICES];
    _Atomic uint32_t path[KL_CUDA_DEVICES][KL_CUDA_DEVICES]; /* enum outcome, from one to another */
    _Atomic uint32_t broken;                                 /* a process has failed */
    _Atomic uint32_t over;                                   /* processes that use no memory of others any more */
};

/* Of a worker: a pattern from each other GPU, with its own in its own place; then the patterns that it reads from each. */
struct test {
    struct kl_gpu_team *team;
    struct board *board;
    uint64_t at[KL_CUDA_DEVICES]; /* of the own GPUs' memory */
    uint64_t deadline;
    bool leaks; /* a kernel may still use the memory */
};

size_t kl_gpu_peers_bytes(void)
{
    return sizeof(struct board);
}

void kl_gpu_peers_leave(void *board)
{
    if (board) kl_store_release(&((struct board *)board)->broken, 1); /* pairs with await */
}

/* ---- waiting ---- */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Until the word is `least` at least; false: not in time. */
static bool await(const struct test *t, _Atomic uint32_t *word, uint32_t least)
{
    while (kl_load_acquire(word) < least) { /* pairs with the stores of other processes */
        if (kl_load_acquire(&t->board->broken) || kl_deadline_passed(t->deadline)) return false;
        nap();
    }
    return true;
}

/* Until the stream is done; false: not in time, and its work goes on. */
static bool drain(const struct kl_gpu_worker *w)
{
    const uint64_t deadline = kl_deadline_in_ms(KL_GPU_PEERS_MS);
    int rc;

    while ((rc = w->context->driver->cuStreamQuery(w->stream)) == KL_CU_NOT_READY && !kl_deadline_passed(deadline))
        nap();
    return !rc;
}

/* ---- patterns ---- */

static void fill(uint64_t *pattern, int worker)
{
    for (size_t i = 0; i < PATTERN / sizeof *pattern; i++)
        pattern[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)(worker + 1) << 32;
}

static bool copy(const struct kl_gpu_worker *w, uint64_t to, uint64_t from, size_t bytes)
{
    return !w->context->driver->cuMemcpyAsync(to, from, bytes, w->stream) && drain(w);
}

/* Is the pattern of a worker in this section of own memory? */
static bool holds(const struct kl_gpu_worker *w, uint64_t at, int worker)
{
    uint64_t there[PATTERN / sizeof(uint64_t)], wanted[PATTERN / sizeof(uint64_t)];

    memset(there, 0, sizeof there);
    fill(wanted, worker);
    return copy(w, (uint64_t)(uintptr_t)there, at, PATTERN) && !memcmp(there, wanted, PATTERN);
}

static uint64_t section(uint64_t at, int number)
{
    return at + (uint64_t)number * PATTERN;
}

/* ---- one path ---- */

static ncclResult_t start_probe(struct test *t, int number)
{
    const struct kl_gpu_worker *w = &t->team->worker[number];
    const struct kl_cuda_context *c = w->context;
    struct probe *p = &t->board->probe[number];
    uint64_t pattern[PATTERN / sizeof(uint64_t)];
    const int n = t->team->nworkers;

    KL_CUDA_TRY(c->driver, cuMemAlloc(&t->at[number], 2 * (size_t)n * PATTERN), "device %d", c->device);
    memset(pattern, 0, sizeof pattern);
    for (int i = 0; i < 2 * n; i++)
        if (!copy(w, section(t->at[number], i), (uint64_t)(uintptr_t)pattern, PATTERN))
            return KL_FAIL(ncclUnhandledCudaError, "device %d: a copy has not ended in %d ms", c->device,
                           KL_GPU_PEERS_MS);
    fill(pattern, number);
    if (!copy(w, section(t->at[number], number), (uint64_t)(uintptr_t)pattern, PATTERN))
        return KL_FAIL(ncclUnhandledCudaError, "device %d: a copy has not ended in %d ms", c->device, KL_GPU_PEERS_MS);
    const bool there = !t->team->far || kl_gpu_far_export(c, (const void *)(uintptr_t)t->at[number], &p->exported);
    kl_store_release(&p->there, there ? 1 : 2); /* pairs with reach */
    return ncclSuccess;
}

/* The other GPU's memory, as this one sees it; 0: it has no access. */
static uint64_t reach(struct test *t, int from, int to, bool *imported)
{
    const struct kl_gpu_worker *w = &t->team->worker[from], *other = &t->team->worker[to];
    struct probe *p = &t->board->probe[to];
    bool possible = false;
    uint64_t at = 0;

    *imported = false;
    if (t->at[to]) {
        if (kl_cuda_enable_peer(w->context, other->context, &possible)) return 0;
        return possible ? t->at[to] : 0;
    }
    if (!await(t, &p->there, 1) || kl_load_relaxed(&p->there) != 1) return 0;
    *imported = !w->context->driver->cuIpcOpenMemHandle(&at, p->exported.handle, KL_CU_IPC_PEER_ACCESS);
    return *imported ? at + p->exported.offset : 0;
}

static int launch_copy(const struct kl_gpu_worker *w, uint64_t to, uint64_t from)
{
    const struct kl_cuda_context *c = w->context;
    struct kl_gpu_job job = {.in = {from}, .out = {to}, .count = PATTERN, .ranks = 1, .unit = 16};
    void *arguments[] = {&job};

    return c->driver->cuLaunchKernel(c->function[KL_KERNEL_copy_gather], 1, 1, 1, KL_JOB_THREADS, 1, 1, 0, w->stream,
                                     arguments, NULL);
}

static enum outcome use(struct test *t, int from, int to, uint64_t there)
{
    const struct kl_gpu_worker *w = &t->team->worker[from];
    const uint64_t own = t->at[from], read = section(own, t->team->nworkers + to);

    if (w->context->driver->cuMemcpyAsync(read, section(there, to), PATTERN, w->stream) ||
        launch_copy(w, section(there, from), section(own, from)))
        return NO_ACCESS;
    if (!drain(w)) {
        t->leaks = true;
        return LATE;
    }
    return holds(w, read, to) ? WRITTEN : READS_WRONG;
}

static void test_path(struct test *t, int from, int to)
{
    bool imported;
    const uint64_t there = reach(t, from, to, &imported);
    const enum outcome outcome = there ? use(t, from, to, there) : NO_ACCESS;

    if (imported && !t->leaks)
        (void)t->team->worker[from].context->driver->cuIpcCloseMemHandle(there - t->board->probe[to].exported.offset);
    kl_store_release(&t->board->path[from][to], outcome); /* pairs with verify */
}

/* The receiving side: did the writes arrive? */
static void verify(struct test *t, int from, int to)
{
    _Atomic uint32_t *path = &t->board->path[from][to];

    if (!await(t, path, WRITTEN) || kl_load_relaxed(path) != WRITTEN) return;
    kl_store_release(path, holds(&t->team->worker[to], section(t->at[to], from), from) ? WORKS : WRITES_LOST);
}

/* ---- all paths ---- */

static bool is_own(const struct test *t, int number)
{
    return t->team->worker[number].submits;
}

static void for_paths(struct test *t, void (*step)(struct test *, int, int), bool by_receiver)
{
    for (int from = 0; from < t->team->nworkers; from++)
        for (int to = 0; to < t->team->nworkers; to++) {
            const int own = by_receiver ? to : from;
            if (from == to || !is_own(t, own) || kl_cuda_enter(t->team->worker[own].context)) continue;
            step(t, from, to);
            kl_cuda_leave(t->team->worker[own].context);
        }
}

static int rank_on(const struct kl_gpu_team *team, int worker)
{
    int r = 0;

    while (team->worker_of[r] != worker) r++;
    return r;
}

/* One process says it of each path. */
static bool judge(const struct test *t, int from, int to)
{
    _Atomic uint32_t *path = &t->board->path[from][to];

    (void)await(t, path, WORKS);
    const enum outcome outcome = (enum outcome)kl_load_acquire(path); /* pairs with verify */
    if (outcome == WORKS) return true;
    if (is_own(t, from))
        KL_INFO(KL_INIT | KL_P2P, "P2P from the GPU of rank %d to the GPU of rank %d %s", rank_on(t->team, from),
                rank_on(t->team, to), outcomes[outcome]);
    return false;
}

static bool judge_all(const struct test *t)
{
    bool work = true;

    for (int from = 0; from < t->team->nworkers; from++)
        for (int to = 0; to < t->team->nworkers; to++)
            if (from != to) work &= judge(t, from, to);
    return work;
}

/* When no process uses it any more. */
static void free_probes(struct test *t, bool over)
{
    for (int i = 0; i < t->team->nworkers; i++) {
        const struct kl_cuda_context *c = t->team->worker[i].context;
        if (!t->at[i] || !over || t->leaks || kl_cuda_enter(c)) continue;
        (void)c->driver->cuMemFree(t->at[i]);
        kl_cuda_leave(c);
    }
}

static ncclResult_t start_probes(struct test *t)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < t->team->nworkers && !rc; i++) {
        if (!is_own(t, i)) continue;
        KL_TRY(kl_cuda_enter(t->team->worker[i].context));
        rc = start_probe(t, i);
        kl_cuda_leave(t->team->worker[i].context);
    }
    return rc;
}

static ncclResult_t test(struct test *t, int nprocesses, bool *work)
{
    ncclResult_t rc = start_probes(t);

    if (rc) kl_gpu_peers_leave(t->board);
    if (!rc) {
        for_paths(t, test_path, false);
        for_paths(t, verify, true);
        *work = judge_all(t);
        if (kl_load_acquire(&t->board->broken))
            rc = KL_FAIL(ncclRemoteError, "another process has left the test of P2P");
    }
    (void)kl_fetch_add_acq_rel(&t->board->over, 1); /* pairs with await */
    free_probes(t, await(t, &t->board->over, (uint32_t)nprocesses));
    return rc;
}

ncclResult_t kl_gpu_peers_test(struct kl_gpu_team *team, int nprocesses, void *board, bool *work)
{
    const uint64_t timeout_ms = (uint64_t)KL_GPU_PEERS_MS * (uint64_t)team->nworkers;
    struct board *own = board ? NULL : calloc(1, sizeof *own);
    struct test t = {.team = team, .board = board ? board : own, .deadline = kl_deadline_in_ms(timeout_ms)};
    int mode = KL_CU_CAPTURE_RELAXED;
    const struct kl_cuda_driver *driver = team->worker[team->leader].context->driver;

    *work = false;
    if (!t.board) return KL_NOMEM("the test of P2P");
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode); /* another stream of the thread may capture */
    ncclResult_t rc = test(&t, nprocesses, work);
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    free(own);
    return rc;
}
