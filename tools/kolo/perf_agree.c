/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_agree.h"

#include "base/error.h"

/* ---- the tree: with bit k set and lower bits clear, a rank's parent is 2^k below it ---- */

static int levels(int nranks)
{
    int k = 0;

    while (1 << k < nranks) k++;
    return k;
}

static bool is_child(int rank, int k)
{
    return rank >> k & 1 && !(rank & ((1 << k) - 1));
}

static bool is_parent(int rank, int nranks, int k)
{
    return !(rank & ((2 << k) - 1)) && rank + (1 << k) < nranks;
}

/* Ranks below `rank`, itself included, once the levels below k are done. */
static int subtree(int rank, int nranks, int k)
{
    return rank + (1 << k) < nranks ? 1 << k : nranks - rank;
}

/** Data of the n-th own rank that go up from a child, or arrive at its parent, at level k. */
struct part {
    void *data;
    size_t bytes;
};
typedef struct part part_fn(void *ctx, const struct kl_perf_rank *rank, int n, int k, bool child);

static ncclResult_t move_one(const struct kl_perf_rank *r, const struct part *p, int peer, bool sends)
{
    if (sends) return ncclSend(p->data, p->bytes, ncclInt8, peer, r->comm, r->stream);
    return ncclRecv(p->data, p->bytes, ncclInt8, peer, r->comm, r->stream);
}

/* One level, upwards or downwards, for all own ranks together. */
static ncclResult_t move_level(struct kl_perf_rank *rank, int nown, int k, bool up, part_fn *part, void *ctx)
{
    ncclResult_t rc = ncclSuccess;

    KL_TRY(ncclGroupStart());
    for (int i = 0; i < nown && !rc; i++) {
        const struct kl_perf_rank *r = &rank[i];
        bool child = is_child(r->rank, k);
        if (!child && !is_parent(r->rank, r->nranks, k)) continue;
        struct part p = part(ctx, r, i, k, child);
        rc = move_one(r, &p, r->rank + (child ? -(1 << k) : 1 << k), child == up);
    }
    ncclResult_t end = ncclGroupEnd();
    KL_TRY(rc ? rc : end);
    for (int i = 0; i < nown; i++) KL_TRY(koloStreamSynchronize(rank[i].stream));
    return ncclSuccess;
}

/* ---- combining ---- */

/* A parent receives behind its own values. */
static struct part values_up(void *ctx, const struct kl_perf_rank *r, int n, int k, bool child)
{
    size_t count = *(const size_t *)ctx;

    (void)n, (void)k;
    return (struct part){r->scratch + (child ? 0 : KL_PERF_SCRATCH), count * sizeof *r->scratch};
}

static struct part values_down(void *ctx, const struct kl_perf_rank *r, int n, int k, bool child)
{
    size_t count = *(const size_t *)ctx;

    (void)n, (void)k, (void)child;
    return (struct part){r->scratch, count * sizeof *r->scratch};
}

static double combine(double a, double b, ncclRedOp_t op)
{
    if (op == ncclSum) return a + b;
    return (op == ncclMin) == (a < b) ? a : b;
}

ncclResult_t kl_perf_combine(struct kl_perf_rank *rank, int nown, size_t n, ncclRedOp_t op)
{
    int nlevels = levels(rank[0].nranks);

    for (int k = 0; k < nlevels; k++) {
        KL_TRY(move_level(rank, nown, k, true, values_up, &n));
        for (int i = 0; i < nown; i++) {
            double *own = rank[i].scratch, *other = own + KL_PERF_SCRATCH;
            if (!is_parent(rank[i].rank, rank[i].nranks, k)) continue;
            for (size_t v = 0; v < n; v++) own[v] = combine(own[v], other[v], op);
        }
    }
    for (int k = nlevels; k-- > 0;) KL_TRY(move_level(rank, nown, k, false, values_down, &n));
    return ncclSuccess;
}

/* ---- gathering ---- */

struct lists {
    char *base;
    size_t entry_bytes;
};

static struct part entries(void *ctx, const struct kl_perf_rank *r, int n, int k, bool child)
{
    const struct lists *l = ctx;
    int first = child ? r->rank : r->rank + (1 << k);
    size_t list = (size_t)n * (size_t)r->nranks;

    return (struct part){l->base + (list + (size_t)first) * l->entry_bytes,
                         (size_t)subtree(first, r->nranks, k) * l->entry_bytes};
}

ncclResult_t kl_perf_gather(struct kl_perf_rank *rank, int nown, void *lists, size_t entry_bytes)
{
    struct lists l = {lists, entry_bytes};

    for (int k = 0; k < levels(rank[0].nranks); k++) KL_TRY(move_level(rank, nown, k, true, entries, &l));
    return ncclSuccess;
}

/* ---- handing out ---- */

static struct part all_of_it(void *ctx, const struct kl_perf_rank *r, int n, int k, bool child)
{
    (void)r, (void)n, (void)k, (void)child;
    return *(const struct part *)ctx;
}

ncclResult_t kl_perf_hand_out(struct kl_perf_rank *rank, void *data, size_t bytes)
{
    struct part p = {data, bytes};

    for (int k = levels(rank->nranks); k-- > 0;) KL_TRY(move_level(rank, 1, k, false, all_of_it, &p));
    return ncclSuccess;
}
