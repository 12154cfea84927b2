/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tree.h"

#include "tests/kolo_test.h"

#include <stdio.h>

/* up, child 0, child 1, which child of up: of both trees. From the specification's table. */
static const struct table_case {
    int n, node;
    struct kl_tree_links tree[2];
} table[] = {
    {1, 0, {{-1, {-1, -1}, 0}, {-1, {-1, -1}, 0}}}, {2, 0, {{-1, {-1, 1}, 0}, {1, {-1, -1}, 1}}},
    {2, 1, {{0, {-1, -1}, 1}, {-1, {-1, 0}, 0}}},   {3, 0, {{-1, {-1, 2}, 0}, {1, {2, -1}, 1}}},
    {3, 1, {{2, {-1, -1}, 0}, {-1, {-1, 0}, 0}}},   {3, 2, {{0, {1, -1}, 1}, {0, {-1, -1}, 0}}},
    {4, 0, {{-1, {-1, 2}, 0}, {1, {-1, -1}, 1}}},   {4, 1, {{2, {-1, -1}, 0}, {3, {2, 0}, 1}}},
    {4, 2, {{0, {1, 3}, 1}, {1, {-1, -1}, 0}}},     {4, 3, {{2, {-1, -1}, 1}, {-1, {-1, 1}, 0}}},
    {5, 0, {{-1, {-1, 4}, 0}, {1, {3, -1}, 1}}},    {5, 1, {{2, {-1, -1}, 0}, {-1, {-1, 0}, 0}}},
    {5, 2, {{4, {1, 3}, 0}, {3, {-1, -1}, 0}}},     {5, 3, {{2, {-1, -1}, 1}, {0, {2, 4}, 0}}},
    {5, 4, {{0, {2, -1}, 1}, {3, {-1, -1}, 1}}},    {6, 0, {{-1, {-1, 4}, 0}, {1, {-1, -1}, 1}}},
    {6, 1, {{2, {-1, -1}, 0}, {5, {3, 0}, 1}}},     {6, 2, {{4, {1, 3}, 0}, {3, {-1, -1}, 1}}},
    {6, 3, {{2, {-1, -1}, 1}, {1, {4, 2}, 0}}},     {6, 4, {{0, {2, 5}, 1}, {3, {-1, -1}, 0}}},
    {6, 5, {{4, {-1, -1}, 1}, {-1, {-1, 1}, 0}}},   {7, 0, {{-1, {-1, 4}, 0}, {5, {6, -1}, 1}}},
    {7, 1, {{2, {-1, -1}, 0}, {-1, {-1, 5}, 0}}},   {7, 2, {{4, {1, 3}, 0}, {3, {-1, -1}, 0}}},
    {7, 3, {{2, {-1, -1}, 1}, {5, {2, 4}, 0}}},     {7, 4, {{0, {2, 6}, 1}, {3, {-1, -1}, 1}}},
    {7, 5, {{6, {-1, -1}, 0}, {1, {3, 0}, 1}}},     {7, 6, {{4, {5, -1}, 1}, {0, {-1, -1}, 0}}},
    {8, 0, {{-1, {-1, 4}, 0}, {1, {-1, -1}, 1}}},   {8, 1, {{2, {-1, -1}, 0}, {3, {2, 0}, 1}}},
    {8, 2, {{4, {1, 3}, 0}, {1, {-1, -1}, 0}}},     {8, 3, {{2, {-1, -1}, 1}, {7, {5, 1}, 1}}},
    {8, 4, {{0, {2, 6}, 1}, {5, {-1, -1}, 1}}},     {8, 5, {{6, {-1, -1}, 0}, {3, {6, 4}, 0}}},
    {8, 6, {{4, {5, 7}, 1}, {5, {-1, -1}, 0}}},     {8, 7, {{6, {-1, -1}, 1}, {-1, {-1, 3}, 0}}},
};

static void small_trees_are_the_published_ones(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, table)
    {
        for (int i = 0; i < 2; i++) {
            struct kl_tree_links t = kl_double_tree(c->n, c->node, i);
            char label[64];

            snprintf(label, sizeof label, "%d nodes, node %d, tree %d", c->n, c->node, i);
            expect_case(label, t.up == c->tree[i].up);
            expect_case(label, t.down[0] == c->tree[i].down[0] && t.down[1] == c->tree[i].down[1]);
            expect_case(label, t.up < 0 || t.which == c->tree[i].which);
        }
    }
}

/* Parents and children agree, and following parents leads to the one root. */
static void check_tree(int n, int tree)
{
    int roots = 0, children = 0;

    for (int node = 0; node < n; node++) {
        struct kl_tree_links t = kl_double_tree(n, node, tree);
        int depth = 0;

        roots += t.up < 0;
        for (int i = 0; i < 2; i++) {
            if (t.down[i] < 0) continue;
            children++;
            assert_int_equal(kl_double_tree(n, t.down[i], tree).up, node);
            assert_int_equal(kl_double_tree(n, t.down[i], tree).which, i);
        }
        for (int up = t.up; up >= 0; up = kl_double_tree(n, up, tree).up)
            assert_true(++depth <= kl_log2((unsigned)n) + 1);
    }
    assert_int_equal(roots, 1);
    assert_int_equal(children, n - 1);
}

static int is_leaf(struct kl_tree_links t)
{
    return t.down[0] < 0 && t.down[1] < 0;
}

static void trees_span_all_nodes(void **state)
{
    (void)state;
    for (int n = 1; n <= 300; n++) {
        int both_inner = 0;

        for (int tree = 0; tree < 2; tree++) check_tree(n, tree);
        for (int node = 0; node < n; node++)
            both_inner += !is_leaf(kl_double_tree(n, node, 0)) && !is_leaf(kl_double_tree(n, node, 1));
        assert_true(both_inner <= 1); /* else a node would carry the load of both trees */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_trees_are_the_published_ones),
        cmocka_unit_test(trees_span_all_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
