/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_rules.h"

#include "base/error.h"
#include "graph/tuning_measured.h"

#include <math.h>

/* ---- times ---- */

static int log2_of(uint64_t x)
{
    return x ? 63 - __builtin_clzll(x) : -1;
}

/* From this size on a ring takes longer to start. */
static int64_t large_ring(const struct kl_tuning *t)
{
    return (int64_t)64 * t->in.nchannels * t->in.nranks;
}

/* Corrections of the model's two numbers for the size of an operation and the others of its group. */
struct corrections {
    float tree_share; /* of the bandwidth */
    float latency_factor;
    int count; /* how often the latency counts */
};

/* On Arm: nodes of exactly 4 ranks behind fast NICs; with two of them, below 64 MiB. `size`: log2 of 64 bytes. */
static bool arm_shares_like_trees(const struct kl_tuning *t, int size)
{
    const struct kl_tuning_input *in = &t->in;

    if (in->cpu_arch != KL_ARCH_ARM || !kl_nccl_has(in->nccl, KL_CHANGE_NVLS_TREE_ARM)) return false;
    if (in->net_bw < 96 || in->min_local_ranks != 4 || in->max_local_ranks != 4) return false;
    return size < 20 || in->nnodes > 2;
}

/* Does NVLSTree lose bandwidth at small sizes as trees do? */
static bool shares_like_trees(const struct kl_tuning *t, int size)
{
    if (t->in.min_sm < 100 || !kl_nccl_has(t->in.nccl, KL_CHANGE_NVLS_TREE_SHARE)) return false;
    return t->in.cpu_arch == KL_ARCH_X86 || arm_shares_like_trees(t, size);
}

enum {
    PLATEAU = 256 << 10
}; /* bytes of a channel and rank from which on its ring starts faster again; twice as many: no more */

/* Does a ring take longer to start, as within a node of Blackwell's NVLinks? */
static bool has_plateau(const struct kl_tuning *t, int func)
{
    if (t->in.nnodes > 1 || t->in.min_sm < 100 || !kl_nccl_has(t->in.nccl, KL_CHANGE_RING_PLATEAU)) return false;
    return t->in.graph[KL_GRAPH_RING].type_intra == KL_PATH_NVL &&
           (func == KL_FUNC_ALL_REDUCE || kl_func_gathers(func));
}

/* The relative increase, which also falls with each step that a ring has below two. */
static float plateau(const struct kl_tuning *t, const struct kl_tuning_op *op)
{
    double bytes = (double)op->bytes / t->in.nchannels / t->in.nranks, more = (bytes - PLATEAU) / PLATEAU;
    int steps = (op->func == KL_FUNC_ALL_REDUCE ? 2 : 1) * (t->in.nranks - 1);
    double most = 0.4 - 0.1 * (more < 0 ? 0 : more > 1 ? 1 : more);

    return (float)(most * (1 - pow(0.1 / 0.4, steps > 1 ? steps - 1 : 0)));
}

static float ring_factor(const struct kl_tuning *t, const struct kl_tuning_op *op)
{
    if (has_plateau(t, op->func)) return 1 + plateau(t, op);
    if (op->func != KL_FUNC_ALL_REDUCE || t->in.nnodes == 1 || op->bytes < large_ring(t)) return 1;
    return t->in.min_sm < 80 ? 1.9f : 1.4f;
}

static struct corrections corrections_of(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    struct corrections c = {1, 1, algo == KL_ALGO_RING ? op->npipe : (op->npipe + 9) / 10};
    int size = log2_of((uint64_t)op->bytes >> 6);

    if (algo == KL_ALGO_RING && proto == KL_PROTO_SIMPLE) c.latency_factor = ring_factor(t, op);
    if (op->func != KL_FUNC_ALL_REDUCE) return c;
    if (algo == KL_ALGO_TREE && size >= 0 && size < KL_TREE_OWN_SIZES) c.tree_share = t->at.tree_share[proto][size];
    if (algo == KL_ALGO_NVLS_TREE && size >= 0 && size < KL_TREE_SIZES && shares_like_trees(t, size))
        c.tree_share = t->at.tree_share[proto][size];
    return c;
}

/* The measured times that count here; they are of one host. */
static const struct kl_tuning_measured *measured_of(const struct kl_tuning *t)
{
    return t->at.follows_nccl || t->in.nnodes > 1 ? NULL : t->in.measured;
}

