/* SPDX-License-Identifier: Apache-2.0 */
/* That all ranks think alike of how a collective is done, whatever lines they have timed and buffers they have. */
#include "coll/select/agreement.h"

#include "tests/kolo_test.h"

#include <string.h>

enum { RANKS = 3, FUNC = KL_FUNC_ALL_TO_ALL, BYTES = 512 << 10, NEAR_NS = 40, FAR_NS = 150 };

struct job {
    struct kl_agreement of[RANKS];
    bool exported[RANKS]; /* are their buffers? */
    uint32_t line_ns;     /* that the leader has timed recently */
    uint32_t lines;
    uint64_t number, now;
    int asked, done[5];
};

static struct job job_of(uint32_t words)
{
    const struct kl_select_facts facts = {.profile = {.line_ns = NEAR_NS,
                                                      .cma_ns = 1250,
                                                      .cma_kib_ns = 88,
                                                      .huge_kib_ns = 40,
                                                      .copy_kib_ns = 23,
                                                      .own_kib = 1024,
                                                      .last_kib = 32768,
                                                      .cpus = 1},
                                          .nranks = 4,
                                          .ranks_per_core = 4,
                                          .processes = true,
                                          .kernel = true,
                                          .direct = true,
                                          .words = words};
    struct job j = {.line_ns = NEAR_NS, .now = 1};

    for (int r = 0; r < RANKS; r++) kl_agreement_init(&j.of[r], &facts);
    return j;
}

static void notify_all(struct job *j)
{
    const struct kl_agreement_notice notice =
        kl_agreement_say(&j->of[0], j->exported[0], j->line_ns, ++j->lines, j->now);

    for (int r = 0; r < RANKS; r++) kl_agreement_on_notice(&j->of[r], notice, j->number, BYTES);
}

/* The exchange before a collective. */
static void agree(struct job *j)
{
    const bool reads = kl_agreement_reads(&j->of[0], FUNC, BYTES);
    bool all = true;

    for (int r = 0; r < RANKS; r++) all &= j->exported[r];
    const enum kl_agreed agreed = all ? KL_AGREED_DIRECT : reads ? KL_AGREED_KERNEL : KL_AGREED_STAGED;
    for (int r = 0; r < RANKS; r++) kl_agreement_made(&j->of[r], agreed, j->number);
    j->done[agreed]++;
    j->asked++;
}

static void run(struct job *j, int collectives)
{
    for (int i = 0; i < collectives; i++) {
        j->number++;
        j->now += 10 * 1000000;
        if (j->number >= j->of[0].next) notify_all(j);
        const bool due = kl_agreement_due(&j->of[0], FUNC, BYTES);
        for (int r = 1; r < RANKS; r++) {
            assert_int_equal(kl_agreement_due(&j->of[r], FUNC, BYTES), due);
            assert_int_equal(j->of[r].next, j->of[0].next);
            assert_memory_equal(j->of[r].select.row, j->of[0].select.row, sizeof j->of[0].select.row);
        }
        if (due)
            agree(j);
        else
            j->done[KL_AGREED_STAGED]++;
        for (int r = 0; r < RANKS; r++) kl_agreement_ended(&j->of[r]);
    }
}

/* At first all ask; soon nobody does. */
static void ordinary_buffers_are_not_asked_for_long(void **state)
{
    struct job j = job_of(0);

    (void)state;
    run(&j, 1000);
    assert_int_equal(j.done[KL_AGREED_STAGED], 1000);
    assert_int_equal(j.asked, KL_AGREEMENT_LEAST);
}

static void exported_buffers_are_used_directly(void **state)
{
    struct job j = job_of(0);

    (void)state;
    for (int r = 0; r < RANKS; r++) j.exported[r] = true;
    run(&j, 1000);
    assert_int_equal(j.done[KL_AGREED_DIRECT], 1000);
}

