/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/bench_make.h"
#include "logs/log_make.h"
#include "topo/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A size that fills links, where bandwidth counts more than latency. */
enum { LARGE = 16 << 20, SMALL = 64 << 10 };

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

/* A dip: slower than sizes before and behind by a quarter, where sizes are large enough for bandwidth to rise. */
static void find_dip(const struct judging *k)
{
    const struct kl_bench_row *worst = NULL;
    double least = 0.75, above = 0, before = 0;

    for (int i = 0; i < k->t->n; i++) {
        double bus = kl_bench_row_bus(row(k, i)), behind = 0, floor;

        for (int j = i + 1; j < k->t->n; j++) behind = fmax(behind, kl_bench_row_bus(row(k, j)));
        floor = fmin(before, behind);
        before = fmax(before, bus);
        if (row(k, i)->size < 1 << 20 || floor < 1 || bus >= least * floor) continue;
        least = bus / floor;
        above = floor;
        worst = row(k, i);
    }
    if (worst)
        found(
            k,
            (struct kl_bench_finding){.code = KL_BENCH_DIP, .problem = true, .x = kl_bench_row_bus(worst), .y = above},
            worst);
}

static void find_end(const struct judging *k)
{
    const struct kl_bench_row *last = row(k, k->t->n - 1);
    double bus = kl_bench_row_bus(last), before = k->t->n > 1 ? kl_bench_row_bus(row(k, k->t->n - 2)) : bus;
    bool doubles = k->t->n > 1 && last->size <= 4 * row(k, k->t->n - 2)->size;

    if (last->size >= LARGE && bus < 0.85 * k->t->shape.peak)
        found(k, (struct kl_bench_finding){.code = KL_BENCH_FALLS, .problem = true, .x = bus, .y = k->t->shape.peak},
              last);
    else if (doubles && before > 0 && bus > 1.15 * before)
        found(k, (struct kl_bench_finding){.code = KL_BENCH_RISING, .x = bus, .y = before}, last);
}

static void find_places(const struct judging *k)
{
    const struct kl_bench_row *worst = NULL;
    double most = 1.25;

    for (int i = 0; i < k->t->n; i++) {
        const struct kl_bench_time *t = row(k, i)->time;

        if (row(k, i)->size < LARGE || !t[0].there || !t[1].there || t[0].bus <= 0 || t[1].bus <= 0) continue;
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

/* What a link carries in practice, GB/s; where each host has one GPU, nothing else limits large messages. */
static const struct {
    double from, to;
    int sm; /* GPUs from this one on have faster PCIe: then it is half of what should be, and no NIC has this speed; 0: never */
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

    if (k->t->nranks < 2 || k->t->nhosts != k->t->nranks || k->t->shape.peak_size < LARGE) return;
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
    bool ends_short = last->size >= LARGE && reached(last) < 0.85;
    double least = ends_short ? 0.85 : 0.6;

    for (int i = 0; i < k->t->n; i++) {
        const struct kl_bench_row *r = row(k, i);

        if (r->size < LARGE || reached(r) >= least) continue;
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

void kl_bench_judge(struct kl_bench *b)
{
    for (int i = 0; i < b->ntable; i++) {
        struct judging k = {b, &b->table[i], i};

        find_shape(b, &b->table[i]);
        find_wrong(&k);
        if (k.t->shape.peak <= 0) {
            found(&k, (struct kl_bench_finding){.code = KL_BENCH_ALONE, .problem = true}, row(&k, 0));
            continue;
        }
        find_short(&k);
        find_dip(&k);
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
    [KL_BENCH_WRONG] = {"wrong",
                        "do not trust any time of this table: check GPUs (ECC, Xid) and links; NCCL_P2P_DISABLE=1 and "
                        "NCCL_NET_GDR_LEVEL=LOC tell whether P2P or GPUDirect corrupts data"},
    [KL_BENCH_ALONE] = {"alone", "nccl-tests: rebuild with MPI=1 MPI_HOME=..., or run one process with -g N"},
    [KL_BENCH_SHORT] = {"short", NULL},
    [KL_BENCH_DIP] =
        {"dip",
         "the choice of algorithm or protocol may change there: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING shows it, "
         "NCCL_ALGO and NCCL_PROTO force another"},
    [KL_BENCH_FALLS] = {"falls",
                        "repeat with more iterations (-n 100): clocks that drop under load, congestion, or other jobs"},
    [KL_BENCH_PLACES] =
        {"places",
         "repeat with more warm-up (-w 20): if it stays, memory is not registered or mapped in one of both cases"},
    [KL_BENCH_PCI] =
        {"link",
         "compare LnkSta with LnkCap (lspci -vv) of GPU and NIC, and ibstat's rate; NCCL_DEBUG=INFO shows whether "
         "GPUDirect is used"},
    [KL_BENCH_SLOW_START] =
        {"slow_start", "NCCL_DEBUG=INFO shows the network: sockets and missing GPUDirect cost most at small sizes"},
    [KL_BENCH_RISING] = {"rising", "measure larger sizes (-e 8G) before you judge bandwidth"},
};

const char *kl_bench_finding_name(enum kl_bench_code code)
{
    return code >= 0 && code < KL_BENCH_CODES ? codes[code].name : "";
}

const char *kl_bench_finding_remedy(enum kl_bench_code code)
{
    return code >= 0 && code < KL_BENCH_CODES ? codes[code].remedy : NULL;
}

static void add_size(int64_t size, struct kl_text *t)
{
    static const char units[] = "BKMGT";
    int u = 0;

    while (size >= 1024 && size % 1024 == 0 && u < 4) size /= 1024, u++;
    if (u)
        kl_text_add(t, "%lld %ciB", (long long)size, units[u]);
    else
        kl_text_add(t, "%lld B", (long long)size);
}

void kl_bench_finding_text(const struct kl_bench_finding *f, struct kl_text *t)
{
    switch (f->code) {
    case KL_BENCH_WRONG:
        kl_text_add(t, "%lld value%s wrong at ", (long long)f->n, f->n == 1 ? " is" : "s are");
        break;
    case KL_BENCH_ALONE:
        kl_text_add(t, "bus bandwidth is 0 everywhere: each process is alone, a communicator of one rank");
        return;
    case KL_BENCH_SHORT:
        kl_text_add(t, "%.4g GB/s instead of %.4g predicted, %.0f %% short, at ", f->x, f->y, 100 * (1 - f->x / f->y));
        break;
    case KL_BENCH_DIP:
        kl_text_add(t, "a dip: %.4g GB/s between smaller and larger sizes that reach %.4g, at ", f->x, f->y);
        break;
    case KL_BENCH_FALLS:
        kl_text_add(t, "bandwidth falls from %.4g to %.4g GB/s up to ", f->y, f->x);
        break;
    case KL_BENCH_PLACES:
        kl_text_add(t, "%.4g GB/s out of place, %.4g in place, at ", f->x, f->y);
        break;
    case KL_BENCH_PCI:
        kl_text_add(t, "%.4g GB/s is about what %s carries%s", f->x, f->text,
                    f->problem ? ": half of what these GPUs have, and the speed of no NIC" : "");
        return;
    case KL_BENCH_SLOW_START:
        kl_text_add(t, "%.4g us for the smallest sizes is slow", f->x);
        return;
    default:
        kl_text_add(t, "bandwidth still rises (%.4g to %.4g GB/s) at the largest size, ", f->y, f->x);
        break;
    }
    add_size(f->size, t);
}
