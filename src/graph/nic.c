/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/nic.h"

#include "base/error.h"
#include "topo/paths.h"

static bool in_tree(const struct kl_connect *c, int channel, int rank, int peer)
{
    struct kl_tree_neighbours t = kl_connect_tree(c, channel, rank);

    return peer == t.up || peer == t.down[0] || peer == t.down[1] || peer == t.down[2];
}

static bool joins_heads(const struct kl_connect *c, int channel, int rank, int peer)
{
    if (!c->nvls || channel >= c->nvls_channels) return false;
    struct kl_nvls_links l = kl_connect_nvls(c, channel, rank);

    return peer == l.tree_up || peer == l.tree_down[1] || peer == l.tree_down[2];
}

int kl_graph_of_edge(const struct kl_connect *c, int channel, int rank, int peer, bool sends)
{
    if (channel >= c->nchannels) return KL_GRAPH_NVLS; /* which alone has so many */
    struct kl_ring_links ring = kl_connect_ring(c, channel, rank);

    if (peer == (sends ? ring.next : ring.prev)) return KL_GRAPH_RING;
    if (in_tree(c, channel, rank, peer)) return KL_GRAPH_TREE;
    return joins_heads(c, channel, rank, peer) ? KL_GRAPH_NVLS : KL_GRAPH_TREE;
}

static int head_of(const struct kl_graph *g, int channel)
{
    return g->intra[(size_t)channel * (size_t)g->ngpus];
}

/* The id of the NET that an NVLS head uses: the entry of its k-th channel, k being the channel modulo their number. */
static ncclResult_t head_net(const struct kl_graph *g, int nchannels, int channel, int rank, int64_t *id)
{
    int n = 0;

    for (int c = 0; c < nchannels; c++) n += head_of(g, c) == rank;
    if (!n) return KL_FAIL(ncclInternalError, "rank %d is no head of an NVLS channel", rank);
    n = channel % n;
    for (int c = 0;; c++)
        if (head_of(g, c) == rank && n-- == 0) {
            *id = g->inter[2 * c];
            return ncclSuccess;
        }
}

ncclResult_t kl_graph_nic(const struct kl_topo *t, const struct kl_graph *g, int nchannels, int channel, int rank,
                          struct kl_graph_nic *nic)
{
    int64_t id;
    int node;

    if (nchannels < 1 || nchannels > g->nchannels)
        return KL_FAIL(ncclInternalError, "%d of the %d channels of a %s", nchannels, g->nchannels,
                       kl_graph_name(g->id));
    if (g->pattern == KL_PATTERN_NVLS) {
        KL_TRY(head_net(g, nchannels, channel, rank, &id));
    } else {
        channel %= nchannels;
        id = g->inter[2 * channel + (head_of(g, channel) != rank)];
    }
    node = kl_topo_find(t, KL_NODE_NET, (uint64_t)id);
    if (node < 0)
        return KL_FAIL(ncclInternalError, "channel %d of the %s uses NET %#llx, which this machine does not have",
                       channel, kl_graph_name(g->id), (unsigned long long)id);
    KL_TRY(kl_topo_pxn_rank(t, rank, kl_topo_index(t, node), &nic->proxy));
    nic->net = kl_topo_index(t, node);
    return ncclSuccess;
}
