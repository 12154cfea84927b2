/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

#include "base/error.h"

static int log2_of(uint64_t x)
{
    return x ? 63 - __builtin_clzll(x) : -1;
}

float kl_tuning_time(const struct kl_tuning *t, int func, int algo, int proto, int64_t bytes, int npipe)
{
    float bw = t->bandwidth[func][algo][proto], latency = t->latency[func][algo][proto];
    int size = log2_of((uint64_t)bytes >> 6), count = algo == KL_ALGO_RING ? npipe : (npipe + 9) / 10;

    if (bw == 0) return -1;
    if (algo == KL_ALGO_TREE && func == KL_FUNC_ALL_REDUCE && size >= 0 && size < KL_TREE_SIZES)
        bw *= t->constants->tree_share[proto][size];
    if (algo == KL_ALGO_RING && proto == KL_PROTO_SIMPLE && func == KL_FUNC_ALL_REDUCE && t->in.nnodes > 1 &&
        bytes / (t->in.nchannels * t->in.nranks) >= 64)
        latency *= t->in.min_sm < 80 ? 1.9f : 1.4f;
    return latency * (float)count + (float)bytes / (1000 * bw);
}

static bool may_use(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo)
{
    const struct kl_tuning_input *in = &t->in;
    bool collnet = in->collnet && op->collnet, nvls = in->nvls && op->nvls;
    bool gather = op->func == KL_FUNC_ALL_GATHER, scatter = op->func == KL_FUNC_REDUCE_SCATTER;

    switch (algo) {
    case KL_ALGO_COLLNET_DIRECT:
        return collnet && in->max_local_ranks <= 8;
    case KL_ALGO_COLLNET_CHAIN:
        return collnet;
    case KL_ALGO_NVLS_TREE:
        return nvls || gather;
    case KL_ALGO_NVLS:
        if (!nvls && !gather) return false;
        if (!collnet && in->nnodes > 1) return false;
        return !((gather || scatter) && (in->nnodes > 1 || in->nranks > 32));
    case KL_ALGO_PAT:
        return !(scatter && op->prescaled);
    default:
        return true;
    }
}

static void all_costs(const struct kl_tuning *t, const struct kl_tuning_op *op, float cost[KL_ALGOS][KL_PROTOS])
{
    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            cost[a][p] = may_use(t, op, a) ? kl_tuning_time(t, op->func, a, p, op->bytes, op->npipe) : -1;
            /* FP8 sums lose precision along long rings. */
            if (op->fp8 && a == KL_ALGO_RING && t->in.nranks > 8 && cost[a][p] > 0) cost[a][p] *= 1024;
        }
}

/* ---- channels and threads ---- */

/* CollNetDirect gives up channels in steps of 16, 8, ... and asks less of each the fewer there are. */
static int collnet_channels(const struct kl_tuning *t, int64_t bytes, int nc, int nt, int64_t threshold)
{
    bool fewer = true;

    for (int step = 16; step >= 1 && fewer; step /= 2)
        while ((fewer = bytes < (int64_t)nc * nt * t->in.collnet_heads * threshold) && nc > step) {
            if (nc == step + step / 2) threshold /= 2;
            nc--;
        }
    return nc;
}

static void set_channels_and_threads(const struct kl_tuning *t, int64_t bytes, struct kl_tuning_choice *c)
{
    int64_t threshold = t->threshold[c->algo][c->proto];
    int nc = t->in.nchannels, nt = t->max_threads[c->algo][c->proto];

    if (c->algo == KL_ALGO_COLLNET_DIRECT) {
        nc = collnet_channels(t, bytes, nc, nt, threshold);
    } else if (c->algo == KL_ALGO_NVLS || c->algo == KL_ALGO_NVLS_TREE) {
        nc = t->in.nvls_channels;
    } else {
        while (bytes < (int64_t)nc * nt * threshold && nc >= 2) nc--;
        while (bytes < (int64_t)nc * nt * threshold && nt % 128 == 0) nt /= 2;
    }
    if (c->proto == KL_PROTO_SIMPLE) nt += c->algo == KL_ALGO_RING ? 32 : c->algo == KL_ALGO_TREE ? 128 : 0;
    if (nt < 96) nt = 96;
    if (c->algo == KL_ALGO_TREE || c->algo == KL_ALGO_PAT) nt = 640;
    c->nchannels = nc;
    c->nthreads = nt;
}

ncclResult_t kl_tuning_pick(const struct kl_tuning *t, const struct kl_tuning_op *op,
                            const float cost[KL_ALGOS][KL_PROTOS], struct kl_tuning_choice *choice)
{
    struct kl_tuning_choice best = {.algo = -1};

    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++)
            if (cost[a][p] >= 0 && (best.algo < 0 || cost[a][p] < best.time))
                best = (struct kl_tuning_choice){.algo = a, .proto = p, .time = cost[a][p]};
    if (t->in.nranks == 1) best = (struct kl_tuning_choice){.algo = KL_ALGO_RING, .proto = KL_PROTO_SIMPLE};
    if (best.algo < 0 && t->forced)
        return KL_FAIL(
            ncclInvalidUsage,
            "no algorithm and protocol that NCCL_ALGO and NCCL_PROTO allow can do %s here: allow more of them",
            kl_func_name[op->func]);
    if (best.algo < 0) return KL_FAIL(ncclInternalError, "no algorithm can do %s here", kl_func_name[op->func]);
    set_channels_and_threads(t, op->bytes, &best);
    *choice = best;
    return ncclSuccess;
}

ncclResult_t kl_tuning_choose(const struct kl_tuning *t, const struct kl_tuning_op *op, struct kl_tuning_choice *choice,
                              float cost[KL_ALGOS][KL_PROTOS])
{
    float own[KL_ALGOS][KL_PROTOS];

    if (!cost) cost = own;
    all_costs(t, op, cost);
    return kl_tuning_pick(t, op, (const float(*)[KL_PROTOS])cost, choice);
}
