/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic that the proofs of the search lean on. */
#include "graph/bound.h"

#include "base/error.h"
#include "graph/test_machine.h"

#include <math.h>

static float round3(float x)
{
    return roundf(x * 1000) / 1000;
}

/* Below 2048 GB/s, subtracting thousandths and adding them back is exact. */
static void thousandths_are_exact(void **state)
{
    uint32_t seed = 7;

    (void)state;
    for (int i = 0; i < 2000000; i++) {
        int left = any_of(&seed, 2048000), need = 1 + any_of(&seed, left + 1);
        float value = (float)left / 1000, taken = round3(value - (float)need / 1000);

        if (need > left) continue;
        if (taken != (float)(left - need) / 1000) fail_msg("%d - %d thousandths", left, need);
        if (round3(taken + (float)need / 1000) != value) fail_msg("%d - %d + %d thousandths", left, need, need);
    }
}

static const char machine[] =
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
    "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:20:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<nic><net name=\"a\" dev=\"0\" speed=\"100000\" port=\"1\" guid=\"0x1\" gdr=\"1\"/></nic></pci>"
    "</pci></cpu></system>";

/* GPUs and NIC at 24 GB/s, the NIC's port at 12.5. */
static const struct bound_case {
    const char *label;
    int pattern;
    float bw;
    int channels;
} bounds[] = {
    {"one channel per 12 GB/s of the port", KL_PATTERN_RING, 12, 1},
    {"two of 6", KL_PATTERN_RING, 6, 2},
    {"four of 3", KL_PATTERN_RING, 3, 4},
    {"too fast for the port", KL_PATTERN_RING, 15, 0},
    {"too fast for any link", KL_PATTERN_RING, 30, 0},
    {"trees alike", KL_PATTERN_BALANCED_TREE, 12, 1},
};

static void links_and_ports_bound_channels(void **state)
{
    struct kl_topo *t = machine_of(machine, 2);
    struct kl_routes *r = NULL;

    (void)state;
    assert_int_equal(kl_routes_create(t, &r), ncclSuccess);
    FOR_EACH_CASE(c, bounds)
    {
        struct kl_graph work = {.pattern = c->pattern,
                                .max_channels = 32,
                                .type_intra = KL_PATH_SYS,
                                .type_inter = KL_PATH_SYS,
                                .bw_intra = c->bw,
                                .bw_inter = c->bw};

        expect_case(c->label, kl_bound_channels(r, &work) == c->channels);
    }
    kl_routes_free(r);
    kl_topo_free(t);
}

static void only_more_or_shorter_channels_win(void **state)
{
    struct kl_graph best = {.pattern = KL_PATTERN_RING, .nchannels = 4, .bw_intra = 12, .nhops = 80};
    struct kl_graph work = {.pattern = KL_PATTERN_RING, .min_channels = 1, .bw_intra = 6};

    (void)state;
    assert_false(kl_bound_can_win(&work, &best, 7, 1));
    assert_true(kl_bound_can_win(&work, &best, 9, 100));
    assert_true(kl_bound_can_win(&work, &best, 8, 9));   /* as much, and 72 hops are fewer */
    assert_false(kl_bound_can_win(&work, &best, 8, 10)); /* 80 are not */
    work.cross_nic = 2;
    assert_false(kl_bound_can_win(&work, &best, 8, 9)); /* hops count among equals only */
    work.min_channels = 10;
    assert_false(kl_bound_can_win(&work, &best, 9, 1));
}

/* 24 GB/s carries one channel at 15 to 24, two at 12: between these a link accepts the same. */
static const struct alike_case {
    float a, b;
    bool alike;
} alikes[] = {{15, 20, true}, {20, 24, true}, {12, 15, false}, {24, 30, false},
              {28, 30, true}, {9, 10, true},  {7, 9, false}};

static void speeds_between_steps_are_alike(void **state)
{
    struct kl_topo *t = host_devices(2);
    struct kl_routes *r = NULL;
    struct kl_sums *sums = NULL;

    (void)state;
    for (int l = 0; l < t->nlinks; l++) t->link[l].bw = 24;
    assert_int_equal(kl_routes_create(t, &r), ncclSuccess);
    assert_int_equal(kl_sums_create(r, KL_PATTERN_RING, &sums), ncclSuccess);
    FOR_EACH_CASE(c, alikes)
    {
        struct kl_wishes a = {KL_PATTERN_RING, KL_PATH_SYS, KL_PATH_SYS, c->a, c->a}, b = a;

        b.bw_intra = b.bw_inter = c->b;
        assert_true(kl_is_exact(r, &a) && kl_is_exact(r, &b));
        assert_int_equal(kl_rounds_alike(r, sums, &a, &b, true), c->alike);
    }
    kl_sums_free(sums);
    kl_routes_free(r);
    kl_topo_free(t);
}

static const struct exact_case {
    const char *label;
    float link, bw;
    bool exact;
} exacts[] = {
    {"thousandths", 24, 2.4f, true},
    {"links made of products", 20.6f * 18, 20, 20.6f * 18 == 370.8f},
    {"a link with more decimals", 10.00049f, 2, false},
    {"large whole numbers", 5000, 12, true},
    {"large numbers and decimals, on PCI", 5000, 1.2f, false},
};

static void only_what_leaves_no_traces_is_exact(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, exacts)
    {
        struct kl_topo *t = host_devices(2);
        struct kl_wishes w = {KL_PATTERN_RING, KL_PATH_SYS, KL_PATH_SYS, c->bw, c->bw};
        struct kl_routes *r = NULL;

        t->link[0].bw = c->link;
        assert_int_equal(kl_routes_create(t, &r), ncclSuccess);
        expect_case(c->label, kl_is_exact(r, &w) == c->exact);
        kl_routes_free(r);
        kl_topo_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousandths_are_exact),
        cmocka_unit_test(links_and_ports_bound_channels),
        cmocka_unit_test(only_more_or_shorter_channels_win),
        cmocka_unit_test(speeds_between_steps_are_alike),
        cmocka_unit_test(only_what_leaves_no_traces_is_exact),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
