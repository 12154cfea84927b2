/* SPDX-License-Identifier: Apache-2.0 */
/* Rows say where hops are: each has the edges, actions, places and sizes that the simulator of schedules finds. And fifos of
 * KL_SLOTS slots are enough for them. */
#include "coll/gpu/program.h"
#include "coll/gpu/schedules.h"
#include "coll/schedule/test_schedule_graphs.h"

#include "tests/kolo_test.h"

#include <stdlib.h>

enum { COUNT = 211, MOST = 7 };

static size_t rows_compared;

/* Elements from the begin of a buffer to a part's chunk of the loop. */
static size_t place_of(const struct sim *sim, const struct sim_lane *l, uint32_t part, uint32_t chunk)
{
    return part * sim->count + l->first + chunk * l->chunk;
}

static size_t count_of(const struct sim *sim, const struct sim_lane *l, const struct kl_gpu_row *row)
{
    const size_t at = l->first + row->own_chunk * l->chunk, left = sim->end > at ? sim->end - at : 0;

    return left < l->chunk ? left : l->chunk;
}

static void compare_row(const struct sim *sim, int rank, int lane, const struct kl_gpu_row *row)
{
    const struct sim_lane *l = &sim->rank[rank].lane[lane];
    const struct sim_move m = sim_next(sim, rank, lane);
    const bool gathered = gathers(sim->schedule); /* the simulator counts in the operand, then */

    assert_int_equal(row->recv, m.hop.recv);
    assert_int_equal(row->send, m.hop.send);
    assert_int_equal(row->actions, m.hop.actions);
    assert_int_equal(count_of(sim, l, row), m.count);
    assert_int_equal(place_of(sim, l, row->own_part, row->own_chunk),
                     m.own - (gathered ? (size_t)rank * sim->count : 0));
    assert_int_equal(place_of(sim, l, row->result_part, row->result_chunk), m.result);
    rows_compared++;
}

static void compare_lane(struct sim *sim, int rank, int lane)
{
    struct sim_lane *l = &sim->rank[rank].lane[lane];
    const struct kl_position *at = &sim->rank[rank].at;
    const int n = kl_gpu_rows_of(sim->schedule, at, lane, NULL);
    struct kl_gpu_row *row = calloc((size_t)n + 1, sizeof *row);

    assert_non_null(row);
    assert_int_equal(kl_gpu_rows_of(sim->schedule, at, lane, row), n);
    assert_int_equal(n, sim->schedule->hops(at, lane));
    *l = (struct sim_lane){.first = sim->first};
    while (l->first < sim->end) {
        sim_begin_loop(sim, l);
        for (l->hop = 0; l->hop < n; l->hop++) compare_row(sim, rank, lane, &row[l->hop]);
        l->first += l->chunk * (size_t)kl_gpu_rows_chunks(sim->schedule, at);
    }
    free(row);
}

static void compare(const struct kl_schedule *s, int n, int root, connect_fn *connect, void *context)
{
    struct sim *sim = sim_new(s, n, KL_SLOTS, (uint64_t)n);

    sim->count = sim->end = COUNT;
    sim->first = 0;
    sim->most = MOST;
    sim_forget(sim);
    connect(sim, 0, context);
    if (*sim_run(sim) || *judge(sim, root)) fail_msg("%s, %d ranks: %s", s->name, n, sim->wrong);
    for (int r = 0; r < n; r++) {
        assert_true(kl_gpu_rows_exist(s, &sim->rank[r].at));
        for (int lane = 0; lane < s->lanes; lane++) compare_lane(sim, r, lane);
    }
}

static void rows_are_hops(void **state)
{
    static const struct kl_schedule *const rings[] = {&kl_allreduce_ring, &kl_allgather_ring, &kl_reducescatter_ring,
                                                      &kl_broadcast_ring, &kl_reduce_ring};
    static struct ring_context context;

    (void)state;
    for (int n = 1; n <= SIM_RANKS; n++) {
        context.root = n / 3;
        FOR_EACH_CASE(s, rings)
        compare(*s, n, context.root, ring_of, &context);
        compare(&kl_allreduce_tree, n, 0, double_tree_of, NULL);
        compare(&kl_allreduce_tree, n, 0, any_tree_of, NULL);
        compare(&kl_allgather_pat, n, 0, pat_of, NULL);
        compare(&kl_reducescatter_pat, n, 0, pat_of, NULL);
    }
    assert_true(rows_compared > 100000);
}

/* Rows have neither partial results that are parked nor lanes that wait for each other. */
static void exchanges_have_none(void **state)
{
    (void)state;
    grid = (struct kl_grid){.dimensions = 1, .side = {4}};
    const struct kl_position line = {.nranks = 4, .grid = &grid};
    assert_false(kl_gpu_rows_exist(&kl_allreduce_oneshot, &line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_hops),
        cmocka_unit_test(exchanges_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
