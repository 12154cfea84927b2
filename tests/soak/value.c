/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/value.h"

#include "tests/soak/draw.h"
#include "tools/kolo/perf_value.h"

#include <stdlib.h>
#include <string.h>

/* ---- how much ---- */

size_t soak_part(const struct soak_operation *o, int r)
{
    uint64_t k = soak_key(o->key, (uint64_t)r);

    return k % 5 ? (k >> 8) % (o->count + 1) : 0;
}

size_t soak_part_between(const struct soak_operation *o, int from, int to)
{
    return soak_part(o, (from + 1) * SOAK_RANKS + to);
}

static size_t all_parts(const struct soak_operation *o, int n)
{
    size_t sum = 0;

    for (int r = 0; r < n; r++) sum += soak_part(o, r);
    return sum;
}

static size_t all_messages(const struct soak_operation *o, int from, int to)
{
    size_t sum = 0;

    for (int m = 0; m < o->messages; m++)
        if ((from < 0 || o->message[m].from == from) && (to < 0 || o->message[m].to == to)) sum += o->message[m].count;
    return sum;
}

static size_t all_between(const struct soak_operation *o, int n, int me, bool sent)
{
    size_t sum = 0;

    for (int r = 0; r < n; r++) sum += sent ? soak_part_between(o, me, r) : soak_part_between(o, r, me);
    return sum;
}

enum amount { COUNT, NOTHING, ALL, ROOT_COUNT, ROOT_ALL, PART, PARTS, BETWEEN, MESSAGES };

/* Elements that a rank sends and gets; else the count. */
static const struct {
    enum amount sends, gets;
} amounts[SOAK_KINDS] = {
    /* with a root */
    [SOAK_REDUCE] = {COUNT, ROOT_COUNT},
    [SOAK_BROADCAST] = {ROOT_COUNT, COUNT},
    [SOAK_BCAST] = {ROOT_COUNT, COUNT},
    [SOAK_GATHER] = {COUNT, ROOT_ALL},
    [SOAK_SCATTER] = {ROOT_ALL, COUNT},
    /* all alike */
    [SOAK_ALL_GATHER] = {COUNT, ALL},
    [SOAK_REDUCE_SCATTER] = {ALL, COUNT},
    [SOAK_ALL_TO_ALL] = {ALL, ALL},
    [SOAK_BARRIER] = {NOTHING, NOTHING},
    /* each its own */
    [SOAK_ALL_GATHER_V] = {PART, PARTS},
    [SOAK_REDUCE_SCATTER_V] = {PARTS, PART},
    [SOAK_ALL_TO_ALL_V] = {BETWEEN, BETWEEN},
    [SOAK_MESSAGE] = {MESSAGES, MESSAGES},
};

static size_t how_much(enum amount amount, const struct soak_operation *o, int n, int me, bool sent)
{
    switch (amount) {
    case NOTHING:
        return 0;
    case ALL:
        return o->count * (size_t)n;
    case ROOT_COUNT:
        return me == o->root ? o->count : 0;
    case ROOT_ALL:
        return me == o->root ? o->count * (size_t)n : 0;
    case PART:
        return soak_part(o, me);
    case PARTS:
        return all_parts(o, n);
    case BETWEEN:
        return all_between(o, n, me, sent);
    case MESSAGES:
        return sent ? all_messages(o, me, -1) : all_messages(o, -1, me);
    default:
        return o->count;
    }
}

size_t soak_sends(const struct soak_operation *o, int n, int me)
{
    return how_much(amounts[o->kind].sends, o, n, me, true);
}

size_t soak_gets(const struct soak_operation *o, int n, int me)
{
    return how_much(amounts[o->kind].gets, o, n, me, false);
}

/* ---- contributions ---- */

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

int soak_scalar(const struct soak_operation *o, int n, int r)
{
    if (kl_value_type(o->type)->exact < 2 * n) return 1;
    return 1 + (int)(soak_key(o->key, 100 + (uint64_t)r) & 1);
}