/* Times of pieces of a line have their own steps. */
static int64_t next_measured(const struct kl_tuning *t, int64_t bytes)
{
    for (int i = 0; measured_of(t) && i < KL_MEASURED_SIZES; i++)
        if (kl_measured_bytes[i] > bytes) return kl_measured_bytes[i];
    return INT64_MAX;
}

/* The size at which a ring's start begins or stops to change. */
static int64_t next_ring(const struct kl_tuning *t, int64_t bytes)
{
    const int64_t step[] = {large_ring(t), large_ring(t) * (PLATEAU / 64), large_ring(t) * (2 * PLATEAU / 64)};

    for (int i = 0; i < (has_plateau(t, KL_FUNC_ALL_REDUCE) ? 3 : 1); i++)
        if (step[i] > bytes) return step[i];
    return INT64_MAX;
}

int64_t kl_tuning_next_step(const struct kl_tuning *t, int64_t bytes)
{
    int64_t share = bytes < 64 ? 64 : bytes > INT64_MAX / 2 ? INT64_MAX : (int64_t)2 << log2_of((uint64_t)bytes);
    int64_t measured = next_measured(t, bytes), ring = next_ring(t, bytes);

    if (log2_of((uint64_t)bytes >> 6) >= KL_TREE_SIZES) share = INT64_MAX;
    if (measured < share) share = measured;
    return ring < share ? ring : share;
}

static float transfer_time(int64_t bytes, float bandwidth)
{
    return (float)bytes / (1000 * bandwidth);
}

static float model_time(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    float bw = t->bandwidth[op->func][algo][proto], latency = t->latency[op->func][algo][proto];
    struct corrections c = corrections_of(t, op, algo, proto);

    if (bw == 0) return -1;
    bw *= c.tree_share;
    latency *= c.latency_factor;
    return latency * (float)c.count + transfer_time(op->bytes, bw);
}

static float measured_us(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto, int64_t bytes)
{
    const struct kl_tuning_measured *m = measured_of(t);

    return m && proto == KL_PROTO_SIMPLE ? kl_tuning_measured_us(m, op->func, algo, t->in.nranks, bytes) : 0;
}

/* Measured over modelled time of the ring, also used to scale algorithms that were not measured. 0: no measurement. */
static float measured_ratio(const struct kl_tuning *t, const struct kl_tuning_op *op)
{
    float us = measured_us(t, op, KL_ALGO_RING, KL_PROTO_SIMPLE, op->bytes);
    float model = us > 0 ? model_time(t, op, KL_ALGO_RING, KL_PROTO_SIMPLE) : 0;

    return model > 0 ? us / model : 0;
}

/* Members of a group after the first start again. */
static float measured_time(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    int more = corrections_of(t, op, algo, proto).count - 1;

    return measured_us(t, op, algo, proto, op->bytes) + (float)more * measured_us(t, op, algo, proto, 0);
}

static float time_of(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    float model = model_time(t, op, algo, proto), ratio = model > 0 ? measured_ratio(t, op) : 0;

    if (ratio <= 0) return model;
    if (measured_us(t, op, algo, proto, op->bytes) > 0) return measured_time(t, op, algo, proto);
    return model * ratio;
}

/* FP8 sums lose precision along long rings. */
static float cost_of(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    float time = time_of(t, op, algo, proto);

    bool loses = op->fp8 && !kl_nccl_has(t->in.nccl, KL_CHANGE_ANY_SUM);

    return loses && algo == KL_ALGO_RING && t->in.nranks > 8 && time > 0 ? time * 1024 : time;
}

static void all_costs(const struct kl_tuning *t, const struct kl_tuning_op *op, float cost[KL_ALGOS][KL_PROTOS])
{
    for (int a = 0; a < KL_ALGOS; a++) {
        bool unfit = kl_tuning_unfit(t, op, a) != KL_TUNING_ALLOWED;

        for (int p = 0; p < KL_PROTOS; p++) cost[a][p] = unfit ? -1 : cost_of(t, op, a, p);
    }
}

/* ---- channels and threads ---- */

/* CollNetDirect drops channels in steps of 16, 8, ...; the fewer there are, the lower each one's threshold. */
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

