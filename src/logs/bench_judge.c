/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/bench_make.h"
#include "logs/causes.h"
#include "logs/log_make.h"
#include "topo/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 64 << 10 };

double kl_bench_row_bus(const struct kl_bench_row *r)
{
    return fmax(r->time[0].there ? r->time[0].bus : 0, r->time[1].there ? r->time[1].bus : 0);
}

double kl_bench_row_us(const struct kl_bench_row *r)
{
    if (!r->time[1].there || r->time[1].us <= 0) return r->time[0].us;
    return r->time[0].there ? fmin(r->time[0].us, r->time[1].us) : r->time[1].us;
}

static void add_finding(struct kl_bench *b, struct kl_bench_finding f)
{
    struct kl_bench_finding *kept =
        b->nfinding < KL_BENCH_ROWS
            ? kl_log_grow(&b->log, (void **)&b->finding, &b->nfinding, &b->maxfinding, sizeof *kept)
            : NULL;

    if (kept) *kept = f;
}

double kl_bench_bus_factor(const struct kl_bench_table *t)
{
    const double n = t->nranks;

    if (n < 2) return 1;
    if (!strcmp(t->name, "all_reduce")) return 2 * (n - 1) / n;
    return !strcmp(t->name, "all_gather") || !strcmp(t->name, "reduce_scatter") || !strcmp(t->name, "alltoall")
               ? (n - 1) / n
               : 1;
}

/* ---- the shape ---- */

static void find_shape(const struct kl_bench *b, struct kl_bench_table *t)
{
    struct kl_bench_shape *s = &t->shape;

    *s = (struct kl_bench_shape){.knee = 0};
    for (int i = 0; i < t->n; i++) {
        const struct kl_bench_row *r = &b->row[t->first + i];
        double us = kl_bench_row_us(r);

        if (kl_bench_row_bus(r) > s->peak) {
            s->peak = kl_bench_row_bus(r);
            s->peak_size = r->size;
        }
        if (r->size <= SMALL && us > 0 && (s->floor_us <= 0 || us < s->floor_us)) s->floor_us = us;
    }
    for (int i = 0; i < t->n && !s->knee; i++)
        if (kl_bench_row_bus(&b->row[t->first + i]) >= s->peak / 2) s->knee = b->row[t->first + i].size;
}

/* ---- rules: a table each ---- */

struct judging {
    struct kl_bench *b;
    const struct kl_bench_table *t;
    int table;
};

static const struct kl_bench_row *row(const struct judging *k, int i)
{
    return &k->b->row[k->t->first + i];
}

static void found(const struct judging *k, struct kl_bench_finding f, const struct kl_bench_row *r)
{
    f.table = k->table;
    f.size = r->size;
    f.at = r->at;
    add_finding(k->b, f);
}

static void find_wrong(const struct judging *k)
{
    for (int i = 0; i < k->t->n; i++) {
        int64_t n = 0;

        for (int h = 0; h < KL_BENCH_HALVES; h++) n += row(k, i)->time[h].wrong > 0 ? row(k, i)->time[h].wrong : 0;
        if (!n) continue;
        found(k, (struct kl_bench_finding){.code = KL_BENCH_WRONG, .problem = true, .n = n}, row(k, i));
        return;
    }
    if (k->t->wrong > 0)
        found(k, (struct kl_bench_finding){.code = KL_BENCH_WRONG, .problem = true, .n = k->t->wrong},
              row(k, k->t->n - 1));
}

/* The largest bandwidth of all rows behind each. */
static double *gather_behind(const struct judging *k)
{
    double *behind = calloc((size_t)k->t->n + 1, sizeof *behind);

    for (int i = k->t->n - 2; behind && i >= 0; i--) behind[i] = fmax(behind[i + 1], kl_bench_row_bus(row(k, i + 1)));
    return behind;
}

