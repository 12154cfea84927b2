/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct judge {
    struct kl_order *order;
    const struct kl_tuning *tuning;
    int algo, func;
};

__attribute__((format(printf, 5, 6))) static void
say(struct judge *j, enum kl_order_scope scope, enum kl_order_result answer, const char *code, const char *fmt, ...)
{
    struct kl_order_verdict *v = &j->order->verdict[scope];
    va_list args;

    v->answer = answer;
    v->code = code;
    v->differs.element = -1;
    va_start(args, fmt);
    vsnprintf(v->text, sizeof v->text, fmt, args);
    va_end(args);
}

bool kl_order_undefined(int algo)
{
    return algo == KL_ALGO_NVLS || algo == KL_ALGO_NVLS_TREE || algo == KL_ALGO_COLLNET_DIRECT ||
           algo == KL_ALGO_COLLNET_CHAIN;
}

/* ---- always the same ---- */

static void all_yes(struct judge *j, const char *code, const char *text)
{
    for (int s = 0; s < KL_ORDER_SCOPES; s++) say(j, (enum kl_order_scope)s, KL_ORDER_YES, code, "%s", text);
}

/* ---- not documented ---- */

static const char *unknown_text(int algo)
{
    if (algo == KL_ALGO_COLLNET_DIRECT || algo == KL_ALGO_COLLNET_CHAIN)
        return "undefined here: added in the network; order and precision are the switch's";
    return "undefined here: added in the NVSwitch, whose order is not documented; calls did not give the same bits "
           "until a later "
           "driver (NVIDIA, nccl#1497; CUDA 12.8 according to nccl#2360)";
}

static void all_unknown(struct judge *j)
{
    const char *code = j->algo == KL_ALGO_NVLS || j->algo == KL_ALGO_NVLS_TREE ? "nvswitch" : "sharp";

    for (int s = 0; s < KL_ORDER_SCOPES; s++)
        say(j, (enum kl_order_scope)s, KL_ORDER_UNKNOWN, code, "%s", unknown_text(j->algo));
    say(j, KL_ORDER_ON_RANKS, KL_ORDER_YES, "copied", "a sum is made once and copied to all ranks");
    say(j, KL_ORDER_ON_HOSTS, KL_ORDER_NO, code, "%s", unknown_text(j->algo));
    say(j, KL_ORDER_IN_RELEASE, KL_ORDER_NO, code, "%s", unknown_text(j->algo));
}

/* ---- other counts ---- */

/* The smallest size at which another algorithm is chosen; NULL if there is none. */
static const struct kl_tuning_range *another(const struct kl_order *o, int algo)
{
    for (int i = 0; i < o->nchoices; i++)
        if (o->choice[i].choice.algo >= 0 && o->choice[i].choice.algo != algo) return &o->choice[i];
    return NULL;
}

/* Compare with other sizes until an element's sum differs. */
static void find_example(struct judge *j, enum kl_order_scope scope)
{
    struct kl_order *o = j->order;
    struct kl_order_verdict *v = &o->verdict[scope];
    const int64_t limits[] = {o->request.first, o->request.last};

    for (int64_t step = 2; step <= 1 << 20 && v->differs.element < 0; step *= 2)
        for (int down = 0; down < 2 && v->differs.element < 0; down++) {
            int64_t bytes = down ? o->request.bytes / step : o->request.bytes * step;
            struct kl_order other;

            if (bytes < limits[0] || bytes > limits[1] || bytes > (int64_t)1 << 34 || bytes < 1) continue;
            if (!kl_order_again(o, j->tuning, bytes, NULL, &other)) v->differs = kl_order_compare(o, &other);
            v->differs.bytes = bytes;
            kl_order_fini(&other);
        }
}

static bool takes_over(struct judge *j)
{
    const struct kl_tuning_range *r = another(j->order, j->algo);
    char size[32];
    struct kl_text text = kl_text_in(size, sizeof size);

    if (!r) return false;
    kl_text_add_size(&text, r->first);
    if (kl_order_undefined(r->choice.algo))
        say(j, KL_ORDER_AT_COUNTS, KL_ORDER_UNKNOWN, "switch_sums",
            "from %s on %s adds in a switch, in an unknown order", size, kl_algo_name[r->choice.algo]);
    else
        say(j, KL_ORDER_AT_COUNTS, KL_ORDER_NO, "algorithm_changes", "from %s on %s %s is chosen", size,
            kl_algo_name[r->choice.algo], kl_proto_name[r->choice.proto]);
    return true;
}

static void by_channels(struct judge *j, int alike, const char *wires)
{
    const struct kl_order *o = j->order;

    if (o->most_used <= alike)
        say(j, KL_ORDER_AT_COUNTS, KL_ORDER_YES, "alike", "all %d channels that are used at any size have equal %s",
            o->most_used, wires);
    else
        say(j, KL_ORDER_AT_COUNTS, KL_ORDER_NO, "channels_differ",
            "channel %d on has other %s than channel 0, and up to %d are used, the more the larger the size", alike,
            wires, o->most_used);
}

