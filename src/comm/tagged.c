/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator's messages with tags. */
#include "comm/comm.h"

static ncclResult_t post(void *ctx, int peer, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    ncclComm_t comm = ctx;

    if (kl_bootstrap_has_left(comm->bootstrap, peer)) return ncclInProgress;
    ncclResult_t rc = kl_bootstrap_packet_send(comm->bootstrap, peer, head, head_bytes, data, bytes);
    return rc && kl_bootstrap_has_left(comm->bootstrap, peer) ? ncclInProgress : rc;
}

static ncclResult_t watch(void *ctx, int peer)
{
    ncclComm_t comm = ctx;

    return kl_bootstrap_watch(comm->bootstrap, peer);
}

static void fail(void *ctx, int culprit, ncclResult_t code, const char *text)
{
    kl_comm_fail(ctx, culprit, code, text, true);
}

static ncclResult_t failure(void *ctx)
{
    return kl_comm_failure(ctx);
}

static bool is_near(void *ctx, int peer)
{
    ncclComm_t comm = ctx;

    return comm->peers[peer].machine == comm->peers[comm->rank].machine;
}

static bool shares(void *ctx, int peer)
{
    ncclComm_t comm = ctx;

    return kl_peers_share_memory(&comm->peers[peer], &comm->peers[comm->rank]);
}

static enum kl_wait_cores cores(void *ctx)
{
    ncclComm_t comm = ctx;

    return comm->cores;
}

ncclResult_t kl_comm_create_tagged(ncclComm_t comm)
{
    const struct kl_tagged_config config = {
        .rank = comm->rank,
        .nranks = comm->nranks,
        .number = (uint16_t)kl_handle_number(comm),
        .reads = comm->config.kernel_copies != KL_KERNEL_COPIES_NEVER,
        .post = post,
        .watch = watch,
        .fail = fail,
        .failure = failure,
        .is_near = is_near,
        .shares = shares,
        .cores = cores,
        .ctx = comm,
    };

    return kl_tagged_create(&config, &comm->tagged);
}

/* Nothing comes before all ranks have passed their last barrier. */
void kl_comm_on_packet(void *ctx, int from, const void *data, size_t bytes)
{
    ncclComm_t comm = ctx;

    kl_tagged_on_packet(comm->tagged, from, data, bytes);
}

void kl_comm_on_left(void *ctx, int peer)
{
    ncclComm_t comm = ctx;

    /* A rank that leaves because of this one's failure: requests end with the failure. Pairs with kl_comm_fail. */
    if (!kl_load_acquire(&comm->failure.is_written)) kl_tagged_on_left(comm->tagged, peer);
}
