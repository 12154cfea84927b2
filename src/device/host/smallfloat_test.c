/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/redop_reference.h"
#include "device/host/smallfloat.h"
#include "tests/kolo_test.h"

static float decode(const struct type *t, uint64_t code)
{
    switch (t->type) {
    case ncclFloat16:
        return kl_f16_decode((uint16_t)code);
    case ncclBfloat16:
        return kl_bf16_decode((uint16_t)code);
    case ncclFloat8e4m3:
        return kl_e4m3_decode((uint8_t)code);
    default:
        return kl_e5m2_decode((uint8_t)code);
    }
}

static uint64_t encode(const struct type *t, float value)
{
    switch (t->type) {
    case ncclFloat16:
        return kl_f16_encode(value);
    case ncclBfloat16:
        return kl_bf16_encode(value);
    case ncclFloat8e4m3:
        return kl_e4m3_encode(value);
    default:
        return kl_e5m2_encode(value);
    }
}

static void expect_encoding(const struct type *t, float value)
{
    if (encode(t, value) != nearest(t, value)) {
        fail_msg("%s of %a: %#llx, not %#llx", t->name, (double)value, (unsigned long long)encode(t, value),
                 (unsigned long long)nearest(t, value));
    }
}

/* Every code is decoded; encoded are every value, every midpoint of two, and the floats on either side of these. */
static void conversions_are_as_defined(void **state)
{
    (void)state;
    FOR_EACH_CASE(t, types)
    {
        if (t->kind != FLOAT || t->bits > 16) continue;
        for (uint64_t code = 0; code <= mask_of(t); code++) {
            const double value = value_of(t, code), next = value_of(t, code + 1);
            const float here = decode(t, code), middle = (float)((value + next) / 2);

            assert_true(isnan(value) ? isnan(here) : here == value && !signbit(here) == !signbit(value));
            expect_encoding(t, here);
            expect_encoding(t, middle);
            expect_encoding(t, nextafterf(here, INFINITY));
            expect_encoding(t, nextafterf(here, -INFINITY));
            expect_encoding(t, nextafterf(middle, INFINITY));
            expect_encoding(t, nextafterf(middle, -INFINITY));
        }
    }
}

static void floats_out_of_range_are_encoded(void **state)
{
    const float values[] = {65519.0f, 65520.0f, 65536.0f, 464.0f,   480.0f,   61440.0f,      65535.0f, 1e30f,
                            1e-30f,   1e-45f,   0x1p-25f, 0x1p-10f, 0x1p-17f, 3.3961776e38f, 3.4e38f,  INFINITY};

    (void)state;
    FOR_EACH_CASE(t, types)
    {
        if (t->kind != FLOAT || t->bits > 16) continue;
        FOR_EACH_CASE(value, values)
        {
            expect_encoding(t, *value);
            expect_encoding(t, -*value);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_are_as_defined),
        cmocka_unit_test(floats_out_of_range_are_encoded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
