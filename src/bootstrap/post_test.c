/* SPDX-License-Identifier: Apache-2.0 */
/* Non-blocking messages: posted and polled by any thread, over connections that open when needed. */
#include "bootstrap/bootstrap.h"

#include "base/atomic.h"
#include "base/error.h"
#include "bootstrap/test_jobs.h"
#include "bootstrap/state.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG = 7 };

/* Poll until it has arrived, or fails. */
static ncclResult_t poll_for(struct kl_bootstrap *b, int peer, uint32_t tag, void *data, size_t bytes)
{
    bool here = false;
    ncclResult_t rc;

    while (!(rc = kl_bootstrap_poll(b, peer, tag, data, bytes, &here)) && !here) sched_yield();
    return rc;
}

/* ---- all with all ---- */

/* Connections cross between all pairs, most of which are not connected yet. */
static void post_to_all(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, rank = me->config.rank, record[32];

    for (int peer = 0; peer < n; peer++) {
        for (int i = 0; i < 32; i++) record[i] = 10000 * rank + 100 * peer + i;
        must(!kl_bootstrap_post(b, peer, TAG, record, sizeof record));
        memset(record, 0, sizeof record); /* it was copied */
    }
    for (int peer = 0; peer < n; peer++) {
        must(!poll_for(b, peer, TAG, record, sizeof record));
        for (int i = 0; i < 32; i++) must(record[i] == 10000 * peer + 100 * rank + i);
    }
    must(!kl_bootstrap_barrier(b));
}

static void all_post_to_all_at_once(void **state)
{
    static const int sizes[] = {1, 2, 3, 8, MAX_RANKS};

    (void)state;
    FOR_EACH_CASE(n, sizes) run_job(*n, post_to_all);
}

/* Of six ranks, 0 and 3 are no partners. Rank 3 sends last the message that rank 0 looks for first. */
static void look_by_tag(struct rank *me, struct kl_bootstrap *b)
{
    uint32_t got;
    bool here;

    if (me->config.rank == 3)
        for (uint32_t tag = 0; tag < 100; tag++) must(!kl_bootstrap_post(b, 0, tag, &tag, sizeof tag));
    if (me->config.rank == 0)
        for (uint32_t tag = 100; tag-- > 0;) {
            must(!poll_for(b, 3, tag, &got, sizeof got));
            must(got == tag);
            must(!kl_bootstrap_poll(b, 3, tag, &got, sizeof got, &here) && !here); /* only once */
        }
    must(!kl_bootstrap_barrier(b));
}

static void messages_are_found_by_their_tag(void **state)
{
    (void)state;
    run_job(6, look_by_tag);
}

/* ---- order ---- */

/* Posts wait for the connection; a send queues behind them, and a post behind the send. */
static void post_and_send_in_turn(struct rank *me, struct kl_bootstrap *b)
{
    int got, n = 300;

    for (int i = 0; i < n && me->config.rank == 3; i++) {
        if (i % 10 == 9)
            must(!kl_bootstrap_send(b, 0, TAG, &i, sizeof i));
        else
            must(!kl_bootstrap_post(b, 0, TAG, &i, sizeof i));
    }
    for (int i = 0; i < n && me->config.rank == 0; i++) {
        if (i % 7)
            must(!poll_for(b, 3, TAG, &got, sizeof got));
        else
            must(!kl_bootstrap_recv(b, 3, TAG, &got, sizeof got));
        must(got == i);
    }
    must(!kl_bootstrap_barrier(b));
}

static void posts_and_sends_keep_their_order(void **state)
{
    (void)state;
    run_job(6, post_and_send_in_turn);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 100 };

struct talker {
    struct kl_bootstrap *b;
    int rank, nranks;
    uint32_t tag;
    pthread_t thread;
};

/* Each thread has its own tag, and talks with all other ranks. */
static void *talk(void *arg)
{
    struct talker *t = arg;

    for (int round = 0; round < ROUNDS; round++) {
        for (int peer = 0; peer < t->nranks; peer++) {
            int value = 1000 * round + peer;
            must(!kl_bootstrap_post(t->b, peer, t->tag, &value, sizeof value));
        }
        for (int peer = 0; peer < t->nranks; peer++) {
            int got;
            must(!poll_for(t->b, peer, t->tag, &got, sizeof got));
            must(got == 1000 * round + t->rank);
        }
    }
    return NULL;
}

