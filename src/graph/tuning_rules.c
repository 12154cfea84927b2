/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_rules.h"

#include "base/error.h"
#include "graph/grid.h"

/* ---- limits of the algorithms ---- */

static enum kl_tuning_refusal refuse_pat(const struct kl_tuning_input *in, int64_t param)
{
    if (in->min_sm < 60) return KL_REFUSED_PAT_SM;
    if (param != 2) return param ? KL_TUNING_ALLOWED : KL_REFUSED_PAT_OFF;
    if (in->nnodes != in->nranks) return KL_REFUSED_PAT_RANKS;
    return in->net_is_host ? KL_TUNING_ALLOWED : KL_REFUSED_PAT_NET;
}

static enum kl_tuning_refusal refuse_grid(const struct kl_tuning_input *in)
{
    struct kl_grid grid = kl_grid_of(in->nranks, in->nnodes, in->max_local_ranks);

    return grid.dimensions ? KL_TUNING_ALLOWED : KL_REFUSED_NO_GRID;
}

static enum kl_tuning_refusal refuse_shm_exchange(const struct kl_tuning_input *in)
{
    return in->nnodes == 1 && in->nranks <= KL_FLAT_RANKS ? KL_TUNING_ALLOWED : KL_REFUSED_NO_SHM_EXCHANGE;
}

enum kl_tuning_refusal kl_tuning_not_modelled(const struct kl_tuning_input *in, int64_t pat, int func, int algo,
                                              int proto)
{
    const struct kl_algo_info *info = &kl_algo_info[algo];

    if (!(info->funcs >> func & 1)) return KL_REFUSED_FUNC;
    if (!(info->protos >> proto & 1)) return KL_REFUSED_PROTO;
    if (algo == KL_ALGO_ONE_SHOT) return refuse_grid(in);
    if (algo == KL_ALGO_FLAT) return refuse_shm_exchange(in);
    return algo == KL_ALGO_PAT ? refuse_pat(in, pat) : KL_TUNING_ALLOWED;
}

/* ---- limits of the machine ---- */

static enum kl_tuning_refusal refuse_generation(const struct kl_tuning_input *in, int func, int algo)
{
    bool mixed_ok = in->min_sm >= 90 && kl_nccl_has(in->nccl, KL_CHANGE_LL128_MIXED);

    if (in->min_sm != in->max_sm && !mixed_ok) return KL_REFUSED_LL128_MIXED;
    if (in->min_sm == 90) {
        bool broken = in->cuda11 && algo == KL_ALGO_RING && func == KL_FUNC_ALL_REDUCE && in->nranks == 2;

        return broken ? KL_REFUSED_LL128_CUDA11 : KL_TUNING_ALLOWED;
    }
    if (kl_nccl_has(in->nccl, KL_CHANGE_LL128_SM)) return in->min_sm >= 70 ? KL_TUNING_ALLOWED : KL_REFUSED_LL128_SM;
    if (in->min_sm == 70 || in->min_sm == 80 || in->min_sm == 100 || in->min_sm == 120) return KL_TUNING_ALLOWED;
    return KL_REFUSED_LL128_SM;
}

/* The worst path to a NIC. */
static int ll128_limit(const struct kl_tuning_input *in, bool c2c)
{
    if (in->min_sm < 90) return KL_PATH_PXB;
    if (kl_nccl_has(in->nccl, KL_CHANGE_LL128_PXN)) return c2c ? KL_PATH_PXN : KL_PATH_PXB;
    return KL_PATH_PXN;
}

/* LL128 needs stores of 128 bytes to arrive whole, which NVLink and some NICs keep. */
static enum kl_tuning_refusal refuse_ll128(const struct kl_tuning *t, int func, int algo)
{
    const struct kl_tuning_input *in = &t->in;
    const struct kl_graph_facts *g = &in->graph[kl_algo_graph(algo)];
    bool inter = g->type_inter <= ll128_limit(in, t->ll128_c2c);

    /* Between these releases a GPU may be farther than another one is, but P2C only where it is asked for. */
    if (kl_nccl_has(in->nccl, KL_CHANGE_LL128_P2C) && !kl_nccl_has(in->nccl, KL_CHANGE_LL128_PXN))
        inter &= g->type_inter != KL_PATH_P2C || t->ll128_c2c;

