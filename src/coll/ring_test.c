/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/schedule.h"

#include "tests/kolo_test.h"

#include <stdbool.h>

enum { MAX_RANKS = 9 };

static const struct kl_schedule *const schedules[] = {
    &kl_allreduce_ring, &kl_allgather_ring, &kl_reducescatter_ring, &kl_broadcast_ring, &kl_reduce_ring,
};

/* What a value consists of: which ranks' contributions, and of which chunk. */
struct value {
    unsigned ranks;
    int chunk;
};

/* One rank: its hop, what waits on its link from the predecessor, and what it kept, by place. */
struct rank {
    int hop;
    struct value link[2 * MAX_RANKS];
    int first, last;
    struct value kept[MAX_RANKS];
    int finished[MAX_RANKS];
};

/* The chunk that own data at this place belongs to: places of parts and chunks are their own names. */
static int own_chunk(const struct kl_schedule *s, struct kl_hop h, int index)
{
    return s->send == KL_LAYOUT_WHOLE ? (s->recv == KL_LAYOUT_PARTS ? index : 0) : h.own;
}

static bool step(const struct kl_schedule *s, struct rank *ranks, int n, int i, int root)
{
    struct rank *r = &ranks[i], *next = &ranks[(i + 1) % n];
    struct kl_hop h = s->hop(&(struct kl_position){.nranks = n, .index = i, .root = root}, 0, r->hop);
    struct value v = {1u << i, own_chunk(s, h, i)};

    if (h.recv) {
        if (r->first == r->last) return false;
        struct value in = r->link[r->first++];
        if (h.actions & KL_HOP_REDUCE) {
            assert_int_equal(in.chunk, v.chunk);     /* like is added to like */
            assert_int_equal(in.ranks & v.ranks, 0); /* nobody's data twice */
            v.ranks |= in.ranks;
        } else {
            v = in;
        }
    }
    if (h.actions & KL_HOP_KEEP) r->kept[h.result] = v;
    if (h.actions & KL_HOP_FINISH) r->finished[h.result] = 1;
    if (h.send) next->link[next->last++] = v;
    r->hop++;
    return true;
}

static void run(const struct kl_schedule *s, struct rank *ranks, int n, int root)
{
    int hops = s->hops(&(struct kl_position){.nranks = n}, 0);
    bool moved = true;

    memset(ranks, 0, (size_t)n * sizeof *ranks);
    while (moved) {
        moved = false;
        for (int i = 0; i < n; i++)
            while (ranks[i].hop < hops && step(s, ranks, n, i, root)) moved = true;
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(ranks[i].hop, hops);            /* nobody waits for ever */
        assert_int_equal(ranks[i].first, ranks[i].last); /* nothing is left on the way */
    }
}

static void allreduce_leaves_every_sum_everywhere(void **state)
{
    struct rank ranks[MAX_RANKS];

    (void)state;
    for (int n = 2; n <= MAX_RANKS; n++) {
        run(&kl_allreduce_ring, ranks, n, 0);
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++) {
                assert_int_equal(ranks[i].kept[c].ranks, (1u << n) - 1);
                assert_int_equal(ranks[i].kept[c].chunk, c);
            }
        for (int c = 0, finished = 0; c < n; c++, finished = 0) {
            for (int i = 0; i < n; i++) finished += ranks[i].finished[c];
            assert_int_equal(finished, 1); /* completed by exactly one rank */
        }
    }
}

static void allgather_leaves_every_part_everywhere(void **state)
{
    struct rank ranks[MAX_RANKS];

    (void)state;
    for (int n = 2; n <= MAX_RANKS; n++) {
        run(&kl_allgather_ring, ranks, n, 0);
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++) {
                assert_int_equal(ranks[i].kept[c].ranks, 1u << c);
                assert_int_equal(ranks[i].kept[c].chunk, c);
            }
    }
}

static void reducescatter_leaves_each_its_own_sum(void **state)
{
    struct rank ranks[MAX_RANKS];

    (void)state;
    for (int n = 2; n <= MAX_RANKS; n++) {
        run(&kl_reducescatter_ring, ranks, n, 0);
        for (int i = 0; i < n; i++) {
            assert_int_equal(ranks[i].kept[0].ranks, (1u << n) - 1);
            assert_int_equal(ranks[i].kept[0].chunk, i);
            assert_true(ranks[i].finished[0]);
        }
    }
}

static void chains_work_for_every_root(void **state)
{
    struct rank ranks[MAX_RANKS];

    (void)state;
    for (int n = 2; n <= MAX_RANKS; n++)
        for (int root = 0; root < n; root++) {
            run(&kl_broadcast_ring, ranks, n, root);
            for (int i = 0; i < n; i++) assert_int_equal(ranks[i].kept[0].ranks, 1u << root);
            run(&kl_reduce_ring, ranks, n, root);
            assert_int_equal(ranks[root].kept[0].ranks, (1u << n) - 1);
            assert_true(ranks[root].finished[0]);
        }
}

static void schedules_agree_with_the_drawing(void **state)
{
    static const struct {
        uint32_t recv, send, actions;
        int chunk;
    } index0[] = {
        {0, 1, KL_HOP_FIRST, 0}, {1, 1, KL_HOP_REDUCE, 2}, {1, 1, KL_HOP_REDUCE | KL_HOP_FINISH | KL_HOP_KEEP, 1},
        {1, 1, KL_HOP_KEEP, 0},  {1, 0, KL_HOP_KEEP, 2},
    };

    const struct kl_position first_of_3 = {.nranks = 3};

    (void)state;
    assert_int_equal(kl_allreduce_ring.hops(&first_of_3, 0), 5);
    for (int hop = 0; hop < 5; hop++) {
        struct kl_hop h = kl_allreduce_ring.hop(&first_of_3, 0, hop);
        assert_int_equal(h.recv, index0[hop].recv);
        assert_int_equal(h.send, index0[hop].send);
        assert_int_equal(h.actions, index0[hop].actions);
        assert_int_equal(h.own, index0[hop].chunk);
        assert_int_equal(h.result, index0[hop].chunk);
    }
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) assert_non_null(schedules[i]->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_leaves_every_sum_everywhere),
        cmocka_unit_test(allgather_leaves_every_part_everywhere),
        cmocka_unit_test(reducescatter_leaves_each_its_own_sum),
        cmocka_unit_test(chains_work_for_every_root),
        cmocka_unit_test(schedules_agree_with_the_drawing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