/* A dip: slower than sizes before and behind by a quarter, where sizes are large enough for bandwidth to rise. */
static void find_dip(const struct judging *k)
{
    const struct kl_bench_row *worst = NULL;
    double least = 0.75, above = 0, before = 0, *behind = gather_behind(k);

    for (int i = 0; behind && i < k->t->n; i++) {
        double bus = kl_bench_row_bus(row(k, i)), floor = fmin(before, behind[i]);

        before = fmax(before, bus);
        if (row(k, i)->size < 1 << 20 || floor < 1 || bus >= least * floor) continue;
        least = bus / floor;
        above = floor;
        worst = row(k, i);
    }
    if (!behind) k->b->log.full = true;
    free(behind);
    if (worst)
        found(
            k,
            (struct kl_bench_finding){.code = KL_BENCH_DIP, .problem = true, .x = kl_bench_row_bus(worst), .y = above},
            worst);
}

/* The first row behind the peak from which on none comes near it again. */
static const struct kl_bench_row *fall_of(const struct judging *k)
{
    const struct kl_bench_row *fall = NULL;

    for (int i = k->t->n - 1; i >= 0; i--) {
        if (kl_bench_row_bus(row(k, i)) >= 0.85 * k->t->shape.peak) return fall;
        if (row(k, i)->time[KL_BENCH_OUT].there) fall = row(k, i);
    }
    return NULL;
}

static void find_end(const struct judging *k)
{
    const struct kl_bench_row *last = row(k, k->t->n - 1), *fall = fall_of(k);
    double bus = kl_bench_row_bus(last), before = k->t->n > 1 ? kl_bench_row_bus(row(k, k->t->n - 2)) : bus;
    bool doubles = k->t->n > 1 && last->size <= 4 * row(k, k->t->n - 2)->size;

    if (!last->time[KL_BENCH_OUT].there) return;
    if (last->size >= KL_BENCH_FILLS && fall)
        found(k,
              (struct kl_bench_finding){.code = KL_BENCH_FALLS,
                                        .problem = true,
                                        .x = kl_bench_row_bus(fall),
                                        .y = k->t->shape.peak,
                                        .n = k->t->shape.peak_size},
              fall);
    else if (doubles && before > 0 && bus > 1.15 * before)
        found(k, (struct kl_bench_finding){.code = KL_BENCH_RISING, .x = bus, .y = before}, last);
}

/* A larger size that takes much less time: the algorithm or protocol for the smaller is used for too long. That concerns the middle
 * sizes: small ones have noise, and large ones are in one algorithm's hands. */
static void find_time_falls(const struct judging *k)
{
    enum { NOISE_US = 50, FIRST = 16 << 10 };
    const struct kl_bench_row *slow = NULL, *worst = NULL;
    struct kl_bench_finding f = {.code = KL_BENCH_TIME_FALLS, .problem = true};
    double least = 0.75;

    for (int i = 0; i < k->t->n; i++) {
        const struct kl_bench_row *r = row(k, i);
        double us = kl_bench_row_us(r), slowest = slow ? kl_bench_row_us(slow) : 0;

        if (us <= 0 || r->size < FIRST) continue;
        if (slowest > NOISE_US && us < least * slowest && r->size > slow->size) {
            least = us / slowest;
            worst = r;
            f.x = slowest;
            f.y = us;
            f.n = slow->size;
        }
        if (us > slowest && r->size <= KL_BENCH_FILLS) slow = r;
    }
    if (worst) found(k, f, worst);
}

static void find_places(const struct judging *k)
{
    const struct kl_bench_row *worst = NULL;
    double most = 1.25;

    for (int i = 0; i < k->t->n; i++) {
        const struct kl_bench_time *t = row(k, i)->time;

        if (row(k, i)->size < KL_BENCH_FILLS || !t[0].there || !t[1].there || t[0].bus <= 0 || t[1].bus <= 0) continue;
        double ratio = fmax(t[0].bus / t[1].bus, t[1].bus / t[0].bus);

        if (ratio <= most) continue;
        most = ratio;
        worst = row(k, i);
    }
    if (worst)
        found(k,
              (struct kl_bench_finding){
                  .code = KL_BENCH_PLACES, .problem = true, .x = worst->time[0].bus, .y = worst->time[1].bus},
              worst);
}

