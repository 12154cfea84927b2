/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes and messages of a launch decide how it copies, and how it stores. */
#include "coll/zcopy/zcopy_offer.h"

#include "tests/kolo_test.h"
#include "transport/pool.h"

/* Also of a launch that only receives. Two ranks, each on a CPU, whose caches hold 16 KiB each. */
static void how_a_launch_stores_depends_on_all_that_is_moved(void **state)
{
    static const struct {
        size_t bytes, messages, received;
        bool nt;
    } cases[] = {{32768, 1, 0, false}, {16384, 2, 16384, false}, {0, 0, 32768, false},
                 {0, 0, 65536, true},  {65536, 1, 0, true},      {16384, 4, 0, true}};
    const struct kl_select_facts facts = {
        .profile = {.own_kib = 16, .last_kib = 1 << 20, .cpus = 2}, .nranks = 2, .ranks_per_core = 1};
    static struct kl_select table;

    (void)state;
    kl_select_make(&table, &facts);
    FOR_EACH_CASE(c, cases)
    {
        struct kl_zcopy_offers offers = {.nranks = 2, .select = &table};
        kl_zcopy_offers_begin(&offers, c->bytes, c->messages, c->received);
        assert_int_equal(offers.nt, c->nt);
    }
}

static void launches_decide_what_is_read(void **state)
{
    static const struct {
        bool table, may_read;
        size_t bytes;
        bool receives, reads;
    } cases[] = {
        {true, true, KL_POOL_DEPTH * KL_POOL_SLOT_BYTES, false, false},
        {true, true, KL_POOL_DEPTH * KL_POOL_SLOT_BYTES + 1, false, true},
        {true, true, KL_ZCOPY_LEAST, true, true},
        {true, true, KL_ZCOPY_LEAST - 1, true, false},
        {true, false, 64 << 20, true, false},
        {false, true, 64 << 20, true, false},
    };
    const struct kl_select_facts facts = {
        .nranks = 2, .processes = true, .kernel = true, .words = 1u << KL_SELECT_KERNEL};
    static struct kl_select table;

    (void)state;
    kl_select_make(&table, &facts);
    FOR_EACH_CASE(c, cases)
    {
        struct kl_zcopy_offers offers = {.zcopy.reads = c->may_read, .nranks = 2, .select = c->table ? &table : NULL};
        kl_zcopy_offers_begin(&offers, c->bytes, 1, c->receives);
        assert_int_equal(offers.reads, c->reads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_a_launch_stores_depends_on_all_that_is_moved),
        cmocka_unit_test(launches_decide_what_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
