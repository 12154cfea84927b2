/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/connect.h"

#include "base/error.h"
#include "graph/records.h"
#include "graph/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- a rank's own part ---- */

static struct kl_graph_facts facts_of(const struct kl_graph *g)
{
    return (struct kl_graph_facts){.pattern = g->pattern,
                                   .nchannels = g->nchannels,
                                   .same_channels = g->same_channels,
                                   .cross_nic = g->cross_nic,
                                   .type_intra = g->type_intra,
                                   .type_inter = g->type_inter,
                                   .bw_intra = g->bw_intra,
                                   .bw_inter = g->bw_inter,
                                   .latency_inter = g->latency_inter};
}

/* The neighbours of `rank` in the order of a channel. */
static void neighbours(const struct kl_graph *g, int channel, int rank, int32_t *prev, int32_t *next)
{
    const int32_t *order = g->intra + (size_t)channel * (size_t)g->ngpus;

    *prev = *next = -1;
    for (int i = 0; i < g->ngpus; i++) {
        if (order[i] != rank) continue;
        *prev = i ? order[i - 1] : -1;
        *next = i < g->ngpus - 1 ? order[i + 1] : -1;
    }
}

static void record_channel(const struct kl_graph *ring, const struct kl_graph *tree, int channel, int rank,
                           struct kl_channel_record *r)
{
    const int32_t *ring_order = ring->intra + (size_t)channel * (size_t)ring->ngpus;
    const int32_t *order = tree->intra + (size_t)channel * (size_t)tree->ngpus;
    int second = order[tree->ngpus > 1 ? 1 : 0];

    r->ring_recv = ring_order[0];
    r->ring_send = ring_order[ring->ngpus - 1];
    neighbours(ring, channel, rank, &r->ring_prev, &r->ring_next);
    r->to_parent = order[0];
    r->to_child[0] = tree->pattern == KL_PATTERN_TREE ? order[0] : second;
    r->to_child[1] = tree->pattern == KL_PATTERN_SPLIT_TREE ? second : order[0];
    neighbours(tree, channel, rank, &r->tree_prev, &r->tree_next);
}

static void record_chain(const struct kl_graph *chain, int channel, int rank, struct kl_channel_record *r)
{
    r->chain_head = chain->intra[(size_t)channel * (size_t)chain->ngpus];
    neighbours(chain, channel, rank, &r->chain_prev, &r->chain_next);
}

/* A head reduces the data of the other ranks of its channel. */
static void record_down(const struct kl_graph *direct, int head, int rank, struct kl_rank_record *r)
{
    const int32_t *order = direct->intra + (size_t)head * (size_t)direct->ngpus;

    for (int i = 0, n = 0; i < direct->ngpus && n < KL_COLLNET_ARITY; i++)
        if (order[i] != rank) r->direct_down[n++] = order[i];
}

/* Different first ranks of the channels, in channel order; the k-th head is the head of channel k. */
static void record_direct(const struct kl_graph *direct, int rank, struct kl_rank_record *r)
{
    for (int i = 0; i < KL_COLLNET_ARITY; i++) r->direct_down[i] = -1;
    for (int c = 0; direct && c < direct->nchannels && r->ndirect < KL_COLLNET_HEADS; c++) {
        int head = direct->intra[(size_t)c * (size_t)direct->ngpus], h = 0;

        while (h < r->ndirect && r->direct[h] != head) h++;
        if (h < r->ndirect) continue;
        if (head == rank) record_down(direct, h, rank, r);
        r->direct[r->ndirect++] = head;
    }
}