/* -limit ... limit, or from 0 on where there is no less. */
static int64_t around_zero(const struct kl_value_type *t, uint64_t random, int64_t limit)
{
    int64_t magnitude = (int64_t)(random % (uint64_t)(limit + 1));

    return random >> 63 && t->kind != KL_VALUE_UNSIGNED ? -magnitude : magnitude;
}

static int64_t float_factor(uint64_t random, int n, int rank)
{
    return (random & 1 ? 1 : -1) * ((random >> 8) % (unsigned)n == (unsigned)rank ? 2 : 1);
}

static int64_t contribution(const struct soak_operation *o, int n, int rank, size_t i)
{
    const struct kl_value_type *t = kl_value_type(o->type);
    uint64_t random = soak_mix(o->key + i * 0x9e3779b97f4a7c15u + ((uint64_t)rank << 56) + (uint64_t)rank);
    int64_t exact = at_most(t->exact, INT64_C(1) << 40);
    bool is_float = t->kind == KL_VALUE_FLOAT;

    if (!soak_reduces(o->kind)) return is_float ? around_zero(t, random, exact) : (int64_t)random;
    switch (o->reduction) {
    case SOAK_PROD:
        return is_float ? float_factor(random, n, rank) : (int64_t)(random | 1);
    case SOAK_MAX:
    case SOAK_MIN:
        return around_zero(t, random, exact);
    case SOAK_SUM:
        return is_float ? around_zero(t, random, exact / n) : (int64_t)random;
    case SOAK_AVG:
        return is_float ? (int64_t)(random % (uint64_t)(exact / n + 1)) : around_zero(t, random, exact / n);
    case SOAK_PREMUL:
        return is_float ? around_zero(t, random, exact / n / soak_scalar(o, n, rank)) : (int64_t)random;
    case SOAK_LOGICAL_AND:
    case SOAK_LOGICAL_OR:
    case SOAK_LOGICAL_XOR:
        return random & 3 ? (int64_t)(random >> 32 & 0x7f) : 0;
    default:
        return (int64_t)random;
    }
}

void soak_contribute(const struct soak_operation *o, int n, int me, size_t i, void *at)
{
    kl_value_put_int(kl_value_type(o->type), at, contribution(o, n, me, i));
}

/* ---- results ---- */

/* Unsigned types hold the low bits of a contribution, signed ones the same with a sign: operators that compare and the
 * truth value depend on it. */
static int64_t as_held(const struct kl_value_type *t, int64_t value)
{
    int rest = 64 - 8 * (int)t->bytes;

    if (t->kind == KL_VALUE_FLOAT) return value;
    if (t->kind == KL_VALUE_SIGNED) return (int64_t)((uint64_t)value << rest) >> rest;
    return (int64_t)((uint64_t)value << rest >> rest);
}