/* Once the leader has such, all are asked; where one has none, not for long. */
static void buffers_that_come_later_are_noticed(void **state)
{
    enum { WORD = KL_AGREEMENT_BYTES / BYTES };
    struct job j = job_of(0);

    (void)state;
    run(&j, 1000);
    for (int r = 0; r < RANKS; r++) j.exported[r] = true;
    run(&j, 1000);
    assert_true(j.done[KL_AGREED_DIRECT] >= 1000 - WORD);
    j.exported[0] = j.exported[1] = false;
    j.asked = 0;
    run(&j, 1000);
    assert_true(j.asked <= 2 * WORD);
}

static void a_table_is_replaced_when_lines_have_changed_for_long(void **state)
{
    struct job j = job_of(0);

    (void)state;
    run(&j, 200);
    j.line_ns = FAR_NS;
    run(&j, 2);
    assert_int_equal(j.done[KL_AGREED_KERNEL], 0);
    run(&j, 1000);
    assert_true(j.done[KL_AGREED_KERNEL] > 500);
    assert_int_equal(j.of[2].select.line_ns[0], FAR_NS);
}

static void a_fixed_table_stays(void **state)
{
    struct job j = job_of(1u << KL_SELECT_FIXED);

    (void)state;
    j.line_ns = FAR_NS;
    run(&j, 1000);
    assert_int_equal(j.of[0].next, UINT64_MAX);
    assert_int_equal(j.done[KL_AGREED_STAGED], 1000);
}

/* Replays of a graph have the same bits, however far lines are. */
static void a_capture_freezes_the_table(void **state)
{
    struct job j = job_of(0);

    (void)state;
    run(&j, 200);
    const uint32_t made_for = j.of[0].select.line_ns[0];
    kl_agreement_freeze(&j.of[0]);
    j.line_ns = FAR_NS;
    run(&j, 3000);
    for (int r = 0; r < 3; r++) assert_int_equal(j.of[r].select.line_ns[0], made_for);
}

/* The kernel refuses: then it is not asked again. */
static void what_the_kernel_refuses_is_staged_from_then_on(void **state)
{
    struct job j = job_of(1u << KL_SELECT_KERNEL | 1u << KL_SELECT_FIXED);

    (void)state;
    run(&j, 10);
    assert_int_equal(j.done[KL_AGREED_KERNEL], 10);
    for (int r = 0; r < RANKS; r++) kl_agreement_made(&j.of[r], KL_AGREED_REPAIRED, j.number);
    run(&j, 10);
    assert_int_equal(j.done[KL_AGREED_KERNEL], 10);
}

/* ---- the sign ---- */

static void a_sign_has_to_hold(void **state)
{
    const uint64_t ms = 1000000, long_enough = KL_LINE_WATCH_MS * ms;
    struct kl_line_watch w = {0};

    (void)state;
    assert_false(kl_line_watch(&w, NEAR_NS, FAR_NS, 1, 1));
    assert_false(kl_line_watch(&w, NEAR_NS, FAR_NS, 1, 1 + long_enough)); /* the same line */
    assert_true(kl_line_watch(&w, NEAR_NS, FAR_NS, 2, 1 + long_enough));
    assert_false(kl_line_watch(&w, NEAR_NS, NEAR_NS, 3, 2 + long_enough));
    assert_false(kl_line_watch(&w, NEAR_NS, FAR_NS, 4, 3 + long_enough)); /* from now on */
    assert_false(kl_line_watch(&w, NEAR_NS, KL_SELECT_NEAR_NS, 5, 9 * long_enough));
    assert_false(kl_line_watch(&w, NEAR_NS, KL_SELECT_NEAR_NS, 6, 99 * long_enough)); /* near enough */
    assert_false(kl_line_watch(&w, NEAR_NS, 0, 6, 99 * long_enough));                 /* nobody has timed any */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_buffers_are_not_asked_for_long),
        cmocka_unit_test(exported_buffers_are_used_directly),
        cmocka_unit_test(buffers_that_come_later_are_noticed),
        cmocka_unit_test(a_table_is_replaced_when_lines_have_changed_for_long),
        cmocka_unit_test(a_capture_freezes_the_table),
        cmocka_unit_test(a_fixed_table_stays),
        cmocka_unit_test(what_the_kernel_refuses_is_staged_from_then_on),
        cmocka_unit_test(a_sign_has_to_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
