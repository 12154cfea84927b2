/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "device/host/redop.h"
#include "tools/kolo/explain/coll_print.h"

#include <stdio.h>

static void candidate_name(const struct kl_tuning_choice *c, char text[KL_SIZE_TEXT])
{
    snprintf(text, KL_SIZE_TEXT, "%s %s", kl_algo_name[c->algo], kl_proto_name[c->proto]);
}

/* ---- the first lines ---- */

static bool is_barrier(const struct kl_coll_asked *a)
{
    return kl_coll_id(a->coll) == KL_BARRIER;
}

/* So many digits, but never an exponent where a person would write none. */
static void print_number(double number, int digits, FILE *to)
{
    if (number < 1000)
        fprintf(to, "%.*g", digits, number);
    else
        fprintf(to, "%.0f", number);
}

static void print_next(const struct kl_op_candidate *next, double slower, FILE *to)
{
    fprintf(to, "next best %s %s, ", kl_algo_name[next->choice.algo], kl_proto_name[next->choice.proto]);
    if (slower < 1000)
        fprintf(to, "%.3g %% slower\n", slower);
    else
        fprintf(to, "%.0f times as slow\n", slower / 100 + 1);
}

static void print_winner(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    const struct kl_op_candidate *best = &f->candidate[0], *next = &f->candidate[1];
    double bus = kl_coll_bus(a, a->first, best->choice.time);
    char time[KL_COLL_TIME_TEXT];

    fprintf(to, "%s %s, %d channel%s, %d threads: ", kl_algo_name[best->choice.algo], kl_proto_name[best->choice.proto],
            best->choice.nchannels, kl_plural(best->choice.nchannels), best->choice.nthreads);
    fprintf(to, "%s predicted", kl_coll_time_text((double)best->choice.time, time));
    if (!is_barrier(a)) {
        fprintf(to, " (");
        print_number(bus, 3, to);
        fprintf(to, " GB/s bus bandwidth)");
    }
    if (best->terms.timeless_hops) fprintf(to, ", not to be trusted: %s", kl_coll_timeless);
    fprintf(to, "; ");
    if (f->npossible == 1)
        fprintf(to, "nothing else is possible\n");
    else
        print_next(next, kl_coll_slower(next->choice.time, best->choice.time), to);
}

/* A range's first line: which algorithms and protocols follow each other. */
static void print_sequence(const struct kl_op_choice *f, FILE *to)
{
    const struct kl_tuning_choice *before = NULL;
    char text[KL_SIZE_TEXT];

    for (int i = 0; i < f->nranges; i++) {
        const struct kl_tuning_choice *c = &f->range[i].choice;

        if (before && before->algo == c->algo && before->proto == c->proto) continue;
        if (before) fprintf(to, ", from %s on ", kl_size_text(f->range[i].first, text));
        if (c->algo < 0)
            fprintf(to, "nothing");
        else
            fprintf(to, "%s %s", kl_algo_name[c->algo], kl_proto_name[c->proto]);
        before = c;
    }
    fprintf(to, "\n");
}

static void print_answer(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    kl_coll_headline(a, to);
    fprintf(to, ": ");
    if (a->ranks == 1)
        fprintf(to, "a copy, nothing is sent\n");
    else if (!f->npossible)
        fprintf(to, "nothing is left to choose from, and the call fails\n");
    else if (a->first == a->last)
        print_winner(a, f, to);
    else
        print_sequence(f, to);
}

/* The parts of the expected time, for comparison with a measurement. */
static void print_expected(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    static const char *const limits[] = {"NCCL's model", "NVLinks and PCI", "NVSwitches", "network"};
    const struct kl_expected *e = &f->candidate[0].expected;
    char time[KL_COLL_TIME_TEXT];

    if (!f->npossible || e->time <= 0 || a->first != a->last) return;
    fprintf(to, "  expected: %s", kl_coll_time_text((double)e->time, time));
    if (!is_barrier(a)) {
        fprintf(to, " (");
        print_number(kl_coll_bus(a, a->first, e->time), 3, to);
        fprintf(to, " GB/s bus bandwidth)");
    }
    fprintf(to,
            ", after published measurements: latency %.3g us, start %.3g, ramp %.3g, transfer %.0f at %.4g GB/s (%s)\n",
            (double)e->latency, (double)e->start, (double)(e->ramp + e->tcp), (double)e->transfer, (double)e->bandwidth,
            limits[e->limit]);
}