static int64_t combine(enum soak_reduction reduction, int64_t a, int64_t b)
{
    switch (reduction) {
    case SOAK_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case SOAK_MAX:
        return a > b ? a : b;
    case SOAK_MIN:
        return a < b ? a : b;
    case SOAK_BIT_AND:
        return a & b;
    case SOAK_BIT_OR:
        return a | b;
    case SOAK_BIT_XOR:
        return a ^ b;
    case SOAK_LOGICAL_AND:
        return a && b;
    case SOAK_LOGICAL_OR:
        return a || b;
    case SOAK_LOGICAL_XOR:
        return !a != !b;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static int64_t scaled(const struct soak_operation *o, int n, int rank, size_t i)
{
    int64_t value = as_held(kl_value_type(o->type), contribution(o, n, rank, i));

    if (o->reduction == SOAK_PREMUL) value = (int64_t)((uint64_t)value * (uint64_t)soak_scalar(o, n, rank));
    return o->reduction >= SOAK_LOGICAL_AND ? value != 0 : value;
}

/* Over all ranks; of a mean, the sum. */
static int64_t reduced(const struct soak_operation *o, int n, size_t i)
{
    int64_t value = scaled(o, n, 0, i);

    for (int r = 1; r < n; r++) value = combine(o->reduction, value, scaled(o, n, r, i));
    return value;
}

/* Where an element comes from. */
struct origin {
    int rank;
    size_t i;
};

static struct origin of_parts(const struct soak_operation *o, size_t i)
{
    int r = 0;

    for (; i >= soak_part(o, r); r++) i -= soak_part(o, r);
    return (struct origin){r, i};
}

static struct origin of_parts_between(const struct soak_operation *o, int me, size_t i)
{
    int r = 0;

    for (; i >= soak_part_between(o, r, me); r++) i -= soak_part_between(o, r, me);
    for (int to = 0; to < me; to++) i += soak_part_between(o, r, to);
    return (struct origin){r, i};
}

static struct origin of_messages(const struct soak_operation *o, int me, size_t i)
{
    int m = 0;

    for (;; m++) {
        if (o->message[m].to != me) continue;
        if (i < o->message[m].count) break;
        i -= o->message[m].count;
    }
    for (int k = 0; k < m; k++)
        if (o->message[k].from == o->message[m].from) i += o->message[k].count;
    return (struct origin){o->message[m].from, i};
}

/* Of operations that reduce: the element of all contributions. */
static struct origin origin_of(const struct soak_operation *o, int me, size_t i)
{
    size_t mine = (size_t)me * o->count;

    switch (o->kind) {
    case SOAK_BROADCAST:
    case SOAK_BCAST:
        return (struct origin){o->root, i};
    case SOAK_ALL_GATHER:
    case SOAK_GATHER:
        return (struct origin){(int)(i / o->count), i % o->count};
    case SOAK_REDUCE_SCATTER:
        return (struct origin){0, mine + i};
    case SOAK_ALL_TO_ALL:
        return (struct origin){(int)(i / o->count), mine + i % o->count};
    case SOAK_SCATTER:
        return (struct origin){o->root, mine + i};
    case SOAK_ALL_GATHER_V:
        return of_parts(o, i);
    case SOAK_REDUCE_SCATTER_V:
        for (int r = 0; r < me; r++) i += soak_part(o, r);
        return (struct origin){0, i};
    case SOAK_ALL_TO_ALL_V:
        return of_parts_between(o, me, i);
    case SOAK_MESSAGE:
        return of_messages(o, me, i);
    default:
        return (struct origin){0, i};
    }
}

/* In units of the last place; 0: the same bits. */
static int64_t tolerance(const struct soak_operation *o, int n)
{
    const struct kl_value_type *t = kl_value_type(o->type);

    if (!soak_reduces(o->kind) || o->reduction != SOAK_AVG || t->kind != KL_VALUE_FLOAT) return 0;
    return n & (n - 1) ? 2 + n / 2 : 0;
}

static void put_expected(const struct soak_operation *o, int n, int me, size_t i, unsigned char want[8])
{
    const struct kl_value_type *t = kl_value_type(o->type);
    struct origin from = origin_of(o, me, i);

    if (!soak_reduces(o->kind)) {
        kl_value_put_int(t, want, contribution(o, n, from.rank, from.i));
        return;
    }
    int64_t value = reduced(o, n, from.i);
    if (o->reduction == SOAK_AVG && t->kind == KL_VALUE_FLOAT)
        kl_value_put_nearest(t, want, (long double)value / n);
    else
        kl_value_put_int(t, want, o->reduction == SOAK_AVG ? value / n : value);
}

bool soak_is_right(const struct soak_operation *o, int n, int me, size_t i, const void *at, unsigned char want[8])
{
    const struct kl_value_type *t = kl_value_type(o->type);
    int64_t allowed = tolerance(o, n);

    put_expected(o, n, me, i, want);
    if (!allowed) return !memcmp(at, want, t->bytes);
    int64_t off = kl_value_order(t, kl_value_bits(t, at)) - kl_value_order(t, kl_value_bits(t, want));
    return off <= allowed && -off <= allowed;
}
