/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstraps of some ranks of another one: they find each other without a rendezvous, also after the parent has
 * failed. */
#include "bootstrap/process_table.h"
#include "bootstrap/test_jobs.h"

enum { TIMEOUT_MS = 300 };

/* The members are the ranks with r % by == rest. */
static int list_members(int n, int by, int rest, int32_t *member)
{
    int members = 0;

    for (int r = rest; r < n; r += by) member[members++] = r;
    return members;
}

static struct kl_bootstrap_config config_of(const struct rank *me, int rank, int nranks)
{
    return (struct kl_bootstrap_config){.rank = rank, .nranks = nranks, .timeout_ms = me->config.timeout_ms};
}

static ncclResult_t derive(const struct rank *me, struct kl_bootstrap *b, int by, unsigned char salt,
                           struct kl_bootstrap **child)
{
    int32_t member[MAX_RANKS];
    int rank = me->config.rank, members = list_members(me->config.nranks, by, rank % by, member);
    struct kl_bootstrap_config config = config_of(me, rank / by, members);
    struct kl_salt s = {{salt, (unsigned char)(rank % by)}};

    return kl_bootstrap_derive(&config, b, member, &s, child);
}

/* Each member contributes its place times ten, plus a value common to all. */
static void gather_in(struct kl_bootstrap *child, const struct rank *me, int by)
{
    int all[MAX_RANKS] = {0}, rank = me->config.rank;
    int members = (me->config.nranks - rank % by + by - 1) / by;

    all[rank / by] = 10 * rank + by;
    must(!kl_bootstrap_allgather(child, all, sizeof all[0]));
    for (int i = 0; i < members; i++) must(all[i] == 10 * (i * by + rank % by) + by);
}

static void split_and_gather(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_bootstrap *halves, *thirds;

    must(!derive(me, b, 2, 1, &halves));
    must(!derive(me, b, 3, 2, &thirds));
    gather_in(thirds, me, 3);
    gather_in(halves, me, 2);
    kl_bootstrap_leave(thirds);
    gather_in(halves, me, 2);
    kl_bootstrap_leave(halves);
}

static void the_same_members_again(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_bootstrap *first, *second;

    must(!derive(me, b, 1, 1, &first));
    must(!derive(me, first, 1, 1, &second)); /* its parent is another one, and so is its key */
    gather_in(second, me, 1);
    gather_in(first, me, 1);
    kl_bootstrap_leave(first); /* before its child */
    gather_in(second, me, 1);
    kl_bootstrap_leave(second);
}

static void ranks_of_a_bootstrap_make_others(void **state)
{
    (void)state;
    for (int n = 1; n <= 9; n++) run_job(n, the_same_members_again);
    for (int n = 2; n <= 9; n++) run_job(n, split_and_gather);
}

static void after_a_failure(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_bootstrap *child;

    (void)kl_bootstrap_barrier(b); /* after it, a rank that leaves knows that all have joined */
    if (me->config.rank % 2) {
        if (me->config.rank == 1) kl_bootstrap_report(b, 1, ncclRemoteError, "rank 1 gives up");
        return;
    }
    await_failure(me);
    must(kl_bootstrap_barrier(b) == ncclRemoteError);
    must(!derive(me, b, 2, 7, &child));
    gather_in(child, me, 2);
    kl_bootstrap_leave(child);
}

static void a_failed_parent_has_children(void **state)
{
    (void)state;
    run_job(8, after_a_failure);
}

static void without_rank_2(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_bootstrap *child;

    me->config.timeout_ms = TIMEOUT_MS;
    if (me->config.rank != 2) must(derive(me, b, 1, 1, &child) == ncclRemoteError);
    must(!kl_bootstrap_barrier(b)); /* of the parent: it is unharmed, and rank 2 was there all the time */
}

static void who_does_not_come_is_waited_for_until_the_deadline(void **state)
{
    (void)state;
    kl_error_quiet(1);
    run_job(4, without_rank_2);
    kl_error_quiet(0);
}

static void abort_when_alive(void *ctx, struct kl_bootstrap *b)
{
    (void)ctx;
    if (b) kl_bootstrap_abort(b);
}

static void aborted(struct rank *me, struct kl_bootstrap *b)
{
    int32_t member[] = {0, 1};
    struct kl_bootstrap_config config = config_of(me, me->config.rank, 2);
    struct kl_bootstrap *child;
    struct kl_salt salt = {{0}};

    config.on_life = abort_when_alive;
    must(kl_bootstrap_derive(&config, b, member, &salt, &child) == ncclInternalError);
    must(!kl_bootstrap_barrier(b));
}

static void it_can_be_aborted_while_it_is_made(void **state)
{
    (void)state;
    run_job(2, aborted);
}

/* The rank of a child whose allocation fails when all others are there; -1: none. */
static int poor = -1;

ncclResult_t __real_kl_process_table_share(struct kl_bootstrap *b);
ncclResult_t __wrap_kl_process_table_share(struct kl_bootstrap *b);

ncclResult_t __wrap_kl_process_table_share(struct kl_bootstrap *b)
{
    return b->rank == poor ? KL_NOMEM("a shared test buffer") : __real_kl_process_table_share(b);
}

static void with_a_poor_rank(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_bootstrap *child;
    struct kl_records *records;

    ncclResult_t rc = derive(me, b, 1, 1, &child);
    if (me->config.rank == poor) {
        must(rc == ncclSystemError);
    } else if (!rc) { /* or it has been told already */
        rc = kl_bootstrap_gather(child, &me->config.rank, sizeof me->config.rank, &records);
        kl_bootstrap_leave(child);
    }
    must(rc && strstr(kl_error_text(), "out of memory for a shared test buffer"));
}

static void who_fails_last_says_so(void **state)
{
    (void)state;
    kl_error_quiet(1);
    poor = 2;
    run_job(4, with_a_poor_rank);
    poor = -1;
    kl_error_quiet(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(ranks_of_a_bootstrap_make_others),
        leak_test(a_failed_parent_has_children),
        leak_test(who_does_not_come_is_waited_for_until_the_deadline),
        leak_test(it_can_be_aborted_while_it_is_made),
        leak_test(who_fails_last_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
