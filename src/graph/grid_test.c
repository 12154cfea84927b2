/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/grid.h"

#include "tests/kolo_test.h"

#include <string.h>

static void sides_are_as_few_as_can_be(void **state)
{
    static const struct {
        const char *what;
        int nranks, nnodes, local;
        struct kl_grid want;
    } rows[] = {
        {"two ranks", 2, 1, 2, {1, 1, {2}}},
        {"all with all", 16, 1, 16, {1, 1, {16}}},
        {"two exchanges", 64, 1, 64, {2, 2, {16, 4}}},
        {"a rank per node", 4, 4, 1, {1, 0, {4}}},
        {"nodes, then between them", 32, 4, 8, {2, 1, {8, 4}}},
        {"many nodes", 1024, 128, 8, {3, 1, {8, 16, 8}}},
        {"shorter sides where peers are too many", 4096, 1, 4096, {4, 4, {8, 8, 8, 8}}},
        {"nodes that differ", 5, 2, 3, {1, 0, {5}}},
        {"thirteen", 26, 2, 13, {2, 1, {13, 2}}},
        {"a prime number that is too large", 34, 1, 34, {0, 0, {0}}},
        {"of nodes", 38, 19, 2, {0, 0, {0}}},
        {"one rank", 1, 1, 1, {0, 0, {0}}},
    };

    (void)state;
    FOR_EACH_CASE(r, rows)
    {
        struct kl_grid g = kl_grid_of(r->nranks, r->nnodes, r->local);
        expect_case(r->what, !memcmp(&g, &r->want, sizeof g));
    }
}

/* Positions agree: the rank at place k of my line has me at my place of its line. */
static void lines_are_alike_for_all_on_them(void **state)
{
    (void)state;
    for (int n = 2; n < 300; n++) {
        struct kl_grid g = kl_grid_of(n, 1, n);
        int peers = 0;

        for (int d = 0; d < g.dimensions; peers += g.side[d++] - 1) {
            assert_int_equal(kl_grid_peers(&g, d), peers);
            for (int i = 0; i < n; i++)
                for (int place = 0; place < g.side[d]; place++) {
                    int peer = kl_grid_index(&g, d, i, place);
                    assert_in_range(peer, 0, n - 1);
                    assert_int_equal(kl_grid_place(&g, d, peer), place);
                    assert_int_equal(kl_grid_index(&g, d, peer, kl_grid_place(&g, d, i)), i);
                }
        }
        assert_in_range(peers, 0, KL_GRID_PEERS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_are_as_few_as_can_be),
        cmocka_unit_test(lines_are_alike_for_all_on_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
