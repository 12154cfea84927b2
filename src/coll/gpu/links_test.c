/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/links.h"

#include "tests/kolo_test.h"

static struct kl_gpu_facts gpu(int capability, bool nvlink)
{
    return (struct kl_gpu_facts){.capability = capability, .nvlink = nvlink};
}

static bool have(struct kl_gpu_facts a, struct kl_gpu_facts b)
{
    const struct kl_gpu_facts facts[] = {a, b, a};

    return kl_gpu_links_have_ll128(facts, 3);
}

static void ll128_is_safe_over_nvlink_from_7_0_on(void **state)
{
    (void)state;
    assert_true(have(gpu(70, true), gpu(70, true)));
    assert_true(have(gpu(120, true), gpu(120, true)));
    assert_false(have(gpu(61, true), gpu(61, true)));
    assert_false(have(gpu(90, true), gpu(90, false)));
}

static void generations_mix_from_9_0_on(void **state)
{
    (void)state;
    assert_true(have(gpu(90, true), gpu(100, true)));
    assert_true(have(gpu(100, true), gpu(90, true)));
    assert_false(have(gpu(80, true), gpu(90, true)));
    assert_false(have(gpu(90, true), gpu(80, true)));
    assert_false(have(gpu(80, true), gpu(86, true)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ll128_is_safe_over_nvlink_from_7_0_on),
        cmocka_unit_test(generations_mix_from_9_0_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
