/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the table, for profiles that were measured, and for words that force them. */
#include "coll/select/select.h"

#include "coll/select/measure.h"
#include "tests/kolo_test.h"

/* EPYC (Zen 4), 2 CPUs. */
static const struct kl_select_facts epyc = {.profile = {.line_ns = 65,
                                                        .cma_ns = 1250,
                                                        .cma_kib_ns = 88,
                                                        .huge_kib_ns = 40,
                                                        .copy_kib_ns = 23,
                                                        .out_kib_ns = 57,
                                                        .nt_kib_ns = 42,
                                                        .own_kib = 1024,
                                                        .last_kib = 32768,
                                                        .cpus = 2,
                                                        .huge_pages = 1},
                                            .nranks = 2,
                                            .ranks_per_core = 1,
                                            .processes = true,
                                            .cores = true,
                                            .kernel = true,
                                            .direct = true};

enum { KIB = 1 << 10, MIB = 1 << 20, FAR_NS = 170 };

static struct kl_select_facts facts_of(int nranks, uint32_t line_ns)
{
    struct kl_select_facts f = epyc;

    f.nranks = nranks;
    f.ranks_per_core = nranks / 2;
    f.profile.line_ns = line_ns;
    return f;
}

/* As it was measured there: docs/decisions/0019-one-selector.md. */
static void the_faster_copy_is_taken(void **state)
{
    static const struct {
        int nranks, func;
        size_t bytes;
        enum kl_copy near, far;
    } cases[] = {
        {2, KL_SELECT_FEW, 128 * KIB, KL_COPY_STAGED, KL_COPY_STAGED},
        {2, KL_SELECT_FEW, 2 * MIB, KL_COPY_KERNEL, KL_COPY_KERNEL},
        {2, KL_FUNC_BROADCAST, 2 * MIB, KL_COPY_KERNEL, KL_COPY_KERNEL},
        {2, KL_FUNC_ALL_GATHER, 2 * MIB, KL_COPY_STAGED, KL_COPY_STAGED},
        {2, KL_FUNC_ALL_GATHER, 8 * MIB, KL_COPY_KERNEL, KL_COPY_KERNEL},
        {2, KL_FUNC_ALL_REDUCE, 32 * MIB, KL_COPY_STAGED, KL_COPY_STAGED},
        {4, KL_FUNC_ALL_TO_ALL, 128 * KIB, KL_COPY_STAGED, KL_COPY_STAGED},
        {4, KL_FUNC_ALL_TO_ALL, 512 * KIB, KL_COPY_STAGED, KL_COPY_KERNEL},
        {4, KL_FUNC_REDUCE_SCATTER, 8 * MIB, KL_COPY_STAGED, KL_COPY_STAGED},
        {8, KL_FUNC_ALL_TO_ALL, 32 * KIB, KL_COPY_STAGED, KL_COPY_STAGED},
        {8, KL_FUNC_ALL_TO_ALL, 128 * KIB, KL_COPY_STAGED, KL_COPY_KERNEL},
        {8, KL_SELECT_FEW, 512 * KIB, KL_COPY_STAGED, KL_COPY_KERNEL},
        {8, KL_SELECT_FEW, 8 * MIB, KL_COPY_KERNEL, KL_COPY_KERNEL},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    for (int far = 0; far < 2; far++) {
        const struct kl_select_facts f = facts_of(c->nranks, far ? FAR_NS : epyc.profile.line_ns);
        const struct kl_select_row row = kl_select_decide(&f, c->func, c->bytes, KL_BUFFERS_ORDINARY);
        assert_int_equal(row.copy, far ? c->far : c->near);
        assert_int_equal(row.reason, KL_SELECTED_FASTER);
        assert_true(row.us <= row.other_us);
    }
}

static void reductions_are_hierarchical_where_lines_come_from_far(void **state)
{
    static const struct {
        int nranks, func;
        size_t bytes;
        uint32_t line_ns;
        bool hierarchical;
    } cases[] = {
        {8, KL_FUNC_REDUCE_SCATTER, 32 * KIB, 65, false},     {8, KL_FUNC_REDUCE_SCATTER, 32 * KIB, FAR_NS, true},
        {8, KL_FUNC_ALL_REDUCE, 64 * KIB, 65, false},         {8, KL_FUNC_ALL_REDUCE, 64 * KIB, FAR_NS, true},
        {8, KL_FUNC_REDUCE_SCATTER, 16 * KIB, FAR_NS, false}, {8, KL_FUNC_REDUCE, 64 * KIB, FAR_NS, false},
        {2, KL_FUNC_ALL_REDUCE, 64 * KIB, FAR_NS, false},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_select_facts f = facts_of(c->nranks, c->line_ns);
        assert_int_equal(kl_select_decide(&f, c->func, c->bytes, KL_BUFFERS_ORDINARY).hierarchical, c->hierarchical);
        f.cores = false;
        assert_false(kl_select_decide(&f, c->func, c->bytes, KL_BUFFERS_ORDINARY).hierarchical);
    }
}

static void words_force_rows(void **state)
{
    static const struct {
        enum kl_select_word word;
        int func;
        size_t bytes;
        struct kl_select_row row;
    } cases[] = {
        {KL_SELECT_STAGED, KL_SELECT_FEW, 8 * MIB, {.copy = KL_COPY_STAGED, .nt = true}},
        {KL_SELECT_KERNEL, KL_FUNC_ALL_REDUCE, 64 * KIB, {.copy = KL_COPY_KERNEL}},
        {KL_SELECT_HIERARCHICAL, KL_FUNC_ALL_REDUCE, 64 * KIB, {.copy = KL_COPY_STAGED, .hierarchical = true}},
        {KL_SELECT_NT, KL_SELECT_FEW, 64 * KIB, {.copy = KL_COPY_STAGED, .nt = true}},
        {KL_SELECT_TEMPORAL, KL_FUNC_BROADCAST, 8 * MIB, {.copy = KL_COPY_KERNEL}},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_select_facts f = epyc;
        f.words = 1u << c->word;
        const struct kl_select_row row = kl_select_decide(&f, c->func, c->bytes, KL_BUFFERS_ORDINARY);
        assert_int_equal(row.copy, c->row.copy);
        assert_int_equal(row.hierarchical, c->row.hierarchical);
        assert_int_equal(row.nt, c->row.nt);
    }
}

static void what_is_not_possible_is_not_chosen(void **state)
{
    struct kl_select_facts never = epyc, threads = epyc, own = epyc;

    (void)state;
    never.kernel = false;
    never.words = 1u << KL_SELECT_KERNEL;
    assert_int_equal(kl_select_decide(&never, KL_SELECT_FEW, 8 * MIB, KL_BUFFERS_ORDINARY).reason,
                     KL_SELECTED_NO_KERNEL);
    assert_int_equal(kl_select_decide(&never, KL_SELECT_FEW, 8 * MIB, KL_BUFFERS_ORDINARY).copy, KL_COPY_STAGED);
    threads.processes = false;
    assert_int_equal(kl_select_decide(&threads, KL_FUNC_ALL_GATHER, 8 * MIB, KL_BUFFERS_EXPORTED).copy, KL_COPY_DIRECT);
    assert_int_equal(kl_select_decide(&epyc, KL_FUNC_ALL_GATHER, 64 * KIB, KL_BUFFERS_EXPORTED).copy, KL_COPY_DIRECT);
    assert_int_equal(kl_select_decide(&epyc, KL_FUNC_ALL_GATHER, 16 * KIB, KL_BUFFERS_EXPORTED).copy, KL_COPY_STAGED);
    own.direct = false;
    assert_int_equal(kl_select_decide(&own, KL_FUNC_ALL_GATHER, 64 * KIB, KL_BUFFERS_EXPORTED).copy, KL_COPY_STAGED);
}

static void rows_are_found_by_size(void **state)
{
    static struct kl_select table;

    (void)state;
    kl_select_make(&table, &epyc);
    for (int func = 0; func < KL_SELECT_FUNCS; func++)
        for (size_t bytes = KL_SELECT_LEAST; bytes <= (size_t)64 * MIB; bytes *= 2) {
            const struct kl_select_row want = kl_select_decide(&epyc, func, bytes, KL_BUFFERS_ORDINARY);
            assert_memory_equal(kl_select_row(&table, func, bytes, KL_BUFFERS_ORDINARY), &want, sizeof want);
            assert_memory_equal(kl_select_row(&table, func, 2 * bytes - 1, KL_BUFFERS_ORDINARY), &want, sizeof want);
        }
    assert_int_equal(kl_select_size(0), 0);
    assert_int_equal(kl_select_size(SIZE_MAX), KL_SELECT_SIZES - 1);
}

/* The two halves of a table are replaced one by one. */
static void a_table_is_made_anew_for_other_lines(void **state)
{
    const struct kl_select_facts near = facts_of(8, 65);
    static struct kl_select table;

    (void)state;
    kl_select_make(&table, &near);
    for (int messages = 0; messages < 2; messages++) {
        const int func = messages ? KL_SELECT_FEW : KL_FUNC_ALL_TO_ALL;
        assert_int_equal(kl_select_row(&table, func, 512 * KIB, KL_BUFFERS_ORDINARY)->copy, KL_COPY_STAGED);
        kl_select_remake(&table, FAR_NS, messages);
        assert_int_equal(kl_select_row(&table, func, 512 * KIB, KL_BUFFERS_ORDINARY)->copy, KL_COPY_KERNEL);
        assert_int_equal(table.line_ns[messages], FAR_NS);
    }
}

/* Whatever the machine is, and does at this moment: numbers that the model can use, always the same. */
static void a_profile_can_be_measured(void **state)
{
    const struct kl_profile p = kl_profile_measured(), again = kl_profile_measured();

    (void)state;
    assert_true(p.copy_kib_ns > 0 && p.own_kib > 0 && p.last_kib > 0 && p.cpus > 0);
    assert_int_equal(p.source, KL_PROFILE_MEASURED);
    assert_memory_equal(&p, &again, sizeof p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_copy_is_taken),
        cmocka_unit_test(reductions_are_hierarchical_where_lines_come_from_far),
        cmocka_unit_test(words_force_rows),
        cmocka_unit_test(what_is_not_possible_is_not_chosen),
        cmocka_unit_test(rows_are_found_by_size),
        cmocka_unit_test(a_table_is_made_anew_for_other_lines),
        cmocka_unit_test(a_profile_can_be_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
