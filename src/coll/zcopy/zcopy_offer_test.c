/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch is like decides how it lends, and how it stores. */
#include "coll/zcopy/zcopy_offer.h"

#include "device/host/bulk_copy.h"
#include "tests/kolo_test.h"
#include "transport/pool.h"

/* Also of a launch that only receives. */
static void how_a_launch_stores_depends_on_all_that_is_moved(void **state)
{
    static const struct {
        size_t bytes, messages, received;
        bool past;
    } cases[] = {
        {4000, 2, 2000, false}, {4000, 2, 2001, true}, {0, 0, 10000, false}, {0, 0, 10001, true}, {10001, 1, 0, true}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_loans loans = {.nranks = 2, .stores = {.own = 20000, .share = 20000, .last = 20000}};
        kl_loans_begin(&loans, c->bytes, c->messages, c->received);
        assert_int_equal(loans.stores.past, c->past);
    }
}

static void launches_decide_what_is_read(void **state)
{
    static const struct {
        enum kl_kernel_copies copies;
        int nranks;
        size_t bytes;
        bool receives, reads;
    } cases[] = {
        {KL_KERNEL_COPIES_ALWAYS, 2, KL_POOL_DEPTH * KL_POOL_SLOT_BYTES, false, false},
        {KL_KERNEL_COPIES_ALWAYS, 2, KL_POOL_DEPTH * KL_POOL_SLOT_BYTES + 1, false, true},
        {KL_KERNEL_COPIES_ALWAYS, 2, KL_LOAN_LEAST, true, true},
        {KL_KERNEL_COPIES_ALWAYS, 2, KL_LOAN_LEAST - 1, true, false},
        {KL_KERNEL_COPIES_ALWAYS, 8, KL_LOAN_LEAST, true, true},
        {KL_KERNEL_COPIES_NEVER, 2, 64 << 20, true, false},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_loans loans = {.lending.copies = c->copies, .nranks = c->nranks};
        kl_loans_begin(&loans, c->bytes, 1, c->receives);
        assert_int_equal(loans.reads, c->reads);
        kl_loans_complete(&loans);
    }
}

/* Sizes that are not alike, and each kind of launch, are tried for themselves: with a guess, the last time staged, and then one block of either way, and one use of the second before. */
static void both_ways_are_tried_in_turn(void **state)
{
    static const struct {
        size_t bytes, messages;
        int warm, compared;
        bool guess;
    } kinds[] = {{KL_LOAN_LEAST, 1, KL_LATELY_MOST_WARM, 32, false},
                 {KL_LOAN_LEAST, 4, KL_LATELY_WARM_BYTES / (4 * KL_LOAN_LEAST), 32, false},
                 {(size_t)1 << 40, 1, (KL_LATELY_SOON - 2) * 3 - KL_LATELY_HEARS, 3, true}}; /* sure, and late */
    struct kl_loans loans = {.nranks = 2};

    (void)state;
    FOR_EACH_CASE(k, kinds)
    for (int i = 0; i < k->warm + 2 * k->compared; i++) {
        kl_loans_begin(&loans, k->bytes, k->messages, 1);
        assert_int_equal(loans.reads,
                         i < k->warm ? k->guess && i < k->warm - 1 : i == k->warm || i >= k->warm + k->compared);
        kl_loans_complete(&loans);
    }
}

static void it_is_known_whether_ranks_take_turns(void **state)
{
    (void)state;
    for (int crowded = 0; crowded < 2; crowded++) {
        struct kl_loans loans = {.nranks = 2, .lending.crowded = crowded};
        kl_loans_begin(&loans, KL_LOAN_LEAST, 1, 1);
        assert_int_equal(loans.times->crowded, crowded);
    }
}

/* Up to a quarter of the next size that is known. */
static void a_size_begins_as_the_nearest_that_is_alike(void **state)
{
    static const struct {
        size_t part, messages;
        bool reads;
    } cases[] = {{2, 1, true}, {4, 1, true}, {8, 1, false}, {8, 4, false}};
    const size_t in_cache = kl_cache_share_bytes(2) / 4, cheap = 2 << 20, all = in_cache < cheap ? in_cache : cheap;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_loans loans = {.nranks = 2};
        kl_loans_begin(&loans, all, 1, 1);
        assert_false(loans.reads);
        *loans.times = (struct kl_lately){.block = 3, .better = 1, .compared = true};
        kl_loans_begin(&loans, all / c->part, c->messages, 1);
        assert_int_equal(loans.reads, c->reads);
    }
}

/* Beyond the cache, sizes begin as others beyond it. */
static void what_fits_no_cache_is_not_alike(void **state)
{
    const size_t all = kl_cache_share_bytes(2);
    struct kl_loans loans = {.nranks = 2};

    (void)state;
    kl_loans_begin(&loans, all / 4, 1, 1);
    assert_false(loans.reads);
    kl_loans_begin(&loans, all / 2, 1, 1);
    assert_true(loans.reads);
    *loans.times = (struct kl_lately){.block = 3, .better = 0, .guess = 1, .compared = true};
    kl_loans_begin(&loans, all, 1, 1);
    assert_false(loans.reads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_a_launch_stores_depends_on_all_that_is_moved),
        cmocka_unit_test(launches_decide_what_is_read),
        cmocka_unit_test(both_ways_are_tried_in_turn),
        cmocka_unit_test(it_is_known_whether_ranks_take_turns),
        cmocka_unit_test(a_size_begins_as_the_nearest_that_is_alike),
        cmocka_unit_test(what_fits_no_cache_is_not_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
