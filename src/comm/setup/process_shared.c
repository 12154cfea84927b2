/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/process_shared.h"

#include "base/clock.h"
#include "base/fork_lock.h"
#include "comm/comm.h"
#include "graph/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBER_MS = 600000 }; /* for ranks that are late */

/* ---- the shared states that still wait for members ---- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_process_shared *waiting; /* under list_lock */

KL_FORK_LOCK(list_lock, waiting = NULL); /* a child does not have the other threads, which were joining */

static struct kl_process_shared *find(uint64_t job, uint64_t host)
{
    for (struct kl_process_shared *w = waiting; w; w = w->next)
        if (w->job == job && w->host == host) return w;
    return NULL;
}

static void unlist(struct kl_process_shared *shared)
{
    for (struct kl_process_shared **w = &waiting; *w; w = &(*w)->next)
        if (*w == shared) {
            *w = shared->next;
            return;
        }
}

/* ---- life ---- */

static void init_lock(struct kl_process_shared *w)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static void forget_domain(struct kl_domain *d)
{
    kl_graphs_fini(&d->graphs);
    kl_topo_free(d->topo);
}

static void destroy(struct kl_process_shared *w)
{
    for (int i = 0; i < w->ndomains; i++) forget_domain(&w->domain[i]);
    free(w->domain);
    free(w->domain_of);
    free(w->record);
    kl_rank_map_fini(&w->rank_map);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static ncclResult_t create(const struct kl_peer *peers, int nranks, int rank, struct kl_process_shared **shared)
{
    struct kl_peer *copy = malloc((size_t)nranks * sizeof *copy);
    struct kl_process_shared *w = calloc(1, sizeof *w);

    if (!w || !copy) {
        free(copy);
        free(w);
        return KL_NOMEM("the data shared by the ranks of a process");
    }
    memcpy(copy, peers, (size_t)nranks * sizeof *copy);
    w->job = peers[0].job;
    w->host = peers[rank].host;
    init_lock(w);
    ncclResult_t rc = kl_rank_map_init(&w->rank_map, copy, nranks);
    if (rc) {
        destroy(w);
        return rc;
    }
    w->process = w->rank_map.process[rank];
    w->members = kl_rank_map_members(&w->rank_map, w->process);
    w->local_ranks = kl_rank_map_local_ranks(&w->rank_map, rank);
    w->one_memory = true;
    for (int r = 0; r < nranks; r++) w->one_memory &= kl_peers_share_memory(&copy[r], &copy[0]);
    w->fabric_ranks = kl_rank_map_fabric_ranks(&w->rank_map, rank);
    w->ranks_per_cpu = kl_rank_map_ranks_per_cpu(&w->rank_map, rank);
    w->most_ranks_per_cpu = kl_rank_map_most_ranks_per_cpu(&w->rank_map);
    w->next = waiting;
    waiting = w;
    *shared = w;
    return ncclSuccess;
}

/* Forget the ranks that never joined a shared state that the others left. Under list_lock. */
static void free_abandoned(void)
{
    for (struct kl_process_shared **link = &waiting; *link;) {
        struct kl_process_shared *w = *link;
        pthread_mutex_lock(&w->lock);
        bool forget = w->left == w->joined && w->forgotten && kl_deadline_passed(w->forgotten);
        pthread_mutex_unlock(&w->lock);
        if (!forget) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        destroy(w);
    }
}

/* Under list_lock. */
static ncclResult_t join(const struct kl_peer *peers, int nranks, int rank, struct kl_process_shared **shared)
{
    free_abandoned();
    struct kl_process_shared *w = find(peers[0].job, peers[rank].host);

    if (!w) KL_TRY(create(peers, nranks, rank, &w));
    pthread_mutex_lock(&w->lock);
    bool complete = ++w->joined == w->members;
    pthread_mutex_unlock(&w->lock);
    if (complete) unlist(w);
    *shared = w;
    return ncclSuccess;
}

ncclResult_t kl_process_shared_join(const struct kl_peer *peers, int nranks, int rank,
                                    struct kl_process_shared **shared)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&list_lock);
    ncclResult_t rc = join(peers, nranks, rank, shared);
    pthread_mutex_unlock(&list_lock);
    return rc;
}

/* Under its lock. A rank that leaves while others have not joined yet has failed: they learn it when they join. */
static void fail_late_joiners(struct kl_process_shared *w)
{
    if (w->failed) return;
    w->failed = ncclRemoteError;
    snprintf(w->text, sizeof w->text, "another rank of this process has failed, and left");
}

/* A shared state that all have left, before others came, stays for them: in a new one they would wait for departed ranks. */
void kl_process_shared_leave(struct kl_process_shared *w)
{
    if (!w) return;
    pthread_mutex_lock(&list_lock);
    pthread_mutex_lock(&w->lock);
    bool last = ++w->left == w->joined, listed = w->joined < w->members;
    if (listed) fail_late_joiners(w);
    if (listed && last) w->forgotten = kl_deadline_in_ms(REMEMBER_MS);
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_unlock(&list_lock);
    if (last && !listed) destroy(w);
}

