/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/stores.h"

#include "tests/kolo_test.h"

enum { RANKS = 2, OWN = 4 << 20, LAST = 256 << 20 };

static struct kl_stores begin_stores(void)
{
    return (struct kl_stores){.own = OWN, .share = 4 * OWN, .last = LAST};
}

/* So many operations of which those past the caches take other times than those through them. */
static void run(struct kl_stores *s, size_t all, int n, uint64_t through, uint64_t past)
{
    for (int i = 0; i < n; i++) {
        s->ns = kl_stores_begin(s, RANKS, all) ? past : through;
        kl_stores_end(s);
    }
}

static void it_is_clear_what_fits_and_what_does_not(void **state)
{
    static const struct {
        size_t all;
        bool past;
    } cases[] = {{0, false}, {2 * OWN - 1, false}, {(size_t)LAST + 1, true}, {SIZE_MAX, true}};
    struct kl_stores s = begin_stores();

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        for (int i = 0; i < 1000; i++) {
            assert_int_equal(kl_stores_begin(&s, RANKS, c->all), c->past);
            assert_null(s.times);
            kl_stores_end(&s);
        }
    }
}

static void in_between_the_faster_way_is_taken(void **state)
{
    static const struct {
        size_t all;
        uint64_t through, past;
        bool better;
    } cases[] = {{2 * OWN, 9000, 5000, true},
                 {2 * OWN, 5000, 9000, false},
                 {LAST / 4, 9000000, 5000000, true},
                 {LAST, 5000000, 9000000, false}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_stores s = begin_stores();
        run(&s, c->all, 400, c->through, c->past);
        assert_true(s.times == NULL);
        assert_int_equal(kl_stores_begin(&s, RANKS, c->all), c->better);
    }
}

/* Each power of 2 has its own times, up to the last level of any machine. */
static void sizes_are_told_apart(void **state)
{
    struct kl_stores s = begin_stores();
    const struct kl_lately *before = NULL;

    (void)state;
    for (size_t all = 2 * (size_t)OWN; all <= LAST; all *= 2) {
        kl_stores_begin(&s, RANKS, all);
        assert_non_null(s.times);
        assert_ptr_not_equal(s.times, before);
        before = s.times;
        kl_stores_begin(&s, RANKS, 2 * all - 1);
        if (all < LAST) assert_ptr_equal(s.times, before);
    }
    s.last = SIZE_MAX;
    kl_stores_begin(&s, RANKS, SIZE_MAX);
    assert_ptr_equal(s.times, &s.lately[KL_STORES_SIZES - 1]);
}

/* The kernel's copies say nothing of this rank's. */
static void what_is_not_copied_here_does_not_count(void **state)
{
    struct kl_stores s = begin_stores();

    (void)state;
    run(&s, 2 * (size_t)OWN, 100, 0, 0);
    assert_int_equal(s.lately[0].uses, 0);
    run(&s, 2 * (size_t)OWN, 1, 1, 1);
    assert_int_equal(s.lately[0].uses, 1);
    const struct kl_lately *l = &s.lately[0];
    while (!l->number) run(&s, 2 * (size_t)OWN, 1, 1, 2);
    run(&s, 2 * (size_t)OWN, 100, 0, 0);
    assert_int_equal(l->number, 1); /* a comparison is decided once */
}

static void copies_are_timed_where_it_matters(void **state)
{
    struct kl_stores s = begin_stores();

    (void)state;
    kl_stores_begin(&s, RANKS, OWN);
    kl_stores_end_copy(&s, kl_stores_begin_copy(&s));
    assert_int_equal(s.ns, 0);
    kl_stores_begin(&s, RANKS, 2 * (size_t)OWN);
    kl_stores_end_copy(&s, kl_stores_begin_copy(&s) - 700);
    assert_true(s.ns >= 700);
}

static void the_machine_is_asked_once(void **state)
{
    struct kl_stores s = {0};

    (void)state;
    kl_stores_begin(&s, RANKS, 1);
    assert_true(s.own && s.own <= s.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_clear_what_fits_and_what_does_not),
        cmocka_unit_test(in_between_the_faster_way_is_taken),
        cmocka_unit_test(sizes_are_told_apart),
        cmocka_unit_test(what_is_not_copied_here_does_not_count),
        cmocka_unit_test(copies_are_timed_where_it_matters),
        cmocka_unit_test(the_machine_is_asked_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
