/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/bound.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * A round with one bandwidth b reserves a few sizes on links: b, 6/5 b, b/2, b/8, ... All are multiples of b/80. So the
 * reservations on a link add up to a multiple of b/80, and a link accepts a step if the new sum fits. If the same sums fit
 * into every link for two bandwidths, both rounds accept and refuse the same steps: they are the same search with other
 * numbers.
 */
enum { UNITS = 80, MAX_SUM = 4096 };

struct kl_sums {
    int16_t fits[MAX_SUM + 1]; /* the largest sum that is at most this */
    bool is_sum[MAX_SUM + 1];
};

static void add_size(struct kl_sums *s, int units)
{
    for (int i = units; i <= MAX_SUM; i++) s->is_sum[i] |= s->is_sum[i - units];
}

ncclResult_t kl_sums_create(const struct kl_routes *r, int pattern, struct kl_sums **sums)
{
    static const int units[KL_SHARES] = {UNITS, UNITS * 6 / 5, UNITS / 8, UNITS * 6 / 5 / 8};
    struct kl_sums *s = calloc(1, sizeof *s);

    if (!s) return KL_NOMEM("a graph search");
    s->is_sum[0] = true;
    for (int k = 0; k < KL_SHARES; k++) {
        if (k != KL_SHARE_ALL && !(r->shares >> k & 1)) continue;
        add_size(s, units[k]);
        if (pattern == KL_PATTERN_BALANCED_TREE && k <= KL_SHARE_COSTLY) add_size(s, units[k] / 2);
    }
    for (int i = 1; i <= MAX_SUM; i++) s->fits[i] = s->is_sum[i] ? (int16_t)i : s->fits[i - 1];
    *sums = s;
    return ncclSuccess;
}

void kl_sums_free(struct kl_sums *sums)
{
    free(sums);
}

static int64_t thousandths(float bw)
{
    return (int64_t)llroundf(bw * 1000);
}

/* The largest sum that fits into a link. */
static int64_t largest_sum(const struct kl_sums *s, float left, float bw)
{
    int64_t units = UNITS * thousandths(left) / thousandths(bw);

    return units <= MAX_SUM ? s->fits[units] : units;
}

static bool links_alike(const struct kl_routes *r, const struct kl_sums *s, float a, float b)
{
    for (int l = 0; l < r->topo->nlinks; l++) {
        float left = kl_level_value(&r->levels, r->level[l]);

        if (l && r->level[l] == r->level[l - 1]) continue;
        if (largest_sum(s, left, a) != largest_sum(s, left, b)) return false;
    }
    return true;
}

static int entries_of(float left, int bw)
{
    return bw ? kl_whole(left / (float)bw) : -1;
}

static bool nets_alike(const struct kl_routes *r, int a, int b)
{
    for (int n = 0; n < r->nnets; n++) {
        if (entries_of(r->net_bw[n], a) != entries_of(r->net_bw[n], b)) return false;
        if ((r->nearest[n].bw >= (float)a) != (r->nearest[n].bw >= (float)b)) return false;
    }
    return true;
}

/* ---- the order of candidates: by whole GB/s left of their PCI links ---- */

enum { MAX_VALUES = 512 };

struct values {
    int a[MAX_VALUES], b[MAX_VALUES];
    int n;
};

/* The values that a link can have left, in both rounds. */
static bool add_values(const struct kl_sums *s, float left, float bw_a, float bw_b, struct values *v)
{
    int64_t most = largest_sum(s, left, bw_a);

    if (most > MAX_SUM) return false;
    for (int sum = 0; sum <= most; sum++) {
        if (!s->is_sum[sum]) continue;
        if (v->n == MAX_VALUES) return false;
        v->a[v->n] = (int)((thousandths(left) - sum * thousandths(bw_a) / UNITS) / 1000);
        v->b[v->n++] = (int)((thousandths(left) - sum * thousandths(bw_b) / UNITS) / 1000);
    }
    return true;
}

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

