/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many ranks in one thread, progressed in a changing order, over real connectors with tiny slots, with and without shared
 * memory. Every collective is compared with a sum done by hand.
 */
#include "coll/ring_op.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdlib.h>

enum { MAX_RANKS = 9, SLOT_BYTES = 1024, MAX_COUNT = 5000 };

struct world {
    int n;
    struct kl_ring rings[MAX_RANKS];
    struct kl_ring_op ops[MAX_RANKS];
    int64_t *send[MAX_RANKS], *recv[MAX_RANKS];
    struct kl_redop redop;
};

/* A ring through the ranks in steps of `stride`, so that ring order and rank order differ. */
static void link_ranks_of(struct world *w, int n, const struct kl_transport *t, uint64_t slot_bytes)
{
    struct kl_fifo_shape shape = {.nslots = 2, .slot_bytes = slot_bytes};
    struct kl_connect_record records[MAX_RANKS] = {{0}};
    int order[MAX_RANKS], stride = n > 3 && n % 3 ? 3 : 1;

    w->n = n;
    for (int i = 0; i < n; i++) order[i] = (i * stride + 1) % n;
    for (int r = 0; r < n; r++) {
        assert_int_equal(kl_ring_init(&w->rings[r], order, n, r), ncclSuccess);
        w->rings[r].from_prev = (struct kl_connector){.peer = kl_ring_prev(&w->rings[r]), .segment = KL_SEGMENT_NONE};
        assert_int_equal(t->setup(&w->rings[r].from_prev, &shape, &records[r]), ncclSuccess);
        w->rings[r].from_prev.transport = t;
    }
    for (int r = 0; r < n; r++) {
        int next = kl_ring_next(&w->rings[r]);
        w->rings[r].to_next = (struct kl_connector){.peer = next, .sends = true, .segment = KL_SEGMENT_NONE};
        assert_int_equal(t->connect(&w->rings[r].to_next, &records[next], UINT64_MAX), ncclSuccess);
        w->rings[r].to_next.transport = t;
    }
    for (int r = 0; r < n; r++) t->settle(&w->rings[r].from_prev);
}

static void link_ranks(struct world *w, int n, const struct kl_transport *t)
{
    link_ranks_of(w, n, t, SLOT_BYTES);
}

static void unlink_ranks(struct world *w)
{
    for (int r = 0; r < w->n; r++) kl_ring_free(&w->rings[r]);
}

static struct world *make_world(void)
{
    struct world *w = calloc(1, sizeof *w);

    for (int r = 0; r < MAX_RANKS; r++) {
        w->send[r] = malloc(sizeof(int64_t) * MAX_COUNT * MAX_RANKS);
        w->recv[r] = malloc(sizeof(int64_t) * MAX_COUNT * MAX_RANKS);
    }
    return w;
}

static void free_world(struct world *w)
{
    for (int r = 0; r < MAX_RANKS; r++) {
        free(w->send[r]);
        free(w->recv[r]);
    }
    free(w);
}

static int64_t input(int rank, size_t i)
{
    return (int64_t)(i + 1) << (4 * rank);
}

static int64_t sum(int n, size_t i)
{
    int64_t s = 0;

    for (int r = 0; r < n; r++) s += input(r, i);
    return s;
}

static void fill(struct world *w, size_t elements)
{
    for (int r = 0; r < w->n; r++)
        for (size_t i = 0; i < elements; i++) {
            w->send[r][i] = input(r, i);
            w->recv[r][i] = -1;
        }
}

static int index_of(const struct world *w, int rank)
{
    return w->rings[rank].index;
}

static void start(struct world *w, const struct kl_schedule *s, size_t count, int root, bool in_place)
{
    for (int r = 0; r < w->n; r++) {
        struct kl_ring_task task = {
            .schedule = s,
            .redop = &w->redop,
            .send = w->send[r],
            .recv = w->recv[r],
            .count = count,
            .end = count,
            .elem_bytes = sizeof(int64_t),
            .root = index_of(w, root),
        };
        if (in_place && s == &kl_allgather_ring) {
            memcpy(w->recv[r] + (size_t)r * count, w->send[r], count * sizeof(int64_t));
            task.send = w->recv[r] + (size_t)r * count;
        } else if (in_place && s == &kl_reducescatter_ring) {
            task.recv = w->send[r] + (size_t)r * count;
        } else if (in_place) {
            memcpy(w->recv[r], w->send[r], count * sizeof(int64_t));
            task.send = w->recv[r];
        }
        kl_ring_op_start(&w->ops[r], &w->rings[r], &task);
    }
}

static void run(struct world *w)
{
    bool done[MAX_RANKS] = {false};
    int left = w->n;

    for (int round = 0; left; round++) {
        enum kl_progress best = KL_STALLED;
        for (int i = 0; i < w->n; i++) {
            int r = (i * 5 + round * 3) % w->n;
            ncclResult_t rc = ncclSuccess;
            if (w->n % 5 == 0) r = i;
            if (done[r]) continue;
            enum kl_progress s = kl_ring_op_progress(&w->ops[r], &rc);
            assert_int_equal(rc, ncclSuccess);
            if (s != KL_STALLED) best = KL_MOVED;
            if (s == KL_DONE) done[r] = true, left--;
        }
        assert_int_equal(best, KL_MOVED); /* else it hangs */
    }
}

