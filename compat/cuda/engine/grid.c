/* SPDX-License-Identifier: Apache-2.0 */
/* The caller of kl_engine_run takes blocks itself, and helpers take blocks of whatever grids run: as many as there are cores, made when
 * they are needed, gone when for a while they are not. A cooperative grid has a thread for each block instead. */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/children.h"
#include "compat/cuda/engine/fault.h"
#include "compat/cuda/engine/variables.h"
#include "compat/cuda/engine/worker.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { IDLE_MS = 200, HELPERS_MAX = 512, SHARED_MAX = 1 << 20 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct kl_grid *grids;
    unsigned helpers, idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

void kl_grid_add_tail(struct kl_grid *grid, struct kl_child *child)
{
    (void)pthread_mutex_lock(&pool.lock);
    kl_children_add(&grid->tails, child);
    (void)pthread_mutex_unlock(&pool.lock);
}

/* ---- blocks ---- */

static int run_with_tails(const struct kl_engine_launch *launch, unsigned depth);

static int run_children(struct kl_worker *w, const struct kl_grid *grid)
{
    struct kl_child *child;
    int error = KL_CUDA_SUCCESS;

    while (!error && (child = kl_children_take(&w->children))) {
        error = run_with_tails(&child->launch, grid->depth + 1);
        free(child);
    }
    return error;
}

static void run_block(struct kl_worker *w, struct kl_grid *grid, uint64_t block)
{
    int error;

    w->grid = grid;
    if (grid->launch->enter) grid->launch->enter(grid->launch);
    error = kl_block_run(w, block);
    if (grid->launch->leave) grid->launch->leave(grid->launch);
    if (!error) error = run_children(w, grid);
    if (error) (void)kl_grid_fail(grid, error);
    kl_children_drop(&w->children);
}

static void run_blocks(struct kl_grid *grid)
{
    struct kl_worker *w = kl_worker_take(grid->launch->shared_bytes);
    struct kl_fault_guard guard;
    uint64_t block;

    if (!w) { /* another thread may have a worker: it is an error only without any */
        if (kl_load_relaxed(&grid->next) == 0) (void)kl_grid_fail(grid, KL_CUDA_MEMORY);
        return;
    }
    kl_fault_enter(&guard, w->signal_stack);
    while (!kl_grid_failed(grid) && (block = kl_fetch_add_relaxed(&grid->next, 1)) < grid->blocks)
        run_block(w, grid, block);
    kl_fault_leave(&guard);
    kl_worker_give(w);
}

static bool has_blocks(const struct kl_grid *grid)
{
    return kl_load_relaxed(&grid->next) < grid->blocks && !kl_grid_failed(grid);
}

/* ---- helpers ---- */

static struct kl_grid *grid_with_blocks(void)
{
    struct kl_grid *grid = pool.grids;

    while (grid && !has_blocks(grid)) grid = grid->link;
    return grid;
}

/* Under the lock, which does not keep others from taking the last block of a grid: it is looked for once. NULL: nothing has come for a while. */
static struct kl_grid *wait_for_grid(void)
{
    struct kl_grid *grid;
    struct timespec until;
    int rc = 0;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += IDLE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pool.idle++;
    while (!(grid = grid_with_blocks()) && rc != ETIMEDOUT) rc = pthread_cond_timedwait(&pool.work, &pool.lock, &until);
    pool.idle--;
    return grid;
}

static void *help(void *nothing)
{
    struct kl_grid *grid;

    (void)prctl(PR_SET_NAME, "kolo-kernels");
    (void)pthread_mutex_lock(&pool.lock);
    while ((grid = wait_for_grid())) {
        grid->helpers++;
        (void)pthread_mutex_unlock(&pool.lock);
        run_blocks(grid);
        (void)pthread_mutex_lock(&pool.lock);
        if (--grid->helpers == 0) (void)pthread_cond_broadcast(&pool.done);
    }
    pool.helpers--;
    (void)pthread_mutex_unlock(&pool.lock);
    return nothing;
}

/* Signals of the program are for its own threads; an exception of a kernel comes to the thread that caused it. */
static bool start_thread(void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int rc;

    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)sigdelset(&all, SIGBUS);
    (void)sigdelset(&all, SIGFPE);
    (void)sigdelset(&all, SIGILL);
    (void)sigdelset(&all, SIGTRAP);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, &attributes, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return rc == 0;
}

