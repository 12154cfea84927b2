/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline with ranks that make other calls, that fail, that stand still, or that have left. */
#include "coll/pipeline/pipeline.h"

#include "base/error.h"
#include "coll/pipeline/test_pipeline_ranks.h"

static void revoke_all(struct world *w)
{
    for (int i = 0; i < w->nconnectors; i++) kl_connector_revoke(&w->connector[i]);
}

/* One rank calls with another size. Some rank fails with a message; none waits for ever, also not a rank whose memory is read in place
 * memory. */
static void another_count_fails(const struct way *way, void *ctx)
{
    static const size_t pairs[][2] = {{100, 60}, {60, 100}, {MAX_COUNT, 50}, {50, MAX_COUNT}, {MAX_COUNT, 2998}};
    struct world *w = ctx;

    for (int func = 0; func < KL_FUNCS; func++) {
        if (!(way->algorithm->funcs >> func & 1)) continue;
        FOR_EACH_CASE(pair, pairs)
        {
            struct call right = {.func = func, .proto = way->proto, .count = (*pair)[0], .channels = 1}, wrong = right;
            int failed = -1, odd = 1;
            wrong.count = (*pair)[1];
            set_out(w, way, 4);
            fill(w, &right);
            for (int r = 0; r < 4; r++) {
                struct kl_channel_work share = share_of(w, r, r == odd ? &wrong : &right);
                start(w, r, &share);
            }
            ncclResult_t rc = run(w, &failed);
            if (rc != ncclInvalidUsage)
                fail_msg("%s: %s with %zu and %zu elements: %d", label_of(way, 4), kl_func_info[func].name, (*pair)[0],
                         (*pair)[1], rc);
            assert_non_null(strstr(kl_error_text(), "different counts"));
            revoke_all(w);
            part(w);
        }
    }
}

static void different_counts_are_an_error_and_not_a_hang(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(another_count_fails, w);
    free_world(w);
}

/* The sizes agree, but not the calls: the receiver detects it before it touches the data. */
static void another_call_fails(const struct way *way, void *ctx)
{
    static const size_t counts[] = {1, 100, MAX_COUNT};
    struct world *w = ctx;

    for (int func = 0; func < KL_FUNCS; func++)
        for (int what = 0; what < 2; what++) FOR_EACH_CASE(count, counts)
            {
                struct call right = {.func = func, .proto = way->proto, .count = *count, .channels = 1}, wrong = right;
                int failed = -1;
                if (!(way->algorithm->funcs >> func & 1)) continue;
                if (what)
                    wrong.number = 7;
                else
                    wrong.op = ncclMax;
                set_out(w, way, 4);
                fill(w, &right);
                for (int r = 0; r < 4; r++) {
                    struct kl_channel_work share = share_of(w, r, r == 1 ? &wrong : &right);
                    start(w, r, &share);
                }
                ncclResult_t rc = run(w, &failed);
                if (rc != ncclInvalidUsage)
                    fail_msg("%s: %s of %zu: %d", label_of(way, 4), kl_func_info[func].name, *count, rc);
                assert_non_null(strstr(kl_error_text(), "another call"));
                revoke_all(w);
                part(w);
            }
}

static void another_call_is_an_error_before_data_are_touched(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(another_call_fails, w);
    free_world(w);
}

/* The tuner chooses by size: ranks that disagree about it may meet with different protocols. */
static void different_protocols_are_an_error_and_not_a_hang(void **state)
{
    static const size_t counts[] = {27, 256, 1000, MAX_COUNT};
    struct world *w = make_world();

    (void)state;
    FOR_EACH_CASE(link, links)
    FOR_EACH_CASE(count, counts)
    for (int odd_proto = 0; odd_proto < KL_PROTOS; odd_proto++)
        for (int proto = 0; proto < KL_PROTOS; proto++) {
            struct way way = {&kl_algorithm_ring, proto, link->transport, link->slot_bytes, link->nontemporal};
            struct call right = {.func = KL_FUNC_BROADCAST, .proto = proto, .count = *count, .channels = 1};
            struct call other = right;
            int failed = -1;
            if ((proto == KL_PROTO_SIMPLE) == (odd_proto == KL_PROTO_SIMPLE)) continue;
            other.proto = odd_proto;
            set_out(w, &way, 3);
            fill(w, &right);
            for (int r = 0; r < 3; r++) {
                struct kl_channel_work share = share_of(w, r, r ? &right : &other);
                start(w, r, &share);
            }
            ncclResult_t rc = run(w, &failed);
            if (rc != ncclInvalidUsage)
                fail_msg("%s: %zu elements by protocols %d and %d: %d", label_of(&way, 3), *count, proto, odd_proto,
                         rc);
            assert_non_null(strstr(kl_error_text(), "same settings"));
            revoke_all(w);
            part(w);
        }
    free_world(w);
}

