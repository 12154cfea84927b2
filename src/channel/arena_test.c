/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks are threads, so that all share their process's map of the memory. */
#include "channel/arena.h"

#include "bootstrap/test_jobs.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { TAG = 9, BYTES = 10000 };

static int32_t everybody[MAX_RANKS];

static struct kl_arena_config config_of(struct rank *me, struct kl_bootstrap *b, size_t bytes)
{
    return (struct kl_arena_config){.bootstrap = b,
                                    .ranks = everybody,
                                    .n = me->config.nranks,
                                    .own = me->config.rank,
                                    .tag = TAG,
                                    .bytes = bytes,
                                    .timeout_ms = kolo_test_hang_ms()};
}

static ncclResult_t progress_until_ready(struct kl_arena *a)
{
    ncclResult_t rc = ncclSuccess;

    while (kl_arena_progress(a, &rc) != KL_DONE) {
        must(kl_arena_blocked_on(a) >= 0);
        sched_yield();
    }
    return rc;
}

static void write_and_read(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_arena_config config = config_of(me, b, BYTES);
    int n = me->config.nranks, rank = me->config.rank;
    struct kl_arena a;

    must(!kl_arena_begin(&a, &config));
    must(!progress_until_ready(&a) && a.ready && kl_arena_blocked_on(&a) == -1);
    must((uintptr_t)a.memory % KL_LINE == 0);
    unsigned char *bytes = a.memory;
    for (int i = rank; i < BYTES; i += n) must(bytes[i] == 0);
    for (int i = rank; i < BYTES; i += n) bytes[i] = (unsigned char)(rank + 1);
    must(!kl_bootstrap_barrier(b));
    must(count_maps("kolo-fifo") == 1);
    for (int i = 0; i < BYTES; i++) must(bytes[i] == i % n + 1);
    for (int r = 0; r < n; r++) must(!kl_arena_left(a.mark, r));
    must(!kl_bootstrap_barrier(b));
    if (rank == n - 1) kl_arena_leave(&a);
    must(!kl_bootstrap_barrier(b));
    for (int r = 0; r < n; r++) must(kl_arena_left(a.mark, r) == (r == n - 1));
    kl_arena_fini(&a);
    kl_arena_fini(&a);
}

static void all_see_the_same(void **state)
{
    static const int sizes[] = {1, 2, 5, MAX_RANKS};

    (void)state;
    FOR_EACH_CASE(n, sizes) run_job(*n, write_and_read);
}

static void expect_another_size(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_arena_config config = config_of(me, b, me->config.rank == 1 ? BYTES + 1 : BYTES);
    struct kl_arena a;

    must(!kl_arena_begin(&a, &config));
    if (me->config.rank == 1) {
        must(progress_until_ready(&a) == ncclInternalError);
        must(strstr(kl_error_text(), "shares"));
    }
    must(!kl_bootstrap_barrier(b));
    kl_arena_leave(&a);
    kl_arena_fini(&a);
}

static void sizes_must_agree(void **state)
{
    (void)state;
    run_job(2, expect_another_size);
}

/* The first member offers memory and withdraws the offer, as one that fails does; it sends nothing else. */
static void find_the_offer_withdrawn(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_arena_config config = config_of(me, b, BYTES);
    struct kl_fd_export_handle other;
    struct kl_arena a;

    if (me->config.rank == 0) {
        must(!kl_fdshare_offer(STDERR_FILENO, &other)); /* the offer exists */
        must(!kl_arena_begin(&a, &config));
        kl_arena_fini(&a);
    }
    must(!kl_bootstrap_barrier(b));
    if (me->config.rank == 1) {
        must(!kl_arena_begin(&a, &config));
        must(progress_until_ready(&a) == ncclRemoteError);
        must(strstr(kl_error_text(), "cannot map the memory that rank 0 shares: a descriptor is no longer offered"));
        kl_arena_fini(&a);
    }
    must(!kl_bootstrap_barrier(b));
    if (me->config.rank == 0) kl_fdshare_withdraw(&other);
}

static void unreachable_memory_names_its_owner(void **state)
{
    (void)state;
    run_job(2, find_the_offer_withdrawn);
}

/* ---- revoking ---- */

struct revoker {
    struct kl_arena arena;
    _Atomic bool revoked;
};

static void *take_back(void *arg)
{
    struct revoker *l = arg;

    kl_arena_revoke(&l->arena);
    kl_store_release(&l->revoked, true);
    return NULL;
}

static void revoking_waits_for_a_touched_piece(void **state)
{
    static struct kl_arena_mark mark[2];
    struct revoker l = {.arena = {.config = {.own = 1, .n = 2}, .mark = mark}};
    pthread_t thread;

    (void)state;
    kl_store_relaxed(&mark[0].process, (int32_t)getpid());
    assert_true(kl_arena_touch(mark, 0, 2));
    assert_int_equal(pthread_create(&thread, NULL, take_back, &l), 0);
    while (!kl_load_acquire(&mark[1].revoked)) sched_yield();
    for (int i = 0; i < 1000; i++) {
        assert_false(kl_load_acquire(&l.revoked));
        sched_yield();
    }
    kl_arena_untouch(mark, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(kl_arena_touch(mark, 0, 2));
    assert_int_equal(kl_load_relaxed(&mark[0].touching), 0);
}

/* It fails while others are about to map its memory: they report the reason of that failure. */
static void find_the_offer_withdrawn_and_hear_why(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_arena_config config = config_of(me, b, BYTES);
    struct kl_arena a;

    must(!kl_bootstrap_barrier(b)); /* all have joined */
    if (me->config.rank == 0) {
        must(!kl_arena_begin(&a, &config));
        kl_arena_fini(&a);
    }
    (void)kl_bootstrap_barrier(b); /* the last step may already return the failure */
    if (me->config.rank == 0) return kl_bootstrap_report(b, 0, ncclRemoteError, "rank 0 has had enough");
    must(!kl_arena_begin(&a, &config));
    must(progress_until_ready(&a) == ncclRemoteError);
    must(strstr(kl_error_text(), "rank 0 has had enough"));
    kl_arena_fini(&a);
}

static void the_reason_arrives_first(void **state)
{
    (void)state;
    run_job(3, find_the_offer_withdrawn_and_hear_why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(all_see_the_same),
        leak_test(sizes_must_agree),
        leak_test(unreachable_memory_names_its_owner),
        leak_test(the_reason_arrives_first),
        cmocka_unit_test(revoking_waits_for_a_touched_piece),
    };

    for (int r = 0; r < MAX_RANKS; r++) everybody[r] = r;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
