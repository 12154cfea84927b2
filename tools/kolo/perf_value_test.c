/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/perf_value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct nearest_case {
    const char *name;
    ncclDataType_t type;
    long double value;
    uint64_t bits;
    const char *text;
} nearest_cases[] = {
    {"half 1", ncclFloat16, 1, 0x3c00, "1"},
    {"half -2", ncclFloat16, -2, 0xc000, "-2"},
    {"half 2048", ncclFloat16, 2048, 0x6800, "2048"},
    {"half 2049 is a tie, to even", ncclFloat16, 2049, 0x6800, "2048"},
    {"half 2051 is a tie, to even", ncclFloat16, 2051, 0x6802, "2052"},
    {"half largest", ncclFloat16, 65504, 0x7bff, "65504"},
    {"half saturates", ncclFloat16, 1e9L, 0x7bff, "65504"},
    {"half smallest", ncclFloat16, 0x1p-24L, 0x0001, "5.96046448e-08"},
    {"half half of the smallest, to even", ncclFloat16, 0x1p-25L, 0x0000, "0"},
    {"half more than that", ncclFloat16, 0x1.8p-25L, 0x0001, "5.96046448e-08"},
    {"half largest subnormal rounds into normal", ncclFloat16, 0x1.ffcp-15L + 0x1p-25L, 0x0400, "6.10351562e-05"},
    {"half third", ncclFloat16, 1.0L / 3, 0x3555, "0.333251953"},
    {"half zero", ncclFloat16, 0, 0, "0"},
    {"half minus zero", ncclFloat16, -0.0L, 0x8000, "-0"},
    {"bf16 third", ncclBfloat16, 1.0L / 3, 0x3eab, "0.333984375"},
    {"bf16 1.99999 carries", ncclBfloat16, 1.99999L, 0x4000, "2"},
    {"e4m3 1", ncclFloat8e4m3, 1, 0x38, "1"},
    {"e4m3 448", ncclFloat8e4m3, 448, 0x7e, "448"},
    {"e4m3 saturates", ncclFloat8e4m3, -1e6L, 0xfe, "-448"},
    {"e4m3 smallest", ncclFloat8e4m3, 0x1p-9L, 0x01, "0.001953125"},
    {"e5m2 1", ncclFloat8e5m2, 1, 0x3c, "1"},
    {"e5m2 57344", ncclFloat8e5m2, 57344, 0x7b, "57344"},
    {"e5m2 7", ncclFloat8e5m2, 7, 0x47, "7"},
    {"float third", ncclFloat32, 1.0L / 3, 0x3eaaaaab, "0.333333343"},
    {"float -0.1", ncclFloat32, -0.1L, 0xbdcccccd, "-0.100000001"},
    {"double 0.1", ncclFloat64, 0.1L, 0x3fb999999999999a, "0.10000000000000001"},
    {"double smallest", ncclFloat64, 0x1p-1074L, 1, "4.9406564584124654e-324"},
};

static void nearest_rounds_as_ieee_does(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, nearest_cases)
    {
        const struct kl_value_type *t = kl_value_type(c->type);
        unsigned char bytes[8] = {0};
        char text[40];

        kl_value_put_nearest(t, bytes, c->value);
        expect_case(c->name, kl_value_bits(t, bytes) == c->bits);
        kl_value_print(t, bytes, text, sizeof text);
        expect_case(c->name, !strcmp(text, c->text));
    }
}

/* The compiler's own conversions are the reference for the two formats it has. */
static void nearest_agrees_with_the_compiler(void **state)
{
    const struct kl_value_type *f = kl_value_type(ncclFloat32), *d = kl_value_type(ncclFloat64);

    (void)state;
    srand(1);
    for (int i = 0; i < 100000; i++) {
        long double value = ldexpl((long double)rand() - RAND_MAX / 2, rand() % 300 - 170) / 3;
        float want_float = (float)value;
        double want_double = (double)value;
        unsigned char bytes[8];

        if (fabsf(want_float) <= FLT_MAX) {
            kl_value_put_nearest(f, bytes, value);
            assert_memory_equal(bytes, &want_float, 4);
        }
        kl_value_put_nearest(d, bytes, value);
        assert_memory_equal(bytes, &want_double, 8);
    }
}

