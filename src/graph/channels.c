/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/connect.h"

#include "graph/records.h"

/* A rule that changes nothing is not recorded. */
static void note(struct kl_connect *c, enum kl_channel_reason reason, int before)
{
    if (before != c->nchannels)
        c->step[c->nsteps++] =
            (struct kl_channel_step){.reason = (uint8_t)reason, .before = before, .after = c->nchannels};
}

/* Channels up to `end` repeat the existing ones. */
static void grow(struct kl_connect *c, int end, enum kl_channel_reason reason)
{
    int start = c->nchannels;

    for (; c->nchannels < end && c->nchannels < KL_MAX_CHANNELS; c->nchannels++)
        c->source[c->nchannels] = c->source[c->nchannels - start];
    note(c, reason, start);
}

static void cut(struct kl_connect *c, int end, enum kl_channel_reason reason)
{
    int before = c->nchannels;

    if (end < before) c->nchannels = end;
    note(c, reason, before);
}

static int clamp(int64_t x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : (int)x;
}

static bool is_set(int64_t param)
{
    return param != -2;
}

static int upper_limit(const struct kl_channel_params *p)
{
    int64_t batches = p->work_args_bytes > 16 * KL_MAX_CHANNELS + 32 ? KL_MAX_CHANNELS : (p->work_args_bytes - 32) / 16;
    int64_t n = is_set(p->max_channels) ? p->max_channels : is_set(p->max_rings) ? p->max_rings : KL_MAX_CHANNELS;

    return clamp(n < batches ? n : batches, 1, KL_MAX_CHANNELS);
}

static int lower_limit(const struct kl_channel_params *p)
{
    return clamp(is_set(p->min_channels) ? p->min_channels
                 : is_set(p->min_rings)  ? p->min_rings
                                         : 0,
                 0, KL_MAX_CHANNELS);
}

/* The configuration's limits, overridden by the user's. */
static void cta_limits(const struct kl_connect_request *q, int *min, int *max)
{
    *min = clamp(q->params.min_ctas > 0 ? q->params.min_ctas : q->min_ctas, 1, KL_MAX_CHANNELS);
    *max = clamp(q->params.max_ctas > 0 ? q->params.max_ctas : q->max_ctas, 1, KL_MAX_CHANNELS);
    if (*min > *max) *min = *max;
}

/* Older releases took 0 for a number, too. */
static bool nvls_is_set(int nccl, int64_t channels)
{
    return kl_nccl_has(nccl, KL_CHANGE_NVLS_24) ? channels > 0 : channels >= 0;
}

static bool is_rubin(int sm, int nccl)
{
    return sm >= 107 && kl_nccl_has(nccl, KL_CHANGE_NVLS_RUBIN);
}

static int usual_nvls(int sm, bool several, int nccl)
{
    if (is_rubin(sm, nccl)) return several ? 64 : 48;
    if (sm < 100) return 16;
    return several || !kl_nccl_has(nccl, KL_CHANGE_NVLS_24) ? 32 : 24;
}

int kl_nvls_channels(int sm, bool several, int nccl, const struct kl_connect_request *q)
{
    int64_t n = nvls_is_set(nccl, q->params.nvls_channels) ? q->params.nvls_channels : usual_nvls(sm, several, nccl);
    int min, max;

    cta_limits(q, &min, &max);
    return clamp(n, min, max);
}

/* Between nodes: as many as it takes to fill NICs of this bandwidth. */
static int channels_for_nets(const struct kl_connect *c)
{
    if (c->nodes.nnodes == 2 && c->net_bw >= 48) return 32;
    if (c->net_bw >= 96) return kl_nodes_fewest(&c->nodes) <= 8 ? 24 : 32;
    return c->net_bw >= 48 ? 24 : 32;
}

/* Newer releases decide when they know all nodes. */
static void set_nvls_channels(struct kl_connect *c, const struct kl_connect_request *q)
{
    int min, max;

    if (!c->nvls || !kl_nccl_has(c->nccl, KL_CHANGE_NVLS_BY_NETS)) return;
    if (q->min_sm < 100 || is_rubin(q->min_sm, c->nccl) || c->nodes.nnodes == 1 ||
        nvls_is_set(c->nccl, q->params.nvls_channels))
        return;
    cta_limits(q, &min, &max);
    c->nvls_channels = clamp(channels_for_nets(c), min, max);
}

static void apply_limits(struct kl_connect *c, const struct kl_connect_request *q)
{
    int min_ctas, max_ctas, min = lower_limit(&q->params);

    cta_limits(q, &min_ctas, &max_ctas);
    if (min_ctas > min) min = min_ctas;
    cut(c, upper_limit(&q->params), KL_CHANNELS_UPPER);
    cut(c, max_ctas, KL_CHANNELS_MAX_CTAS);
    if (q->parent_channels) {
        cut(c, q->parent_channels, KL_CHANNELS_PARENT);
        if (q->parent_channels < min) min = q->parent_channels;
    }
    grow(c, min, KL_CHANNELS_LOWER);
}

