/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "plan/order.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each setting is tried: the cluster is planned anew with it. */

struct finder {
    struct kl_order *order;
    const struct kl_cluster_request *cluster;
};

/* How much longer, at the same bandwidth per channel: the model does not know limits of channels. */
static double cost_of(const struct kl_order *o, const struct kl_order *with)
{
    double share = (double)with->rules.nchannels / o->rules.nchannels;
    double now = (double)o->op->choice.time, then = (double)with->op->choice.time;

    if (now <= 0 || then <= 0) return -1;
    if (share > 1) share = 1;
    return 100 * (then / share / now - 1);
}

static ncclResult_t plan_with(struct finder *f, const char *const *set, int n, struct kl_order_setting *s)
{
    struct kl_cluster_request request = *f->cluster;
    const char **all = calloc((size_t)request.edits.with.n + (size_t)n, sizeof *all);
    struct kl_cluster cluster;
    struct kl_planned planned;
    struct kl_order order = {.request = {0}};
    ncclResult_t rc;

    if (!all) return KL_NOMEM("settings");
    for (int i = 0; i < request.edits.with.n; i++) all[i] = request.edits.with.text[i];
    for (int i = 0; i < n; i++) all[request.edits.with.n + i] = set[i];
    request.edits.with.text = all;
    request.edits.with.n += n;
    rc = kl_cluster_open(&request, &cluster);
    if (!rc) {
        rc = kl_planned_init(&cluster, &planned);
        if (!rc) rc = kl_order_find(&f->order->request, &cluster, &planned, f->order->sums, &order);
        if (!rc) {
            s->answer = order.verdict[KL_ORDER_AT_COUNTS].answer;
            s->cost_percent = cost_of(f->order, &order);
        }
        kl_order_fini(&order);
        kl_planned_fini(&planned);
        kl_cluster_close(&cluster);
    }
    free(all);
    return rc;
}

/* A setting that was planned and does not help is left out. */
__attribute__((format(printf, 4, 5))) static void offer(struct finder *f, const char *const *set, int n,
                                                        const char *fmt, ...)
{
    struct kl_order *o = f->order;
    struct kl_order_setting *s = &o->setting[o->nsettings];
    struct kl_text text = kl_text_in(s->set, sizeof s->set);
    int quiet = kl_error_quiet(1);
    va_list args;

    for (int i = 0; i < n; i++) kl_text_add(&text, "%s%s", i ? " " : "", set[i]);
    va_start(args, fmt);
    vsnprintf(s->text, sizeof s->text, fmt, args);
    va_end(args);
    if (!plan_with(f, set, n, s) && s->answer == KL_ORDER_YES && o->nsettings + 1 < KL_ORDER_SETTINGS) o->nsettings++;
    kl_error_quiet(quiet);
}

/* Symmetric kernels are not planned for. */
static void offer_kernel(struct finder *f, const char *set, const char *text)
{
    struct kl_order *o = f->order;

    if (!kl_nccl_has(o->rules.nccl, KL_CHANGE_CUT_REGISTERED) || o->rules.nnodes > 1) return;
    struct kl_order_setting *s = &o->setting[o->nsettings++];

    *s = (struct kl_order_setting){.answer = KL_ORDER_UNKNOWN, .cost_percent = -1};
    snprintf(s->set, sizeof s->set, "%s", set);
    snprintf(s->text, sizeof s->text, "%s", text);
}

static void limit_text(char text[64], int channels)
{
    snprintf(text, 64, "NCCL_MAX_NCHANNELS=%d", channels);
}

static void of_all_reduce(struct finder *f)
{
    const struct kl_order *o = f->order;
    char limit[64];
    const char *tree[] = {"NCCL_ALGO=allreduce:tree", limit};

    limit_text(limit, o->alike_trees);
    if (o->alike_trees == o->rules.nchannels)
        offer(f, tree, 1, "all %d channels have equal trees", o->alike_trees);
    else
        offer(f, tree, 2, "%d of %d channels have equal trees; it limits sends and receives as well", o->alike_trees,
              o->rules.nchannels);
    offer_kernel(f, "NCCL_SYM_KERNEL=AllReduce_AGxLL_R",
                 "in symmetric windows: by rank everywhere, also per token; for small messages, as a rank receives 2 n "
                 "times the bytes");
    limit_text(limit, 1);
    if (o->nsettings && o->setting[0].answer == KL_ORDER_YES) return;
    offer(f, tree, 2, "one channel has one tree");
}

static void of_reduce_scatter(struct finder *f)
{
    const struct kl_order *o = f->order;
    char limit[64];
    const char *ring[] = {"NCCL_ALGO=reducescatter:ring", limit},
               *pat[] = {"NCCL_ALGO=reducescatter:pat", "NCCL_PAT_ENABLE=1"};

    limit_text(limit, o->alike_rings);
    if (o->alike_rings == o->rules.nchannels)
        offer(f, ring, 1, "all %d channels have equal rings; per block and index, not per token", o->alike_rings);
    else
        offer(f, ring, 2, "%d of %d channels have equal rings; per block and index, not per token", o->alike_rings,
              o->rules.nchannels);
    if (o->request.op != ncclAvg) offer(f, pat, 2, "the order depends on the block's rank alone; not per token");
    offer_kernel(f, "NCCL_SYM_KERNEL=ReduceScatter_LL", "in symmetric windows: by rank everywhere, also per token");
}

static void of_reduce(struct finder *f)
{
    const struct kl_order *o = f->order;
    char limit[64];
    const char *set[] = {limit};

    limit_text(limit, o->alike_rings);
    offer(f, set, 1, "%d of %d channels have equal rings", o->alike_rings, o->rules.nchannels);
}

ncclResult_t kl_order_find_settings(struct kl_order *o, const struct kl_cluster_request *cluster)
{
    struct finder f = {o, cluster};

    if (o->verdict[KL_ORDER_AT_COUNTS].answer == KL_ORDER_YES) {
        o->setting[o->nsettings] = (struct kl_order_setting){.answer = KL_ORDER_YES};
        snprintf(o->setting[o->nsettings].text, KL_ORDER_TEXT, "nothing is needed: %s",
                 o->verdict[KL_ORDER_AT_COUNTS].text);
        o->nsettings++;
        return ncclSuccess;
    }
    if (o->request.func == KL_FUNC_ALL_REDUCE)
        of_all_reduce(&f);
    else if (o->request.func == KL_FUNC_REDUCE_SCATTER)
        of_reduce_scatter(&f);
    else
        of_reduce(&f);
    return ncclSuccess;
}
