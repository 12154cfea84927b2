/* SPDX-License-Identifier: Apache-2.0 */
/**
 * children.c - communicators made of others.
 */
#include "api/api.h"
#include "api/create.h"
#include "comm/setup/children.h"
#include "comm/queue/group.h"

#include <stdlib.h>
#include <string.h>

struct making {
    struct kl_deferred call; /* first: the group frees it by this address */
    struct kl_child child;
    int color, key, nranks;
    bool abort, has_id;
    ncclUniqueId id;
    int nexcluded, excluded[];
};

static void drop(struct kl_deferred *call)
{
    kl_job_cancel(call->comm);
}

static ncclResult_t config_for(struct ncclComm *parent, const ncclConfig_t *config, const char *function,
                               struct kl_nccl_config *nccl_config)
{
    *nccl_config = parent->nccl_config;
    return config ? kl_nccl_config_read(config, function, nccl_config) : ncclSuccess;
}

/* The parent is entered and busy: run the call as its job, or leave if there is none. */
static ncclResult_t prepare(struct ncclComm *parent, ncclComm_t *user, const ncclConfig_t *config, int nexcluded,
                            const char *function, struct making **out)
{
    struct kl_nccl_config nccl_config;
    ncclResult_t rc = config_for(parent, config, function, &nccl_config);
    struct making *m = rc ? NULL : calloc(1, sizeof *m + (size_t)nexcluded * sizeof m->excluded[0]);

    if (!rc && !m) rc = KL_NOMEM("a communicator's creation");
    if (rc) {
        kl_job_cancel(parent);
        return rc;
    }
    m->call = (struct kl_deferred){.drop = drop, .comm = parent, .background = !parent->blocking};
    m->child = (struct kl_child){.parent = parent, .nccl_config = nccl_config, .user = user};
    *out = m;
    return ncclSuccess;
}

/* ---- split ---- */

static ncclResult_t run_split(struct kl_deferred *call)
{
    struct making *m = (struct making *)call;

    return kl_comm_split(&m->child, m->color, m->key);
}

static ncclResult_t check_split(struct ncclComm *parent, int color)
{
    KL_TRY(kl_comm_failure_unless_revoked(parent));
    if (kl_load_relaxed(&parent->finalized))
        return KL_FAIL(ncclInvalidArgument, "ncclCommSplit: the communicator was finalized");
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        return KL_FAIL(ncclInvalidArgument, "ncclCommSplit: colour %d; it is at least 0, or NCCL_SPLIT_NOCOLOR", color);
    return ncclSuccess;
}

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, const ncclConfig_t *config)
{
    struct ncclComm *parent;
    struct making *m;

    if (!newcomm) return KL_FAIL(ncclInvalidArgument, "ncclCommSplit: the result pointer is NULL");
    kl_comm_publish(newcomm, NULL);
    KL_TRY(kl_job_begin(comm, KL_BUSY_CHILD, "ncclCommSplit", &parent));
    ncclResult_t rc = check_split(parent, color);
    if (rc) {
        kl_job_cancel(parent);
        return rc;
    }
    KL_TRY(prepare(parent, newcomm, config, 0, "ncclCommSplit", &m));
    m->call.run = run_split;
    m->color = color;
    m->key = key;
    return kl_group_call(&m->call);
}

KL_PNCCL(ncclCommSplit);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
    return kl_group_keep_error(split(comm, color, key, newcomm, config));
}

/* ---- shrink ---- */

static ncclResult_t run_shrink(struct kl_deferred *call)
{
    struct making *m = (struct making *)call;

    return kl_comm_shrink(&m->child, m->excluded, m->nexcluded, m->abort);
}

static ncclResult_t check_excluded(const struct ncclComm *parent, const int *excluded, int n)
{
    for (int i = 0; i < n; i++) {
        if (excluded[i] < 0 || excluded[i] >= parent->nranks)
            return KL_FAIL(ncclInvalidArgument, "ncclCommShrink: rank %d is to go; the communicator has 0 to %d",
                           excluded[i], parent->nranks - 1);
        if (excluded[i] == parent->rank)
            return KL_FAIL(ncclInvalidArgument, "ncclCommShrink: rank %d calls it, and is to go itself", parent->rank);
    }
    return ncclSuccess;
}

static ncclResult_t check_shrink(struct ncclComm *parent, const int *excluded, int n, int flags)
{
    if (flags != NCCL_SHRINK_ABORT) KL_TRY(kl_comm_failure_unless_revoked(parent));
    if (kl_load_relaxed(&parent->finalized))
        return KL_FAIL(ncclInvalidArgument, "ncclCommShrink: the communicator was finalized");
    return check_excluded(parent, excluded, n);
}

