/* SPDX-License-Identifier: Apache-2.0 */
/* The choice for an operation: candidates in order, refusals that are alike, ranges, and rounds of sends and
 * receives. */
#include "plan/op_choice.h"

#include "base/error.h"
#include "plan/op_rounds.h"
#include "plan/test_cluster.h"

static const char h100[] = "tests/data/topologies/synthetic/h100-nvsw-8nic-400g.xml";

static void the_fastest_comes_first(void **state)
{
    struct cluster *c = open_cluster(h100);
    const struct kl_op_question q = {KL_FUNC_ALL_REDUCE, 1 << 20, 1 << 20, ncclFloat, ncclSum};
    const struct kl_plan *p = plan_cluster(c, 2);
    struct kl_tuning_choice chosen;
    struct kl_op_choice o;

    (void)state;
    assert_int_equal(kl_op_choice_find(&q, &p->tuning, &o), ncclSuccess);
    assert_int_equal(kl_tuning_choose(&p->tuning, &o.op, &chosen, NULL), ncclSuccess);
    assert_memory_equal(&o.candidate[0].choice, &chosen, sizeof chosen);
    assert_int_equal(o.ncandidates, KL_NCCL_ALGOS * KL_PROTOS);
    assert_in_range(o.npossible, 2, o.ncandidates - 1);
    for (int i = 1; i < o.npossible; i++) assert_true(o.candidate[i].terms.time >= o.candidate[i - 1].terms.time);
    for (int i = 0; i < o.ncandidates; i++) assert_int_equal(o.candidate[i].refusal != 0, i >= o.npossible);
    assert_true(o.range[0].first == 1 && o.range[o.nranges - 1].last == (int64_t)1 << 34);
    kl_op_choice_fini(&o);
    drop_cluster(c);
}

static const struct kl_op_candidate *candidate(const struct kl_op_choice *o, int algo, int proto)
{
    int i = 0;

    while (o->candidate[i].choice.algo != algo || o->candidate[i].choice.proto != proto) i++;
    return &o->candidate[i];
}

/* No PAT for an all-reduce whatever the protocol; and no NVLS, but where that has no protocol at all. */
static void refusals_are_alike_by_what_they_are_about(void **state)
{
    struct cluster *c = open_cluster(h100);
    const struct kl_op_question q = {KL_FUNC_ALL_REDUCE, 1 << 20, 1 << 20, ncclFloat, ncclSum};
    struct kl_op_choice o;

    (void)state;
    assert_int_equal(kl_op_choice_find(&q, &plan_cluster(c, 2)->tuning, &o), ncclSuccess);
    const struct kl_op_candidate *nvls = candidate(&o, KL_ALGO_NVLS, KL_PROTO_SIMPLE);

    assert_int_equal(nvls->refusal, KL_REFUSED_NVLS_NODES);
    assert_true(kl_op_refuses_algorithm(&o, nvls));
    assert_true(kl_op_refuses_algorithm(&o, candidate(&o, KL_ALGO_PAT, KL_PROTO_LL)));
    assert_false(kl_op_same_refusal(nvls, candidate(&o, KL_ALGO_NVLS, KL_PROTO_LL)));
    assert_false(kl_op_refuses_algorithm(&o, candidate(&o, KL_ALGO_NVLS_TREE, KL_PROTO_LL))); /* Simple is possible */
    kl_op_choice_fini(&o);
    drop_cluster(c);
}

static void everybody_is_met_once(void **state)
{
    static const struct {
        enum kl_op_peers peers;
        int sends, receives;
    } cases[] = {{KL_PEERS_ALL, 16, 16},
                 {KL_PEERS_NEXT, 1, 1},
                 {KL_PEERS_TO_ROOT, 1, 16},
                 {KL_PEERS_OF_ROOT, 16, 1},
                 {KL_PEERS_CUBE, 4, 4}};
    struct cluster *c = open_cluster(h100);
    const struct kl_plan *p = plan_cluster(c, 2);

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_op_rounds r;
        int sends = 0, receives = 0;

        assert_int_equal(kl_op_rounds_find(k->peers, p, &r), ncclSuccess);
        for (int i = 0; i < r.nrounds; i++) {
            sends += r.round[i].send >= 0;
            receives += r.round[i].recv >= 0;
        }
        assert_int_equal(sends, k->sends);
        assert_int_equal(receives, k->receives);
        kl_op_rounds_fini(&r);
    }
    drop_cluster(c);
}

static void a_cube_has_a_power_of_two_ranks(void **state)
{
    struct cluster *c = open_cluster(h100);
    struct kl_op_rounds r;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_op_rounds_find(KL_PEERS_CUBE, plan_cluster(c, 3), &r), ncclInvalidUsage);
    kl_error_quiet(0);
    drop_cluster(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_comes_first),
        cmocka_unit_test(refusals_are_alike_by_what_they_are_about),
        cmocka_unit_test(everybody_is_met_once),
        cmocka_unit_test(a_cube_has_a_power_of_two_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
