/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/perf_data.h"
#include "tools/kolo/perf_value.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 40 };

static const int rank_counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};

/* ---- a reduction as a library does it: element by element, each step rounded to the type, in some order ---- */

static long double number(ncclDataType_t type, const unsigned char *at)
{
    const struct kl_value_type *t = kl_value_type(type);
    char text[40];

    kl_value_print(t, at, text, sizeof text);
    if (t->kind == KL_VALUE_UNSIGNED) return (long double)strtoull(text, NULL, 10);
    return strtold(text, NULL);
}

static void round_to(ncclDataType_t type, unsigned char *at, long double value)
{
    kl_value_put_nearest(kl_value_type(type), at, value);
}

static long double float_step(ncclRedOp_t op, long double a, long double b)
{
    switch (op) {
    case ncclProd:
        return a * b;
    case ncclMax:
        return a > b ? a : b;
    case ncclMin:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

/* `order` lists ranks; -1 is left out. Floating types. */
static void reduce_floats(ncclDataType_t type, ncclRedOp_t op, int n, const int *order, unsigned char part[][8],
                          unsigned char *out)
{
    unsigned char scale[8], own[8];
    bool first = true;

    round_to(type, scale, 1.0L / n);
    memset(out, 0, 8);
    for (int i = 0; i < n; i++) {
        if (order[i] < 0) continue;
        memcpy(own, part[order[i]], 8);
        if (op == ncclAvg) round_to(type, own, number(type, own) * number(type, scale));
        if (first)
            memcpy(out, own, 8);
        else
            round_to(type, out, float_step(op, number(type, out), number(type, own)));
        first = false;
    }
}

static uint64_t extend(ncclDataType_t type, uint64_t bits)
{
    const struct kl_value_type *t = kl_value_type(type);
    unsigned unused = 64 - 8 * t->bytes;

    return t->kind == KL_VALUE_SIGNED ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits << unused >> unused;
}

static bool less(ncclDataType_t type, uint64_t a, uint64_t b)
{
    return kl_value_type(type)->kind == KL_VALUE_SIGNED ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t integer_step(ncclDataType_t type, ncclRedOp_t op, uint64_t a, uint64_t b)
{
    switch (op) {
    case ncclProd:
        return extend(type, a * b);
    case ncclMax:
        return less(type, a, b) ? b : a;
    case ncclMin:
        return less(type, a, b) ? a : b;
    default:
        return extend(type, a + b);
    }
}

static uint64_t divide(ncclDataType_t type, uint64_t a, int n)
{
    return kl_value_type(type)->kind == KL_VALUE_SIGNED ? (uint64_t)((int64_t)a / n) : a / (uint64_t)n;
}

static void reduce_integers(ncclDataType_t type, ncclRedOp_t op, int n, const int *order, unsigned char part[][8],
                            unsigned char *out)
{
    const struct kl_value_type *t = kl_value_type(type);
    uint64_t total = 0;
    bool first = true;

    for (int i = 0; i < n; i++) {
        if (order[i] < 0) continue;
        uint64_t own = extend(type, kl_value_bits(t, part[order[i]]));
        total = first ? own : integer_step(type, op, total, own);
        first = false;
    }
    if (op == ncclAvg) total = divide(type, total, n);
    kl_value_put_int(t, out, (int64_t)total);
}

static void reduce(ncclDataType_t type, ncclRedOp_t op, int n, const int *order, unsigned char part[][8],
                   unsigned char *out)
{
    if (kl_value_type(type)->kind == KL_VALUE_FLOAT)
        reduce_floats(type, op, n, order, part, out);
    else
        reduce_integers(type, op, n, order, part, out);
}

static void shuffle(int *order, int n)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = rand() % (i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* ---- properties of the data ---- */

struct world {
    int n;
    ncclDataType_t type;
    ncclRedOp_t op;
    struct kl_data_table part[MAX_RANKS], result;
};

static void build(struct world *w, ncclDataType_t type, ncclRedOp_t op, int n)
{
    *w = (struct world){.n = n, .type = type, .op = op};
    for (int r = 0; r < n; r++) assert_int_equal(kl_data_contribution(&w->part[r], type, op, n, r), 0);
    assert_int_equal(kl_data_reduced(&w->result, type, op, n), 0);
}

static void tear_down(struct world *w)
{
    for (int r = 0; r < w->n; r++) kl_data_free(&w->part[r]);
    kl_data_free(&w->result);
}

static void gather(const struct world *w, uint64_t seed, size_t index, unsigned char part[][8])
{
    for (int r = 0; r < w->n; r++) kl_data_fill(&w->part[r], seed, index, 1, part[r]);
}

static bool right(const struct world *w, uint64_t seed, size_t index, const unsigned char *got)
{
    struct kl_data_wrong wrong;

    return kl_data_check(&w->result, seed, index, 1, got, &wrong) == 0;
}

static void fail_at(const struct world *w, size_t index, const char *what)
{
    fail_msg("type %d, op %d, %d ranks, element %zu: %s", (int)w->type, (int)w->op, w->n, index, what);
}

/* Any order gives the result. */
static void check_order(struct world *w, size_t index)
{
    static unsigned char part[MAX_RANKS][8];
    unsigned char got[8];
    int order[MAX_RANKS];

    gather(w, 5, index, part);
    shuffle(order, w->n);
    reduce(w->type, w->op, w->n, order, part, got);
    if (!right(w, 5, index, got)) fail_at(w, index, "a correct result is refused");
}

/* Would anybody see in this element that the rank is missing? */
static bool is_missed(struct world *w, size_t index, int absent)
{
    static unsigned char part[MAX_RANKS][8];
    unsigned char got[8];
    int order[MAX_RANKS];

    gather(w, 5, index, part);
    shuffle(order, w->n);
    for (int k = 0; k < w->n; k++)
        if (order[k] == absent) order[k] = -1;
    reduce(w->type, w->op, w->n, order, part, got);
    return !right(w, 5, index, got);
}

static void check_world(struct world *w)
{
    for (size_t i = 0; i < 200; i++) check_order(w, 37 * i);
    for (int rank = 0; rank < w->n && w->n > 1; rank++) {
        size_t index = 0;

        while (index < 40 * (size_t)w->n && !is_missed(w, index, rank)) index++;
        if (index == 40 * (size_t)w->n) fail_at(w, index, "a missing rank was not noticed");
    }
}

static void any_order_is_exact_and_a_missing_rank_shows(void **state)
{
    static struct world w;

    (void)state;
    srand(7);
    for (int type = 0; type < ncclNumTypes; type++)
        for (int op = 0; op < ncclNumOps; op++) FOR_EACH_CASE(n, rank_counts)
            {
                build(&w, (ncclDataType_t)type, (ncclRedOp_t)op, *n);
                check_world(&w);
                tear_down(&w);
            }
}

/* As long as the type can count all ranks, each of them is seen in every single element. */
static void few_ranks_show_in_every_element(void **state)
{
    static const struct {
        ncclDataType_t type;
        ncclRedOp_t op;
        int n;
    } cases[] = {
        {ncclFloat8e5m2, ncclSum, 8}, {ncclFloat8e4m3, ncclSum, 16}, {ncclFloat16, ncclSum, 33},
        {ncclBfloat16, ncclSum, 33},  {ncclFloat, ncclSum, 33},      {ncclInt8, ncclSum, 33},
        {ncclUint64, ncclSum, 33},    {ncclFloat, ncclProd, 33},     {ncclFloat16, ncclProd, 14},
        {ncclInt8, ncclProd, 33},     {ncclFloat8e5m2, ncclAvg, 8},  {ncclInt8, ncclAvg, 7},
        {ncclFloat, ncclAvg, 33},     {ncclDouble, ncclAvg, 7},      {ncclUint8, ncclAvg, 9},
    };
    static struct world w;
    static unsigned char part[MAX_RANKS][8];
    unsigned char got[8];
    int order[MAX_RANKS];

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        build(&w, c->type, c->op, c->n);
        for (size_t index = 0; index < 200; index++)
            for (int absent = 0; absent < c->n; absent++) {
                gather(&w, 0, index, part);
                shuffle(order, c->n);
                for (int k = 0; k < c->n; k++)
                    if (order[k] == absent) order[k] = -1;
                reduce(c->type, c->op, c->n, order, part, got);
                if (right(&w, 0, index, got)) fail_at(&w, index, "a missing rank is not seen");
            }
        tear_down(&w);
    }
}

/* Means that cannot be exact are still held to a few ulp, never to more than the number of ranks. */
static void tolerance_is_small(void **state)
{
    static const struct {
        ncclDataType_t type;
        int n, widest; /* ulp on each side */
    } cases[] = {
        {ncclFloat, 2, 0},      {ncclFloat, 3, 3},    {ncclFloat, 6, 5},     {ncclFloat, 64, 0},
        {ncclFloat16, 3, 3},    {ncclBfloat16, 3, 3}, {ncclBfloat16, 33, 5}, {ncclFloat8e4m3, 3, 2},
        {ncclFloat8e5m2, 7, 2}, {ncclDouble, 12, 8},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_data_table table;
        int64_t widest = 0;

        assert_int_equal(kl_data_reduced(&table, c->type, ncclAvg, c->n), 0);
        for (int k = 0; table.low && k < KL_DATA_TABLE; k++) {
            int64_t width = (table.high[k] - table.low[k] + 1) / 2;
            if (width > widest) widest = width;
        }
        kl_data_free(&table);
        /* Below a power of two values stand twice as dense, so a window may hold half as many again. */
        if (widest > c->widest + (c->widest + 1) / 2)
            fail_msg("type %d, %d ranks: %d ulp", (int)c->type, c->n, (int)widest);
    }
}

static void fill_and_check_agree(void **state)
{
    static const size_t firsts[] = {0, 1, 1023, 1024, 1025, 4099, 1 << 20};
    static const size_t counts[] = {0, 1, 2, 1023, 1024, 1025, 5000};
    struct kl_data_table table;
    struct kl_data_wrong wrong;

    (void)state;
    for (int type = 0; type < ncclNumTypes; type++) {
        size_t bytes = kl_value_type((ncclDataType_t)type)->bytes;

        assert_int_equal(kl_data_moved(&table, (ncclDataType_t)type, 3), 0);
        FOR_EACH_CASE(first, firsts) FOR_EACH_CASE(count, counts)
        {
            unsigned char *buffer = malloc(*count * bytes + 2), *odd = buffer + 1;

            odd[*count * bytes] = 0x5a;
            kl_data_fill(&table, 11, *first, *count, odd); /* not aligned */
            assert_int_equal(odd[*count * bytes], 0x5a);
            assert_int_equal(kl_data_check(&table, 11, *first, *count, odd, &wrong), 0);
            if (*count) {
                odd[*count * bytes - 1] ^= 0x80; /* one bit of the last element */
                assert_int_equal(kl_data_check(&table, 11, *first, *count, odd, &wrong), 1);
                assert_int_equal(wrong.index, *count - 1);
                assert_string_not_equal(wrong.expected, wrong.got);
            }
            free(buffer);
        }
        kl_data_free(&table);
    }
}

static void the_first_wrong_element_is_named(void **state)
{
    struct kl_data_table table;
    struct kl_data_wrong wrong;
    static float data[5000];
    char text[40];

    (void)state;
    assert_int_equal(kl_data_reduced(&table, ncclFloat, ncclSum, 4), 0);
    kl_data_fill(&table, 2, 100, 5000, data);
    snprintf(text, sizeof text, "%.9g", (double)data[3000]);
    data[3000] = 0.5f;
    data[3001] = NAN;
    data[4999] += 1;
    assert_int_equal(kl_data_check(&table, 2, 100, 5000, data, &wrong), 3);
    assert_int_equal(wrong.index, 3000);
    assert_string_equal(wrong.expected, text);
    assert_string_equal(wrong.got, "0.5");
    kl_data_free(&table);
}

/* Pieces in the wrong place, of another rank, or of an earlier round do not pass. */
static void misplaced_data_shows(void **state)
{
    enum { COUNT = 4096 };
    struct kl_data_table a, b;
    struct kl_data_wrong wrong;
    static int32_t data[COUNT];

    (void)state;
    assert_int_equal(kl_data_moved(&a, ncclInt32, 0), 0);
    assert_int_equal(kl_data_moved(&b, ncclInt32, 1), 0);
    kl_data_fill(&a, 1, 0, COUNT, data);
    assert_true(kl_data_check(&b, 1, 0, COUNT, data, &wrong) > COUNT * 9 / 10);
    assert_true(kl_data_check(&a, 2, 0, COUNT, data, &wrong) > COUNT * 9 / 10);
    for (size_t shift = 1; shift < 5 * KL_DATA_PERIOD; shift += 17)
        if (kl_data_check(&a, 1, shift, COUNT, data, &wrong) < COUNT / 2) fail_msg("shifted by %zu", shift);
    for (size_t shift = KL_DATA_BLOCK; shift < (size_t)1 << 30; shift *= 2)
        if (kl_data_check(&a, 1, shift, COUNT, data, &wrong) < COUNT / 2) fail_msg("shifted by %zu", shift);
    kl_data_free(&a);
    kl_data_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_is_exact_and_a_missing_rank_shows),
        cmocka_unit_test(few_ranks_show_in_every_element),
        cmocka_unit_test(tolerance_is_small),
        cmocka_unit_test(fill_and_check_agree),
        cmocka_unit_test(the_first_wrong_element_is_named),
        cmocka_unit_test(misplaced_data_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