static unsigned cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* Under the lock: wake or make helpers until `wanted` are there that have nothing to do. */
static void call_helpers(uint64_t wanted, unsigned limit)
{
    for (unsigned i = 0; i < wanted && i < pool.idle; i++) (void)pthread_cond_signal(&pool.work);
    for (uint64_t have = pool.idle; have < wanted && pool.helpers < limit; have++) {
        if (!start_thread(help, NULL)) return;
        pool.helpers++;
    }
}

static void add_worker(struct kl_grid *grid)
{
    if (grid->together || !has_blocks(grid)) return;
    (void)pthread_mutex_lock(&pool.lock);
    call_helpers(1, HELPERS_MAX);
    (void)pthread_mutex_unlock(&pool.lock);
}

/* After a fork the child has no helpers, and the state that they held is undefined. */
static void forget_helpers(void)
{
    pool.grids = NULL;
    pool.helpers = pool.idle = 0;
    (void)pthread_mutex_init(&pool.lock, NULL);
    (void)pthread_cond_init(&pool.work, NULL);
    (void)pthread_cond_init(&pool.done, NULL);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_helpers);
}

/* ---- ordinary grids ---- */

static void unlink_grid(struct kl_grid *grid)
{
    struct kl_grid **at = &pool.grids;

    while (*at != grid) at = &(*at)->link;
    *at = grid->link;
}

static void run_shared(struct kl_grid *grid)
{
    unsigned others = cores() - 1;

    (void)pthread_mutex_lock(&pool.lock);
    grid->link = pool.grids;
    pool.grids = grid;
    call_helpers(grid->blocks - 1 < others ? grid->blocks - 1 : others, others);
    (void)pthread_mutex_unlock(&pool.lock);

    run_blocks(grid);

    (void)pthread_mutex_lock(&pool.lock);
    unlink_grid(grid);
    while (grid->helpers) (void)pthread_cond_wait(&pool.done, &pool.lock);
    (void)pthread_mutex_unlock(&pool.lock);
}

/* ---- cooperative grids ---- */

/* Do not wait for a finished block. */
static void leave_grid(struct kl_grid *grid)
{
    (void)pthread_mutex_lock(&grid->lock);
    grid->live--;
    if (grid->waiting && grid->waiting >= grid->live) {
        grid->waiting = 0;
        grid->turn++;
    }
    (void)pthread_cond_broadcast(&grid->moved);
    (void)pthread_mutex_unlock(&grid->lock);
}

/* The number of a block that this thread is to run. */
static uint64_t take_block(struct kl_grid *grid, struct kl_worker *w)
{
    uint64_t number = kl_fetch_add_relaxed(&grid->next, 1);

    if (!kl_cluster_blocks(grid->launch)) return number;
    w->thread_pointer = __builtin_thread_pointer();
    kl_store_release(&grid->members[number], w);
    return kl_cluster_block(grid->launch, grid->cluster, number);
}

static void run_one_of_all(struct kl_grid *grid)
{
    struct kl_worker *w = kl_worker_take(grid->launch->shared_bytes);
    struct kl_fault_guard guard;

    if (w) {
        kl_fault_enter(&guard, w->signal_stack);
        if (!kl_grid_failed(grid)) run_block(w, grid, take_block(grid, w));
        kl_fault_leave(&guard);
    } else {
        (void)kl_grid_fail(grid, KL_CUDA_MEMORY);
    }
    leave_grid(grid);
    if (w) kl_worker_give(w);
}

