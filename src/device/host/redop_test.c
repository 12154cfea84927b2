/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel that this processor can run, against the reference and against the other tables. */
#include "device/host/redop.h"
#include "device/host/redop_reference.h"
#include "device/host/redop_table.h"
#include "tests/kolo_test.h"

#include <limits.h>
#include <stdlib.h>

struct pairs {
    size_t count;
    void *a, *b, *out;
};

static struct pairs pairs_alloc(size_t count)
{
    struct pairs p = {count, malloc(8 * count), malloc(8 * count), malloc(8 * count)};

    assert_true(p.a && p.b && p.out);
    return p;
}

static void pairs_free(struct pairs p)
{
    free(p.a);
    free(p.b);
    free(p.out);
}

/* All pairs of 8-bit codes; of larger types every special value with a spread of codes, and random pairs. */
static struct pairs pairs_make(const struct type *t, size_t random_count)
{
    const size_t spread = 4096, fixed = t->bits == 8 ? 65536 : 2 * SPECIALS * spread;
    struct pairs p = pairs_alloc(fixed + random_count);
    uint64_t seed = (uint64_t)t->type;

    for (size_t i = 0; i < fixed; i++) {
        const uint64_t code = t->bits == 8 ? i >> 8 : (i % spread) * (mask_of(t) / spread) + i / spread;
        const uint64_t other = special(t, i / spread / 2) | (i / spread % 2 ? sign_of(t) : 0);

        put(t, p.a, i, code);
        put(t, p.b, i, t->bits == 8 ? i & 0xff : other);
    }
    for (size_t i = fixed; i < p.count; i++) {
        put(t, p.a, i, sample(t, &seed));
        put(t, p.b, i, sample(t, &seed));
    }
    return p;
}

/* ---- kernels under test ---- */