static void find_slow_start(const struct judging *k)
{
    double limit = k->t->nhosts > 1 ? 150 : 100;

    if (k->t->shape.floor_us > limit && k->t->nranks <= 64)
        found(k, (struct kl_bench_finding){.code = KL_BENCH_SLOW_START, .x = k->t->shape.floor_us, .y = limit},
              row(k, 0));
}

/* GB/s that links carry in practice; where each host has one GPU, nothing else limits large messages. */
static const struct {
    double from, to;
    int sm; /* GPUs from this one on have faster PCIe: then this is half of their bandwidth, and no NIC has this speed; 0: never */
    const char *text;
} links[] = {{1.0, 1.25, 0, "a link of 10 Gb/s"},
             {2.5, 3.15, 0, "a link of 25 Gb/s"},
             {5.5, 6.9, 0, "PCIe 3.0 x8, or a link of 50 Gb/s"},
             {11, 12.5, 0, "a link of 100 Gb/s, or PCIe 3.0 x16"},
             {12.5, 14.2, 80, "PCIe 3.0 x16 or PCIe 4.0 x8"},
             {22, 25, 0, "a link of 200 Gb/s, or PCIe 4.0 x16"},
             {25, 27.8, 90, "PCIe 4.0 x16 or PCIe 5.0 x8"}};

static void find_link(const struct judging *k)
{
    double peak = k->t->shape.peak;

    if (k->t->nranks < 2 || k->t->nhosts != k->t->nranks || k->t->shape.peak_size < KL_BENCH_FILLS) return;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (peak >= links[i].from && peak < links[i].to) {
            bool half = links[i].sm && kl_gpu_sm_like(k->t->gpu) >= links[i].sm;

            found(k, (struct kl_bench_finding){.code = KL_BENCH_PCI, .problem = half, .x = peak, .text = links[i].text},
                  row(k, k->t->n - 1));
            return;
        }
}

/* How much of the predicted bandwidth was reached; 1 without a model. */
static double reached(const struct kl_bench_row *r)
{
    double us = kl_bench_row_us(r);

    return r->predicted_us > 0 && us > 0 ? r->predicted_us / us : 1;
}

/* Beside the model. Large messages decide; in the middle the model is hopeful, and a shortfall there is worth a remark only. */
static void find_short(const struct judging *k)
{
    const struct kl_bench_row *last = row(k, k->t->n - 1), *worst = NULL;
    bool ends_short = last->size >= KL_BENCH_FILLS && reached(last) < 0.85;
    double least = ends_short ? 0.85 : 0.6;

    for (int i = 0; i < k->t->n; i++) {
        const struct kl_bench_row *r = row(k, i);

        if (r->size < KL_BENCH_FILLS || reached(r) >= least) continue;
        least = reached(r);
        worst = r;
    }
    if (ends_short) worst = last;
    if (worst)
        found(k,
              (struct kl_bench_finding){.code = KL_BENCH_SHORT,
                                        .problem = ends_short,
                                        .x = reached(worst) * worst->predicted_bus,
                                        .y = worst->predicted_bus},
              worst);
}

static int worst_first(const void *x, const void *y)
{
    const struct kl_bench_finding *a = x, *b = y;

    if (a->problem != b->problem) return b->problem - a->problem;
    return a->code != b->code ? (int)a->code - (int)b->code : a->table - b->table;
}

/* ---- runs that failed ---- */

/* The worst warning of the file: it gives a failed run its meaning. NULL without. */
static const struct kl_log_finding *meaning_of(const struct kl_bench *b)
{
    for (int i = 0; i < b->trouble.n; i++)
        if (b->trouble.finding[i].code == KL_FOUND_CAUSE && b->trouble.finding[i].weight == KL_LOG_STOPS)
            return &b->trouble.finding[i];
    return NULL;
}

