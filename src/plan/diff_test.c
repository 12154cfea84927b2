/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of two clusters, their cause, and the first one named. */
#include "plan/diff.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "tests/kolo_test.h"

#include <string.h>

#define SYNTHETIC "tests/data/topologies/synthetic/"

static struct kl_cluster_request request_for(const char *topo)
{
    return (struct kl_cluster_request){
        .topo = topo, .hosts = 1, .as_document = true, .edits.params = &kl_param_registry};
}

static struct kl_diff diff_of(const struct kl_cluster_request *a, const struct kl_cluster_request *b)
{
    struct kl_diff d;

    if (kl_diff_find(a, b, &d)) fail_msg("%s", kl_error_text());
    return d;
}

static void a_lost_link_is_the_cause(void **state)
{
    static const char *const with[] = {"NCCL_NET_GDR_READ=1"}, *const link[] = {"GPU/0-GPU/3:1"};
    struct kl_cluster_request a = request_for(SYNTHETIC "dgx1v-hcm-4nic.xml"), b = a;

    (void)state;
    b.edits.with = (struct kl_edit_list){with, 1};
    b.edits.without_link = (struct kl_edit_list){link, 1};
    struct kl_diff d = diff_of(&a, &b);
    const struct kl_fact *f = d.facts.fact;

    assert_int_equal(d.facts.nfacts, 2);
    assert_int_equal(f[0].change, KL_CHANGE_LINKS);
    assert_true(f[0].ends[0] == 0 && f[0].ends[1] == 3 && f[0].links[0] == 2 && f[0].links[1] == 1 && f[0].ways == 2);
    assert_int_equal(f[1].change, KL_CHANGE_SETTING);
    assert_true(d.in_cause[0] && !d.in_cause[1] && d.verified);
    assert_int_equal(f[0].alone, KL_EFFECT_ALL);
    assert_int_equal(f[1].alone, KL_EFFECT_NOTHING);
    assert_int_equal(d.neffects, 2);
    assert_true(d.effect[0].kind == KL_DIFF_NUMBERS && d.effect[0].graph == KL_GRAPH_RING);
    assert_int_equal(d.effect[1].kind, KL_DIFF_TIME);
    assert_true(d.effect[1].row->item == KL_FUNC_ALL_REDUCE && d.effect[1].row->bytes == 64 << 20);
    kl_diff_fini(&d);
}

static void nothing_changes_for_a_reason(void **state)
{
    static const char *const same[] = {"NCCL_P2P_DISABLE=0"}, *const other[] = {"NCCL_IB_ECE_ENABLE=x"},
                             *const net[] = {"NET/0"};
    struct kl_cluster_request a = request_for(SYNTHETIC "dgx1v-hcm-4nic.xml"), b = a;
    struct kl_diff d = diff_of(&a, &b);

    (void)state;
    assert_true(d.nothing_changes && d.why == KL_SAME_INPUT && !d.paths_change);
    kl_diff_fini(&d);
    b.edits.with = (struct kl_edit_list){same, 1};
    d = diff_of(&a, &b);
    assert_true(d.nothing_changes && d.why == KL_SAME_VALUE);
    kl_diff_fini(&d);
    b.edits.with = (struct kl_edit_list){other, 1};
    d = diff_of(&a, &b);
    assert_true(d.nothing_changes && d.why == KL_SAME_NO_PARAMETER);
    kl_diff_fini(&d);
    b.edits = (struct kl_edits){.without = {net, 1}, .params = &kl_param_registry};
    d = diff_of(&a, &b);
    assert_true(d.nothing_changes && d.why == KL_SAME_NO_NETWORK);
    kl_diff_fini(&d);
}

/* All transports change from SHM to P2P or back, whatever the GPUs: one group. */
static void rows_are_alike_whatever_they_name(void **state)
{
    static const char *const with[] = {"NCCL_P2P_DISABLE=1"};
    struct kl_cluster_request a = request_for(SYNTHETIC "gb200-4gpu-4nic.xml"), b = a;

    (void)state;
    b.edits.with = (struct kl_edit_list){with, 1};
    struct kl_diff d = diff_of(&a, &b);
    const struct kl_diff_effect *e = &d.effect[0];

    assert_int_equal(e->kind, KL_DIFF_ANSWER);
    assert_true(e->row->what == KL_ROW_TRANSPORT && e->row->a.transport.by == &kl_transport_p2p &&
                e->row->b.transport.by == &kl_transport_shm);
    assert_int_equal(e->nalike, 12);
    assert_int_equal(e->reach, KL_REACH_OFF);
    assert_true(d.effect[1].kind == KL_DIFF_LOST && d.effect[1].graph == KL_GRAPH_RING);
    kl_diff_fini(&d);
}

static void a_file_that_cannot_be_read_leaves_nothing(void **state)
{
    struct kl_cluster_request a = request_for(SYNTHETIC "dgx1v-hcm-4nic.xml"), b = request_for("/nonexistent");
    struct kl_diff d;

    (void)state;
    kl_error_quiet(1);
    assert_int_not_equal(kl_diff_find(&a, &b, &d), ncclSuccess);
    kl_error_quiet(0);
    kl_diff_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_link_is_the_cause),
        cmocka_unit_test(nothing_changes_for_a_reason),
        cmocka_unit_test(rows_are_alike_whatever_they_name),
        cmocka_unit_test(a_file_that_cannot_be_read_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