static const ncclRedOp_t ops[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

/* The operation that joins two partial results: those of a mean have been scaled, and are added. */
static ncclRedOp_t joining(ncclRedOp_t op)
{
    return op == ncclAvg ? ncclSum : op;
}

/* With the kernels of one table; false if it has none, or this processor cannot run them. */
static bool init_from(const struct kl_redop_table *table, const struct type *t, ncclRedOp_t op, int nranks,
                      struct kl_redop *redop)
{
    const struct kl_redop_kernels *kernels = &table->kernels[t->type][op];

    if (!kernels->combine || !table->usable()) return false;
    assert_int_equal(kl_redop_init(redop, t->type, op, nranks), ncclSuccess);
    redop->first = kernels->first;
    redop->combine = kernels->combine;
    redop->merge = table->kernels[t->type][joining(op)].combine;
    redop->merge_four = table->kernels[t->type][joining(op)].four;
    redop->last = kernels->last;
    return true;
}

/* The table that all others are compared with: the last that has the kernel. */
static const struct kl_redop_table *plain_table(const struct type *t, ncclRedOp_t op)
{
    const struct kl_redop_table *plain = NULL;

    for (const struct kl_redop_table *table = kl_redop_tables; table->name; table++)
        if (table->kernels[t->type][op].combine) plain = table;
    return plain;
}

/* One kernel of one table, and the reference for its results. */
struct check {
    const char *what;
    const struct kl_redop_table *table;
    const struct type *t;
    ncclRedOp_t op;
};

static void expect_codes(const struct check *c, const void *got, const void *want, size_t count)
{
    if (!memcmp(got, want, count * (size_t)c->t->bits / 8)) return;
    for (size_t i = 0; i < count; i++) {
        const uint64_t x = get(c->t, got, i), y = get(c->t, want, i);

        if (x != y)
            fail_msg("%s, %s %s of %s, element %zu: %#llx, not %#llx", c->table->name, kl_redop_name(c->op), c->what,
                     c->t->name, i, (unsigned long long)x, (unsigned long long)y);
    }
}

/* Run `body` for every kernel that can run here. */
static void each_kernel(int nranks, void (*body)(const struct check *c, const struct kl_redop *redop))
{
    for (const struct kl_redop_table *table = kl_redop_tables; table->name; table++) {
        FOR_EACH_CASE(t, types)
        {
            FOR_EACH_CASE(op, ops)
            {
                const struct check c = {"combine", table, t, *op};
                struct kl_redop redop;

                if (init_from(table, t, *op, nranks, &redop)) body(&c, &redop);
            }
        }
    }
}

/* ---- tests ---- */

static void names_and_sizes(void **state)
{
    (void)state;
    FOR_EACH_CASE(t, types)
    {
        assert_int_equal(t - types, t->type);
        assert_string_equal(kl_type_name(t->type), t->name);
        assert_int_equal(kl_type_bytes(t->type), t->bits / 8);
    }
    assert_string_equal(kl_redop_name(ncclSum), "sum");
    assert_string_equal(kl_redop_name(ncclProd), "prod");
    assert_string_equal(kl_redop_name(ncclMax), "max");
    assert_string_equal(kl_redop_name(ncclMin), "min");
    assert_string_equal(kl_redop_name(ncclAvg), "avg");
}

static void unknown_is_refused(void **state)
{
    const int bad_types[] = {-1, ncclNumTypes, INT_MAX}, bad_ops[] = {-1, ncclNumOps, INT_MAX}, bad_ranks[] = {0, -1};
    struct kl_redop redop = {.nranks = 12345};

    (void)state;
    FOR_EACH_CASE(type, bad_types)
    {
        assert_int_equal(kl_redop_init(&redop, (ncclDataType_t)*type, ncclSum, 2), ncclInvalidArgument);
        assert_int_equal(kl_type_bytes((ncclDataType_t)*type), 0);
        assert_null(kl_type_name((ncclDataType_t)*type));
    }
    FOR_EACH_CASE(op, bad_ops)
    {
        assert_int_equal(kl_redop_init(&redop, ncclInt8, (ncclRedOp_t)*op, 2), ncclInvalidArgument);
        assert_null(kl_redop_name((ncclRedOp_t)*op));
    }
    FOR_EACH_CASE(nranks, bad_ranks)
    {
        assert_int_equal(kl_redop_init(&redop, ncclInt8, ncclSum, *nranks), ncclInvalidArgument);
    }
    assert_int_equal(redop.nranks, 12345); /* untouched on failure */
}

/* Whole reductions with values that a reader can check by hand. */
static const struct whole_case {
    const char *text;
    ncclDataType_t type;
    ncclRedOp_t op;
    int nranks;
    uint64_t own[3];
    uint64_t result;
} whole_cases[] = {
    {"int8 wraps", ncclInt8, ncclSum, 2, {0x7f, 0x01}, 0x80},
    {"uint32 product wraps", ncclUint32, ncclProd, 2, {0xffffffff, 0xffffffff}, 1},
    {"-1 is the smallest int32", ncclInt32, ncclMin, 3, {5, 0xffffffff, 0}, 0xffffffff},
    {"-1 is the largest uint32", ncclUint32, ncclMax, 3, {5, 0xffffffff, 0}, 0xffffffff},
    {"(-7 + 0) / 2 is -3", ncclInt64, ncclAvg, 2, {(uint64_t)-7, 0}, (uint64_t)-3},
    {"the mean of uint8 divides the wrapped sum", ncclUint8, ncclAvg, 2, {0xff, 0x03}, 0x01},
    {"half 1 + 2", ncclFloat16, ncclSum, 2, {0x3c00, 0x4000}, 0x4200},
    {"half 65504 + 16 is infinite", ncclFloat16, ncclSum, 2, {0x7bff, 0x4c00}, 0x7c00},
    {"half 65504 and 65504 have a mean", ncclFloat16, ncclAvg, 2, {0x7bff, 0x7bff}, 0x7bff},
    {"float mean of 1, 2, 6", ncclFloat32, ncclAvg, 3, {0x3f800000, 0x40000000, 0x40c00000}, 0x40400000},
    {"double mean of 1, 2", ncclFloat64, ncclAvg, 2, {0x3ff0000000000000, 0x4000000000000000}, 0x3ff8000000000000},
    {"inf - inf is the quiet NaN", ncclFloat32, ncclSum, 2, {0x7f800000, 0xff800000}, 0x7fc00000},
    {"a NaN loses sign and payload", ncclFloat32, ncclSum, 2, {0xffc12345, 0x3f800000}, 0x7fc00000},
    {"max takes NaN over a number", ncclFloat32, ncclMax, 3, {0x3f800000, 0xff800001, 0x40000000}, 0x7fc00000},
    {"min takes NaN over a number", ncclFloat64, ncclMin, 2, {0x7ff0000000000001, 0}, 0x7ff8000000000000},
    {"max of -0 and +0", ncclFloat32, ncclMax, 2, {0x80000000, 0}, 0},
    {"min of +0 and -0", ncclBfloat16, ncclMin, 2, {0, 0x8000}, 0x8000},
    {"bfloat16 ties to even", ncclBfloat16, ncclSum, 2, {0x3f80, 0x3b80}, 0x3f80},
    {"e4m3 saturates at 448", ncclFloat8e4m3, ncclSum, 2, {0x7e, 0x7e}, 0x7e},
    {"e5m2 saturates at -57344", ncclFloat8e5m2, ncclProd, 2, {0x7b, 0xfb}, 0xfb},
    {"e5m2 infinity saturates in arithmetic", ncclFloat8e5m2, ncclSum, 2, {0x7c, 0}, 0x7b},
    {"e5m2 infinity is a maximum", ncclFloat8e5m2, ncclMax, 2, {0x7c, 0x7b}, 0x7c},
    {"e4m3 448 and 448 have a mean", ncclFloat8e4m3, ncclAvg, 2, {0x7e, 0x7e}, 0x7e},
};

static void whole_reductions(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, whole_cases)
    {
        const struct type *t = &types[c->type];
        struct kl_redop redop;
        uint64_t result = c->own[0];

        expect_case(c->text, !kl_redop_init(&redop, c->type, c->op, c->nranks));
        expect_case(c->text, redop.elem_bytes == (size_t)t->bits / 8);
        if (redop.first) redop.first(&redop, &result, &c->own[0], 1);
        for (int rank = 1; rank < c->nranks; rank++) redop.combine(&redop, &result, &result, &c->own[rank], 1);
        if (redop.last) redop.last(&redop, &result, 1);
        if (result != c->result) fail_msg("case \"%s\": %#llx", c->text, (unsigned long long)result);
    }
}

