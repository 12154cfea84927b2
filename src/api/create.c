/* SPDX-License-Identifier: Apache-2.0 */
/**
 * create.c - communicators that begin at a rendezvous: directly, at the end of the open group, or in the background.
 */
#include "api/create.h"

#include "api/api.h"
#include "api/param_sets.h"
#include "comm/setup/devices.h"
#include "comm/queue/group.h"

#include <stdlib.h>
#include <string.h>

/* ---- the call ---- */

struct creation {
    struct kl_deferred call; /* first: the group frees it */
    struct kl_comm_params params;
    ncclComm_t *user;
    ncclUniqueId ids[]; /* of struct kl_comm_params */
};

static ncclResult_t run_creation(struct kl_deferred *call)
{
    struct creation *c = (struct creation *)call;

    return kl_comm_complete(call->comm, &c->params, c->user);
}

static void drop_creation(struct kl_deferred *call)
{
    struct creation *c = (struct creation *)call;

    kl_bootstrap_decline(c->ids, c->params.nids, c->params.rank, c->params.nranks);
    kl_comm_discard(call->comm, c->user);
}

static void undo_creation(struct kl_deferred *call)
{
    struct creation *c = (struct creation *)call;

    kl_api_abort(*c->user, "ncclGroupEnd");
    kl_comm_publish(c->user, NULL);
}

/* The arguments and the ids are copied: the call may be made later. */
static ncclResult_t create(ncclComm_t *user, const struct kl_comm_params *params)
{
    struct creation *c = calloc(1, sizeof *c + (size_t)params->nids * sizeof c->ids[0]);

    if (!c) return KL_NOMEM("a communicator's creation");
    kl_param_sets_check_names();
    c->call = (struct kl_deferred){.run = run_creation, .undo = undo_creation, .drop = drop_creation};
    c->params = *params;
    c->params.ids = c->ids;
    c->user = user;
    memcpy(c->ids, params->ids, (size_t)params->nids * sizeof c->ids[0]);
    ncclResult_t rc = kl_comm_begin(&c->params, user, &c->call.comm);
    if (rc) {
        kl_bootstrap_decline(c->ids, params->nids, params->rank, params->nranks);
        free(c);
        return rc;
    }
    c->call.background = !c->call.comm->blocking;
    return kl_group_call(&c->call);
}

/* Several ranks that a thread creates in a group without choosing get a device each, whatever its current device
 * was. Without devices the creation fails. */
static int chosen_device(void)
{
    const struct kl_device_kind *devices;

    return kl_devices(&devices) ? -1 : devices->chosen(kl_group_open());
}

/* ---- one rank ---- */

static ncclResult_t check_ranks(const ncclComm_t *comm, int nranks, int rank, const char *function)
{
    if (!comm) return KL_FAIL(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    if (nranks < 1) return KL_FAIL(ncclInvalidArgument, "%s: %d ranks; there must be at least one", function, nranks);
    if (rank < 0 || rank >= nranks)
        return KL_FAIL(ncclInvalidArgument, "%s: rank %d of %d; ranks are 0 to %d", function, rank, nranks, nranks - 1);
    return ncclSuccess;
}

static ncclResult_t create_rank(ncclComm_t *comm, int nranks, int rank, const ncclUniqueId *ids, int nids,
                                const ncclConfig_t *config, const char *function)
{
    struct kl_comm_params params = {.ids = ids, .nids = nids, .nranks = nranks, .rank = rank};

    if (comm) kl_comm_publish(comm, NULL);
    KL_TRY(check_ranks(comm, nranks, rank, function));
    KL_TRY(kl_nccl_config_read(config, function, &params.nccl_config));
    params.device = chosen_device();
    return create(comm, &params);
}

ncclResult_t kl_api_join(ncclComm_t *comm, int nranks, int rank, const ncclUniqueId *id, const ncclConfig_t *config,
                         const char *function)
{
    return create_rank(comm, nranks, rank, id, 1, config, function);
}

KL_PNCCL(ncclCommInitRank);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    return kl_group_keep_error(create_rank(comm, nranks, rank, &id, 1, NULL, "ncclCommInitRank"));
}

KL_PNCCL(ncclCommInitRankConfig);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    return kl_group_keep_error(create_rank(comm, nranks, rank, &id, 1, config, "ncclCommInitRankConfig"));
}

KL_PNCCL(ncclCommInitRankScalable);
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                                      ncclConfig_t *config)
{
    if (nId < 1 || nId > nranks || !commIds)
        return kl_group_keep_error(KL_FAIL(ncclInvalidArgument,
                                           "ncclCommInitRankScalable: %d ids for %d ranks%s; there may be one for each",
                                           nId, nranks, commIds ? "" : ", and a NULL array"));
    return kl_group_keep_error(create_rank(newcomm, nranks, myrank, commIds, nId, config, "ncclCommInitRankScalable"));
}

/* ---- all ranks of one process ---- */

static ncclResult_t check_devices(int ndev, const int *devlist)
{
    const struct kl_device_kind *devices;
    int count;

    KL_TRY(kl_devices(&devices));
    KL_TRY(kl_devices_count_of_kind(devices, &count));
    const char *setting = devices == &kl_host_devices ? "KOLO_HOST_DEVICES" : "CUDA_VISIBLE_DEVICES";
    if (!devlist && ndev > count)
        return KL_FAIL(ncclUnhandledCudaError, "ncclCommInitAll: %d devices; there are %d (%s)", ndev, count, setting);
    for (int i = 0; i < ndev; i++) {
        int device = devlist ? devlist[i] : i;
        if (device < 0 || device >= count)
            return KL_FAIL(ncclInvalidArgument, "ncclCommInitAll: device %d; there are %d (%s)", device, count,
                           setting);
        for (int k = 0; k < i; k++)
            if ((devlist ? devlist[k] : k) == device)
                return KL_FAIL(ncclInvalidUsage, "ncclCommInitAll: device %d is listed twice", device);
    }
    return ncclSuccess;
}

static ncclResult_t create_each(ncclComm_t *comms, int ndev, const int *devlist, const ncclUniqueId *id)
{
    struct kl_comm_params params = {.ids = id, .nids = 1, .nranks = ndev, .nccl_config = kl_nccl_config_unset};

    KL_TRY(kl_group_start());
    for (int i = 0; i < ndev; i++) {
        params.rank = i;
        params.device = devlist ? devlist[i] : i;
        kl_group_keep_error(create(&comms[i], &params));
    }
    return kl_group_end();
}

static ncclResult_t create_all(ncclComm_t *comms, int ndev, const int *devlist)
{
    ncclUniqueId id;

    if (!comms) return KL_FAIL(ncclInvalidArgument, "ncclCommInitAll: the result pointer is NULL");
    if (ndev < 1) return KL_FAIL(ncclInvalidArgument, "ncclCommInitAll: %d devices; there must be at least one", ndev);
    KL_TRY(check_devices(ndev, devlist));
    KL_TRY(kl_bootstrap_id_create(&id));
    return create_each(comms, ndev, devlist, &id);
}

KL_PNCCL(ncclCommInitAll);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
    return kl_group_keep_error(create_all(comms, ndev, devlist));
}