static void record_heads(const struct kl_graph *nvls, struct kl_rank_record *r)
{
    for (int c = 0; nvls && c < nvls->nchannels; c++) {
        int head = nvls->intra[(size_t)c * (size_t)nvls->ngpus], h = 0;

        while (h < r->nheads && r->head[h] != head) h++;
        if (h == r->nheads && h < KL_GRAPH_CHANNELS) r->head[r->nheads++] = head;
    }
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

void kl_connect_record(const struct kl_graphs *graphs, int rank, int cpu_arch, int cpu_vendor, struct kl_rank_record *r)
{
    const struct kl_graph *ring = graphs->graph[KL_GRAPH_RING], *tree = graphs->graph[KL_GRAPH_TREE];
    const struct kl_graph *chain = graphs->graph[KL_GRAPH_COLLNET_CHAIN];
    int n = least(least(ring->nchannels, tree->nchannels), KL_GRAPH_CHANNELS);

    memset(r, 0, sizeof *r);
    for (int i = 0; i < KL_GRAPHS; i++)
        if (graphs->graph[i]) r->graph[i] = facts_of(graphs->graph[i]);
    r->cpu_arch = cpu_arch;
    r->cpu_vendor = cpu_vendor;
    record_heads(graphs->graph[KL_GRAPH_NVLS], r);
    record_direct(graphs->graph[KL_GRAPH_COLLNET_DIRECT], rank, r);
    for (int c = 0; c < n; c++) record_channel(ring, tree, c, rank, &r->channel[c]);
    for (int c = 0; chain && c < least(chain->nchannels, KL_GRAPH_CHANNELS); c++)
        record_chain(chain, c, rank, &r->channel[c]);
}

/* ---- agreement of all ranks ---- */

static void align_graph(struct kl_graph_facts *all, const struct kl_graph_facts *one)
{
    all->nchannels = least(all->nchannels, one->nchannels);
    all->same_channels = least(all->same_channels, one->same_channels);
    all->bw_intra = one->bw_intra < all->bw_intra ? one->bw_intra : all->bw_intra;
    all->bw_inter = one->bw_inter < all->bw_inter ? one->bw_inter : all->bw_inter;
    all->type_intra = most(all->type_intra, one->type_intra);
    all->type_inter = most(all->type_inter, one->type_inter);
    all->cross_nic = most(all->cross_nic, one->cross_nic);
}

static void align(struct kl_connect *c)
{
    const struct kl_rank_record *own = kl_record(&c->ranks, c->rank);

    memcpy(c->graph, own->graph, sizeof c->graph);
    c->nccl = own->nccl;
    c->net_bw = own->net_bw;
    c->all_nvlink = true;
    c->cpu_arch = own->cpu_arch;
    c->cpu_vendor = own->cpu_vendor;
    for (int i = 0; i < c->ranks.nrecords; i++) {
        const struct kl_rank_record *r = &c->ranks.record[i];

        for (int g = 0; g < KL_GRAPHS; g++) align_graph(&c->graph[g], &r->graph[g]);
        c->max_tree_pattern = most(c->max_tree_pattern, r->graph[KL_GRAPH_TREE].pattern);
        c->net_bw = r->net_bw < c->net_bw ? r->net_bw : c->net_bw;
        c->all_nvlink &= r->all_nvlink != 0;
        if (r->cpu_arch != own->cpu_arch) c->cpu_arch = KL_ARCH_MIXED;
        if (r->cpu_vendor != own->cpu_vendor) c->cpu_vendor = KL_VENDOR_MIXED;
    }
    c->base = least(c->graph[KL_GRAPH_RING].nchannels, c->graph[KL_GRAPH_TREE].nchannels);
    c->graph[KL_GRAPH_RING].nchannels = c->graph[KL_GRAPH_TREE].nchannels = c->base;
}

/* ---- rings ---- */

/* On odd nodes, rings that cross NICs swap their pairs of channels, so that both ends of a wire mean the same NIC. */
static const struct kl_channel_record *ring_record(const struct kl_connect *c, int channel, int rank)
{
    int base = c->source[channel] % c->base;

    int cross_nic = kl_nccl_has(c->nccl, KL_CHANGE_CROSS_BY_RANK)
                        ? kl_record(&c->ranks, rank)->graph[KL_GRAPH_RING].cross_nic
                        : c->graph[KL_GRAPH_RING].cross_nic;

    if (cross_nic == 2 && c->base % 2 == 0 && c->nodes.of_rank[rank] % 2) base ^= 1;
    return &kl_record(&c->ranks, rank)->channel[base];
}

/* Where a node's part of a ring begins (`send` false) or ends. */
static int ring_end(const struct kl_connect *c, int channel, int node, bool send)
{
    int head = c->nodes.head[node];
    const struct kl_channel_record *r = ring_record(c, channel, head);

    return kl_shifted_rank(send ? r->ring_send : r->ring_recv, kl_record_shift(&c->ranks, head));
}

struct kl_ring_links kl_connect_ring(const struct kl_connect *c, int channel, int rank)
{
    const struct kl_channel_record *r = ring_record(c, channel, rank);
    int node = c->nodes.of_rank[rank], n = c->nodes.nnodes, shift = kl_record_shift(&c->ranks, rank);
    struct kl_ring_links links = {kl_shifted_rank(r->ring_prev, shift), kl_shifted_rank(r->ring_next, shift)};

    if (rank == ring_end(c, channel, node, false)) links.prev = ring_end(c, channel, (node + n - 1) % n, true);
    if (rank == ring_end(c, channel, node, true)) links.next = ring_end(c, channel, (node + 1) % n, false);
    return links;
}

ncclResult_t kl_connect_ring_order(const struct kl_connect *c, int channel, int first, int32_t *order)
{
    int n = c->ranks.nranks, rank = first, steps = 0;
    uint64_t *seen = calloc((size_t)n / 64 + 1, sizeof *seen);

    if (!seen) return KL_NOMEM("a ring");
    for (; steps < n; steps++) {
        if (rank < 0 || rank >= n || (seen[rank / 64] >> (rank % 64) & 1)) break;
        seen[rank / 64] |= (uint64_t)1 << (rank % 64);
        order[steps] = rank;
        rank = kl_connect_ring(c, channel, rank).next;
    }
    free(seen);
    if (steps < n)
        return KL_FAIL(ncclInternalError, "ring %d returns to rank %d after %d of %d ranks: the ranks' graphs differ",
                       channel, rank, steps, n);
    if (rank != first)
        return KL_FAIL(ncclInternalError, "ring %d leads from rank %d to rank %d, not back to rank %d", channel,
                       order[n - 1], rank, first);
    return ncclSuccess;
}

/* Where the ranks of each core begin: cores in the order of their first ranks, one after the other. `begin` and `count` are by core, and zero. */
static void place_cores(const struct kl_connect *c, const int32_t *ring, int32_t *begin, int32_t *count)
{
    const int n = c->ranks.nranks;
    int32_t next = 0;

    for (int i = 0; i < n; i++) count[c->core[ring[i]]]++;
    for (int i = 0; i < n; i++) {
        const int32_t core = c->core[ring[i]];
        if (!count[core]) continue;
        begin[core] = next;
        next += count[core];
        count[core] = 0;
    }
}

/* From the order of a ring that begins with rank 0, which is the same for all, to one by cores, and then to one that begins with `first`. */
static void order_by_cores(const struct kl_connect *c, int first, int32_t *order, int32_t *scratch)
{
    const int n = c->ranks.nranks;
    int32_t *begin = scratch, *count = scratch + n, *chain = count, at = 0;

    place_cores(c, order, begin, count);
    for (int i = 0; i < n; i++) chain[begin[c->core[order[i]]]++] = order[i];
    while (chain[at] != first) at++;
    for (int i = 0; i < n; i++) order[i] = chain[(at + i) % n];
}

ncclResult_t kl_connect_chain_order(const struct kl_connect *c, int channel, int first, int32_t *order)
{
    if (!c->core) return kl_connect_ring_order(c, channel, first, order);
    int32_t *scratch = calloc(2 * (size_t)c->ranks.nranks, sizeof *scratch);
    if (!scratch) return KL_NOMEM("a chain");
    ncclResult_t rc = kl_connect_ring_order(c, channel, 0, order);
    if (!rc) order_by_cores(c, first, order, scratch);
    free(scratch);
    return rc;
}

/* ---- trees ---- */

enum place { TO_PARENT, TO_CHILD0, TO_CHILD1 };

/* The rank of a node that talks to the node's parent or one of its children. */
static int tree_rank(const struct kl_connect *c, int channel, int node, enum place place)
{
    int head = c->nodes.head[node];
    const struct kl_channel_record *r = &kl_record(&c->ranks, head)->channel[c->source[channel] % c->base];

    return kl_shifted_rank(place == TO_PARENT ? r->to_parent : r->to_child[place - TO_CHILD0],
                           kl_record_shift(&c->ranks, head));
}

static void add_down(struct kl_tree_neighbours *t, int rank)
{
    for (int i = 0; i < 3; i++)
        if (t->down[i] < 0) {
            t->down[i] = rank;
            return;
        }
}

struct kl_tree_neighbours kl_connect_tree(const struct kl_connect *c, int channel, int rank)
{
    int source = c->source[channel], node = c->nodes.of_rank[rank], shift = kl_record_shift(&c->ranks, rank);
    const struct kl_channel_record *r = &kl_record(&c->ranks, rank)->channel[source % c->base];
    struct kl_tree_links nodes = kl_double_tree(c->nodes.nnodes, node, source / c->base);
    struct kl_tree_neighbours t = {kl_shifted_rank(r->tree_prev, shift),
                                   {kl_shifted_rank(r->tree_next, shift), -1, -1}};

    if (rank == tree_rank(c, channel, node, TO_PARENT) && nodes.up >= 0)
        t.up = tree_rank(c, channel, nodes.up, TO_CHILD0 + nodes.which);
    for (int i = 0; i < 2; i++)
        if (rank == tree_rank(c, channel, node, TO_CHILD0 + i) && nodes.down[i] >= 0)
            add_down(&t, tree_rank(c, channel, nodes.down[i], TO_PARENT));
    return t;
}

int kl_connect_tree_depth(const struct kl_connect *c)
{
    return c->ranks.nranks / c->nodes.nnodes - 1 + kl_log2((unsigned)c->nodes.nnodes);
}

/* ---- NVLS ---- */

int kl_connect_nvls_head(const struct kl_connect *c, int head, int node)
{
    int first = c->nodes.head[node];

    return kl_shifted_rank(kl_record(&c->ranks, first)->head[head], kl_record_shift(&c->ranks, first));
}

static void nvls_tree(const struct kl_connect *c, int channel, int head, int node, struct kl_nvls_links *l)
{
    struct kl_tree_links t = kl_double_tree(c->nodes.nnodes, node, channel % 2);
    int n = 1;

    if (t.up >= 0) l->tree_up = kl_connect_nvls_head(c, head, t.up);
    for (int i = 0; i < 2; i++)
        if (t.down[i] >= 0) l->tree_down[n++] = kl_connect_nvls_head(c, head, t.down[i]);
}

struct kl_nvls_links kl_connect_nvls(const struct kl_connect *c, int channel, int rank)
{
    struct kl_nvls_links l = {.nheads = c->nheads, .head = -1, .out = -1, .tree_up = -1, .tree_down = {-1, -1, -1}};
    int node = c->nodes.of_rank[rank], first = -1;

    for (int h = 0; h < c->nheads; h++)
        if (kl_connect_nvls_head(c, h, node) == rank) {
            if (first < 0) first = h;
            l.head = h;
        }
    l.down = c->ranks.nranks + 1 + l.head;
    if (c->collnet && l.head >= 0) l.out = c->ranks.nranks;
    if (c->nodes.nnodes == 1) return l;
    l.tree_down[0] = l.down;
    if (first >= 0) nvls_tree(c, channel, first, node, &l);
    return l;
}

static int count_heads(const struct kl_connect *c)
{
    int n = KL_GRAPH_CHANNELS;

    for (int node = 0; node < c->nodes.nnodes; node++) n = least(n, kl_record(&c->ranks, c->nodes.head[node])->nheads);
    return n;
}

/* Of CollNet, in a node. */
static int heads_of(const struct kl_connect *c, int node)
{
    const struct kl_rank_record *r = kl_record(&c->ranks, c->nodes.head[node]);

    return kl_connect_shares_heads(c) ? r->nheads : r->ndirect;
}

static bool heads_differ(const struct kl_connect *c)
{
    for (int node = 0; node < c->nodes.nnodes; node++)
        if (heads_of(c, node) != heads_of(c, 0)) return true;
    return false;
}

static enum kl_offload refuse_collnet(const struct kl_connect *c, const struct kl_connect_request *q)
{
    if (!q->collnet) return q->no_collnet ? q->no_collnet : KL_OFFLOAD_NOT_ASKED;
    if (c->graph[KL_GRAPH_COLLNET_CHAIN].nchannels <= 0) return KL_OFFLOAD_NO_CHANNELS;
    if (c->nodes.nnodes < q->params.collnet_node_threshold) return KL_OFFLOAD_FEW_NODES;
    return heads_differ(c) ? KL_OFFLOAD_HEADS_DIFFER : KL_OFFLOAD_OK;
}

static enum kl_offload refuse_nvls(const struct kl_connect *c, const struct kl_connect_request *q)
{
    if (!q->nvls) return q->no_nvls ? q->no_nvls : KL_OFFLOAD_SWITCHED_OFF;
    return c->graph[KL_GRAPH_NVLS].nchannels <= 0 ? KL_OFFLOAD_NO_CHANNELS : KL_OFFLOAD_OK;
}

static void set_support(struct kl_connect *c, const struct kl_connect_request *q)
{
    c->no_nvls = refuse_nvls(c, q);
    c->nvls = !c->no_nvls;
    c->no_collnet = refuse_collnet(c, q);
    c->collnet = !c->no_collnet;
    c->nvls_channels = c->nvls ? q->nvls_channels : 0;
    c->nheads = c->nvls ? count_heads(c) : 0;
}

/* ---- records come from other processes: nothing in them may lead outside of an array ---- */

static bool scalars_fit(const struct kl_rank_record *r)
{
    if (r->nheads < 0 || r->nheads > KL_GRAPH_CHANNELS) return false;
    if (r->ndirect < 0 || r->ndirect > KL_COLLNET_HEADS) return false;
    for (int g = 0; g < KL_GRAPHS; g++)
        if (r->graph[g].nchannels < 0 || r->graph[g].nchannels > KL_GRAPH_CHANNELS || r->graph[g].type_intra < 0 ||
            r->graph[g].type_intra >= KL_PATH_TYPES || r->graph[g].type_inter < 0 ||
            r->graph[g].type_inter >= KL_PATH_TYPES)
            return false;
    return true;
}

static bool is_rank(const struct kl_connect *c, int rank, int shift)
{
    return rank >= -1 && kl_shifted_rank(rank, shift) < c->ranks.nranks;
}

static bool collnet_fits(const struct kl_connect *c, const struct kl_rank_record *r, int shift)
{
    for (int h = 0; h < r->ndirect; h++)
        if (r->direct[h] < 0 || !is_rank(c, r->direct[h], shift)) return false;
    for (int i = 0; i < KL_COLLNET_ARITY; i++)
        if (!is_rank(c, r->direct_down[i], shift)) return false;
    for (int i = 0; i < c->graph[KL_GRAPH_COLLNET_CHAIN].nchannels; i++) {
        const struct kl_channel_record *ch = &r->channel[i];

        if (ch->chain_head < 0 || !is_rank(c, ch->chain_head, shift) || !is_rank(c, ch->chain_prev, shift) ||
            !is_rank(c, ch->chain_next, shift))
            return false;
    }
    return true;
}

static bool channels_fit(const struct kl_connect *c, const struct kl_rank_record *r, int shift)
{
    if (!collnet_fits(c, r, shift)) return false;
    for (int h = 0; h < r->nheads; h++)
        if (r->head[h] < 0 || !is_rank(c, r->head[h], shift)) return false;
    for (int i = 0; i < c->base; i++) {
        const struct kl_channel_record *ch = &r->channel[i];
        const int32_t ranks[] = {ch->ring_recv, ch->ring_send,   ch->ring_prev,   ch->ring_next, ch->to_parent,
                                 ch->tree_prev, ch->to_child[0], ch->to_child[1], ch->tree_next};

        for (size_t k = 0; k < sizeof ranks / sizeof ranks[0]; k++)
            if (!is_rank(c, ranks[k], shift)) return false;
    }
    return true;
}

static ncclResult_t check_scalars(const struct kl_connect *c)
{
    for (int i = 0; i < c->ranks.nrecords; i++)
        if (!scalars_fit(&c->ranks.record[i]))
            return KL_FAIL(ncclInternalError,
                           "graph record %d holds numbers outside their limits: do all ranks run the same version?", i);
    return ncclSuccess;
}

/* A rank that follows another release has other channels. */
static ncclResult_t check_releases(const struct kl_connect *c)
{
    char one[KL_NCCL_TEXT], other[KL_NCCL_TEXT];

    for (int r = 0; r < c->ranks.nranks; r++) {
        int a = kl_record(&c->ranks, 0)->nccl, b = kl_record(&c->ranks, r)->nccl;

        if (a != b)
            return KL_FAIL(ncclInvalidUsage,
                           "rank 0 follows NCCL %s and rank %d NCCL %s: set KOLO_NCCL_VERSION alike on all ranks",
                           kl_nccl_text(a, one), r, kl_nccl_text(b, other));
    }
    return ncclSuccess;
}

static ncclResult_t check_channels(const struct kl_connect *c)
{
    for (int r = 0; r < c->ranks.nranks; r++)
        if (!channels_fit(c, kl_record(&c->ranks, r), kl_record_shift(&c->ranks, r)))
            return KL_FAIL(ncclInternalError, "the graph record of rank %d names ranks beyond %d", r,
                           c->ranks.nranks - 1);
    return ncclSuccess;
}

static int common_divisor(int a, int b)
{
    while (b) {
        int rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Groups do not cross nodes, and are all of one size, which divides the requested size as well. */
static void set_p2p_group(struct kl_connect *c, const struct kl_connect_request *q)
{
    int group = (int)q->params.p2p_group;

    if (!kl_nccl_has(c->nccl, KL_CHANGE_P2P_GROUPS) || group < 1) return;
    for (int i = 0; i < c->nodes.nnodes; i++) group = common_divisor(group, kl_nodes_size(&c->nodes, i));
    c->p2p_group = group;
}

static ncclResult_t keep_cores(struct kl_connect *c, const struct kl_connect_request *request)
{
    const size_t bytes = (size_t)c->ranks.nranks * sizeof *c->core;

    if (!request->core || c->nodes.nnodes > 1) return ncclSuccess;
    c->core = malloc(bytes);
    if (!c->core) return KL_NOMEM("the connection of a communicator");
    memcpy(c->core, request->core, bytes);
    return ncclSuccess;
}

ncclResult_t kl_connect_create(const struct kl_ranks *ranks, const struct kl_connect_request *request,
                               struct kl_connect **connect)
{
    struct kl_connect *c = calloc(1, sizeof *c);
    ncclResult_t rc;

    if (!c) return KL_NOMEM("the connection of a communicator");
    c->ranks = *ranks;
    c->rank = request->rank;
    c->oversubscribed = request->oversubscribed;
    KL_TRY_OR(rc, out, check_scalars(c));
    KL_TRY_OR(rc, out, check_releases(c));
    KL_TRY_OR(rc, out, kl_nodes_create(ranks, &c->nodes));
    align(c);
    if (c->base < 1) {
        rc = KL_FAIL(ncclInternalError, "no channel that all ranks have: some rank found neither ring nor tree");
        goto out;
    }
    KL_TRY_OR(rc, out, check_channels(c));
    KL_TRY_OR(rc, out, keep_cores(c, request));
    set_support(c, request);
    set_p2p_group(c, request);
    kl_channels_set(c, request);
    *connect = c;
    c = NULL;
out:
    kl_connect_free(c);
    return rc;
}

void kl_connect_free(struct kl_connect *c)
{
    if (!c) return;
    kl_nodes_fini(&c->nodes);
    free(c->core);
    free(c);
}

/* ---- comparing ---- */

bool kl_connect_same_ring(const struct kl_connect *c, int a, int b)
{
    if (c->source[a] % c->base == c->source[b] % c->base) return true;
    for (int r = 0; r < c->ranks.nranks; r++)
        if (kl_connect_ring(c, a, r).next != kl_connect_ring(c, b, r).next) return false;
    return true;
}

bool kl_connect_same_tree(const struct kl_connect *c, int a, int b)
{
    if (c->source[a] == c->source[b]) return true;
    for (int r = 0; r < c->ranks.nranks; r++) {
        struct kl_tree_neighbours s = kl_connect_tree(c, a, r), t = kl_connect_tree(c, b, r);

        if (s.up != t.up || s.down[0] != t.down[0] || s.down[1] != t.down[1] || s.down[2] != t.down[2]) return false;
    }
    return true;
}