static ncclResult_t check_list(const ncclComm_t *newcomm, const int *excluded, int n, int flags)
{
    if (!newcomm) return KL_FAIL(ncclInvalidArgument, "ncclCommShrink: the result pointer is NULL");
    if (n < 1 || !excluded)
        return KL_FAIL(ncclInvalidArgument, "ncclCommShrink: the list of ranks that are to go is empty");
    if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
        return KL_FAIL(ncclInvalidArgument,
                       "ncclCommShrink: flags %d; there are NCCL_SHRINK_DEFAULT and "
                       "NCCL_SHRINK_ABORT",
                       flags);
    return ncclSuccess;
}

static ncclResult_t shrink(ncclComm_t comm, const int *excluded, int n, ncclComm_t *newcomm, const ncclConfig_t *config,
                           int flags)
{
    struct ncclComm *parent;
    struct making *m;

    if (newcomm) kl_comm_publish(newcomm, NULL);
    KL_TRY(check_list(newcomm, excluded, n, flags));
    KL_TRY(kl_job_begin(comm, KL_BUSY_CHILD, "ncclCommShrink", &parent));
    ncclResult_t rc = check_shrink(parent, excluded, n, flags);
    if (rc) {
        kl_job_cancel(parent);
        return rc;
    }
    KL_TRY(prepare(parent, newcomm, config, n, "ncclCommShrink", &m));
    m->call.run = run_shrink;
    m->abort = flags == NCCL_SHRINK_ABORT;
    m->nexcluded = n;
    memcpy(m->excluded, excluded, (size_t)n * sizeof *excluded);
    return kl_group_call(&m->call);
}

KL_PNCCL(ncclCommShrink);
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                            ncclConfig_t *config, int shrinkFlags)
{
    return kl_group_keep_error(shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
}

/* ---- grow ---- */

KL_PNCCL(ncclCommGetUniqueId);
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
    struct ncclComm *c;

    if (!uniqueId) return KL_FAIL(ncclInvalidArgument, "ncclCommGetUniqueId: the result pointer is NULL");
    KL_TRY(kl_comm_enter(comm, "ncclCommGetUniqueId", &c));
    ncclResult_t rc = kl_comm_create_grow_id(c, uniqueId);
    kl_handle_leave(c);
    return rc;
}

static ncclResult_t run_grow(struct kl_deferred *call)
{
    struct making *m = (struct making *)call;

    return kl_comm_grow(&m->child, m->nranks, m->has_id ? &m->id : NULL);
}

static ncclResult_t check_grow(struct ncclComm *parent, int nranks, int rank)
{
    KL_TRY(kl_comm_failure_unless_revoked(parent));
    if (kl_load_relaxed(&parent->finalized))
        return KL_FAIL(ncclInvalidArgument, "ncclCommGrow: the communicator was finalized");
    if (rank != -1)
        return KL_FAIL(ncclInvalidArgument, "ncclCommGrow: rank %d for one that has a rank already: -1 keeps it", rank);
    if (nranks <= parent->nranks)
        return KL_FAIL(ncclInvalidArgument, "ncclCommGrow: %d ranks, of a communicator that has %d", nranks,
                       parent->nranks);
    return ncclSuccess;
}

static ncclResult_t grow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm,
                         const ncclConfig_t *config)
{
    struct ncclComm *parent;
    struct making *m;

    KL_TRY(kl_job_begin(comm, KL_BUSY_CHILD, "ncclCommGrow", &parent));
    ncclResult_t rc = check_grow(parent, nranks, rank);
    if (rc) {
        kl_job_cancel(parent);
        return rc;
    }
    KL_TRY(prepare(parent, newcomm, config, 0, "ncclCommGrow", &m));
    m->call.run = run_grow;
    m->nranks = nranks;
    m->has_id = id != NULL;
    if (id) m->id = *id;
    return kl_group_call(&m->call);
}

KL_PNCCL(ncclCommGrow);
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                          ncclConfig_t *config)
{
    if (!newcomm) return kl_group_keep_error(KL_FAIL(ncclInvalidArgument, "ncclCommGrow: the result pointer is NULL"));
    kl_comm_publish(newcomm, NULL);
    if (comm) return kl_group_keep_error(grow(comm, nRanks, uniqueId, rank, newcomm, config));
    if (!uniqueId)
        return kl_group_keep_error(
            KL_FAIL(ncclInvalidArgument, "ncclCommGrow: a rank that joins needs the id of ncclCommGetUniqueId"));
    return kl_group_keep_error(kl_api_join(newcomm, nRanks, rank, uniqueId, config, "ncclCommGrow"));
}
