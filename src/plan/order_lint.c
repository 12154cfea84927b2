/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct linter {
    struct kl_order *order;
    const struct kl_cluster *cluster;
    int algo, func;
};

__attribute__((format(printf, 3, 4))) static void lint(struct linter *l, const char *code, const char *fmt, ...)
{
    struct kl_order *o = l->order;
    va_list args;

    if (o->nlints == KL_ORDER_LINTS) return;
    o->lint[o->nlints].code = code;
    va_start(args, fmt);
    vsnprintf(o->lint[o->nlints].text, KL_ORDER_TEXT, fmt, args);
    va_end(args);
    o->nlints++;
}

/* The value of a setting in force; NULL if it is not set. */
static const char *set(const struct linter *l, const char *name)
{
    struct kl_setting setting;

    return kl_settings_find(&l->cluster->settings, name, &setting) && *setting.text ? setting.text : NULL;
}

/* Channels that may be used without a change of the order. */
static int alike(const struct linter *l)
{
    return l->algo == KL_ALGO_TREE ? l->order->alike_trees : l->order->alike_rings;
}

static bool floats_of_many(const struct linter *l)
{
    return !l->order->exact && l->order->rules.nranks > 2;
}

static void about_choice(struct linter *l)
{
    const struct kl_order *o = l->order;

    if (l->algo == KL_ALGO_RING && l->func == KL_FUNC_ALL_REDUCE)
        lint(l, "ring_moves",
             "Ring: the order follows the place in the buffer; no setting makes it invariant in size: use Tree");
    if (l->algo == KL_ALGO_TREE && o->most_used > o->alike_trees)
        lint(l, "trees_differ",
             "Tree is not invariant in size: channels %d to %d have other trees than channel 0, and the number of "
             "channels follows the "
             "size: NCCL_MAX_NCHANNELS=%d",
             o->alike_trees, o->most_used - 1, o->alike_trees);
    if (l->func == KL_FUNC_REDUCE_SCATTER)
        lint(l, "scatter_moves",
             "ReduceScatter: a block's sum begins behind its owner, so a row that moves to another block "
             "is added in another order");
    for (int i = 0; i < o->nchoices; i++) {
        char from[32], to[32];
        struct kl_text a = kl_text_in(from, sizeof from), b = kl_text_in(to, sizeof to);

        if (!kl_order_undefined(o->choice[i].choice.algo)) continue;
        kl_text_add_size(&a, o->choice[i].first);
        kl_text_add_size(&b, o->choice[i].last);
        lint(l, "switch_sums", "%s from %s to %s: added in a switch, in an unknown order",
             kl_algo_name[o->choice[i].choice.algo], from, to);
    }
    if (o->verdict[KL_ORDER_IN_PLACE].code && !strcmp(o->verdict[KL_ORDER_IN_PLACE].code, "registered_16") &&
        o->verdict[KL_ORDER_IN_PLACE].answer == KL_ORDER_NO)
        lint(l, "registered_16", "%s", o->verdict[KL_ORDER_IN_PLACE].text);
    if (o->request.nmore && alike(l) < o->rules.nchannels && l->algo != KL_ALGO_PAT)
        lint(l, "group_shift", "an element's channel depends on the other operations of its group");
}

static void about_channels(struct linter *l)
{
    const struct kl_order *o = l->order;
    const char *least = set(l, "NCCL_MIN_NCHANNELS"), *most = set(l, "NCCL_MAX_NCHANNELS");
    bool useful = l->algo == KL_ALGO_TREE || (l->algo == KL_ALGO_RING && l->func != KL_FUNC_ALL_REDUCE);

    if (least || (most && useful && o->rules.nchannels > alike(l)))
        lint(l, "pin_useless",
             "%s=%s does not fix the order: small sizes use fewer channels all the same; only channels that are alike "
             "do",
             least ? "NCCL_MIN_NCHANNELS" : "NCCL_MAX_NCHANNELS", least ? least : most);
    if (useful && alike(l) == o->rules.nchannels && (set(l, "NCCL_PROTO") || most))
        lint(l, "nothing_needed", "%s=%s costs bandwidth only: all %d channels and all protocols add alike",
             most ? "NCCL_MAX_NCHANNELS" : "NCCL_PROTO", most ? most : set(l, "NCCL_PROTO"), o->rules.nchannels);
    if (most && o->rules.nvls_channels && !kl_nccl_has(o->rules.nccl, KL_CHANGE_NVLS_APART) &&
        o->rules.nchannels > strtol(most, NULL, 10))
        lint(l, "nvls_grows", "NCCL_MAX_NCHANNELS=%s does not hold: NVLS makes it %d channels; NCCL_NVLS_ENABLE=0",
             most, o->rules.nchannels);
}

static void about_names(struct linter *l)
{
    const char *algo = set(l, "NCCL_ALGO"), *tuner = set(l, "NCCL_TUNER_PLUGIN");

    if (algo && strcasestr(algo, "^nvls") && !strcasestr(algo, "nvlstree") && l->order->rules.nnodes > 1)
        lint(l, "nvls_left",
             "NCCL_ALGO=%s: NVLSTree is not named and sums in the switch too: ^NVLS,NVLSTree, or NCCL_NVLS_ENABLE=0",
             algo);
    if (algo && strcasestr(algo, "allreduce:") && !strchr(algo, ';'))
        lint(l, "others_free", "NCCL_ALGO=%s: ReduceScatter and Reduce are still chosen by size", algo);
    if (tuner) lint(l, "tuner", "NCCL_TUNER_PLUGIN=%s may choose by size; it is not modelled", tuner);
}

static void about_type(struct linter *l)
{
    const struct kl_order *o = l->order;
    ncclDataType_t type = o->request.type;
    int depth = 0;

    if (o->request.op == ncclAvg && o->rules.nranks & (o->rules.nranks - 1))
        lint(l, "avg_scaled", "avg is not sum / %d: each contribution is scaled first, and %d is no power of two",
             o->rules.nranks, o->rules.nranks);
    if (type == ncclFloat32 || type == ncclFloat64 || kl_order_undefined(l->algo)) return;
    for (int i = 0; i < o->ranges.n; i++) {
        int d = kl_order_depth(o->sums, o->ranges.range[i].sum);

        if (d > depth) depth = d;
    }
    lint(l, "low_precision", "a contribution is rounded to its 16 or 8 bits up to %d times", depth);
}

void kl_order_find_lints(struct kl_order *o, const struct kl_cluster *cluster)
{
    struct linter l = {o, cluster, o->op->choice.algo, o->request.func};

    if (!floats_of_many(&l)) return;
    about_choice(&l);
    about_channels(&l);
    about_names(&l);
    about_type(&l);
}