typedef void combine_fn(const struct kl_redop *op, void *dst, const void *partial, const void *own, size_t count);

static combine_fn *the_combine(const struct kl_redop *redop)
{
    return redop->combine;
}

static combine_fn *the_merge(const struct kl_redop *redop)
{
    return redop->merge;
}

/* In every table `kernel` agrees with the reference for `meant`. */
static void check_pairs(const struct check *c, combine_fn *kernel(const struct kl_redop *redop), ncclRedOp_t meant,
                        int nranks, const struct pairs *p)
{
    const struct type *t = c->t;
    void *want = malloc(8 * p->count);

    assert_non_null(want);
    for (size_t i = 0; i < p->count; i++) {
        put(t, want, i, reference_combine(t, meant, get(t, p->a, i), get(t, p->b, i), nranks));
    }
    for (const struct kl_redop_table *table = kl_redop_tables; table->name; table++) {
        struct kl_redop redop;

        if (!init_from(table, t, c->op, nranks, &redop)) continue;
        kernel (&redop)(&redop, p->out, p->a, p->b, p->count);
        expect_codes(&(struct check){c->what, table, t, c->op}, p->out, want, p->count);
    }
    free(want);
}

static void pairs_are_as_defined(void **state)
{
    (void)state;
    FOR_EACH_CASE(t, types)
    {
        const struct pairs p = pairs_make(t, 20000);

        FOR_EACH_CASE(op, ops)
        {
            check_pairs(&(struct check){"combine", NULL, t, *op}, the_combine, *op, 3, &p);
            check_pairs(&(struct check){"merge", NULL, t, *op}, the_merge, joining(*op), 3, &p);
        }
        if (t->bits == 8) check_pairs(&(struct check){"combine", NULL, t, ncclAvg}, the_combine, ncclAvg, 8, &p);
        pairs_free(p);
    }
}

/* One contribution or one sum, for many numbers of ranks. */
static void check_ends(const struct check *c, const struct kl_redop *redop)
{
    enum { COUNT = 512 };
    uint64_t in[COUNT], got[COUNT], want[COUNT], seed = 7;

    for (size_t i = 0; i < COUNT; i++) {
        const uint64_t code = c->t->bits == 8 ? i & 0xff : sample(c->t, &seed);

        put(c->t, in, i, code);
        put(c->t, want, i, reference_first(c->t, c->op, code, redop->nranks));
    }
    if (redop->first) {
        redop->first(redop, got, in, COUNT);
        expect_codes(&(struct check){"first", c->table, c->t, c->op}, got, want, COUNT);
    }
    if (redop->last) {
        for (size_t i = 0; i < COUNT; i++) {
            put(c->t, want, i, reference_last(c->t, c->op, get(c->t, in, i), redop->nranks));
        }
        redop->last(redop, in, COUNT);
        expect_codes(&(struct check){"last", c->table, c->t, c->op}, in, want, COUNT);
    }
}