static void *run_when_open(void *arg)
{
    struct kl_grid *grid = arg;

    (void)prctl(PR_SET_NAME, "kolo-kernels");
    (void)pthread_mutex_lock(&grid->lock);
    while (!grid->open) (void)pthread_cond_wait(&grid->moved, &grid->lock);
    (void)pthread_mutex_unlock(&grid->lock);
    run_one_of_all(grid);
    (void)pthread_mutex_lock(&pool.lock);
    if (--grid->helpers == 0) (void)pthread_cond_broadcast(&pool.done);
    (void)pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static void run_together(struct kl_grid *grid)
{
    uint64_t threads = 1;

    (void)pthread_mutex_init(&grid->lock, NULL);
    (void)pthread_cond_init(&grid->moved, NULL);
    grid->live = grid->blocks;
    while (threads < grid->blocks && start_thread(run_when_open, grid)) threads++;
    if (threads < grid->blocks) kl_store_relaxed(&grid->error, KL_CUDA_COOPERATIVE);

    (void)pthread_mutex_lock(&pool.lock);
    grid->helpers += (unsigned)(threads - 1);
    (void)pthread_mutex_unlock(&pool.lock);
    (void)pthread_mutex_lock(&grid->lock);
    grid->open = true;
    (void)pthread_cond_broadcast(&grid->moved);
    (void)pthread_mutex_unlock(&grid->lock);
    run_one_of_all(grid);

    (void)pthread_mutex_lock(&pool.lock);
    while (grid->helpers) (void)pthread_cond_wait(&pool.done, &pool.lock);
    (void)pthread_mutex_unlock(&pool.lock);
    (void)pthread_cond_destroy(&grid->moved);
    (void)pthread_mutex_destroy(&grid->lock);
}

/* One cluster after the other. */
static void run_clusters(struct kl_grid *grid)
{
    const uint64_t clusters = grid->blocks / kl_cluster_blocks(grid->launch);

    grid->blocks = kl_cluster_blocks(grid->launch);
    for (grid->cluster = 0; grid->cluster < clusters && !kl_grid_failed(grid); grid->cluster++) {
        kl_store_relaxed(&grid->next, 0);
        grid->waiting = grid->turn = 0;
        grid->open = false;
        for (unsigned i = 0; i < KL_CLUSTER_BLOCKS; i++) kl_store_relaxed(&grid->members[i], NULL);
        run_together(grid);
    }
}

/* ---- entry points ---- */

static bool within(struct kl_engine_dim d, uint64_t x, uint64_t y, uint64_t z)
{
    return d.x && d.y && d.z && d.x <= x && d.y <= y && d.z <= z;
}

bool kl_engine_possible(const struct kl_engine_launch *l)
{
    return within(l->grid, INT32_MAX, 65535, 65535) && within(l->block, 1024, 1024, 64) &&
           (uint64_t)l->block.x * l->block.y * l->block.z <= KL_BLOCK_THREADS && l->shared_bytes <= SHARED_MAX &&
           l->device >= 0 && l->device < KL_ENGINE_DEVICES && kl_cluster_blocks(l) <= KL_CLUSTER_BLOCKS;
}

/* The grid with all that its blocks launch, but for those that come behind it: these are in *tails then. */
static int run_grid(const struct kl_engine_launch *launch, unsigned depth, struct kl_children *tails)
{
    struct kl_grid grid = {.launch = launch, .add_worker = add_worker, .depth = depth};

    grid.blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    grid.together = grid.blocks > 1 && (launch->cooperative || kl_cluster_blocks(launch) > 1);
    if (grid.blocks == 1)
        run_blocks(&grid);
    else if (kl_cluster_blocks(launch) > 1)
        run_clusters(&grid);
    else if (launch->cooperative)
        run_together(&grid);
    else
        run_shared(&grid);
    *tails = grid.tails;
    return kl_load_acquire(&grid.error);
}

/* A grid has ended when those that it launched behind it have: theirs come before its next one. */
static int run_with_tails(const struct kl_engine_launch *launch, unsigned depth)
{
    struct kl_children queue, tails;
    struct kl_child *child;
    int error = run_grid(launch, depth, &queue);

    while (!error && (child = kl_children_take(&queue))) {
        error = run_grid(&child->launch, depth, &tails);
        kl_children_put_first(&queue, &tails);
        free(child);
    }
    kl_children_drop(&queue);
    return error;
}

int kl_engine_run(const struct kl_engine_launch *launch)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc, pending = __koloPending;

    if (!kl_engine_possible(launch)) return KL_CUDA_CONFIGURATION;
    (void)pthread_once(&once, watch_forks);
    rc = kl_variables_prepare(launch->device);
    if (rc) return rc;
    kl_fault_watch();
    __koloPending =
        0; /* a thread that waits for a stream may be about to launch: the kernels that run meanwhile are no part of it */
    rc = run_with_tails(launch, 0);
    __koloPending = pending;
    return rc;
}