static int table_before(const struct kl_bench *b, struct kl_log_at at)
{
    int found = -1;

    for (int i = 0; i < b->ntable; i++)
        if (b->table[i].at.file == at.file && b->row[b->table[i].first].at.line < at.line) found = i;
    return found;
}

/* The size at which a table stops: its last row, which may lack times. */
static int64_t failed_size(const struct kl_bench *b, int table)
{
    const struct kl_bench_table *t = &b->table[table];

    return b->row[t->first + t->n - 1].size;
}

static void find_failures(struct kl_bench *b)
{
    for (int i = 0; i < b->log.nrun; i++) {
        const struct kl_log_run *r = &b->log.run[i];
        const struct kl_log_finding *meaning = r->failure ? meaning_of(b) : NULL;

        if (!r->failure) continue;
        const char *test = strstr(r->failure, "Test ");
        struct kl_bench_finding f = {
            .code = KL_BENCH_FAILED, .problem = true, .at = r->failed_at, .text = test ? test : r->failure};

        f.table = r->rows ? table_before(b, r->failed_at) : -1;
        if (f.table >= 0) f.size = failed_size(b, f.table);
        f.more = meaning ? kl_cause_facts(meaning->cause)->text : NULL;
        add_finding(b, f);
    }
}

/* Bus bandwidth is 0 where the algorithm's is not: then there is one rank by definition. */
static bool is_alone(const struct judging *k)
{
    for (int i = 0; i < k->t->n; i++)
        for (int h = 0; h < KL_BENCH_HALVES; h++)
            if (row(k, i)->time[h].there && row(k, i)->time[h].algorithm > 0) return true;
    return k->t->nranks == 1;
}

void kl_bench_judge(struct kl_bench *b)
{
    find_failures(b);
    for (int i = 0; i < b->ntable; i++) {
        struct judging k = {b, &b->table[i], i};

        find_shape(b, &b->table[i]);
        find_wrong(&k);
        if (k.t->shape.peak <= 0) {
            if (is_alone(&k)) found(&k, (struct kl_bench_finding){.code = KL_BENCH_ALONE, .problem = true}, row(&k, 0));
            continue;
        }
        find_short(&k);
        find_dip(&k);
        find_time_falls(&k);
        find_end(&k);
        find_places(&k);
        find_slow_start(&k);
        find_link(&k);
    }
    if (b->nfinding) qsort(b->finding, (size_t)b->nfinding, sizeof *b->finding, worst_first);
}

/* ---- words ---- */

static const struct {
    const char *name, *remedy;
} codes[KL_BENCH_CODES] = {
    [KL_BENCH_FAILED] = {"failed", "kolo explain --log with the output of NCCL_DEBUG=INFO says more"},
    [KL_BENCH_TIME_FALLS] =
        {"time_falls",
         "NCCL_PROTO=^LL shows whether the LL protocol is used for too large sizes; a tuner's thresholds, or "
         "NCCL_ALGO, move the change; NCCL_DEBUG_SUBSYS=TUNING prints each choice"},
    [KL_BENCH_WRONG] =
        {"wrong", "do not trust any time in this table: check the GPUs (ECC, Xid) and links; NCCL_P2P_DISABLE=1 and "
                  "NCCL_NET_GDR_LEVEL=LOC show whether P2P or GPUDirect corrupts data"},
    [KL_BENCH_ALONE] = {"alone", "nccl-tests: rebuild with MPI=1 MPI_HOME=..., or run one process with -g N"},
    [KL_BENCH_SHORT] = {"short", NULL},
    [KL_BENCH_DIP] =
        {"dip",
         "the algorithm or protocol may change there: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING shows which is chosen, "
         "NCCL_ALGO and NCCL_PROTO force another"},
    [KL_BENCH_FALLS] =
        {"falls", "repeat with more iterations (-n 100): clocks may drop under load, or other jobs share the network"},
    [KL_BENCH_PLACES] = {"places", "repeat with more warm-up iterations (-w 20): if the difference stays, memory may "
                                   "not be registered in one of the "
                                   "two cases"},
    [KL_BENCH_PCI] =
        {"link",
         "compare LnkSta with LnkCap (lspci -vv) of GPU and NIC, and ibstat's rate; NCCL_DEBUG=INFO shows whether "
         "GPUDirect is used"},
    [KL_BENCH_SLOW_START] = {"slow_start",
                             "NCCL_DEBUG=INFO shows which network is used: TCP sockets cost most at small sizes"},
    [KL_BENCH_RISING] = {"rising", "measure larger sizes (-e 8G) before judging bandwidth"},
};