static void ends_are_as_defined(void **state)
{
    const int many[] = {255, 256, 257, 1000, 1024, 1025, 65535, 65536, 16777217, INT_MAX};

    (void)state;
    for (int nranks = 1; nranks <= 40; nranks++) each_kernel(nranks, check_ends);
    FOR_EACH_CASE(nranks, many) each_kernel(*nranks, check_ends);
}

/* Merging equals combining with a contribution that `first` has scaled already. */
static void merging_scales_nothing(void **state)
{
    enum { COUNT = 1000 };
    uint64_t a[COUNT], b[COUNT], got[COUNT], want[COUNT], seed = 11;

    (void)state;
    FOR_EACH_CASE(t, types)
    {
        for (size_t i = 0; i < COUNT; i++) put(t, a, i, sample(t, &seed)), put(t, b, i, sample(t, &seed));
        FOR_EACH_CASE(op, ops)
        {
            const struct check c = {"merge", kl_redop_tables, t, *op};
            struct kl_redop redop;

            assert_int_equal(kl_redop_init(&redop, t->type, *op, 4), ncclSuccess);
            redop.combine(&redop, want, b, a, COUNT);
            if (redop.first)
                redop.first(&redop, got, a, COUNT);
            else
                memcpy(got, a, sizeof a);
            redop.merge(&redop, got, b, got, COUNT);
            expect_codes(&c, got, want, COUNT);
        }
    }
}

/* Any number of partial results, at any address, also in place: equals merging them in pairs. */
static void check_many(const struct check *c, const struct kl_redop *redop)
{
    enum { MOST = 9, COUNT = 333, ROOM = 8 * COUNT + 16 };
    static char in[MOST][ROOM], got[ROOM], want[ROOM];
    const void *partials[MOST];
    const size_t bytes = redop->elem_bytes * COUNT;
    uint64_t seed = 21;

    for (size_t k = 0; k < MOST; k++) {
        char *at = in[k] + (5 * k + 3) % 16;

        for (size_t i = 0; i < COUNT; i++) put(c->t, at, i, sample(c->t, &seed));
        partials[k] = at;
    }
    for (size_t n = 1; n <= MOST; n++) {
        const struct check many = {"merge of many", c->table, c->t, c->op};
        const size_t count = n == 4 ? COUNT : COUNT - 7 * n;

        memcpy(want, partials[0], bytes);
        for (size_t k = 1; k < n; k++) redop->merge(redop, want, want, partials[k], count);
        memset(got, 0x55, sizeof got);
        kl_redop_merge_all(redop, got + 1, partials, n, count);
        expect_codes(&many, got + 1, want, count);
        for (size_t i = 1 + count * redop->elem_bytes; i < sizeof got; i++) assert_int_equal(got[i], 0x55);
        memcpy(got, partials[0], bytes);
        kl_redop_merge_all(redop, got, (const void *[MOST]){got, partials[1], partials[2], partials[3], partials[4]},
                           n < 5 ? n : 5, count);
        if (n <= 5) expect_codes(&many, got, want, count);
        if (n < 2) continue;
        memcpy(got, partials[1], bytes);
        kl_redop_merge_all(redop, got, (const void *[MOST]){partials[0], got, partials[2], partials[3], partials[4]},
                           n < 5 ? n : 5, count);
        if (n <= 5) expect_codes(&many, got, want, count);
    }
}

static void many_are_merged_as_pairs(void **state)
{
    const int nranks[] = {3, 8};

    (void)state;
    FOR_EACH_CASE(n, nranks) each_kernel(*n, check_many);
}

static void only_the_mean_has_ends(void **state)
{
    (void)state;
    FOR_EACH_CASE(t, types)
    {
        FOR_EACH_CASE(op, ops)
        {
            const bool mean = *op == ncclAvg;
            struct kl_redop redop;

            assert_int_equal(kl_redop_init(&redop, t->type, *op, 4), ncclSuccess);
            assert_true(!redop.first == !(mean && t->kind == FLOAT));
            assert_true(!redop.last == !(mean && t->kind != FLOAT));
        }
    }
}

