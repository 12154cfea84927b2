/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/window.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

/* A rank's record of its buffer. */
struct offer {
    uint64_t bytes;
    int32_t flags;
    int32_t failed;   /* an ncclResult_t */
    int32_t contexts; /* of one-sided operations */
    int32_t listens;  /* for ranks that cannot map it */
    struct kl_rma_connect_info info;
    struct kl_rma_part part;
};

/* How to reach a rank over the net, and over a plugin for one-sided operations. */
struct listener {
    struct kl_net_handle address;
    int32_t failed;
    struct kl_net_rma_offer plugin;
};

/* ---- this rank ---- */

static void putting_failed(void *ctx, int culprit, ncclResult_t rc, const char *text)
{
    kl_comm_fail(ctx, culprit, rc, text, true);
}

static ncclResult_t prepare_rma(struct ncclComm *comm)
{
    const struct kl_rma_config config = {
        .rank = comm->rank,
        .nranks = comm->nranks,
        .contexts = kl_nccl_config_or(comm->nccl_config.rma_contexts, 1),
        .signals = kl_nccl_config_or(comm->nccl_config.rma_signals, KL_RMA_SIGNALS),
        .device = comm->device,
        .devices = comm->devices,
        .secret = kl_bootstrap_key(comm->bootstrap, "kolo rma"),
        .issued = &comm->tasks_taken,
        .timeout_ms = (uint64_t)comm->config.bootstrap_timeout_s * 1000,
        .fail = putting_failed,
        .ctx = comm,
    };

    if (comm->rma) return ncclSuccess;
    if (config.contexts > KL_RMA_CONTEXTS)
        return KL_FAIL(ncclInvalidArgument, "numRmaCtx of the configuration is %d, at most %d are possible",
                       config.contexts, KL_RMA_CONTEXTS);
    return kl_rma_create(&config, &comm->rma);
}

/* Others may write to it from here on, before this rank has their records. */
static ncclResult_t make_offer(struct ncclComm *comm, int number, void *ptr, struct offer *mine,
                               struct kl_rma_window **window)
{
    KL_TRY(prepare_rma(comm));
    kl_rma_describe(comm->rma, &mine->info);
    mine->listens = kl_rma_listens(comm->rma);
    return kl_rma_open(comm->rma, number, ptr, mine->bytes, &mine->part, window);
}

/* ---- all ranks ---- */

static ncclResult_t check_offers(const struct ncclComm *comm, const struct offer *offers)
{
    const struct offer *mine = &offers[comm->rank];

    for (int r = 0; r < comm->nranks; r++) {
        if (offers[r].flags != mine->flags)
            return KL_FAIL(ncclInvalidUsage,
                           "ncclCommWindowRegister: rank %d has flags %d, rank %d has %d: they must agree", r,
                           offers[r].flags, comm->rank, mine->flags);
        if (offers[r].failed && r != comm->rank)
            return KL_FAIL(ncclRemoteError, "ncclCommWindowRegister: rank %d could not register its buffer", r);
        if (offers[r].contexts != mine->contexts)
            return KL_FAIL(ncclInvalidUsage,
                           "numRmaCtx of the configuration is %d on rank %d and %d on rank %d: all ranks need the same",
                           offers[r].contexts, r, mine->contexts, comm->rank);
    }
    return ncclSuccess;
}

static enum kl_rma_reach reach_of(const struct ncclComm *comm, int rank)
{
    const struct kl_peer *me = &comm->peers[comm->rank], *peer = &comm->peers[rank];

    if (!kl_peers_share_memory(me, peer)) return KL_RMA_NET;
    return me->process == peer->process ? KL_RMA_PROCESS : KL_RMA_HOST;
}

/* Is some rank reachable over the net only, and is its set-up incomplete? The same on all ranks. */
static bool needs_net(const struct ncclComm *comm, const struct offer *offers)
{
    bool alone = true, mapped = true, all_listen = true;

    for (int r = 0; r < comm->nranks; r++) {
        mapped &= kl_peers_share_memory(&comm->peers[r], &comm->peers[0]) && offers[r].part.exported;
        alone &=
            kl_peers_share_memory(&comm->peers[r], &comm->peers[0]) && comm->peers[r].process == comm->peers[0].process;
        all_listen &= offers[r].listens;
    }
    return !mapped && !alone && !all_listen;
}