/* No rank reads revoked memory; a rank that would have read it waits for the reason. */
static void revoked_memory_is_not_read(void **state)
{
    static const struct way way = {&kl_algorithm_ring, KL_PROTO_SIMPLE, &kl_transport_p2p, LARGE_SLOT, false};
    struct call c = {.func = KL_FUNC_BROADCAST, .proto = KL_PROTO_SIMPLE, .count = MAX_COUNT, .channels = 1};
    struct world *w = make_world();
    ncclResult_t rc = ncclSuccess;

    (void)state;
    set_out(w, &way, 2);
    fill(w, &c);
    for (int r = 0; r < 2; r++) {
        struct kl_channel_work share = share_of(w, r, &c);
        start(w, r, &share);
    }
    assert_int_equal(w->algorithm->progress(&w->rank[0].op, &rc), KL_MOVED); /* done when it has been read */
    assert_int_equal(w->algorithm->progress(&w->rank[0].op, &rc), KL_STALLED);
    assert_int_equal(rc, ncclSuccess);
    revoke_all(w);
    for (int i = 0; i < 3; i++) assert_int_equal(w->algorithm->progress(&w->rank[1].op, &rc), KL_STALLED);
    assert_int_equal(rc, ncclSuccess);
    assert_int_equal(w->algorithm->blocked_on(&w->rank[1].op, false), 0);
    assert_int_equal(w->rank[1].recv[0], -1);
    part(w);
    free_world(w);
}

/* Progress all but one until nothing moves. */
static void run_without(struct world *w, int lazy)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < w->n; r++) {
            ncclResult_t rc = ncclSuccess;
            if (r == lazy || w->rank[r].done) continue;
            enum kl_progress got = w->algorithm->progress(&w->rank[r].op, &rc);
            assert_int_equal(rc, ncclSuccess);
            w->rank[r].done = got == KL_DONE;
            moved |= got != KL_STALLED;
        }
    }
}

/* From a waiting rank on, follow the rank that each waits for, to the one that stands still. */
static int end_of_the_queue(struct world *w, int r)
{
    for (int i = 0; i <= w->n && !w->rank[r].done; i++) {
        int next = w->algorithm->blocked_on(&w->rank[r].op, false);
        if (next < 0) break;
        r = next;
    }
    return r;
}

static void leave(struct world *w, int r)
{
    for (int i = 0; i < KL_EDGES_MAX; i++) {
        if (w->rank[r].edges.send[i]) kl_connector_leave(w->rank[r].edges.send[i]);
        if (w->rank[r].edges.recv[i]) kl_connector_leave(w->rank[r].edges.recv[i]);
    }
}

static void the_idle_rank_is_found(const struct way *way, void *ctx)
{
    struct world *w = ctx;

    for (int func = 0; func < KL_FUNCS; func++)
        for (int n = 2; n <= 6; n++) {
            struct call c = {.func = func, .proto = way->proto, .root = n - 1, .count = MAX_COUNT, .channels = 1};
            int lazy = n / 2, gone = -1, waiting = 0;
            if (!(way->algorithm->funcs >> func & 1)) continue;
            set_out(w, way, n);
            fill(w, &c);
            for (int r = 0; r < n; r++) {
                struct kl_channel_work share = share_of(w, r, &c);
                start(w, r, &share);
            }
            run_without(w, lazy);
            for (int r = 0; r < n; r++) {
                if (r == lazy || w->rank[r].done) continue;
                waiting++;
                expect_case(label_of(way, n), w->algorithm->blocked_on(&w->rank[r].op, true) == -1);
                if (is_ring(way->algorithm)) expect_case(label_of(way, n), end_of_the_queue(w, r) == lazy);
            }
            leave(w, lazy);
            for (int r = 0; r < n && gone < 0; r++)
                if (r != lazy && !w->rank[r].done) gone = w->algorithm->blocked_on(&w->rank[r].op, true);
            expect_case(label_of(way, n), waiting == 0 || gone == lazy);
            revoke_all(w);
            part(w);
        }
}

static void waiting_names_the_awaited_and_the_departed_rank(void **state)
{
    struct world *w = make_world();

    (void)state;
    for_each_way(the_idle_rank_is_found, w);
    free_world(w);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_counts_are_an_error_and_not_a_hang),
        cmocka_unit_test(another_call_is_an_error_before_data_are_touched),
        cmocka_unit_test(different_protocols_are_an_error_and_not_a_hang),
        cmocka_unit_test(revoked_memory_is_not_read),
        cmocka_unit_test(waiting_names_the_awaited_and_the_departed_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
