/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_chunk.h"

#include "plan/order_cut.h"

#include "device/host/redop.h"
#include "graph/tree.h"

enum {
    STEPS = 8,      /* of a buffer */
    RING_STEPS = 4, /* of a chunk, where a ring pipelines within it */
    CHAIN_MOST = 262144,
    NVLS_DEFAULT = 131072,
};

static const int64_t grain[KL_PROTOS] = {[KL_PROTO_LL] = 16, [KL_PROTO_LL128] = 1920, [KL_PROTO_SIMPLE] = 512};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Halve chunks above `above` as long as there are fewer than `wanted` loops of `nloop` chunks. */
static void halve(int64_t *chunk, int64_t bytes, int64_t nloop, int64_t wanted, int64_t above)
{
    while (bytes / (nloop * *chunk) < wanted && *chunk > above) *chunk /= 2;
}

/* Chunks of at most `to` where there are fewer than `wanted` loops. */
static void lower(int64_t *chunk, int64_t bytes, int64_t nloop, int64_t wanted, int64_t to)
{
    if (bytes<wanted * nloop * * chunk && * chunk> to) *chunk = to;
}

static int64_t start(const struct kl_order_rules *r, int func, const struct kl_tuning_choice *c)
{
    bool pipelined = func == KL_FUNC_ALL_REDUCE || func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER;
    int64_t chunk = r->buffer[c->proto] / STEPS;

    if (c->algo == KL_ALGO_RING && c->proto == KL_PROTO_SIMPLE && pipelined) chunk *= RING_STEPS;
    if (c->proto == KL_PROTO_LL) chunk /= 2;
    if (c->proto == KL_PROTO_LL128) chunk = chunk / 16 * 15;
    return chunk;
}

static void direct(const struct kl_order_rules *r, int64_t bytes, int n, int64_t *chunk)
{
    int64_t nloop = (int64_t)n * r->collnet_heads;

    halve(chunk, bytes, nloop, 64 * (int64_t)r->direct_depth, 131072);
    halve(chunk, bytes, nloop, 8 * (int64_t)r->direct_depth, 65536);
    halve(chunk, bytes, nloop, 8 * (int64_t)r->direct_depth, 32768);
}

static void chain(const struct kl_order_rules *r, int64_t bytes, int n, int64_t *chunk)
{
    *chunk = least(CHAIN_MOST, r->buffer[KL_PROTO_SIMPLE] / STEPS);
    halve(chunk, bytes, n, 64 * (int64_t)r->chain_depth, 131072);
    halve(chunk, bytes, n, 8 * (int64_t)r->chain_depth, 65536);
    halve(chunk, bytes, n, r->chain_depth, 32768);
}

static void nvls(const struct kl_order_rules *r, int func, int64_t bytes, int n, int64_t *chunk)
{
    bool gathers = func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER;
    int64_t most = r->nvls_chunk ? r->nvls_chunk : NVLS_DEFAULT, nloop = (int64_t)n * r->nvls_heads;

    if (gathers && r->nvls_registered && kl_nccl_has(r->nccl, KL_CHANGE_CUT_REGISTERED)) {
        *chunk = r->buffer[KL_PROTO_SIMPLE] / STEPS;
        return;
    }
    if (r->nnodes > 1 && r->nvls_slow) most = 32768;
    *chunk = least(*chunk, most);
    lower(chunk, bytes, nloop, 64, 65536);
    lower(chunk, bytes, nloop, 8, 32768);
    lower(chunk, bytes, nloop, 2, 16384);
}

static void nvls_tree(const struct kl_order_rules *r, int64_t bytes, int n, int64_t *chunk)
{
    int64_t nloop = (int64_t)n * r->nvls_heads;

    *chunk = r->nvls_chunk ? r->nvls_chunk : NVLS_DEFAULT;
    *chunk = least(*chunk, r->tree_chunk ? r->tree_chunk : r->nnodes >= 4 ? 65536 : *chunk);
    lower(chunk, bytes, nloop, 32, 262144);
    lower(chunk, bytes, nloop, 16, 131072);
    lower(chunk, bytes, nloop, 4, 65536);
    lower(chunk, bytes, nloop, 1, 32768);
}

/* NCCL divides whole numbers. */
static float loops_of(int64_t bytes, int64_t loop)
{
    const int64_t loops = bytes / loop;

    return (float)loops;
}

static void tree_ll128(const struct kl_order_rules *r, int64_t bytes, int n, int64_t *chunk)
{
    float ppn = (float)r->nranks / (float)r->nnodes;
    float steps = 1 + (float)kl_log2((unsigned)r->nnodes) + 0.1f * ppn;

    while (loops_of(bytes, n * *chunk) < steps * 64 / ppn && *chunk > 131072) *chunk /= 2;
    while (loops_of(bytes, n * *chunk) < steps * 16 / ppn && *chunk > 32768) *chunk /= 2;
}

static void pat(int func, int64_t bytes, int n, int64_t *chunk)
{
    int64_t loops = func == KL_FUNC_ALL_GATHER ? 32 : 16;

    while (*chunk * n * loops > bytes && *chunk > 65536) *chunk /= 2;
}

int64_t kl_order_chunk(const struct kl_order_rules *r, int func, ncclDataType_t type, const struct kl_tuning_choice *c,
                       int n, int64_t count)
{
    bool blocks = func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER;
    int64_t chunk = start(r, func, c), bytes = count * (int64_t)kl_type_bytes(type) * (blocks ? r->nranks : 1);

    switch (c->algo) {
    case KL_ALGO_COLLNET_DIRECT:
        direct(r, bytes, n, &chunk);
        break;
    case KL_ALGO_COLLNET_CHAIN:
        chain(r, bytes, n, &chunk);
        break;
    case KL_ALGO_NVLS:
        nvls(r, func, bytes, n, &chunk);
        break;
    case KL_ALGO_NVLS_TREE:
        nvls_tree(r, bytes, n, &chunk);
        break;
    case KL_ALGO_PAT:
        pat(func, bytes, n, &chunk);
        break;
    case KL_ALGO_TREE:
        if (c->proto == KL_PROTO_LL128) tree_ll128(r, bytes, n, &chunk);
        break;
    default:
        break;
    }
    return chunk / grain[c->proto] * grain[c->proto];
}