/* ---- the plugin ---- */

/* Within a host there is memory for it, or the net. The same on all ranks. */
static bool spans_hosts(const struct ncclComm *comm)
{
    for (int r = 1; r < comm->nranks; r++)
        if (!kl_peers_share_memory(&comm->peers[r], &comm->peers[0])) return true;
    return false;
}

static bool has_failed(void *ctx)
{
    const struct ncclComm *comm = ctx;

    return kl_load_acquire(&comm->failed);
}

static struct kl_net_rma_wait wait_of(struct ncclComm *comm)
{
    return (struct kl_net_rma_wait){.deadline = kl_deadline_in_ms((uint64_t)comm->config.bootstrap_timeout_s * 1000),
                                    .stop = has_failed,
                                    .ctx = comm};
}

/* All ranks use it, or none: then puts go over the net. */
static ncclResult_t join_plugin(struct ncclComm *comm, const struct kl_net_rma_offer *offers)
{
    int32_t *failed = calloc((unsigned)comm->nranks, sizeof *failed);
    int first = -1;

    if (!failed) return KL_NOMEM("a window");
    failed[comm->rank] = (int32_t)kl_rma_far_connect(comm->rma, offers, wait_of(comm));
    if (failed[comm->rank]) KL_WARN("%s", kl_error_text());
    const ncclResult_t rc = kl_bootstrap_allgather(comm->bootstrap, failed, sizeof *failed);
    for (int r = comm->nranks - 1; r >= 0; r--)
        if (failed[r]) first = r;
    free(failed);
    if (!rc && first < 0) {
        kl_rma_far_use(comm->rma);
        KL_INFO(KL_INIT | KL_NET, "RMA/%s: one-sided operations to other hosts go over the plugin", offers[0].name);
        return ncclSuccess;
    }
    kl_rma_far_leave(comm->rma);
    if (!rc)
        KL_WARN("RMA/%s is not used, as rank %d could not connect; one-sided operations go over NET", offers[0].name,
                first);
    return rc;
}

static ncclResult_t choose_plugin(struct ncclComm *comm, const struct listener *listeners)
{
    struct kl_net_rma_offer *offers = calloc((unsigned)comm->nranks, sizeof *offers);

    if (!offers) return KL_NOMEM("a window");
    for (int r = 0; r < comm->nranks; r++) offers[r] = listeners[r].plugin;
    ncclResult_t rc = ncclSuccess;
    if (kl_net_rma_agree(offers, comm->nranks))
        rc = join_plugin(comm, offers);
    else
        kl_rma_far_leave(comm->rma);
    free(offers);
    return rc;
}

/* ---- the net ---- */

static ncclResult_t open_listener(struct ncclComm *comm, struct kl_net_handle *address)
{
    if (kl_rma_listens(comm->rma)) return KL_FAIL(ncclInternalError, "another rank could not listen before");
    KL_TRY(kl_comm_find_net(comm));
    return kl_rma_listen(comm->rma, comm->net, kl_comm_net_device(comm), address);
}

static ncclResult_t exchange_listeners(struct ncclComm *comm, struct listener *listeners)
{
    struct listener *mine = &listeners[comm->rank];

    mine->failed = (int32_t)open_listener(comm, &mine->address);
    if (mine->failed) return (ncclResult_t)mine->failed;
    if (spans_hosts(comm)) kl_rma_far_offer(comm->rma, kl_comm_net_device(comm), &mine->plugin);
    KL_TRY(kl_bootstrap_allgather(comm->bootstrap, listeners, sizeof *listeners));
    for (int r = 0; r < comm->nranks; r++) {
        if (listeners[r].failed) return KL_FAIL(ncclRemoteError, "ncclCommWindowRegister: rank %d could not listen", r);
        kl_rma_add_net_peer(comm->rma, r, &listeners[r].address);
    }
    return spans_hosts(comm) ? choose_plugin(comm, listeners) : ncclSuccess;
}