static void judge_counts(struct judge *j)
{
    const struct kl_order *o = j->order;

    if (!takes_over(j)) {
        if (j->algo == KL_ALGO_TREE)
            by_channels(j, o->alike_trees, "trees");
        else if (j->algo == KL_ALGO_PAT)
            say(j, KL_ORDER_AT_COUNTS, KL_ORDER_YES, "pat", "the order depends on the block's rank alone");
        else if (j->func == KL_FUNC_ALL_REDUCE)
            say(j, KL_ORDER_AT_COUNTS, KL_ORDER_NO, "ring_moves",
                "where an element's sum begins follows its place in the buffer");
        else
            by_channels(j, o->alike_rings, "rings");
    }
    if (j->order->verdict[KL_ORDER_AT_COUNTS].answer == KL_ORDER_NO) find_example(j, KL_ORDER_AT_COUNTS);
}

/* A row of a reduce-scatter that moves to another rank's block. */
static void judge_tokens(struct judge *j)
{
    struct kl_order_verdict *counts = &j->order->verdict[KL_ORDER_AT_COUNTS];

    if (j->func == KL_FUNC_REDUCE_SCATTER) {
        say(j, KL_ORDER_BY_TOKEN, KL_ORDER_NO, "scatter_moves", "a block's sum begins behind its owner");
    } else {
        j->order->verdict[KL_ORDER_BY_TOKEN] = *counts;
    }
}

/* ---- buffers ---- */

static bool gets_fewer(const struct kl_order *o)
{
    const struct kl_tuning_choice *c = &o->op->choice;

    return o->fewer_registered && c->proto == KL_PROTO_SIMPLE && (c->algo == KL_ALGO_RING || c->algo == KL_ALGO_TREE) &&
           c->nchannels > 16 && c->nchannels <= 24;
}

static void judge_buffers(struct judge *j)
{
    struct kl_order *o = j->order;
    struct kl_order_difference d = {.element = -1};

    if (gets_fewer(o)) {
        struct kl_tuning_choice fewer = o->op->choice;
        struct kl_order other;

        fewer.nchannels = 16;
        if (!kl_order_again(o, j->tuning, o->request.bytes, &fewer, &other)) d = kl_order_compare(o, &other);
        kl_order_fini(&other);
    }
    for (int s = KL_ORDER_IN_PLACE; s <= KL_ORDER_CAPTURED; s++) {
        if (d.element >= 0)
            say(j, (enum kl_order_scope)s, KL_ORDER_NO, "registered_16",
                "%d channels, but 16 out of place when registered (ncclCommRegister) or captured",
                o->op->choice.nchannels);
        else
            say(j, (enum kl_order_scope)s, KL_ORDER_YES, "same_plan", "%s",
                o->op->choice.proto != KL_PROTO_SIMPLE ? "low-latency protocols are never registered"
                                                       : "registration does not change this order");
        o->verdict[s].differs = d;
    }
}

/* ---- the rest ---- */

static void judge_group(struct judge *j)
{
    const struct kl_order *o = j->order;
    int n = o->rules.nchannels;
    bool tree = j->algo == KL_ALGO_TREE, ring = j->algo == KL_ALGO_RING && j->func != KL_FUNC_ALL_REDUCE;
    bool same = j->algo == KL_ALGO_PAT || (tree && o->alike_trees == n) || (ring && o->alike_rings == n);

    if (same)
        say(j, KL_ORDER_IN_GROUP, KL_ORDER_YES, "alike",
            "all channels add alike, on any channels that its neighbours take");
    else
        say(j, KL_ORDER_IN_GROUP, KL_ORDER_NO, "group_shift",
            "an element's channel depends on the group's other operations");
}

static void judge_places(struct judge *j)
{
    if (j->algo == KL_ALGO_PAT) {
        say(j, KL_ORDER_ON_HOSTS, KL_ORDER_YES, "pat",
            "the order depends on ranks alone; it changes with their number");
        say(j, KL_ORDER_IN_RELEASE, KL_ORDER_YES, "pat", "all releases add so");
        return;
    }
    say(j, KL_ORDER_ON_HOSTS, KL_ORDER_NO, "other_wires",
        "other hosts or another order of ranks have other rings and trees");
    if (j->algo == KL_ALGO_RING && j->func == KL_FUNC_ALL_REDUCE)
        say(j, KL_ORDER_IN_RELEASE, KL_ORDER_NO, "cutting_changed",
            "2.29.2 cuts operations into other parts than releases before it");
    else
        say(j, KL_ORDER_IN_RELEASE, KL_ORDER_UNKNOWN, "ask_vs",
            "only where the channels are alike: ask with --vs VERSION");
}

static void judge_defined(struct judge *j)
{
    say(j, KL_ORDER_ON_RANKS, KL_ORDER_YES, "copied",
        j->func == KL_FUNC_ALL_REDUCE ? "a sum is made once and copied to all ranks" : "one rank has the result");
    say(j, KL_ORDER_IN_RUNS, KL_ORDER_YES, "same_plan",
        "with the same release, settings, detected topology, placement, group and registration");
    judge_counts(j);
    judge_tokens(j);
    judge_buffers(j);
    judge_group(j);
    judge_places(j);
}

void kl_order_judge(struct kl_order *o, const struct kl_planned *planned)
{
    struct judge j = {o, &planned->plan->tuning, o->op->choice.algo, o->request.func};

    if (o->exact)
        all_yes(&j, "exact", "sums of integers, and minima and maxima, do not depend on the order");
    else if (o->rules.nranks <= 2)
        all_yes(&j, "two_ranks", "two contributions have one sum: a + b is b + a");
    else if (kl_order_undefined(j.algo))
        all_unknown(&j);
    else
        judge_defined(&j);
}