/* Meanwhile the rank's own thread makes exchanges. */
static void talk_in_threads(struct rank *me, struct kl_bootstrap *b)
{
    struct talker talkers[THREADS];
    int all[MAX_RANKS];

    for (int i = 0; i < THREADS; i++) {
        talkers[i] = (struct talker){b, me->config.rank, me->config.nranks, (uint32_t)(100 + i), 0};
        must(!pthread_create(&talkers[i].thread, NULL, talk, &talkers[i]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        all[me->config.rank] = round + me->config.rank;
        must(!kl_bootstrap_allgather(b, all, sizeof all[0]));
        for (int r = 0; r < me->config.nranks; r++) must(all[r] == round + r);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(talkers[i].thread, NULL);
    must(!kl_bootstrap_barrier(b));
}

static void threads_post_and_poll_beside_exchanges(void **state)
{
    (void)state;
    run_job(6, talk_in_threads);
}

/* ---- sizes ---- */

static void post_wrong_sizes(struct rank *me, struct kl_bootstrap *b)
{
    int value[2] = {1, 2}, got[2] = {7, 7};
    bool here = true;

    kl_error_quiet(1);
    if (me->config.rank == 0) {
        must(!kl_bootstrap_post(b, 1, TAG, value, 8));
        must(!kl_bootstrap_post(b, 1, TAG, value, 4));
        must(!kl_bootstrap_post(b, 1, TAG, NULL, 0));
        must(kl_bootstrap_post(b, 2, TAG, value, 4) == ncclInvalidArgument);
        must(kl_bootstrap_post(b, -1, TAG, value, 4) == ncclInvalidArgument);
        must(kl_bootstrap_post(b, 1, TAG, value, KL_FRAME_MAX + 1) == ncclInvalidArgument);
        must(kl_bootstrap_poll(b, 2, TAG, value, 4, &here) == ncclInvalidArgument && !here);
    } else {
        must(poll_for(b, 0, TAG, got, 4) == ncclInternalError);
        must(strstr(kl_error_text(), "expected a message of 4 bytes from rank 0"));
        must(strstr(kl_error_text(), "got 8"));
        must(got[0] == 7);
        must(!poll_for(b, 0, TAG, got, 4)); /* the next message is intact */
        must(got[0] == 1 && got[1] == 7);
        must(!poll_for(b, 0, TAG, NULL, 0));
    }
    must(!kl_bootstrap_barrier(b));
}

static void a_wrong_size_is_an_error(void **state)
{
    (void)state;
    run_job(2, post_wrong_sizes);
}

/* The wanted message is behind more than an inbox holds. */
static void post_behind_a_flood(struct rank *me, struct kl_bootstrap *b)
{
    enum { FLOOD = 8 };
    char *much = calloc(1, KL_FRAME_MAX), last = 'x';

    if (me->config.rank == 0) {
        for (int i = 0; i < FLOOD; i++) must(!kl_bootstrap_post(b, 1, 1, much, KL_FRAME_MAX));
        must(!kl_bootstrap_post(b, 1, 2, &last, 1));
    } else {
        last = 0;
        must(!poll_for(b, 0, 2, &last, 1) && last == 'x');
        for (int i = 0; i < FLOOD; i++) must(!poll_for(b, 0, 1, much, KL_FRAME_MAX));
    }
    must(!kl_bootstrap_barrier(b));
    free(much);
}

static void a_full_inbox_does_not_hide_what_is_polled_for(void **state)
{
    (void)state;
    run_job(2, post_behind_a_flood);
}

/* ---- departures ---- */

/* A rank that leaves at once has delivered its messages, although it was not connected. */
static void post_and_leave(struct rank *me, struct kl_bootstrap *b)
{
    int value = 7, got = 0;

    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 3) must(!kl_bootstrap_post(b, 0, TAG, &value, sizeof value));
    if (me->config.rank != 0) return;
    must(!poll_for(b, 3, TAG, &got, sizeof got));
    must(got == 7);
    must(poll_for(b, 3, TAG, &got, sizeof got) == ncclRemoteError);
    must(strstr(kl_error_text(), "has left without the message"));
}

static void what_was_posted_before_leaving_arrives(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) run_job(6, post_and_leave);
}

static void poll_in_vain(struct rank *me, struct kl_bootstrap *b)
{
    int value = 7;

    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == 2) {
        kl_bootstrap_report(b, 2, ncclSystemError, "rank 2 has no memory left");
        return;
    }
    must(poll_for(b, 1 - me->config.rank, TAG, &value, sizeof value) == ncclSystemError);
    must(!strcmp(kl_error_text(), "rank 2 has no memory left"));
    must(kl_bootstrap_post(b, 1 - me->config.rank, TAG, &value, sizeof value) == ncclSystemError);
}