static ncclResult_t connect_over_net(struct ncclComm *comm)
{
    struct listener *listeners = calloc((unsigned)comm->nranks, sizeof *listeners);

    if (!listeners) return KL_NOMEM("a window");
    ncclResult_t rc = exchange_listeners(comm, listeners);
    free(listeners);
    return rc;
}

static ncclResult_t complete(struct ncclComm *comm, const struct offer *offers, struct kl_rma_window *window)
{
    struct kl_rma_part *parts = calloc((unsigned)comm->nranks, sizeof *parts);

    if (!parts) return KL_NOMEM("a window");
    for (int r = 0; r < comm->nranks; r++) {
        parts[r] = offers[r].part;
        kl_rma_add_peer(comm->rma, r, reach_of(comm, r), &offers[r].info);
    }
    ncclResult_t rc = kl_rma_complete(window, parts);
    free(parts);
    if (!rc && needs_net(comm, offers)) rc = connect_over_net(comm);
    return rc ? rc : kl_rma_far_enroll(comm->rma, window, wait_of(comm));
}

static ncclResult_t meet(struct ncclComm *comm, const struct offer *mine, struct kl_rma_window *window)
{
    struct offer *offers = calloc((unsigned)comm->nranks, sizeof *offers);

    if (!offers) return KL_NOMEM("a window");
    offers[comm->rank] = *mine;
    kl_bootstrap_phase(comm->bootstrap, "window");
    ncclResult_t rc = kl_bootstrap_allgather(comm->bootstrap, offers, sizeof *offers);
    if (!rc && !mine->failed) rc = check_offers(comm, offers);
    if (!rc && !mine->failed) {
        rc = complete(comm, offers, window);
        if (rc) kl_comm_fail(comm, comm->rank, rc, kl_error_text(), true); /* others go on, and would wait */
    }
    kl_bootstrap_phase(comm->bootstrap, KL_PHASE_RUNNING);
    free(offers);
    return rc;
}

static ncclResult_t open_window(struct ncclComm *comm, void *ptr, size_t bytes, int flags, ncclWindow_t *window)
{
    char text[KL_ERROR_TEXT];
    uintptr_t handle = 0;
    struct kl_rma_window *memory = NULL;
    struct offer mine = {
        .bytes = bytes, .flags = flags, .contexts = kl_nccl_config_or(comm->nccl_config.rma_contexts, 1)};
    const int number = comm->windows_attempted++; /* the same at all ranks, whether it succeeds or not */
    ncclResult_t rc = kl_registry_add(&comm->windows, kl_handle_number(comm), comm->devices, ptr, bytes, &handle);
    const ncclResult_t added = rc;

    if (!rc) rc = make_offer(comm, number, ptr, &mine, &memory);
    mine.failed = (int32_t)rc;
    snprintf(text, sizeof text, "%s", kl_error_text());
    ncclResult_t met = meet(comm, &mine, memory);
    if (rc) kl_error_adopt(text);
    if (!rc) rc = met;
    if (rc && memory) kl_rma_close(comm->rma, memory);
    if (rc && !added) (void)kl_registry_remove(&comm->windows, comm->devices, kl_registry_find(&comm->windows, handle));
    if (rc) return rc;
    kl_rma_name(memory, handle);
    *window = (ncclWindow_t)handle;
    return ncclSuccess;
}

ncclResult_t kl_comm_open_window(struct ncclComm *comm, void *ptr, size_t bytes, int flags, ncclWindow_t *window)
{
    return kl_job_end(comm, open_window(comm, ptr, bytes, flags, window));
}

ncclResult_t kl_comm_close_window(struct ncclComm *comm, ncclWindow_t window)
{
    const struct kl_registered *entry;

    KL_TRY(kl_registry_get(&comm->windows, (uintptr_t)window, "ncclCommWindowDeregister", &entry));
    kl_rma_close(comm->rma, kl_rma_find(comm->rma, (uintptr_t)window));
    return kl_registry_remove(&comm->windows, comm->devices, entry);
}