/* ---- stages ---- */

enum {
    TIMEOUT_FACTOR = 4,  /* factor: stages hold few exchanges, each of which may take KOLO_BOOTSTRAP_TIMEOUT */
    LOOK_NS = 100000000, /* period of checks for a failure from elsewhere */
};

/* Is this rank the leader of its process? */
static bool speaks(const struct ncclComm *comm)
{
    const struct kl_process_shared *w = comm->shared;

    return kl_rank_map_leader(&w->rank_map, w->process) == comm->rank;
}

bool kl_process_shared_has_rank(const struct kl_process_shared *w, int64_t rank)
{
    return rank >= 0 && rank < w->rank_map.nranks && w->rank_map.process[rank] == w->process;
}

struct kl_subgroup kl_process_shared_leaders(const struct ncclComm *comm, const bool *with, int32_t *list)
{
    const struct kl_process_shared *w = comm->shared;
    struct kl_subgroup subgroup = {.bootstrap = comm->bootstrap, .rank = list};

    for (int p = 0; p < w->rank_map.nprocesses; p++) {
        if (with && !with[p]) continue;
        if (p == w->process) subgroup.own = subgroup.n;
        list[subgroup.n++] = kl_rank_map_leader(&w->rank_map, p);
    }
    return subgroup;
}

/* Sleep until something changes, or the period has passed; under lock. */
static void wait_a_little(struct kl_process_shared *w)
{
    uint64_t until = kl_now_ns() + LOOK_NS;
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};

    pthread_cond_timedwait(&w->changed, &w->lock, &t);
}

static ncclResult_t give_up(ncclComm_t comm, const char *whom)
{
    return KL_FAIL(ncclRemoteError,
                   "rank %d waited %g s for %s of its process; see whether their threads are stuck, or raise "
                   "KOLO_BOOTSTRAP_TIMEOUT",
                   comm->rank, TIMEOUT_FACTOR * (double)comm->config.bootstrap_timeout_s, whom);
}

static uint64_t stage_deadline(ncclComm_t comm)
{
    return kl_deadline_in_ms(TIMEOUT_FACTOR * 1000 * (uint64_t)comm->config.bootstrap_timeout_s);
}

/* The leader's failure is the communicator's here as well, and the leader notifies the other processes. */
static ncclResult_t fail_as_leader(ncclComm_t comm, ncclResult_t rc, const char *text)
{
    kl_comm_fail(comm, kl_rank_map_leader(&comm->shared->rank_map, comm->shared->process), rc, text, false);
    return kl_comm_failure(comm);
}

static ncclResult_t await_stage(ncclComm_t comm, int stage)
{
    struct kl_process_shared *w = comm->shared;
    uint64_t deadline = stage_deadline(comm);
    char text[KL_ERROR_TEXT];

    pthread_mutex_lock(&w->lock);
    while (w->done <= stage && !w->failed && !kl_comm_failure(comm) && !kl_deadline_passed(deadline)) wait_a_little(w);
    bool done = w->done > stage;
    ncclResult_t failed = w->failed;
    if (failed) memcpy(text, w->text, sizeof text);
    pthread_mutex_unlock(&w->lock);
    if (done) return ncclSuccess;
    if (failed) return fail_as_leader(comm, failed, text);
    KL_TRY(kl_comm_failure(comm));
    return give_up(comm, "the first rank");
}

static bool has_failed(struct kl_process_shared *w)
{
    pthread_mutex_lock(&w->lock);
    bool failed = w->failed;
    pthread_mutex_unlock(&w->lock);
    return failed;
}

static ncclResult_t run_stage(ncclComm_t comm, ncclResult_t (*run)(ncclComm_t comm))
{
    struct kl_process_shared *w = comm->shared;
    ncclResult_t rc = run(comm);

    pthread_mutex_lock(&w->lock);
    if (rc) {
        w->failed = rc;
        snprintf(w->text, sizeof w->text, "%s", kl_error_text());
    } else
        w->done++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

ncclResult_t kl_process_shared_stage(ncclComm_t comm, enum kl_process_shared_stage stage,
                                     ncclResult_t (*run)(ncclComm_t comm))
{
    return speaks(comm) && !has_failed(comm->shared) ? run_stage(comm, run) : await_stage(comm, (int)stage);
}

void kl_process_shared_record_ready(struct kl_process_shared *w)
{
    pthread_mutex_lock(&w->lock);
    if (++w->arrived == w->members) pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

ncclResult_t kl_process_shared_await_records(ncclComm_t comm)
{
    struct kl_process_shared *w = comm->shared;
    uint64_t deadline = stage_deadline(comm);

    pthread_mutex_lock(&w->lock);
    while (w->arrived < w->members && !kl_comm_failure(comm) && !kl_deadline_passed(deadline)) wait_a_little(w);
    bool all = w->arrived == w->members;
    pthread_mutex_unlock(&w->lock);
    if (all) return ncclSuccess;
    KL_TRY(kl_comm_failure(comm));
    return give_up(comm, "the other ranks");
}
