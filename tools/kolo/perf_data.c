/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_data.h"

#include "tools/kolo/perf_value.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How contributions to one kind of reduction look; fixed per table. All ranks derive the same. */
struct recipe {
    const struct kl_value_type *t;
    ncclRedOp_t op;
    int nranks;
    int contributors; /* ranks with something other than the neutral element, per element */
    int64_t unit;     /* contributions are multiples of it (sum of floats, avg) */
    int64_t largest;  /* multiple of the unit (sum of floats, avg); largest value (min, max) */
    int64_t smallest; /* multiple of the unit (avg) */
    int tolerance;    /* ulp; 0: exact */
};

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the input changes half of the output's. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t mix2(uint64_t a, uint64_t b)
{
    return mix(mix(a + UINT64_C(0x9e3779b97f4a7c15)) + b);
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static bool is_power_of_two(int n)
{
    return !(n & (n - 1));
}

/* ---- recipes ---- */

/* Integer means: the sum is a multiple of nranks plus a remainder below it, so that a missing contribution, at least
 * nranks, always changes the rounded quotient; where the type is too small for that, small numbers. */
static void integer_mean(struct recipe *r)
{
    int64_t room = r->t->exact - r->nranks;

    r->unit = room >= r->nranks ? r->nranks : 1;
    if (r->unit == 1) room = r->t->exact;
    room /= r->unit;
    r->contributors = room < 1 ? 1 : (int)at_most(r->nranks, room);
    r->largest = room / r->contributors;
}

/* Float means where 1/nranks is a value: a scaled sum. */
static void exact_mean(struct recipe *r)
{
    r->contributors = (int)at_most(r->nranks, r->t->exact);
    r->largest = r->t->exact / r->contributors;
}

/* Other float means: 1/nranks, each product and each sum are rounded, together by less than 2 + c/2 ulp for c contributors
 * of one sign. A missing one has to change the mean by more than twice that: c is limited accordingly. */
static void rounded_mean(struct recipe *r)
{
    int64_t detectable = (INT64_C(1) << r->t->mantissa_bits) / 4, c = 1;

    while (c < r->nranks && c < r->t->exact && (c + 1) * (2 + (c + 1) / 2) < detectable) c++;
    r->contributors = (int)c;
    r->largest = r->t->exact / c;
    r->smallest = (r->largest + 1) / 2;
    r->tolerance = (int)at_most(r->nranks, 2 + c / 2);
    if (r->nranks > ldexp(1, r->t->power)) r->tolerance = r->nranks; /* 1/nranks has lost digits */
}

static bool mean_is_exact(const struct kl_value_type *t, int nranks)
{
    return is_power_of_two(nranks) && nranks <= ldexp(1, t->tiny_power);
}

static struct recipe recipe_of(ncclDataType_t type, ncclRedOp_t op, int nranks)
{
    struct recipe r = {
        .t = kl_value_type(type),
        .op = op,
        .nranks = nranks,
        .contributors = nranks,
        .unit = 1,
        .largest = 1,
        .smallest = 1,
    };
    bool is_float = r.t->kind == KL_VALUE_FLOAT;

    if (op == ncclMin || op == ncclMax) {
        r.largest = at_most(r.t->exact, INT64_C(1) << 40);
    } else if (op == ncclProd && is_float) {
        r.contributors = (int)at_most(nranks, r.t->power);
    } else if (op == ncclSum && is_float) {
        r.contributors = (int)at_most(nranks, r.t->exact);
        r.largest = r.t->exact / r.contributors;
    } else if (op == ncclAvg && !is_float) {
        integer_mean(&r);
    } else if (op == ncclAvg && mean_is_exact(r.t, nranks)) {
        exact_mean(&r);
    } else if (op == ncclAvg) {
        rounded_mean(&r);
    }
    return r;
}

/* ---- contributions, as integers: the value itself, or the exponent of 2 for products of floats ---- */

/* Contributors follow each other around the ranks, so that each has its turn within nranks / contributors elements. */
static int first_contributor(const struct recipe *r, int k)
{
    return (int)((int64_t)k * r->contributors % r->nranks);
}

static bool contributes(const struct recipe *r, int k, int rank)
{
    return (rank - first_contributor(r, k) + r->nranks) % r->nranks < r->contributors;
}

static int64_t multiple(const struct recipe *r, uint64_t random)
{
    return r->unit * (r->smallest + (int64_t)(random % (uint64_t)(r->largest - r->smallest + 1)));
}

static int64_t sum_part(const struct recipe *r, uint64_t random)
{
    if (r->t->kind != KL_VALUE_FLOAT) return (int64_t)(random | 1);
    int64_t magnitude = 1 + (int64_t)(random % (uint64_t)r->largest);
    return random >> 63 ? -magnitude : magnitude;
}

static int64_t prod_part(const struct recipe *r, uint64_t random)
{
    if (r->t->kind == KL_VALUE_FLOAT) return random & 1 ? 1 : -1;
    return (int64_t)(random << 8 | (random >> 56 & 0x7e) << 1 | 3); /* odd, and not 1 in any width */
}

/* The winner of an element has a magnitude in the upper half, the others in the lower one; then all are shifted alike, to
 * positive, mixed or negative numbers where there are such. */
static int64_t extreme_part(const struct recipe *r, int k, int rank, uint64_t random)
{
    int64_t half = r->largest / 2, n = r->largest;
    int64_t magnitude = k % r->nranks == rank ? half + 1 + (int64_t)(random % (uint64_t)(n - half))
                                              : 1 + (int64_t)(random % (uint64_t)half);
    int64_t shifts[] = {0, half, n + 1};
    int64_t shift = r->t->kind == KL_VALUE_UNSIGNED ? 0 : shifts[mix2((uint64_t)k, 1) % 3];

    return (r->op == ncclMax ? magnitude : n + 1 - magnitude) - shift;
}

static int64_t mean_part(const struct recipe *r, int k, int rank, uint64_t random)
{
    uint64_t shared = mix2((uint64_t)k, 2);
    int64_t value = multiple(r, random);

    if (r->unit == r->nranks && r->t->kind != KL_VALUE_FLOAT && first_contributor(r, k) == rank)
        value += (int64_t)(shared % (uint64_t)r->nranks);
    return r->t->kind != KL_VALUE_UNSIGNED && shared >> 63 ? -value : value;
}

/* Of a rank that contributes. */
static int64_t part(const struct recipe *r, int k, int rank)
{
    uint64_t random = mix2((uint64_t)k << 32 | (uint32_t)rank, (uint64_t)r->op);

    switch (r->op) {
    case ncclProd:
        return prod_part(r, random);
    case ncclMax:
    case ncclMin:
        return extreme_part(r, k, rank, random);
    case ncclAvg:
        return mean_part(r, k, rank, random);
    default:
        return sum_part(r, random);
    }
}

/* ---- results ---- */

static int64_t combine(const struct recipe *r, int64_t a, int64_t b)
{
    switch (r->op) {
    case ncclMax:
        return a > b ? a : b;
    case ncclMin:
        return a < b ? a : b;
    case ncclProd:
        if (r->t->kind != KL_VALUE_FLOAT) return (int64_t)((uint64_t)a * (uint64_t)b);
        return a + b; /* exponents */
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static bool is_power(const struct recipe *r)
{
    return r->op == ncclProd && r->t->kind == KL_VALUE_FLOAT;
}

static void put(const struct recipe *r, void *at, int64_t value)
{
    if (is_power(r))
        kl_value_put_power(r->t, at, (int)value);
    else
        kl_value_put_int(r->t, at, value);
}

static int64_t order_of_nearest(const struct kl_value_type *t, long double value)
{
    unsigned char bytes[8];

    kl_value_put_nearest(t, bytes, value);
    return kl_value_order(t, kl_value_bits(t, bytes));
}

static void put_mean(const struct recipe *r, struct kl_data_table *table, int k, int64_t total)
{
    void *at = table->element + (size_t)k * r->t->bytes;
    long double mean = (long double)total / r->nranks;

    if (r->t->kind != KL_VALUE_FLOAT) {
        kl_value_put_int(r->t, at, total / r->nranks);
        return;
    }
    kl_value_put_nearest(r->t, at, mean);
    if (!table->low) return;
    long double slack = r->tolerance * kl_value_ulp(r->t, mean);
    table->low[k] = order_of_nearest(r->t, mean - slack);
    table->high[k] = order_of_nearest(r->t, mean + slack);
}

static void put_result(const struct recipe *r, struct kl_data_table *table, int k)
{
    int first = first_contributor(r, k);
    int64_t total = part(r, k, first);

    for (int i = 1; i < r->contributors; i++) total = combine(r, total, part(r, k, (first + i) % r->nranks));
    if (r->op == ncclAvg)
        put_mean(r, table, k, total);
    else
        put(r, table->element + (size_t)k * r->t->bytes, total);
}

/* ---- tables ---- */

static int allocate(struct kl_data_table *table, ncclDataType_t type, bool ranges)
{
    *table = (struct kl_data_table){.type = type};
    table->element = calloc(KL_DATA_TABLE, kl_value_type(type)->bytes);
    if (ranges) {
        table->low = calloc(KL_DATA_TABLE, sizeof *table->low);
        table->high = calloc(KL_DATA_TABLE, sizeof *table->high);
    }
    if (table->element && (!ranges || (table->low && table->high))) return 0;
    kl_data_free(table);
    return -1;
}

/* A block may start anywhere in the period, so the table goes on for a block. */
static void wrap_around(struct kl_data_table *table)
{
    size_t bytes = kl_value_type(table->type)->bytes;

    memcpy(table->element + KL_DATA_PERIOD * bytes, table->element, KL_DATA_BLOCK * bytes);
    if (!table->low) return;
    memcpy(table->low + KL_DATA_PERIOD, table->low, KL_DATA_BLOCK * sizeof *table->low);
    memcpy(table->high + KL_DATA_PERIOD, table->high, KL_DATA_BLOCK * sizeof *table->high);
}

int kl_data_contribution(struct kl_data_table *table, ncclDataType_t type, ncclRedOp_t op, int nranks, int rank)
{
    struct recipe r = recipe_of(type, op, nranks);

    if (allocate(table, type, false)) return -1;
    for (int k = 0; k < KL_DATA_PERIOD; k++)
        put(&r, table->element + (size_t)k * r.t->bytes, contributes(&r, k, rank) ? part(&r, k, rank) : 0);
    wrap_around(table);
    return 0;
}

int kl_data_reduced(struct kl_data_table *table, ncclDataType_t type, ncclRedOp_t op, int nranks)
{
    struct recipe r = recipe_of(type, op, nranks);

    if (allocate(table, type, r.tolerance > 0)) return -1;
    for (int k = 0; k < KL_DATA_PERIOD; k++) put_result(&r, table, k);
    wrap_around(table);
    return 0;
}

int kl_data_moved(struct kl_data_table *table, ncclDataType_t type, int rank)
{
    if (allocate(table, type, false)) return -1;
    size_t bytes = kl_value_type(type)->bytes;
    for (int k = 0; k < KL_DATA_PERIOD; k++) {
        uint64_t random = mix2((uint64_t)k << 32 | (uint32_t)rank, 99);
        memcpy(table->element + (size_t)k * bytes, &random, bytes);
    }
    wrap_around(table);
    return 0;
}

void kl_data_free(struct kl_data_table *table)
{
    free(table->element);
    free(table->low);
    free(table->high);
    *table = (struct kl_data_table){0};
}

/* ---- filling and checking ---- */

/* A run of elements that stand together in the table. */
struct run {
    size_t place, count;
};

static struct run run_at(uint64_t seed, size_t index, size_t left)
{
    size_t within = index % KL_DATA_BLOCK, rest = KL_DATA_BLOCK - within;

    return (struct run){
        .place = mix2(seed, index / KL_DATA_BLOCK) % KL_DATA_PERIOD + within,
        .count = left < rest ? left : rest,
    };
}

void kl_data_fill(const struct kl_data_table *table, uint64_t seed, size_t first, size_t count, void *to)
{
    size_t bytes = kl_value_type(table->type)->bytes;
    unsigned char *out = to;

    for (size_t i = 0; i < count;) {
        struct run run = run_at(seed, first + i, count - i);

        memcpy(out + i * bytes, table->element + run.place * bytes, run.count * bytes);
        i += run.count;
    }
}

static bool accepted(const struct kl_data_table *table, size_t place, const unsigned char *got)
{
    const struct kl_value_type *t = kl_value_type(table->type);

    if (!table->low) return !memcmp(got, table->element + place * t->bytes, t->bytes);
    int64_t order = kl_value_order(t, kl_value_bits(t, got));
    return order >= table->low[place] && order <= table->high[place];
}

static void describe(const struct kl_data_table *table, size_t place, const unsigned char *got,
                     struct kl_data_wrong *wrong)
{
    const struct kl_value_type *t = kl_value_type(table->type);

    kl_value_print(t, table->element + place * t->bytes, wrong->expected, sizeof wrong->expected);
    kl_value_print(t, got, wrong->got, sizeof wrong->got);
}

static size_t check_run(const struct kl_data_table *table, struct run run, const unsigned char *got, size_t *first)
{
    size_t bytes = kl_value_type(table->type)->bytes, nwrong = 0;

    for (size_t i = 0; i < run.count; i++) {
        if (accepted(table, run.place + i, got + i * bytes)) continue;
        if (!nwrong++) *first = i;
    }
    return nwrong;
}

size_t kl_data_check(const struct kl_data_table *table, uint64_t seed, size_t first, size_t count, const void *got,
                     struct kl_data_wrong *wrong)
{
    size_t bytes = kl_value_type(table->type)->bytes, total = 0, at = 0;
    const unsigned char *in = got;

    for (size_t i = 0; i < count;) {
        struct run run = run_at(seed, first + i, count - i);
        bool same = !memcmp(in + i * bytes, table->element + run.place * bytes, run.count * bytes);
        size_t nwrong = same ? 0 : check_run(table, run, in + i * bytes, &at);

        if (nwrong && !total) {
            wrong->index = i + at;
            describe(table, run.place + at, in + wrong->index * bytes, wrong);
        }
        total += nwrong;
        i += run.count;
    }
    return total;
}