static void a_failure_elsewhere_ends_polling(void **state)
{
    (void)state;
    run_job(3, poll_in_vain);
}

static void *abort_now(void *arg)
{
    kl_bootstrap_abort(arg);
    return NULL;
}

static void poll_until_aborted(struct rank *me, struct kl_bootstrap *b)
{
    pthread_t thread;
    int got;

    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank) return;
    must(!pthread_create(&thread, NULL, abort_now, b));
    must(poll_for(b, 0, TAG, &got, sizeof got) == ncclInternalError);
    must(strstr(kl_error_text(), "aborted"));
    must(kl_bootstrap_post(b, 1, TAG, &got, sizeof got) == ncclInternalError);
    pthread_join(thread, NULL);
}

static void an_abort_ends_polling(void **state)
{
    (void)state;
    run_job(2, poll_until_aborted);
}

/* Of six ranks, 0 and 3 are no partners: rank 3's address has no listener any more. */
static void post_to_the_unreachable(struct rank *me, struct kl_bootstrap *b)
{
    int value = 7;

    kl_error_quiet(1);
    if (me->config.rank == 0) {
        union kl_address nowhere = b->address_records[3].address[0];
        kl_address_set_port(&nowhere, 1); /* no listener there */
        must(!kl_bootstrap_barrier(b));
        pthread_mutex_lock(&b->lock);
        b->address_records[3].naddresses = 1;
        b->address_records[3].address[0] = nowhere;
        pthread_mutex_unlock(&b->lock);
        must(!kl_bootstrap_post(b, 3, TAG, &value, sizeof value));
    } else {
        (void)kl_bootstrap_barrier(b);
    }
    await_failure(me);
    must(me->culprit == 3);
    must(strstr(me->failure, "rank 0 cannot connect to rank 3 (host "));
    must(poll_for(b, 3, TAG, &value, sizeof value) == ncclRemoteError);
}

static void who_cannot_be_reached_is_a_failure_for_all(void **state)
{
    (void)state;
    run_job(6, post_to_the_unreachable);
}

/* Rank 3 has left, or leaves later. Rank 0 sends it nothing, and polls without a message: not for ever. */
static void watch_who_leaves(struct rank *me, struct kl_bootstrap *b)
{
    int value = 0;

    kl_error_quiet(1);
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank != 0) return;
    must(!kl_bootstrap_watch(b, 0));
    (void)kl_bootstrap_watch(b, 3); /* fails if it knows already */
    must(poll_for(b, 3, TAG, &value, sizeof value) == ncclRemoteError);
    must(strstr(kl_error_text(), "rank 3 (host "));
}

static void who_is_watched_cannot_leave_unnoticed(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) run_job(6, watch_who_leaves);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        leak_test(all_post_to_all_at_once),
        leak_test(messages_are_found_by_their_tag),
        leak_test(posts_and_sends_keep_their_order),
        leak_test(threads_post_and_poll_beside_exchanges),
        leak_test(a_wrong_size_is_an_error),
        leak_test(a_full_inbox_does_not_hide_what_is_polled_for),
        leak_test(what_was_posted_before_leaving_arrives),
        leak_test(a_failure_elsewhere_ends_polling),
        leak_test(an_abort_ends_polling),
        leak_test(who_cannot_be_reached_is_a_failure_for_all),
        leak_test(who_is_watched_cannot_leave_unnoticed),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("bootstrap, messages without waiting", tests, NULL, NULL);
}
