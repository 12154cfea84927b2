/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions beyond NCCL's five: scaled sums, bitwise and logical operations. Each type against arithmetic on wide
 * values. */
#include "base/error.h"
#include "device/host/redop.h"
#include "device/host/smallfloat.h"
#include "tests/kolo_test.h"

enum { COUNT = 37 };

static const ncclDataType_t integers[] = {ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64};

static uint64_t cut(uint64_t value, size_t bytes)
{
    return bytes == 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

static uint64_t get(const char *from, size_t i, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, from + i * bytes, bytes);
    return value;
}

static uint64_t some(size_t i, uint64_t seed)
{
    return i % 5 == seed ? 0 : (i + 1) * UINT64_C(0x9e3779b97f4a7c15) * (seed + 1);
}

static void fill(char *to, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t value = some(i, seed);
        memcpy(to + i * bytes, &value, bytes);
    }
}

static uint64_t bits_of(int op, uint64_t a, uint64_t b)
{
    switch (op) {
    case KL_BITS_AND:
        return a & b;
    case KL_BITS_OR:
        return a | b;
    case KL_BITS_XOR:
        return a ^ b;
    case KL_TRUTH_AND:
        return a && b;
    case KL_TRUTH_OR:
        return a || b;
    default:
        return !a != !b;
    }
}

static void bits_and_truths_of_every_integer(void **state)
{
    (void)state;
    FOR_EACH_CASE(type, integers)
    {
        size_t bytes = kl_type_bytes(*type);
        for (int op = 0; op < KL_BITS_OPS; op++) {
            char a[COUNT * 8], b[COUNT * 8], out[COUNT * 8];
            struct kl_redop redop;

            fill(a, bytes, 1);
            fill(b, bytes, 2);
            assert_int_equal(kl_redop_init_bits(&redop, *type, (enum kl_bits_op)op), ncclSuccess);
            redop.combine(&redop, out, a, b, COUNT);
            for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(get(out, i, bytes), bits_of(op, get(a, i, bytes), get(b, i, bytes)));
            if (redop.first) redop.first(&redop, a, a, COUNT);
            for (size_t i = 0; i < COUNT; i++) /* no two ranks have a bit in common */
                assert_int_equal(get(a, i, bytes),
                                 op >= KL_TRUTH_AND ? cut(some(i, 1), bytes) != 0 : cut(some(i, 1), bytes));
        }
    }
}

static void integers_are_multiplied_and_wrap(void **state)
{
    (void)state;
    FOR_EACH_CASE(type, integers)
    {
        size_t bytes = kl_type_bytes(*type);
        char a[COUNT * 8], b[COUNT * 8], out[COUNT * 8];
        int64_t factor = -3;
        struct kl_redop redop;

        fill(a, bytes, 1);
        fill(b, bytes, 2);
        assert_int_equal(kl_redop_init_scaled(&redop, *type, &factor), ncclSuccess);
        redop.first(&redop, out, a, COUNT);
        redop.combine(&redop, out, out, b, COUNT);
        assert_null(redop.last);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t want = (uint64_t)-3 * get(a, i, bytes) + (uint64_t)-3 * get(b, i, bytes);
            assert_int_equal(get(out, i, bytes), cut(want, bytes));
        }
        redop.merge(&redop, out, a, b, COUNT); /* scaled contributions are not scaled again */
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(get(out, i, bytes), cut(get(a, i, bytes) + get(b, i, bytes), bytes));
    }
}

static void floats_are_multiplied(void **state)
{
    const double wide = 0.3, x = 1.7, y = -2.9;
    const float single = 0.3f, fx = 1.7f, fy = -2.9f;
    const uint16_t half = kl_f16_encode(0.5f), brain = kl_bf16_encode(0.5f);
    const uint8_t e4m3 = kl_e4m3_encode(0.5f), e5m2 = kl_e5m2_encode(0.5f);
    struct kl_redop redop;
    double d;
    float f;

    (void)state;
    assert_int_equal(kl_redop_init_scaled(&redop, ncclFloat64, &wide), ncclSuccess);
    redop.first(&redop, &d, &x, 1);
    redop.combine(&redop, &d, &d, &y, 1);
    assert_true(d == x * wide + y * wide);
    assert_int_equal(kl_redop_init_scaled(&redop, ncclFloat32, &single), ncclSuccess);
    redop.first(&redop, &f, &fx, 1);
    volatile float a = fx * single, b = fy * single;
    redop.combine(&redop, &f, &f, &fy, 1);
    assert_true(f == a + b);
    assert_int_equal(kl_redop_init_scaled(&redop, ncclFloat16, &half), ncclSuccess);
    assert_true(redop.scale == 0.5f);
    assert_int_equal(kl_redop_init_scaled(&redop, ncclBfloat16, &brain), ncclSuccess);
    assert_true(redop.scale == 0.5f);
    assert_int_equal(kl_redop_init_scaled(&redop, ncclFloat8e4m3, &e4m3), ncclSuccess);
    assert_true(redop.scale == 0.5f);
    assert_int_equal(kl_redop_init_scaled(&redop, ncclFloat8e5m2, &e5m2), ncclSuccess);
    assert_true(redop.scale == 0.5f);
}

static void what_does_not_go_together_is_refused(void **state)
{
    struct kl_redop redop;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_redop_init_bits(&redop, ncclFloat32, KL_BITS_AND), ncclInvalidArgument);
    assert_int_equal(kl_redop_init_bits(&redop, ncclFloat8e4m3, KL_TRUTH_OR), ncclInvalidArgument);
    assert_int_equal(kl_redop_init_bits(&redop, (ncclDataType_t)99, KL_BITS_AND), ncclInvalidArgument);
    assert_int_equal(kl_redop_init_bits(&redop, ncclInt8, KL_BITS_OPS), ncclInvalidArgument);
    assert_int_equal(kl_redop_init_scaled(&redop, (ncclDataType_t)99, &redop), ncclInvalidArgument);
    kl_error_quiet(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_and_truths_of_every_integer),
        cmocka_unit_test(integers_are_multiplied_and_wrap),
        cmocka_unit_test(floats_are_multiplied),
        cmocka_unit_test(what_does_not_go_together_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