/* Chosen for times that nobody should believe. */
static void print_timeless(const struct kl_op_choice *f, FILE *to)
{
    for (int i = 0; i < f->npossible; i++) {
        const struct kl_op_candidate *c = &f->candidate[i];

        if (!c->terms.timeless_hops) continue;
        fprintf(to, "  %s: not to be trusted, %s\n", kl_algo_name[c->choice.algo], kl_coll_timeless);
    }
}

/* The network is asked to reduce, and only its plugin knows what it can. */
static bool needs_the_network(const struct kl_coll_asked *a, const struct kl_op_choice *f)
{
    for (int i = 0; i < f->npossible; i++)
        if (f->candidate[i].choice.algo == KL_ALGO_COLLNET_CHAIN ||
            f->candidate[i].choice.algo == KL_ALGO_COLLNET_DIRECT)
            return a->coll->reduces;
    return false;
}

static void print_terms_of_use(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    bool reduces = a->coll->reduces;

    fprintf(to, "  %s: %s%s%s; one call by itself%s\n", a->cluster->name, kl_type_name(a->type), reduces ? ", " : "",
            reduces ? kl_redop_name(a->op) : "", is_barrier(a) ? "" : ", sizes in bytes (nccl-tests' size)");
    if (f->npossible && f->candidate[0].terms.measured)
        fprintf(to, "  times are those that `kolo tune` measured on this machine; modelled: of NCCL's model with "
                    "constants for CPUs\n");
    else if (f->npossible)
        fprintf(to, "  times are those of NCCL's model with %s: assumed, not measured on this cluster\n",
                kl_coll_for_host(a) ? "constants for CPUs" : "its built-in constants");
    print_expected(a, f, to);
    print_timeless(f, to);
    if (a->nodes > a->cluster->hosts)
        fprintf(to,
                "  a host is %d nodes: groups of GPUs that reach other groups only, or faster, through the network\n",
                a->nodes / a->cluster->hosts);
    if (needs_the_network(a, f))
        fprintf(to, "  assumed too: that the network can reduce this type with this operation\n");
}

/* ---- candidates ---- */

/* Columns that not every table has. */
struct columns {
    bool extra, correction, measured;
};

static float corrections(const struct kl_tuning_terms *x)
{
    return x->correction + x->fp8 + x->group;
}

static struct columns columns_of(const struct kl_op_choice *f)
{
    struct columns c = {false, false, false};

    for (int i = 0; i < f->npossible; i++) {
        c.extra |= f->candidate[i].terms.latency.extra > 0;
        c.correction |= corrections(&f->candidate[i].terms) > 0;
        c.measured |= f->candidate[i].terms.measured;
    }
    return c;
}

static void print_hops(float us, int hops, FILE *to)
{
    char text[KL_SIZE_TEXT] = "-";

    if (hops) snprintf(text, sizeof text, "%.1f (%d)", (double)us, hops);
    fprintf(to, " %13s", text);
}

static void print_amount(bool shown, float us, FILE *to)
{
    if (shown && us > 0)
        fprintf(to, " %10.1f", (double)us);
    else if (shown)
        fprintf(to, " %10s", "-");
}

static void print_candidate(const struct kl_op_candidate *c, struct columns columns, FILE *to)
{
    const struct kl_tuning_terms *x = &c->terms;
    char name[KL_SIZE_TEXT];

    candidate_name(&c->choice, name);
    fprintf(to, "  %-20s %8d %7d %10.1f = %5.1f", name, c->choice.nchannels, c->choice.nthreads, (double)x->time,
            (double)x->latency.base);
    print_hops(x->latency.inside, x->latency.inside_hops, to);
    print_hops(x->latency.between, x->latency.between_hops, to);
    print_amount(columns.extra, x->latency.extra, to);
    print_amount(columns.correction, corrections(x), to);
    fprintf(to, " %10.1f %8.4g", (double)x->transfer, (double)x->bandwidth);
    if (columns.measured) fprintf(to, " %10.1f", (double)x->modelled);
    fprintf(to, "\n");
}