    if (!inter) return KL_REFUSED_LL128_INTER;
    if (g->type_intra > KL_PATH_NVB) return KL_REFUSED_LL128_INTRA;
    return refuse_generation(in, func, algo);
}

/* Nodes of one GPU have nothing to join by a switch. */
static bool gpus_alone(const struct kl_tuning_input *in)
{
    return in->max_local_ranks == 1 && kl_nccl_has(in->nccl, KL_CHANGE_COLLNET_ALONE);
}

static enum kl_tuning_refusal refuse_algo(const struct kl_tuning_input *in, int algo)
{
    if (algo == KL_ALGO_NVLS_TREE && in->nnodes == 1) return in->nvls ? KL_REFUSED_ONE_NODE : KL_REFUSED_NO_NVLS;
    if (algo == KL_ALGO_NVLS && !in->collnet && in->nnodes > 1)
        return in->nvls ? KL_REFUSED_NVLS_NODES : KL_REFUSED_NO_NVLS;
    if (kl_algo_is_collnet(algo) && !in->collnet) return KL_REFUSED_NO_COLLNET;
    if (algo == KL_ALGO_COLLNET_CHAIN && in->chains_elsewhere && kl_nccl_has(in->nccl, KL_CHANGE_COLLNET_CHAIN_HEADS))
        return KL_REFUSED_CHAIN_HEADS;
    return algo == KL_ALGO_COLLNET_DIRECT && !in->nvs && !gpus_alone(in) ? KL_REFUSED_NO_NVSWITCH : KL_TUNING_ALLOWED;
}

/* ---- the user's limits ---- */

enum { AUTOMATIC = 2 };

static bool given(const char *text)
{
    return text && *text;
}

ncclResult_t kl_tuning_filter_read(const struct kl_tuning_params *p, int algos, struct kl_tuning_filter *w)
{
    *w = (struct kl_tuning_filter){.any = given(p->algo) || given(p->proto)};
    for (int f = 0; f < KL_FUNCS; f++) {
        for (int a = 0; a < KL_ALGOS; a++) w->algo[f][a] = 1;
        w->proto[f][KL_PROTO_LL] = w->proto[f][KL_PROTO_SIMPLE] = 1;
        w->proto[f][KL_PROTO_LL128] = AUTOMATIC;
    }
    if (given(p->proto)) KL_TRY(kl_tuning_parse("NCCL_PROTO", p->proto, kl_proto_name, KL_PROTOS, w->proto));
    if (given(p->algo)) KL_TRY(kl_tuning_parse("NCCL_ALGO", p->algo, kl_algo_name, algos, w->algo));
    return ncclSuccess;
}

/* ---- for every operation ---- */

static enum kl_tuning_refusal exclude(const struct kl_tuning *t, const struct kl_tuning_filter *w, int func, int algo,
                                      int proto)
{
    enum kl_tuning_refusal why = refuse_algo(&t->in, algo);

    if (why) return why;
    if (!w->algo[func][algo]) return KL_REFUSED_BY_ALGO;
    if (!w->proto[func][proto]) return KL_REFUSED_BY_PROTO;
    if (proto != KL_PROTO_LL128 || w->proto[func][proto] != AUTOMATIC) return KL_TUNING_ALLOWED;
    return refuse_ll128(t, func, algo);
}

/* Why the model found nothing. */
static enum kl_tuning_refusal without_bandwidth(const struct kl_tuning_input *in, int algo)
{
    return kl_algo_is_nvls(algo) && !in->nvls ? KL_REFUSED_NO_NVLS : KL_REFUSED_NO_GRAPH;
}

static void note(uint8_t *refusal, enum kl_tuning_refusal why)
{
    if (why && (!*refusal || why < *refusal)) *refusal = (uint8_t)why;
}

/* Newer releases model switches and networks that reduce only where these can. */
static bool loses_latency(const struct kl_tuning_input *in, int algo, int why)
{
    if (!kl_nccl_has(in->nccl, KL_CHANGE_NO_LATENCY) || (!kl_algo_is_collnet(algo) && !kl_algo_is_nvls(algo)))
        return false;
    return why && why != KL_REFUSED_BY_ALGO && why != KL_REFUSED_BY_PROTO;
}

