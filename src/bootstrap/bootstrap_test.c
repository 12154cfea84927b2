/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/bootstrap.h"

#include "base/error.h"
#include "bootstrap/frame.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_RANKS = 17, TIMEOUT_MS = 20000 };

/* ---- ranks as threads ---- */

struct rank {
    struct kl_bootstrap_config config;
    void (*run)(struct rank *me, struct kl_bootstrap *b);
    pthread_t thread;
    ncclResult_t joined;
    char text[KL_ERROR_TEXT]; /* of the failure to join */
};

static void *rank_main(void *arg)
{
    struct rank *me = arg;
    struct kl_bootstrap *b = NULL;

    me->joined = kl_bootstrap_join(&me->config, &b);
    if (me->joined)
        snprintf(me->text, sizeof me->text, "%s", kl_error_text());
    else if (me->run)
        me->run(me, b);
    kl_bootstrap_leave(b);
    return NULL;
}

static void setup(struct rank *ranks, int n, void (*run)(struct rank *, struct kl_bootstrap *))
{
    ncclUniqueId id;

    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
    for (int r = 0; r < n; r++)
        ranks[r] = (struct rank){.run = run, .config = {.id = id, .rank = r, .nranks = n, .timeout_ms = TIMEOUT_MS}};
}

static void run_all(struct rank *ranks, int n)
{
    for (int r = 0; r < n; r++) assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    for (int r = 0; r < n; r++) pthread_join(ranks[r].thread, NULL);
}

static void run_job(int n, void (*run)(struct rank *, struct kl_bootstrap *))
{
    struct rank ranks[MAX_RANKS];

    setup(ranks, n, run);
    run_all(ranks, n);
    for (int r = 0; r < n; r++)
        if (ranks[r].joined) fail_msg("rank %d of %d: %s", r, n, ranks[r].text);
}

static const int sizes[] = {1, 2, 3, 5, 8, 17};

/* ---- exchanges ---- */

static void gather_and_check(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, all[MAX_RANKS];

    for (int round = 0; round < 3; round++) {
        all[me->config.rank] = 100 * round + me->config.rank;
        assert_int_equal(kl_bootstrap_allgather(b, all, sizeof all[0]), ncclSuccess);
        for (int r = 0; r < n; r++) assert_int_equal(all[r], 100 * round + r);
        assert_int_equal(kl_bootstrap_barrier(b), ncclSuccess);
    }
    assert_int_equal(kl_bootstrap_allgather(b, NULL, 0), ncclSuccess);
}

static void all_gather_puts_records_in_order(void **state)
{
    (void)state;
    FOR_EACH_CASE(n, sizes) run_job(*n, gather_and_check);
}

/* Everybody sends to everybody, first tag 2, then tag 1, and takes them in the other order. */
static void talk_to_all(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, rank = me->config.rank, got;

    for (uint32_t tag = 2; tag; tag--)
        for (int r = 0; r < n; r++) {
            int value = 1000 * (int)tag + 10 * rank + r;
            assert_int_equal(kl_bootstrap_send(b, r, tag, &value, sizeof value), ncclSuccess);
        }
    for (uint32_t tag = 1; tag <= 2; tag++)
        for (int r = 0; r < n; r++) {
            assert_int_equal(kl_bootstrap_recv(b, r, tag, &got, sizeof got), ncclSuccess);
            assert_int_equal(got, 1000 * (int)tag + 10 * r + rank);
        }
    assert_int_equal(kl_bootstrap_barrier(b), ncclSuccess);
}

static void messages_find_their_tags(void **state)
{
    (void)state;
    FOR_EACH_CASE(n, sizes) run_job(*n, talk_to_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather_puts_records_in_order),
        cmocka_unit_test(messages_find_their_tags),
    };

    return cmocka_run_group_tests_name("bootstrap", tests, NULL, NULL);
}