void kl_tuning_size(const struct kl_tuning *t, int64_t bytes, struct kl_tuning_choice *c)
{
    int64_t threshold = t->threshold[c->algo][c->proto];
    int nc = t->in.nchannels, nt = t->max_threads[c->algo][c->proto];

    if (c->algo == KL_ALGO_COLLNET_DIRECT) {
        nc = collnet_channels(t, bytes, nc, nt, threshold);
    } else if (c->algo == KL_ALGO_NVLS || c->algo == KL_ALGO_NVLS_TREE) {
        bool bounded = c->algo == KL_ALGO_NVLS && t->in.nnodes > 1 && kl_nccl_has(t->in.nccl, KL_CHANGE_NVLS_SIZE);

        nc = bounded && t->in.nvls_channels > nc ? nc : t->in.nvls_channels;
    } else if (kl_algo_info[c->algo].one_channel) {
        nc = 1;
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

/* NCCL_ALGO and NCCL_PROTO as they are set. */
static void add_settings(const struct kl_tuning *t, struct kl_text *text)
{
    if (*t->algo) kl_text_add(text, "NCCL_ALGO=%s", t->algo);
    if (*t->proto) kl_text_add(text, "%sNCCL_PROTO=%s", *t->algo ? " and " : "", t->proto);
}

static ncclResult_t nothing_left(const struct kl_tuning *t, const struct kl_tuning_op *op)
{
    char set[2 * KL_TUNING_TEXT + 32], there[256];
    struct kl_text settings = kl_text_in(set, sizeof set), candidates = kl_text_in(there, sizeof there);

    if (!t->forced) return KL_FAIL(ncclInternalError, "no algorithm can do %s here", kl_func_name[op->func]);
    add_settings(t, &settings);
    kl_tuning_candidates_text(t, op, &candidates);
    return KL_FAIL(ncclInvalidUsage, "%s leave%s nothing that can do %s here; %s can", set,
                   *t->algo && *t->proto ? "" : "s", kl_func_name[op->func], there);
}

ncclResult_t kl_tuning_pick(const struct kl_tuning *t, const struct kl_tuning_op *op,
                            const float cost[KL_ALGOS][KL_PROTOS], struct kl_tuning_choice *choice)
{
    struct kl_tuning_choice best = {.algo = -1};
    bool later = kl_nccl_has(t->in.nccl, KL_CHANGE_LATER_WINS);

    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++)
            if (cost[a][p] >= 0 && (best.algo < 0 || cost[a][p] < best.time || (later && cost[a][p] <= best.time)))
                best = (struct kl_tuning_choice){.algo = a, .proto = p, .time = cost[a][p]};
    if (t->in.nranks == 1) best = (struct kl_tuning_choice){.algo = KL_ALGO_RING, .proto = KL_PROTO_SIMPLE};
    if (best.algo < 0) return nothing_left(t, op);
    kl_tuning_size(t, op->bytes, &best);
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

/* ---- explanations ---- */

static void model_terms(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto,
                        struct kl_tuning_terms *terms)
{
    float bw = t->bandwidth[op->func][algo][proto], latency = t->latency[op->func][algo][proto];
    struct corrections c = corrections_of(t, op, algo, proto);

    *terms = (struct kl_tuning_terms){.latency = t->parts[op->func][algo][proto],
                                      .correction = latency * c.latency_factor - latency,
                                      .group = latency * c.latency_factor * (float)(c.count - 1),
                                      .bandwidth = bw * c.tree_share,
                                      .tree_share = c.tree_share,
                                      .latency_factor = c.latency_factor,
                                      .modelled = model_time(t, op, algo, proto)};
    terms->timeless_hops = terms->latency.inside_hops > 0 && terms->latency.inside <= 0;
    terms->transfer = transfer_time(op->bytes, terms->bandwidth);
}

/* The time of the smallest operation is the start, the rest is transfer. */
static void measured_terms(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto,
                           struct kl_tuning_terms *terms)
{
    float all = time_of(t, op, algo, proto), start = measured_us(t, op, algo, proto, 0);
    int more = corrections_of(t, op, algo, proto).count - 1;

    if (start <= 0) start = all - terms->transfer * measured_ratio(t, op), more = 0;
    *terms = (struct kl_tuning_terms){.latency = {.base = start},
                                      .group = start * (float)more,
                                      .transfer = all - start * (float)(1 + more),
                                      .tree_share = 1,
                                      .latency_factor = 1,
                                      .modelled = terms->modelled,
                                      .measured = true};
    if (terms->transfer > 0) terms->bandwidth = (float)op->bytes / (1000 * terms->transfer);
}

void kl_tuning_terms(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto,
                     struct kl_tuning_terms *terms)
{
    model_terms(t, op, algo, proto, terms);
    if (measured_ratio(t, op) > 0) measured_terms(t, op, algo, proto, terms);
    terms->time = cost_of(t, op, algo, proto);
    terms->fp8 = terms->time - time_of(t, op, algo, proto);
}
