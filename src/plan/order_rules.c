/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_rules.h"

#include "base/error.h"
#include "base/parse.h"

enum { KI = 1024 };

/* A size of the settings in force; unchanged if it is not set. */
static ncclResult_t size_setting(const struct kl_cluster *c, const char *name, int64_t *bytes)
{
    struct kl_setting setting;
    uint64_t value;

    if (!kl_settings_find(&c->settings, name, &setting) || !*setting.text || *setting.text == '-') return ncclSuccess;
    if (!kl_parse_size(setting.text, &value) || value < 8 * KI || value > INT32_MAX)
        return KL_FAIL(ncclInvalidUsage, "%s=%s: expected a size in bytes, 8192 to 2147483647", name, setting.text);
    *bytes = (int64_t)value;
    return ncclSuccess;
}

static int least_local(const struct kl_nodes *n)
{
    int least = n->max_local;

    for (int i = 0; i < n->nnodes; i++)
        if (n->first[i + 1] - n->first[i] < least) least = n->first[i + 1] - n->first[i];
    return least;
}

/* Chunks of NVLS over several nodes of sm 100, by the NICs and the ranks of a node. */
static void chunks_by_nets(const struct kl_connect *c, struct kl_order_rules *r)
{
    int ppn = least_local(&c->nodes), type = c->graph[KL_GRAPH_NVLS].type_inter;

    if (c->nodes.nnodes == 2 && c->net_bw >= 48) {
        r->tree_chunk = 128 * KI;
        if (ppn <= 4)
            r->nvls_chunk = r->tree_chunk = 256 * KI;
        else if (ppn >= 16 || (ppn <= 8 && type <= KL_PATH_PXB && c->net_bw < 96))
            r->tree_chunk = 64 * KI;
    } else if (c->net_bw >= 96) {
        r->tree_chunk = ppn < 32 ? 128 * KI : 64 * KI;
        if (ppn <= 8) r->nvls_chunk = r->tree_chunk = 256 * KI;
    } else if (c->net_bw >= 48) {
        r->tree_chunk = type <= KL_PATH_PXB ? 64 * KI : 128 * KI;
    }
}

ncclResult_t kl_order_rules_of(const struct kl_cluster *cluster, const struct kl_planned *planned,
                               struct kl_order_rules *r)
{
    const struct kl_connect *c = planned->plan->connect;
    const struct kl_tuning *t = &planned->plan->tuning;

    *r = (struct kl_order_rules){.nccl = t->in.nccl,
                                 .nranks = t->in.nranks,
                                 .nnodes = t->in.nnodes,
                                 .nchannels = t->in.nchannels,
                                 .nvls_channels = t->in.nvls_channels,
                                 .nvls_heads = c->nvls ? c->nheads : 0,
                                 .collnet_heads = t->in.collnet_heads,
                                 .direct_depth = t->in.max_local_ranks > 1 ? 2 : 1,
                                 .chain_depth = t->in.max_local_ranks,
                                 .buffer = KL_ORDER_BUFFERS};
    r->nvls_slow = r->nnodes > 1 && t->bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_NVLS][KL_PROTO_SIMPLE] < 150;
    if (kl_nccl_has(r->nccl, KL_CHANGE_NVLS_BY_NETS) && r->nnodes > 1 && t->in.min_sm >= 100) chunks_by_nets(c, r);
    KL_TRY(size_setting(cluster, "NCCL_BUFFSIZE", &r->buffer[KL_PROTO_SIMPLE]));
    KL_TRY(size_setting(cluster, "NCCL_LL_BUFFSIZE", &r->buffer[KL_PROTO_LL]));
    KL_TRY(size_setting(cluster, "NCCL_LL128_BUFFSIZE", &r->buffer[KL_PROTO_LL128]));
    KL_TRY(size_setting(cluster, "NCCL_NVLS_CHUNKSIZE", &r->nvls_chunk));
    return size_setting(cluster, "NCCL_NVLSTREE_MAX_CHUNKSIZE", &r->tree_chunk);
}