static void exclude_one(struct kl_tuning *t, const struct kl_tuning_filter *w, int func, int algo, int proto)
{
    uint8_t *refusal = &t->refusal[func][algo][proto];
    float *bandwidth = &t->bandwidth[func][algo][proto];
    enum kl_tuning_refusal why = exclude(t, w, func, algo, proto);

    if (t->in.nranks == 1) note(refusal, KL_REFUSED_ONE_RANK);
    if (!(*bandwidth > 0)) note(refusal, without_bandwidth(&t->in, algo));
    note(refusal, why);
    if (why) *bandwidth = 0;
    if (loses_latency(&t->in, algo, *refusal)) {
        t->latency[func][algo][proto] = 0;
        t->parts[func][algo][proto] = (struct kl_tuning_latency){0};
    }
}

void kl_tuning_exclude(struct kl_tuning *t, const struct kl_tuning_filter *w)
{
    for (int f = 0; f < KL_FUNCS; f++)
        for (int a = 0; a < KL_ALGOS; a++)
            for (int p = 0; p < KL_PROTOS; p++) exclude_one(t, w, f, a, p);
}

/* ---- for one operation ---- */

static enum kl_tuning_refusal unfit_collnet(const struct kl_tuning_input *in, const struct kl_tuning_op *op, int algo)
{
    if (!in->collnet) return KL_REFUSED_NO_COLLNET;
    if (!op->collnet) return KL_REFUSED_COLLNET_OP;
    bool bounded = algo == KL_ALGO_COLLNET_DIRECT || kl_nccl_has(in->nccl, KL_CHANGE_COLLNET_CHAIN_8);

    return bounded && in->max_local_ranks > 8 ? KL_REFUSED_COLLNET_LOCAL : KL_TUNING_ALLOWED;
}

static enum kl_tuning_refusal unfit_nvls(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo)
{
    const struct kl_tuning_input *in = &t->in;
    bool gathers = kl_func_gathers(op->func), reducible = op->nvls || t->constants->any_reduction;

    bool newer = kl_nccl_has(in->nccl, KL_CHANGE_NVLS_RULES);

    if ((newer || op->func != KL_FUNC_ALL_GATHER) && !in->nvls) return KL_REFUSED_NO_NVLS;
    if (op->func != KL_FUNC_ALL_GATHER && !reducible) return KL_REFUSED_NVLS_OP;
    if (newer && op->func != KL_FUNC_ALL_REDUCE && in->max_local_ranks > 32) return KL_REFUSED_NVLS_GATHER;
    if (algo == KL_ALGO_NVLS_TREE) return KL_TUNING_ALLOWED;
    if (in->nnodes > 1 && !(in->collnet && op->collnet)) return KL_REFUSED_NVLS_NODES;
    return !newer && gathers && (in->nnodes > 1 || in->nranks > 32) ? KL_REFUSED_NVLS_GATHER : KL_TUNING_ALLOWED;
}

static enum kl_tuning_refusal unfit_pat(const struct kl_tuning *t, const struct kl_tuning_op *op)
{
    bool scaled = op->func == KL_FUNC_REDUCE_SCATTER && op->prescaled;

    bool any = t->constants->any_reduction || kl_nccl_has(t->in.nccl, KL_CHANGE_ANY_SUM);

    return scaled && !any ? KL_REFUSED_PAT_OP : KL_TUNING_ALLOWED;
}

enum kl_tuning_refusal kl_tuning_unfit(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo)
{
    if (kl_algo_is_collnet(algo)) return unfit_collnet(&t->in, op, algo);
    if (kl_algo_is_nvls(algo)) return unfit_nvls(t, op, algo);
    return algo == KL_ALGO_PAT ? unfit_pat(t, op) : KL_TUNING_ALLOWED;
}

enum kl_tuning_refusal kl_tuning_refused(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    enum kl_tuning_refusal why = t->refusal[op->func][algo][proto];

    return why ? why : kl_tuning_unfit(t, op, algo);
}
