/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/p2p.h"

#include "tests/kolo_test.h"

#include <stdlib.h>

/* Nodes of given sizes, as kl_connect would have numbered them, seen from one rank. */
struct world {
    struct kl_connect c;
    int32_t of_rank[64], local[64], first[17], rank[64];
};

static void make(struct world *w, const int *sizes, int nnodes, int rank)
{
    int r = 0;

    memset(w, 0, sizeof *w);
    w->c.rank = rank;
    w->c.nodes = (struct kl_nodes){
        .nnodes = nnodes, .of_rank = w->of_rank, .local_rank = w->local, .first = w->first, .rank = w->rank};
    for (int n = 0; n < nnodes; n++) {
        w->first[n] = r;
        for (int i = 0; i < sizes[n]; i++, r++) w->of_rank[r] = n, w->local[r] = i, w->rank[r] = r;
        if (sizes[n] > w->c.nodes.max_local) w->c.nodes.max_local = sizes[n];
    }
    w->first[nnodes] = r;
    w->c.ranks.nranks = r;
}

static const struct delta_case {
    int n, delta[16];
} deltas[] = {
    {2, {0, 1}},
    {3, {0, 1, 2}},
    {4, {0, 1, 3, 2}},
    {5, {0, 1, 3, 2, 4}},
    {6, {0, 1, 3, 2, 5, 4}},
    {7, {0, 1, 3, 6, 2, 5, 4}},
    {8, {0, 1, 3, 6, 2, 7, 5, 4}},
    {16, {0, 1, 3, 6, 10, 15, 5, 12, 4, 13, 7, 2, 14, 11, 9, 8}},
};

static void one_node_follows_the_published_distances(void **state)
{
    struct world *w = malloc(sizeof *w);
    struct kl_p2p_round round[16];

    (void)state;
    FOR_EACH_CASE(c, deltas)
    {
        make(w, &c->n, 1, 1);
        assert_int_equal(kl_p2p_schedule(&w->c, round), ncclSuccess);
        for (int i = 0; i < c->n; i++) {
            assert_int_equal(round[i].send, (1 + c->delta[i]) % c->n);
            assert_int_equal(round[i].recv, (1 - c->delta[i] + c->n) % c->n);
        }
    }
    free(w);
}

/* In every round, the rank that I send to receives from me; over all rounds each pair meets once. */
static void rounds_match_between_ranks(void **state)
{
    static const struct {
        int nnodes, size[8];
    } shapes[] = {{1, {1}},
                  {2, {8, 8}},
                  {3, {4, 4, 4}},
                  {5, {3, 3, 3, 3, 3}},
                  {2, {3, 1}},
                  {3, {1, 4, 2}},
                  {8, {1, 1, 1, 1, 1, 1, 1, 1}}};
    struct kl_p2p_round(*round)[64] = calloc(64, sizeof *round);
    struct world *w = malloc(sizeof *w);

    (void)state;
    FOR_EACH_CASE(s, shapes)
    {
        int n = 0;

        for (int i = 0; i < s->nnodes; i++) n += s->size[i];
        for (int r = 0; r < n; r++) {
            make(w, s->size, s->nnodes, r);
            assert_int_equal(kl_p2p_schedule(&w->c, round[r]), ncclSuccess);
        }
        for (int r = 0; r < n; r++) {
            uint64_t met = 0;

            for (int i = 0; i < n; i++) {
                assert_int_equal(round[round[r][i].send][i].recv, r);
                met |= (uint64_t)1 << round[r][i].send;
            }
            assert_true(met == (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1));
        }
    }
    free(round);
    free(w);
}

static void parts_spread_over_channels(void **state)
{
    static const int order[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

    (void)state;
    for (int i = 0; i < 16; i++) assert_int_equal(kl_p2p_channel(0, i, 16, KL_NCCL_2_26_3), order[i]);
    for (int n = 1; n <= 64; n *= 2)
        for (int base = 0; base < 70; base += 7) {
            uint64_t used = 0;

            for (int part = 0; part < n; part++) {
                int channel = kl_p2p_channel(base, part, n, KL_NCCL_2_26_3);

                assert_in_range(channel, 0, n - 1);
                assert_false(used >> channel & 1); /* each has one of its own */
                used |= (uint64_t)1 << channel;
            }
        }
}

/* Since 2.28.3 the base is mirrored, and parts follow it. */
static void parts_follow_the_mirrored_base(void **state)
{
    int newer = kl_nccl_parse("2.28.3");

    (void)state;
    for (int part = 0; part < 16; part++) {
        assert_int_equal(kl_p2p_channel(0, part, 16, newer), part);
        assert_int_equal(kl_p2p_channel(1, part, 16, newer), (8 + part) % 16);
        assert_int_equal(kl_p2p_channel(19, part, 16, newer), (12 + part) % 16); /* higher bits do not count */
    }
}

/* Since 2.28.7: far between groups, in plain order inside them, whatever the nodes. */
static void rounds_go_over_groups(void **state)
{
    static const int sizes[] = {8, 4}, delta[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct world *w = malloc(sizeof *w);
    struct kl_p2p_round round[16];

    (void)state;
    make(w, sizes, 2, 0);
    w->c.p2p_group = 4;
    assert_int_equal(kl_p2p_schedule(&w->c, round), ncclSuccess);
    for (int i = 0; i < 12; i++) assert_int_equal(round[i].send, delta[i]);
    assert_int_equal(round[1].recv, 3);
    assert_int_equal(round[4].recv, 8);
    make(w, (int[]){16}, 1, 0);
    w->c.p2p_group = 4;
    static const int far[] = {0, 4, 12, 8}; /* 0, 1, 3, 2 groups */
    assert_int_equal(kl_p2p_schedule(&w->c, round), ncclSuccess);
    for (int i = 0; i < 16; i++) assert_int_equal(round[i].send, far[i / 4] + i % 4);
    free(w);
}

static void eight_local_ranks_share_a_base(void **state)
{
    struct world *w = malloc(sizeof *w);

    (void)state;
    make(w, (int[]){16, 16}, 2, 0);
    assert_int_equal(kl_p2p_base(&w->c, 0), 0);
    assert_int_equal(kl_p2p_base(&w->c, 7), 0);
    assert_int_equal(kl_p2p_base(&w->c, 8), 1);
    assert_int_equal(kl_p2p_base(&w->c, 16), 2);
    make(w, (int[]){16}, 1, 0);
    assert_int_equal(kl_p2p_base(&w->c, 7), 7);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_follows_the_published_distances),
        cmocka_unit_test(rounds_match_between_ranks),
        cmocka_unit_test(parts_spread_over_channels),
        cmocka_unit_test(parts_follow_the_mirrored_base),
        cmocka_unit_test(rounds_go_over_groups),
        cmocka_unit_test(eight_local_ranks_share_a_base),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