/* Much random data, for which the reference would be too slow. */
static void check_against_plain(const struct check *c, const struct kl_redop *redop)
{
    enum { COUNT = 100003 };
    const struct pairs p = pairs_alloc(COUNT);
    uint64_t seed = 99;
    struct kl_redop plain;

    assert_true(init_from(plain_table(c->t, c->op), c->t, c->op, redop->nranks, &plain));
    for (size_t i = 0; i < COUNT; i++) {
        put(c->t, p.a, i, sample(c->t, &seed));
        put(c->t, p.b, i, sample(c->t, &seed));
    }
    redop->combine(redop, p.out, p.a, p.b, COUNT);
    plain.combine(&plain, p.b, p.a, p.b, COUNT);
    expect_codes(c, p.out, p.b, COUNT);
    pairs_free(p);
}

static void tables_agree(void **state)
{
    (void)state;
    each_kernel(5, check_against_plain);
}

/* Only the elements are written, at any alignment and for any count. */
static void check_places(const struct check *c, const struct kl_redop *redop)
{
    enum { MOST = 67, ROOM = 16 + 8 * MOST + 16 };
    const size_t bytes = redop->elem_bytes;
    uint64_t seed = 3;
    char a[ROOM], b[ROOM], out[ROOM], want[8 * MOST];

    for (size_t at = 0; at < 16; at++) {
        char *x = a + (at * 7 + 1) % 16, *y = b + (at * 3 + 2) % 16;

        for (size_t i = 0; i < MOST; i++) {
            put(c->t, x, i, sample(c->t, &seed));
            put(c->t, y, i, sample(c->t, &seed));
            put(c->t, want, i, reference_combine(c->t, c->op, get(c->t, x, i), get(c->t, y, i), redop->nranks));
        }
        for (size_t count = 0; count <= MOST; count++) {
            memset(out, 0x55, sizeof out);
            redop->combine(redop, out + at, x, y, count);
            expect_codes(c, out + at, want, count);
            for (size_t i = 0; i < at; i++) assert_int_equal(out[i], 0x55);
            for (size_t i = at + count * bytes; i < sizeof out; i++) assert_int_equal(out[i], 0x55);
        }
    }
}

static void any_address_any_count(void **state)
{
    (void)state;
    each_kernel(3, check_places);
}

static void check_in_place(const struct check *c, const struct kl_redop *redop)
{
    enum { MOST = 301 };
    const size_t counts[] = {1, 2, 15, 16, 17, 64, 65, MOST};
    uint64_t seed = 4, a[MOST], b[MOST], x[MOST], want[MOST];

    for (size_t i = 0; i < MOST; i++) {
        put(c->t, a, i, sample(c->t, &seed));
        put(c->t, b, i, sample(c->t, &seed));
    }
    FOR_EACH_CASE(count, counts)
    {
        redop->combine(redop, want, a, b, *count);
        memcpy(x, a, sizeof x);
        redop->combine(redop, x, x, b, *count);
        expect_codes(&(struct check){"combine onto partial", c->table, c->t, c->op}, x, want, *count);
        memcpy(x, b, sizeof x);
        redop->combine(redop, x, a, x, *count);
        expect_codes(&(struct check){"combine onto own", c->table, c->t, c->op}, x, want, *count);
        redop->combine(redop, want, a, a, *count);
        memcpy(x, a, sizeof x);
        redop->combine(redop, x, x, x, *count);
        expect_codes(&(struct check){"combine of one array", c->table, c->t, c->op}, x, want, *count);
        if (!redop->first) continue;
        redop->first(redop, want, a, *count);
        memcpy(x, a, sizeof x);
        redop->first(redop, x, x, *count);
        expect_codes(&(struct check){"first in place", c->table, c->t, c->op}, x, want, *count);
    }
}

static void in_place(void **state)
{
    (void)state;
    each_kernel(3, check_in_place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes),
        cmocka_unit_test(unknown_is_refused),
        cmocka_unit_test(whole_reductions),
        cmocka_unit_test(merging_scales_nothing),
        cmocka_unit_test(many_are_merged_as_pairs),
        cmocka_unit_test(only_the_mean_has_ends),
        cmocka_unit_test(pairs_are_as_defined),
        cmocka_unit_test(ends_are_as_defined),
        cmocka_unit_test(tables_agree),
        cmocka_unit_test(any_address_any_count),
        cmocka_unit_test(in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