static bool same_order(const struct values *v)
{
    for (int i = 1; i < v->n; i++)
        for (int k = 0; k < i; k++)
            if (sign(v->a[i] - v->a[k]) != sign(v->b[i] - v->b[k])) return false;
    return true;
}

static bool pci_order_alike(const struct kl_routes *r, const struct kl_sums *s, float a, float b)
{
    struct values v = {.n = 0};
    int32_t seen[8];
    int nseen = 0;

    for (int i = 0; i < 2 * r->ngpus; i++) {
        int link = i < r->ngpus ? r->pci_up[i] : r->pci_down[i - r->ngpus], k = 0;

        if (link < 0) continue;
        while (k < nseen && seen[k] != r->level[link]) k++;
        if (k < nseen) continue;
        if (nseen == 8) return false;
        seen[nseen++] = r->level[link];
        if (!add_values(s, kl_level_value(&r->levels, r->level[link]), a, b, &v)) return false;
    }
    return same_order(&v);
}

/* ---- path types ---- */

static unsigned usable_types(const struct kl_routes *r, const struct kl_route *p, int n, const struct kl_wishes *w,
                             float bw, int limit)
{
    unsigned types = 0;

    for (int i = 0; i < n; i++) {
        int type = kl_is_tree(w->pattern) ? p[i].both : p[i].type;

        if (type <= limit && !(types >> type & 1) && kl_route_is_usable(r, &p[i], bw)) types |= 1u << type;
    }
    return types;
}

static unsigned usable_intra(const struct kl_routes *r, const struct kl_wishes *w)
{
    return usable_types(r, r->gpu_gpu, r->ngpus * r->ngpus, w, w->bw_intra, w->type_intra);
}

static float exit_bw(const struct kl_wishes *w)
{
    return w->pattern == KL_PATTERN_BALANCED_TREE ? w->bw_inter / 2 : w->bw_inter;
}

static unsigned usable_inter(const struct kl_routes *r, const struct kl_wishes *w)
{
    int n = r->ngpus * r->nnets;

    return usable_types(r, r->net_gpu, n, w, w->bw_inter, w->type_inter) |
           usable_types(r, r->gpu_net, n, w, exit_bw(w), w->type_inter);
}

static unsigned allowed(unsigned types, int limit)
{
    return types & ((2u << limit) - 1);
}

bool kl_one_net(const struct kl_routes *r, const struct kl_wishes *w)
{
    int usable = 0;

    for (int n = 0; n < r->nnets; n++) {
        bool any = false;

        if (r->same_net[n] != n) return false; /* an id that stands for another NET */

        for (int g = 0; g < r->ngpus && !any; g++)
            any = usable_types(r, kl_net_gpu(r, n, g), 1, w, w->bw_inter, w->type_inter) ||
                  usable_types(r, kl_gpu_net(r, g, n), 1, w, exit_bw(w), w->type_inter);
        usable += any;
    }
    return usable == 1;
}

bool kl_rounds_alike(const struct kl_routes *r, const struct kl_sums *s, const struct kl_wishes *a,
                     const struct kl_wishes *b, bool order)
{
    if (a->bw_intra != a->bw_inter || b->bw_intra != b->bw_inter || kl_has_heads(a->pattern)) return false;
    if (a->bw_intra != b->bw_intra &&
        (!links_alike(r, s, a->bw_intra, b->bw_intra) || !nets_alike(r, (int)a->bw_inter, (int)b->bw_inter)))
        return false;
    if (a->type_intra != b->type_intra && usable_intra(r, a) != usable_intra(r, b)) return false;
    if (!order) return a->type_inter == b->type_inter || usable_inter(r, a) == usable_inter(r, b);
    /* NETs are listed by type, whether usable or not. */
    if (allowed(r->inter_types, a->type_inter) != allowed(r->inter_types, b->type_inter)) return false;
    return r->nvs || !r->nnets || pci_order_alike(r, s, a->bw_intra, b->bw_intra);
}
