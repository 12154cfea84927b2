/* SPDX-License-Identifier: Apache-2.0 */
/** report.c - the results of init in the words of NCCL's log, which people and scripts can read. */
#include "comm/comm.h"

#include "base/log.h"

#include <stdlib.h>

enum { LINE_TEXT = 2048 }; /* about the length of a line of the log */

static void log_ring(ncclComm_t comm, int channel, int32_t *order)
{
    char line[LINE_TEXT];
    struct kl_text text = kl_text_over(line, sizeof line);

    if (kl_connect_ring_order(comm->connect, channel, 0, order)) return;
    for (int i = 0; i < comm->nranks && !text.cut; i++) kl_text_add(&text, " %d", order[i]);
    KL_INFO(KL_INIT | KL_GRAPH, "Channel %02d/%02d :%s", channel, comm->connect->nchannels, line);
}

/* One rank logs the rings for all. */
static void log_rings(ncclComm_t comm)
{
    int32_t *order = malloc((size_t)comm->nranks * sizeof *order);

    for (int c = 0; order && c < comm->connect->nchannels; c++) log_ring(comm, c, order);
    free(order);
}

static void log_trees(ncclComm_t comm)
{
    char line[LINE_TEXT];
    struct kl_text text = kl_text_over(line, sizeof line);

    for (int c = 0; c < comm->connect->nchannels; c++) {
        struct kl_tree_neighbours t = kl_connect_tree(comm->connect, c, comm->rank);

        kl_text_add(&text, " [%d] %d/%d/%d->%d->%d", c, t.down[0], t.down[1], t.down[2], comm->rank, t.up);
    }
    KL_INFO(KL_INIT | KL_GRAPH, "Trees%s", line);
}

/* The ranks that are a head, by node. */
static void log_head(ncclComm_t comm, int head)
{
    char line[LINE_TEXT];
    struct kl_text text = kl_text_over(line, sizeof line);

    for (int i = 0; i < comm->connect->nodes.nnodes && !text.cut; i++)
        kl_text_add(&text, " %2d", kl_connect_nvls_head(comm->connect, head, i));
    KL_INFO(KL_INIT | KL_GRAPH, "NVLS Head %2d:%s", head, line);
}

/* Channels use them in turn. */
static void log_nvls_trees(ncclComm_t comm)
{
    struct kl_nvls_links a = kl_connect_nvls(comm->connect, 0, comm->rank);
    struct kl_nvls_links b = kl_connect_nvls(comm->connect, 1, comm->rank);

    KL_INFO(KL_INIT | KL_GRAPH, "NVLS Trees : %d/%d/%d->%d->%d %d/%d/%d->%d->%d", a.tree_down[0], a.tree_down[1],
            a.tree_down[2], comm->rank, a.tree_up, b.tree_down[0], b.tree_down[1], b.tree_down[2], comm->rank,
            b.tree_up);
}

static void log_nvls(ncclComm_t comm)
{
    if (comm->connect->nodes.nnodes == 1) return;
    for (int h = 0; h < comm->connect->nheads && !comm->rank; h++) log_head(comm, h);
    if (comm->connect->nheads) log_nvls_trees(comm);
}

static void log_neighbours(ncclComm_t comm)
{
    for (int c = 0; c < comm->connect->nchannels; c++) {
        struct kl_ring_links ring = kl_connect_ring(comm->connect, c, comm->rank);

        KL_INFO(KL_GRAPH, "Ring %02d : %d -> %d -> %d", c, ring.prev, comm->rank, ring.next);
    }
}

void kl_comm_log_channels(ncclComm_t comm)
{
    const struct kl_connect *c = comm->connect;

    if (!kl_log_on(KL_LOG_INFO, KL_INIT | KL_GRAPH)) return;
    if (comm->rank == 0) log_rings(comm);
    log_neighbours(comm);
    log_trees(comm);
    log_nvls(comm);
    KL_INFO(KL_INIT,
            "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels per peer",
            c->nchannels, c->nchannels, c->nvls_channels, comm->p2p.n, comm->p2p.per_peer);
}
