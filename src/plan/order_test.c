/* SPDX-License-Identifier: Apache-2.0 */
/* Worked examples of cuts and sums: rings, PAT, a group, and the release that cuts otherwise. */
#include "plan/order_ranges.h"
#include "plan/order_steps.h"
#include "tests/kolo_test.h"

#include <stdlib.h>

static struct kl_order_rules rules_of(int nranks, int nchannels, int nccl)
{
    return (struct kl_order_rules){
        .nccl = nccl, .nranks = nranks, .nnodes = 1, .nchannels = nchannels, .buffer = KL_ORDER_BUFFERS};
}

static struct kl_order_group cut(const struct kl_order_rules *r, int algo, int proto, int nchannels,
                                 const int64_t *counts, int n)
{
    struct kl_order_group g = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat, .op = ncclSum};
    const struct kl_tuning_choice choice = {.algo = algo, .proto = proto, .nchannels = nchannels};

    assert_int_equal(kl_order_group_choose(r, NULL, &choice, counts, n, &g), ncclSuccess);
    kl_order_group_cut(r, &g);
    return g;
}

static void expect_sum(const struct kl_order_sums *s, int sum, const char *expected)
{
    char line[256];
    struct kl_text text = kl_text_in(line, sizeof line);

    kl_order_sum_text(s, sum, &text);
    assert_string_equal(line, expected);
}

static void a_ring_begins_behind_the_chunk(void **state)
{
    static const int32_t order[] = {0, 1, 2, 3};
    static const char *const sums[] = {"((1+2)+3)+0", "((2+3)+0)+1", "((3+0)+1)+2", "((0+1)+2)+3"};
    const struct kl_order_rules r = rules_of(4, 1, 22603);
    struct kl_order_group g = cut(&r, KL_ALGO_RING, KL_PROTO_SIMPLE, 1, (int64_t[]){1000}, 1);
    struct kl_order_sums s = {.nterms = 0};
    struct kl_order_ranges ranges;
    struct kl_order_wires w;

    (void)state;
    assert_int_equal(kl_order_wires_init(4, 1, 1, 0, &w), ncclSuccess);
    kl_order_wires_set_ring(&w, 0, order);
    assert_int_equal(kl_order_ranges_of(&r, &w, &g, &g.ops[0], 0, &s, &ranges), ncclSuccess);
    assert_int_equal(ranges.n, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ranges.range[i].first, 252 * i);
        expect_sum(&s, ranges.range[i].sum, sums[i]);
    }
    free(ranges.range);
    kl_order_sums_fini(&s);
    kl_order_wires_fini(&w);
    kl_order_group_fini(&g);
}

static void expect_step(const struct kl_order_step *s, int step, int by, int from)
{
    assert_int_equal(s->step, step);
    assert_int_equal(s->by, by);
    assert_int_equal(s->from, from);
}

static void equal_sums_may_be_added_by_other_ranks(void **state)
{
    static const int32_t order[2][3] = {{0, 1, 2}, {0, 2, 1}};
    struct kl_order_op op = {.choice = {.algo = KL_ALGO_RING}};
    struct kl_order_sums sums = {.nterms = 0};
    struct kl_order o = {.rules = rules_of(3, 2, 22603), .sums = &sums, .op = &op};
    struct kl_order_steps s;

    (void)state;
    assert_int_equal(kl_order_wires_init(3, 1, 2, 0, &o.wires), ncclSuccess);
    for (int c = 0; c < 2; c++) {
        struct kl_order_range range = {.channel = c, .head = -1, .end = 2};

        kl_order_wires_set_ring(&o.wires, c, order[c]);
        assert_int_equal(kl_order_steps_of(&o, &range, &s), ncclSuccess);
        assert_int_equal(s.n, 2);
        expect_step(&s.step[0], 1, 1 - c, c);
        expect_step(&s.step[1], 2, 2, 1 - c);
        expect_sum(&sums, s.step[1].sum, "(0+1)+2");
        kl_order_steps_fini(&s);
    }
    kl_order_sums_fini(&sums);
    kl_order_wires_fini(&o.wires);
}