const char *kl_bench_finding_name(enum kl_bench_code code)
{
    return code >= 0 && code < KL_BENCH_CODES ? codes[code].name : "";
}

const char *kl_bench_finding_remedy(enum kl_bench_code code)
{
    return code >= 0 && code < KL_BENCH_CODES ? codes[code].remedy : NULL;
}

void kl_bench_finding_text(const struct kl_bench_finding *f, struct kl_text *t)
{
    switch (f->code) {
    case KL_BENCH_WRONG:
        kl_text_add(t, "%lld wrong value%s at ", (long long)f->n, kl_plural(f->n));
        break;
    case KL_BENCH_ALONE:
        kl_text_add(t, "bus bandwidth is 0 throughout: each process has a communicator of its own, with one rank");
        return;
    case KL_BENCH_SHORT:
        kl_text_add(t, "%.4g GB/s instead of the predicted %.4g (%.0f %% less) at ", f->x, f->y,
                    100 * (1 - f->x / f->y));
        break;
    case KL_BENCH_DIP:
        kl_text_add(t, "a dip to %.4g GB/s, between smaller and larger sizes that reach %.4g, at ", f->x, f->y);
        break;
    case KL_BENCH_FALLS:
        kl_text_add(t, "bandwidth falls from %.4g GB/s at ", f->y);
        kl_text_add_size(t, f->n);
        kl_text_add(t, " to %.4g GB/s, from ", f->x);
        kl_text_add_size(t, f->size);
        kl_text_add(t, " on");
        return;
    case KL_BENCH_TIME_FALLS:
        kl_text_add(t, "the time falls from ");
        kl_text_add_time(t, f->x);
        kl_text_add(t, " at ");
        kl_text_add_size(t, f->n);
        kl_text_add(t, " to ");
        kl_text_add_time(t, f->y);
        kl_text_add(t, " at ");
        kl_text_add_size(t, f->size);
        kl_text_add(t, ", which is larger: the algorithm or protocol changes too late (try NCCL_PROTO=^LL)");
        return;
    case KL_BENCH_FAILED:
        kl_text_add(t, "the run failed");
        kl_text_add(t, f->size ? " at " : " before its first row");
        if (f->size) kl_text_add_size(t, f->size);
        kl_text_add(t, ": %s", f->text);
        if (f->more) kl_text_add(t, ": %s", f->more);
        return;
    case KL_BENCH_PLACES:
        kl_text_add(t, "%.4g GB/s out of place, %.4g in place, at ", f->x, f->y);
        break;
    case KL_BENCH_PCI:
        kl_text_add(t, "%.4g GB/s is about what %s carries%s", f->x, f->text,
                    f->problem ? ": half the PCIe bandwidth of these GPUs, and no NIC has this speed" : "");
        return;
    case KL_BENCH_SLOW_START:
        kl_text_add(t, "the smallest sizes take ");
        kl_text_add_time(t, f->x);
        kl_text_add(t, ", where less than %.0f us is usual", f->y);
        return;
    default:
        kl_text_add(t, "bandwidth is still rising (from %.4g to %.4g GB/s) at the largest size, ", f->y, f->x);
        break;
    }
    kl_text_add_size(t, f->size);
}
