/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomic.h"
#include "bootstrap/test_jobs.h"
#include "tests/kolo_test.h"

#include <sched.h>

enum { ASKED = 1, ANSWERED };

struct control_msg {
    int what, from;
    char more[3000]; /* longer than one read */
};

static _Atomic int questions, answers, here;

static void answer_control_msg(void *ctx, struct kl_bootstrap *b, int from, const void *data, size_t bytes)
{
    struct rank *me = ctx;
    const struct control_msg *a = data;
    const struct control_msg answer = {.what = ANSWERED, .from = me->config.rank};

    must(bytes == sizeof *a && a->from == from);
    if (a->what == ANSWERED) {
        kl_fetch_add_acq_rel(&answers, 1);
        return;
    }
    kl_fetch_add_acq_rel(&questions, 1);
    must(kl_bootstrap_control_send(b, from, &answer, sizeof answer));
}

static void run_listening_job(int n, void (*run)(struct rank *, struct kl_bootstrap *))
{
    struct rank ranks[MAX_RANKS];

    kl_store_relaxed(&questions, 0);
    kl_store_relaxed(&answers, 0);
    kl_store_relaxed(&here, 0);
    setup_job(ranks, n, run);
    for (int r = 0; r < n; r++) ranks[r].config.on_control_msg = answer_control_msg;
    run_ranks(ranks, n);
    expect_joined(ranks, n);
}

static void await_count(_Atomic int *counter, int want)
{
    while (kl_load_acquire(counter) < want) sched_yield();
    must(kl_load_acquire(counter) == want);
}

/* Five ranks, all of them partners: every rank is connected with every other. */
static void ask_all(struct rank *me, struct kl_bootstrap *b)
{
    const struct control_msg question = {.what = ASKED, .from = me->config.rank};

    must(!kl_bootstrap_barrier(b));
    if (me->config.rank == 2) {
        must(kl_bootstrap_control_broadcast(b, -1, &question, sizeof question) == 4);
        await_count(&answers, 4);
        must(kl_load_acquire(&questions) == 4);
        must(kl_bootstrap_control_broadcast(b, 1, &question, sizeof question) == 3);
        await_count(&answers, 7);
    }
    must(!kl_bootstrap_barrier(b));
}

static void those_that_are_connected_hear_and_answer(void **state)
{
    (void)state;
    run_listening_job(5, ask_all);
}

/* Of 16 ranks, the one at distance 3 is no partner: no connection is made for a control message. */
static void ask_a_stranger(struct rank *me, struct kl_bootstrap *b)
{
    const struct control_msg question = {.what = ASKED, .from = me->config.rank};
    int n = me->config.nranks;

    must(!kl_bootstrap_barrier(b));
    if (me->config.rank == 0) {
        must(!kl_bootstrap_control_send(b, 3, &question, sizeof question));
        must(!kl_bootstrap_control_send(b, 0, &question, sizeof question)); /* itself */
        must(!kl_bootstrap_control_send(b, -1, &question, sizeof question));
        must(!kl_bootstrap_control_send(b, n, &question, sizeof question));
        must(kl_bootstrap_control_send(b, 1, &question, sizeof question));
        await_count(&answers, 1);
    }
    must(!kl_bootstrap_barrier(b));
}

static void nobody_is_called_for_a_control_message(void **state)
{
    (void)state;
    run_listening_job(16, ask_a_stranger);
}

/* Control messages still work after the job has failed. */
static void ask_after_a_failure(struct rank *me, struct kl_bootstrap *b)
{
    const struct control_msg question = {.what = ASKED, .from = me->config.rank};

    must(!kl_bootstrap_barrier(b));
    kl_fetch_add_acq_rel(&here, 1);
    if (me->config.rank == 0) {
        await_count(&here, 3); /* of a rank whose barrier is over, too */
        kl_bootstrap_report(b, 1, ncclRemoteError, "something went wrong");
        must(kl_bootstrap_control_send(b, 2, &question, sizeof question));
        await_count(&answers, 1);
        must(kl_bootstrap_barrier(b) == ncclRemoteError);
    } else {
        while (kl_load_acquire(&answers) < 1) sched_yield();
    }
}

static void asides_pass_after_a_failure(void **state)
{
    (void)state;
    run_listening_job(3, ask_after_a_failure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(those_that_are_connected_hear_and_answer),
        leak_test(nobody_is_called_for_a_control_message),
        leak_test(asides_pass_after_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