static void print_remarks(const struct kl_op_candidate *c, FILE *to)
{
    const struct kl_tuning_terms *x = &c->terms;
    char name[KL_SIZE_TEXT];

    candidate_name(&c->choice, name);
    if (x->tree_share != 1)
        fprintf(to, "  %s: a tree of this size reaches %g of its bandwidth\n", name, (double)x->tree_share);
    if (x->latency_factor != 1)
        fprintf(to, "  %s: latency x %g, because it is a large ring over several nodes\n", name,
                (double)x->latency_factor);
    if (x->fp8 > 0)
        fprintf(to, "  %s: time x 1024, because FP8 sums lose precision in rings of more than 8 ranks\n", name);
}

static void print_candidates(const struct kl_op_choice *f, FILE *to)
{
    struct columns columns = columns_of(f);

    if (!f->npossible) return;
    fprintf(
        to,
        "\ncandidates, fastest first: times in us and their terms (number of hops), and the GB/s of the transfer\n");
    fprintf(to, "  %-20s %8s %7s %10s   %5s %13s %13s%s%s %10s %8s%s\n", "", "channels", "threads", "time", "start",
            "hops inside", "hops between", columns.extra ? "   per rank" : "", columns.correction ? " correction" : "",
            "transfer", "GB/s", columns.measured ? "   modelled" : "");
    for (int i = 0; i < f->npossible; i++) print_candidate(&f->candidate[i], columns, to);
    for (int i = 0; i < f->npossible; i++) print_remarks(&f->candidate[i], to);
}

/* ---- what is left out ---- */

/* All that are refused like candidate `first`, which is the first of them: "NVLS, NVLSTree", "Ring LL128". */
static void print_refused_names(const struct kl_op_choice *f, int first, FILE *to)
{
    int shown = -1;

    for (int i = first; i < f->ncandidates; i++) {
        const struct kl_op_candidate *c = &f->candidate[i];
        bool whole = kl_op_refuses_algorithm(f, c);

        if (!kl_op_same_refusal(c, &f->candidate[first]) || (whole && c->choice.algo == shown)) continue;
        fprintf(to, "%s%s%s%s", i == first ? "" : ", ", kl_algo_name[c->choice.algo], whole ? "" : " ",
                whole ? "" : kl_proto_name[c->choice.proto]);
        if (whole) shown = c->choice.algo;
    }
}

static bool refused_before(const struct kl_op_choice *f, int i)
{
    for (int k = f->npossible; k < i; k++)
        if (kl_op_same_refusal(&f->candidate[k], &f->candidate[i])) return true;
    return false;
}

enum { REFUSAL_TEXT = 160 };

static const char *refusal_text(const struct kl_op_choice *f, const struct kl_op_candidate *c, char text[REFUSAL_TEXT])
{
    struct kl_text t = kl_text_in(text, REFUSAL_TEXT);

    kl_tuning_refusal_text(f->tuning, &f->op, c->choice.algo, c->choice.proto, &t);
    return text;
}

/* Protocols that an algorithm does not have are not worth a line if the algorithm is out anyway. */
static bool worth_a_line(const struct kl_op_choice *f, int i)
{
    const struct kl_op_candidate *c = &f->candidate[i];

    return c->refusal != KL_REFUSED_PROTO || kl_op_refuses_algorithm(f, c);
}

static void print_refused(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    char why[REFUSAL_TEXT];

    if (f->npossible == f->ncandidates || a->ranks == 1) return;
    fprintf(to, "\nnot considered\n");
    for (int i = f->npossible; i < f->ncandidates; i++) {
        if (refused_before(f, i) || !worth_a_line(f, i)) continue;
        fprintf(to, "  ");
        print_refused_names(f, i, to);
        fprintf(to, ": %s\n", refusal_text(f, &f->candidate[i], why));
    }
}

void kl_coll_text(const struct kl_coll_asked *a, const struct kl_op_choice *f, FILE *to)
{
    print_answer(a, f, to);
    print_terms_of_use(a, f, to);
    if (a->first == a->last) print_candidates(f, to);
    print_refused(a, f, to);
    if (f->npossible && !is_barrier(a)) kl_coll_ranges_text(a, f, to);
    if (kl_coll_is_selected(a)) kl_coll_selected_text(a, to);
    fprintf(to, kl_coll_for_host(a)
                    ? "\nThis is what Kolo's own ranks, which are CPUs, would do there.\n"
                    : "\nThis is what NCCL would do there; --constants host shows what Kolo's own ranks, which are "
                      "CPUs, would do.\n");
}