/* The graphs' channels, as the own rank found them and as all agreed. */
static void start(struct kl_connect *c)
{
    const struct kl_graph_facts *own = kl_record(&c->ranks, c->rank)->graph;
    int ring = own[KL_GRAPH_RING].nchannels, tree = own[KL_GRAPH_TREE].nchannels;

    c->nchannels = ring;
    note(c, KL_CHANNELS_RING, 0);
    cut(c, tree, KL_CHANNELS_TREE);
    cut(c, c->base, KL_CHANNELS_RANKS);
    c->nchannels = 2 * c->base < KL_MAX_CHANNELS ? 2 * c->base : KL_MAX_CHANNELS;
    note(c, KL_CHANNELS_TWICE, c->base);
    for (int i = 0; i < c->nchannels; i++) c->source[i] = (uint8_t)i;
}

void kl_channels_set(struct kl_connect *c, const struct kl_connect_request *q)
{
    const struct kl_graph_facts *ring = &c->graph[KL_GRAPH_RING], *chain = &c->graph[KL_GRAPH_COLLNET_CHAIN];
    bool several = c->nodes.nnodes > 1;

    start(c);
    if (c->collnet && chain->bw_intra > chain->bw_inter && c->ranks.nranks > c->nodes.nnodes)
        grow(c, c->nchannels + c->nchannels / 2, KL_CHANNELS_COLLNET);
    if (q->min_sm >= 90 && several && ring->bw_intra > 45.0f && c->nchannels < 16)
        grow(c, 2 * c->nchannels, KL_CHANNELS_FAST_RING);
    if (q->unpack && several && c->nchannels < 16 && q->params.unpack_double)
        grow(c, 2 * c->nchannels, KL_CHANNELS_UNPACK);
    apply_limits(c, q);
    c->coll_channels = c->nchannels;
    set_nvls_channels(c, q);
    if (q->parent_nvls_channels && q->parent_nvls_channels < c->nvls_channels)
        c->nvls_channels = q->parent_nvls_channels;
    if (c->nvls && !kl_nccl_has(c->nccl, KL_CHANGE_NVLS_APART)) grow(c, c->nvls_channels, KL_CHANNELS_NVLS);
    if (!c->nheads) c->nvls_channels = 0;
    if (!q->parent_channels) return;
    cut(c, q->parent_channels, KL_CHANNELS_PARENT);
    if (c->coll_channels > q->parent_channels) c->coll_channels = q->parent_channels;
}

/* ---- reasons ---- */

static const struct {
    const char *name, *text;
} reasons[KL_CHANNEL_REASONS] = {
    [KL_CHANNELS_RING] = {"ring", "the ring graph has this many"},
    [KL_CHANNELS_TREE] = {"tree", "the tree graph has fewer, and each channel needs both"},
    [KL_CHANNELS_RANKS] = {"ranks", "some ranks have fewer, and all must have the same"},
    [KL_CHANNELS_TWICE] = {"twice", "each is duplicated, for the two halves of the double binary tree"},
    [KL_CHANNELS_COLLNET] = {"collnet", "half as many more, as CollNet's chain is faster inside the node than outside"},
    [KL_CHANNELS_FAST_RING] = {"fast_ring", "twice as many, as sm 90 and later fill rings of more than 45 GB/s between "
                                            "nodes only with 16 channels"},
    [KL_CHANNELS_UNPACK] = {"unpack", "twice as many, as the network delivers packed data "
                                      "(NCCL_UNPACK_DOUBLE_NCHANNELS)"},
    [KL_CHANNELS_UPPER] = {"max_channels", "NCCL_MAX_NCHANNELS (or NCCL_MAX_NRINGS, or the limit of a launch: "
                                           "NCCL_WORK_ARGS_BYTES) allows no more"},
    [KL_CHANNELS_MAX_CTAS] = {"max_ctas", "NCCL_MAX_CTAS, or the communicator's maxCTAs, allows no more"},
    [KL_CHANNELS_PARENT] = {"parent", "the parent communicator, whose resources are shared, has no more"},
    [KL_CHANNELS_LOWER] = {"min_channels", "NCCL_MIN_NCHANNELS, NCCL_MIN_NRINGS, NCCL_MIN_CTAS or the communicator's "
                                           "minCTAs asks for this many: channels are repeated"},
    [KL_CHANNELS_NVLS] = {"nvls", "NVLS needs this many (NCCL_NVLS_NCHANNELS); only NVLS uses the added ones"},
};

const char *kl_channel_reason_name(int reason)
{
    return reason >= 0 && reason < KL_CHANNEL_REASONS ? reasons[reason].name : "unknown";
}

const char *kl_channel_reason_text(int reason)
{
    return reason >= 0 && reason < KL_CHANNEL_REASONS ? reasons[reason].text : "unknown";
}