static void facts_about_types_hold(void **state)
{
    (void)state;
    for (int type = 0; type < ncclNumTypes; type++) {
        const struct kl_value_type *t = kl_value_type((ncclDataType_t)type);
        unsigned char a[8], b[8];

        if (t->kind != KL_VALUE_FLOAT) continue;
        /* The integers up to `exact` are distinct values, one more is not. */
        kl_value_put_int(t, a, t->exact);
        kl_value_put_int(t, b, t->exact - 1);
        assert_memory_not_equal(a, b, t->bytes);
        kl_value_put_int(t, b, t->exact + 1);
        assert_memory_equal(a, b, t->bytes);
        /* Powers agree with rounding, the tiny one is the smallest. */
        for (int sign = -1; sign <= 1; sign += 2) {
            kl_value_put_power(t, a, sign * t->power);
            kl_value_put_nearest(t, b, ldexpl(1, sign * t->power));
            assert_memory_equal(a, b, t->bytes);
        }
        kl_value_put_nearest(t, a, ldexpl(1, -t->tiny_power));
        assert_int_equal(kl_value_bits(t, a), 1);
        assert_true(kl_value_ulp(t, 0) == ldexpl(1, -t->tiny_power));
        assert_true(kl_value_ulp(t, 1) == ldexpl(1, -(int)t->mantissa_bits));
        assert_true(kl_value_ulp(t, -1.5L) == ldexpl(1, -(int)t->mantissa_bits));
    }
}

static void integers_wrap_and_print(void **state)
{
    static const struct {
        ncclDataType_t type;
        int64_t value;
        const char *text;
    } cases[] = {
        {ncclInt8, -1, "-1"},
        {ncclInt8, 128, "-128"},
        {ncclUint8, -1, "255"},
        {ncclInt32, INT32_MIN, "-2147483648"},
        {ncclUint32, -1, "4294967295"},
        {ncclInt64, INT64_MIN, "-9223372036854775808"},
        {ncclUint64, -1, "18446744073709551615"},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        unsigned char bytes[8];
        char text[40];

        kl_value_put_int(kl_value_type(c->type), bytes, c->value);
        kl_value_print(kl_value_type(c->type), bytes, text, sizeof text);
        assert_string_equal(text, c->text);
    }
}

static void order_grows_by_one_per_value(void **state)
{
    (void)state;
    for (int type = 0; type < ncclNumTypes; type++) {
        const struct kl_value_type *t = kl_value_type((ncclDataType_t)type);
        unsigned char bytes[8] = {0};
        int64_t last = 0;

        if (t->kind != KL_VALUE_FLOAT) continue;
        for (int i = -8; i <= 8; i++) { /* around 1, where the distance of values changes */
            long double step = kl_value_ulp(t, 0.75L);
            kl_value_put_nearest(t, bytes, 1 + (i <= 0 ? i * step : 2 * i * step));
            int64_t order = kl_value_order(t, kl_value_bits(t, bytes));
            if (i > -8 && t->mantissa_bits > 3) assert_int_equal(order, last + 1);
            assert_true(i == -8 || order > last || t->mantissa_bits <= 3);
            last = order;
        }
        kl_value_put_nearest(t, bytes, -1);
        assert_true(kl_value_order(t, kl_value_bits(t, bytes)) < 0);
    }
    float nan_value = NAN, big = FLT_MAX;
    const struct kl_value_type *f = kl_value_type(ncclFloat32);
    assert_true(llabs(kl_value_order(f, kl_value_bits(f, &nan_value))) > kl_value_order(f, kl_value_bits(f, &big)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_rounds_as_ieee_does),  cmocka_unit_test(nearest_agrees_with_the_compiler),
        cmocka_unit_test(facts_about_types_hold),       cmocka_unit_test(integers_wrap_and_print),
        cmocka_unit_test(order_grows_by_one_per_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
