/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/graph_wire.h"

#include "base/error.h"
#include "graph/graphs.h"
#include "graph/test_machine.h"

static struct kl_graphs search(const struct kl_topo *t)
{
    struct kl_graphs_request request = {.nvls = !kl_offload_guess_multicast(t),
                                        .collnet = !kl_offload_collnet(t, true, 0)};
    struct kl_graphs graphs;

    assert_int_equal(kl_graphs_compute(t, &request, &graphs), ncclSuccess);
    return graphs;
}

static void same_graph(const struct kl_graph *a, const struct kl_graph *b)
{
    struct kl_graph numbers = *b;

    numbers.intra = a->intra; /* compared by the data they point to */
    numbers.inter = a->inter;
    assert_memory_equal(a, &numbers, sizeof numbers);
    assert_memory_equal(a->intra, b->intra, (size_t)a->nchannels * (size_t)a->ngpus * sizeof *a->intra);
    assert_memory_equal(a->inter, b->inter, (size_t)a->nchannels * 2 * sizeof *a->inter);
}

static int check_machine(const struct kl_topo *t)
{
    struct kl_graphs before = search(t), after;
    int compared = 0;
    size_t size;
    void *bytes;

    assert_int_equal(kl_graphs_pack(&before, &bytes, &size), ncclSuccess);
    assert_int_equal(kl_graphs_unpack(bytes, size, t, &after), ncclSuccess);
    assert_int_equal(before.has_nets, after.has_nets);
    for (int i = 0; i < KL_GRAPHS; i++) {
        assert_true(!before.graph[i] == !after.graph[i]);
        if (!before.graph[i]) continue;
        same_graph(before.graph[i], after.graph[i]);
        compared++;
    }
    kl_graphs_fini(&before);
    kl_graphs_fini(&after);
    free(bytes);
    return compared;
}

static void graphs_arrive_as_they_were(void **state)
{
    char *text = malloc(TEST_MACHINE_TEXT);
    int compared = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        random_machine(seed, text);
        struct kl_topo *t = machine_of(text, 1 + (int)seed % 2);

        compared += check_machine(t);
        kl_topo_free(t);
    }
    assert_true(compared > 80); /* more than rings and trees */
    free(text);
}

static void what_is_cut_or_goes_on_is_refused(void **state)
{
    struct kl_topo *t = host_devices(5);
    struct kl_graphs graphs = search(t), after = {0};
    size_t size;
    void *bytes;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_graphs_pack(&graphs, &bytes, &size), ncclSuccess);
    for (size_t n = 0; n < size; n++) {
        void *cut = malloc(n ? n : 1); /* exactly, so that a sanitizer finds reads beyond the end */

        memcpy(cut, bytes, n);
        assert_int_equal(kl_graphs_unpack(cut, n, t, &after), ncclInternalError);
        free(cut);
    }
    bytes = realloc(bytes, size + 1);
    assert_int_equal(kl_graphs_unpack(bytes, size + 1, t, &after), ncclInternalError);
    kl_graphs_fini(&graphs);
    kl_topo_free(t);
    free(bytes);
}

/* Any word changed to anything: refused, or something that leads nowhere outside of its arrays. */
static void changed_bytes_do_no_harm(void **state)
{
    static const int32_t evil[] = {-1, 0, 1, 5, 63, 64, 65, 1000, INT32_MAX, INT32_MIN};
    struct kl_topo *t = host_devices(4);
    struct kl_graphs graphs = search(t), after;
    int refused = 0;
    size_t size;
    void *bytes;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_graphs_pack(&graphs, &bytes, &size), ncclSuccess);
    for (size_t at = 0; at + sizeof(int32_t) <= size; at += sizeof(int32_t))
        for (size_t e = 0; e < sizeof evil / sizeof evil[0]; e++) {
            char *changed = malloc(size);
            struct kl_rank_record record;

            memcpy(changed, bytes, size);
            memcpy(changed + at, &evil[e], sizeof evil[e]);
            if (kl_graphs_unpack(changed, size, t, &after)) {
                refused++;
            } else {
                kl_connect_record(&after, 0, 0, 0, &record);
                kl_graphs_fini(&after);
            }
            free(changed);
        }
    assert_true(refused > 100);
    kl_graphs_fini(&graphs);
    kl_topo_free(t);
    free(bytes);
}

static void graphs_of_another_machine_are_refused(void **state)
{
    struct kl_topo *four = host_devices(4), *five = host_devices(5);
    struct kl_graphs graphs = search(four), after;
    size_t size;
    void *bytes;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_graphs_pack(&graphs, &bytes, &size), ncclSuccess);
    assert_int_equal(kl_graphs_unpack(bytes, size, five, &after), ncclInternalError);
    assert_non_null(strstr(kl_error_text(), "do not fit this machine"));
    kl_graphs_fini(&graphs);
    kl_topo_free(four);
    kl_topo_free(five);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_arrive_as_they_were),
        cmocka_unit_test(what_is_cut_or_goes_on_is_refused),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(graphs_of_another_machine_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
