/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet at several roots join one bootstrap. */
#include "bootstrap/jobs.h"
#include "tests/leftovers.h"

struct many {
    struct rank rank; /* the first field */
    const ncclUniqueId *ids;
    int nids;
};

static void *many_main(void *arg)
{
    struct many *me = arg;
    struct kl_bootstrap *b = NULL;

    kl_error_quiet(1);
    me->rank.joined = kl_bootstrap_join_many(&me->rank.config, me->ids, me->nids, &b);
    if (me->rank.joined) snprintf(me->rank.text, sizeof me->rank.text, "%s", kl_error_text());
    if (b) {
        gather_and_check(&me->rank, b);
        talk_to_all(&me->rank, b);
    }
    kl_bootstrap_leave(b);
    return NULL;
}

static void make_ids(ncclUniqueId *ids, int n)
{
    for (int i = 0; i < n; i++) assert_int_equal(kl_bootstrap_id_create(&ids[i]), ncclSuccess);
}

static void setup(struct many *ranks, int n, const ncclUniqueId *ids, int nids)
{
    for (int r = 0; r < n; r++) {
        setup_ranks(&ranks[r].rank, 1, &ids[0], NULL);
        ranks[r].rank.config.rank = r;
        ranks[r].rank.config.nranks = n;
        ranks[r].ids = ids;
        ranks[r].nids = nids;
    }
}

static void run_all_but(struct many *ranks, int n, int missing)
{
    for (int r = 0; r < n; r++)
        if (r != missing) assert_int_equal(pthread_create(&ranks[r].rank.thread, NULL, many_main, &ranks[r]), 0);
    for (int r = 0; r < n; r++)
        if (r != missing) pthread_join(ranks[r].rank.thread, NULL);
}

static void start(struct many *ranks, int n, const ncclUniqueId *ids, int nids, int missing)
{
    setup(ranks, n, ids, nids);
    for (int r = 0; r < n && missing >= 0; r++) ranks[r].rank.config.timeout_ms = 3000;
    run_all_but(ranks, n, missing);
}

static void any_number_of_roots_will_do(void **state)
{
    static struct many ranks[MAX_RANKS];
    ncclUniqueId ids[MAX_RANKS];

    (void)state;
    for (int n = 1; n <= 9; n++)
        for (int nids = 1; nids <= n; nids++) {
            make_ids(ids, nids);
            start(ranks, n, ids, nids, -1);
            for (int r = 0; r < n; r++)
                if (ranks[r].rank.joined) fail_msg("%d of %d, %d roots: %s", r, n, nids, ranks[r].rank.text);
        }
}

static void who_is_missing_is_named(void **state)
{
    static struct many ranks[MAX_RANKS];
    ncclUniqueId ids[3];

    (void)state;
    make_ids(ids, 3);
    start(ranks, 9, ids, 3, 4);
    for (int r = 0; r < 9; r++)
        if (r != 4) assert_int_equal(ranks[r].rank.joined, ncclRemoteError);
    assert_non_null(strstr(ranks[3].rank.text, "rank 1; see"));
    assert_non_null(strstr(ranks[3].rank.text, "in share 1 of 3, where ranks count from 3 on"));
}

static void decline(const ncclUniqueId *ids, int nids, int rank, int nranks)
{
    kl_error_quiet(1);
    kl_error_adopt("a test would not have it");
    kl_bootstrap_decline(ids, nids, rank, nranks);
    kl_error_quiet(0);
}

static void expect_failure(const struct many *m, const char *text)
{
    assert_int_equal(m->rank.joined, ncclRemoteError);
    if (!strstr(m->rank.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, m->rank.text);
}

/* Long before the deadline. */
static void all_hear_of_who_declines(void **state)
{
    static struct many ranks[MAX_RANKS];
    ncclUniqueId ids[2];

    (void)state;
    make_ids(ids, 2);
    decline(ids, 2, 2, 4); /* rank 2 would have come to both roots */
    setup(ranks, 4, ids, 2);
    run_all_but(ranks, 4, 2);
    expect_failure(&ranks[0], "rank 2 did not join: a test would not have it (in share 0 of 2");
    expect_failure(&ranks[1], "rank 2 did not join: a test would not have it (in share 0 of 2");
    expect_failure(&ranks[3],
                   "rank 0 did not join: a test would not have it (in share 1 of 2, where ranks count from 2");

    make_ids(ids, 2);
    decline(ids, 2, 3, 4); /* rank 3 would have come to one; its neighbour tells the ranks at the other */
    setup(ranks, 4, ids, 2);
    run_all_but(ranks, 4, 3);
    expect_failure(&ranks[2],
                   "rank 1 did not join: a test would not have it (in share 1 of 2, where ranks count from 2");
    expect_failure(&ranks[0], "rank 2 did not join: rank 1 did not join: a test would not have it (in share 1 of 2");
    expect_failure(&ranks[1], "rank 2 did not join: rank 1 did not join: a test would not have it (in share 1 of 2");
}

static void wrong_ids_are_refused(void **state)
{
    static struct many ranks[MAX_RANKS];
    ncclUniqueId ids[3];
    struct kl_bootstrap *b;

    (void)state;
    make_ids(ids, 2);
    ids[2] = ids[0];
    start(ranks, 3, ids, 3, -1);
    assert_int_equal(ranks[0].rank.joined, ncclInvalidArgument);
    assert_non_null(strstr(ranks[0].rank.text, "ids 0 and 2 are the same"));
    memset(&ids[1], 0, sizeof ids[1]);
    start(ranks, 3, ids, 2, -1);
    assert_non_null(strstr(ranks[2].rank.text, "id 1 is no unique id"));
    kl_error_quiet(1);
    assert_int_equal(kl_bootstrap_join_many(&ranks[0].rank.config, ids, 0, &b), ncclInvalidArgument);
    assert_int_equal(kl_bootstrap_join_many(&ranks[0].rank.config, ids, 4, &b), ncclInvalidArgument);
    kl_error_quiet(0);
}

struct kolo_test_keep kolo_test_keeps[] = {KOLO_TEST_UNUSED_IDS, {NULL, 0, 0}};

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(any_number_of_roots_will_do),
        leak_test(all_hear_of_who_declines),
        cmocka_unit_test(who_is_missing_is_named), /* a root without its ranks stays for a while */
        cmocka_unit_test(wrong_ids_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