static void steps_wait_for_both_sums(void **state)
{
    struct kl_order_op op = {.choice = {.algo = KL_ALGO_PAT}};
    struct kl_order_sums sums = {.nterms = 0};
    struct kl_order o = {.rules = rules_of(6, 1, 22603), .sums = &sums, .op = &op};
    const struct kl_order_range range = {.head = -1, .end = 0};
    struct kl_order_steps s;

    (void)state;
    assert_int_equal(kl_order_steps_of(&o, &range, &s), ncclSuccess); /* ((0+(4+3))+(2+1))+5 */
    assert_int_equal(s.n, 5);
    expect_step(&s.step[0], 1, 4, 3);
    expect_step(&s.step[1], 2, 0, 4);
    expect_step(&s.step[2], 1, 2, 1);
    expect_step(&s.step[3], 3, 0, 2);
    expect_step(&s.step[4], 4, 0, 5);
    kl_order_steps_fini(&s);
    op.choice.algo = KL_ALGO_NVLS; /* a switch adds */
    assert_int_equal(kl_order_steps_of(&o, &range, &s), ncclSuccess);
    assert_int_equal(s.n, 0);
    kl_order_steps_fini(&s);
    kl_order_sums_fini(&sums);
}

static void pat_adds_the_nearest_last(void **state)
{
    struct kl_order_sums s = {.nterms = 0};

    (void)state;
    expect_sum(&s, kl_order_pat(&s, 4, 0), "(0+(2+1))+3");
    expect_sum(&s, kl_order_pat(&s, 6, 0), "((0+(4+3))+(2+1))+5");
    expect_sum(&s, kl_order_pat(&s, 8, 0), "((0+(6+5))+((4+(2+1))+3))+7");
    kl_order_sums_fini(&s);
}

static void children_have_no_order(void **state)
{
    struct kl_order_sums s = {.nterms = 0};
    int a = kl_order_leaf(&s, KL_LEAF_RANK, 0), b = kl_order_leaf(&s, KL_LEAF_RANK, 1);
    int c = kl_order_leaf(&s, KL_LEAF_RANK, 2), ab = kl_order_add(&s, a, b);

    (void)state;
    assert_int_equal(ab, kl_order_add(&s, b, a));
    assert_int_equal(kl_order_add(&s, ab, c), kl_order_add(&s, c, ab));
    assert_int_not_equal(kl_order_add(&s, ab, c), kl_order_add(&s, a, kl_order_add(&s, b, c)));
    assert_int_equal(kl_order_depth(&s, kl_order_add(&s, ab, c)), 2);
    kl_order_sums_fini(&s);
}

static void releases_cut_otherwise(void **state)
{
    static const struct {
        const char *name;
        int nccl, nparts;
        int64_t first, last;
    } cases[] = {{"2.28.9", 22809, 6, 512, 440}, {"2.29.2", 22902, 3, 1024, 952}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        const struct kl_order_rules r = rules_of(8, 8, c->nccl);
        struct kl_order_group g = cut(&r, KL_ALGO_RING, KL_PROTO_LL, 8, (int64_t[]){3000}, 1);

        expect_case(c->name, g.ops[0].nparts == c->nparts && g.ops[0].part[0].count == c->first &&
                                 g.ops[0].part[c->nparts - 1].count == c->last);
        kl_order_group_fini(&g);
    }
}

static void a_group_goes_on_with_the_next_channel(void **state)
{
    const struct kl_order_rules r = rules_of(4, 2, 22603);
    struct kl_order_group g = cut(&r, KL_ALGO_RING, KL_PROTO_SIMPLE, 2, (int64_t[]){4096, 4096}, 2);

    (void)state;
    assert_int_equal(g.ops[0].first_channel, 0);
    assert_int_equal(g.ops[1].first_channel, 1);
    kl_order_group_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_begins_behind_the_chunk),
        cmocka_unit_test(equal_sums_may_be_added_by_other_ranks),
        cmocka_unit_test(steps_wait_for_both_sums),
        cmocka_unit_test(pat_adds_the_nearest_last),
        cmocka_unit_test(children_have_no_order),
        cmocka_unit_test(releases_cut_otherwise),
        cmocka_unit_test(a_group_goes_on_with_the_next_channel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