static void expect(const char *what, int n, size_t count, int rank, size_t i, int64_t got, int64_t want)
{
    if (got != want)
        fail_msg("%s of %zu over %d ranks: rank %d, element %zu is %lld, not %lld", what, count, n, rank, i,
                 (long long)got, (long long)want);
}

static void check(struct world *w, const struct kl_schedule *s, size_t count, int root, bool in_place)
{
    int n = w->n;

    for (int r = 0; r < n; r++) {
        const int64_t *recv = w->recv[r];
        if (s == &kl_reducescatter_ring && in_place) recv = w->send[r] + (size_t)r * count;
        for (size_t i = 0; i < count; i++) {
            if (s == &kl_allreduce_ring) expect(s->name, n, count, r, i, recv[i], sum(n, i));
            if (s == &kl_reducescatter_ring) expect(s->name, n, count, r, i, recv[i], sum(n, (size_t)r * count + i));
            if (s == &kl_broadcast_ring) expect(s->name, n, count, r, i, recv[i], input(root, i));
            if (s == &kl_reduce_ring && r == root) expect(s->name, n, count, r, i, recv[i], sum(n, i));
        }
        for (size_t i = 0; s == &kl_allgather_ring && i < count * (size_t)n; i++)
            expect(s->name, n, count, r, i, recv[i], input((int)(i / count), i % count));
    }
}

static void every_collective_is_right(void **state)
{
    static const struct kl_schedule *const schedules[] = {&kl_allreduce_ring, &kl_allgather_ring,
                                                          &kl_reducescatter_ring, &kl_broadcast_ring, &kl_reduce_ring};
    static const size_t counts[] = {0, 1, 2, 8, 9, 127, 128, 129, 1000, MAX_COUNT};
    static const struct {
        const struct kl_transport *transport;
        uint64_t slot_bytes; /* in the larger ones chunks are lent */
    } links[] = {{&kl_transport_p2p, SLOT_BYTES}, {&kl_transport_p2p, 8 * SLOT_BYTES}, {&kl_transport_shm, SLOT_BYTES}};
    struct world *w = make_world();

    (void)state;
    FOR_EACH_CASE(link, links)
    for (int n = 2; n <= MAX_RANKS; n++) {
        link_ranks_of(w, n, link->transport, link->slot_bytes);
        assert_int_equal(kl_redop_init(&w->redop, ncclInt64, ncclSum, n), ncclSuccess);
        FOR_EACH_CASE(s, schedules)
        FOR_EACH_CASE(count, counts)
        for (int in_place = 0; in_place < 2; in_place++) {
            int root = (int)*count % n;
            fill(w, MAX_COUNT * (size_t)n < *count * (size_t)n ? 0 : *count * (size_t)n);
            start(w, *s, *count, root, in_place);
            run(w);
            check(w, *s, *count, root, in_place);
        }
        unlink_ranks(w);
    }
    free_world(w);
}

static void means_are_scaled_once(void **state)
{
    struct world *w = make_world();
    float *send[3], *recv[3];

    (void)state;
    link_ranks(w, 3, &kl_transport_p2p);
    assert_int_equal(kl_redop_init(&w->redop, ncclFloat32, ncclAvg, 3), ncclSuccess);
    for (int r = 0; r < 3; r++) {
        send[r] = (float *)w->send[r];
        recv[r] = (float *)w->recv[r];
        for (int i = 0; i < 2000; i++) send[r][i] = (float)(3 * (i % 50) * (r + 1));
        struct kl_ring_task task = {.schedule = &kl_allreduce_ring,
                                    .redop = &w->redop,
                                    .send = send[r],
                                    .recv = recv[r],
                                    .count = 2000,
                                    .end = 2000,
                                    .elem_bytes = 4};
        kl_ring_op_start(&w->ops[r], &w->rings[r], &task);
    }
    run(w);
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 2000; i++) {
            float want = (float)(6 * (i % 50));
            assert_true(recv[r][i] > want * 0.999999f - 1e-6f && recv[r][i] < want * 1.000001f + 1e-6f);
            assert_memory_equal(&recv[r][i], &recv[0][i], 4);
        }
    unlink_ranks(w);
    free_world(w);
}

/* Small chunks are copied, large ones lent: then the lender must get its memory back all the same. */
static void different_counts_are_an_error_and_not_a_hang(void **state)
{
    static const size_t counts[] = {100, MAX_COUNT};
    struct world *w = make_world();

    (void)state;
    assert_int_equal(kl_redop_init(&w->redop, ncclInt64, ncclSum, 2), ncclSuccess);
    FOR_EACH_CASE(count, counts)
    {
        ncclResult_t rc = ncclSuccess;
        link_ranks_of(w, 2, &kl_transport_p2p, 1 << 16);
        fill(w, *count);
        start(w, &kl_allreduce_ring, *count, 0, false);
        w->ops[1].task.end = 60;
        w->ops[1].chunk = 30;
        for (int i = 0; i < 10 && !rc; i++)
            for (int r = 0; r < 2 && !rc; r++) kl_ring_op_progress(&w->ops[r], &rc);
        assert_int_equal(rc, ncclInvalidUsage);
        assert_non_null(strstr(kl_error_text(), "different counts"));
        for (int r = 0; r < 2; r++) kl_connector_revoke(&w->rings[r].to_next);
        unlink_ranks(w);
    }
    free_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right),
        cmocka_unit_test(means_are_scaled_once),
        cmocka_unit_test(different_counts_are_an_error_and_not_a_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
