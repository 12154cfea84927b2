/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "plan/collective.h"

#include <math.h>
#include <stdlib.h>

static const struct shape_case {
    const char *name;
    size_t bytes, element_bytes;
    int nranks;
    size_t count, send, recv, send_at, recv_at;
} shape_cases[] = {
    {"all_reduce", 1024, 4, 3, 256, 256, 256, 0, 0}, {"all_reduce", 1027, 4, 3, 256, 256, 256, 0, 0},
    {"broadcast", 8, 8, 3, 1, 1, 1, 0, 0},           {"reduce", 8, 1, 4, 8, 8, 8, 0, 0},
    {"sendrecv", 64, 2, 2, 32, 32, 32, 0, 0},        {"all_gather", 1024, 4, 4, 64, 64, 256, 64, 0},
    {"all_gather", 1024, 4, 3, 84, 84, 252, 84, 0}, /* 85 would not be whole 16 bytes */
    {"all_gather", 32, 4, 4, 0, 0, 0, 0, 0},         {"hypercube", 1024, 8, 2, 64, 64, 128, 64, 0},
    {"gather", 1000, 1, 2, 496, 496, 992, 496, 0},   {"reduce_scatter", 1024, 4, 4, 64, 256, 64, 0, 64},
    {"scatter", 1024, 16, 4, 16, 64, 16, 0, 16},     {"alltoall", 1024, 4, 4, 64, 256, 256, 0, 0},
    {"alltoallv", 1024, 4, 4, 64, 256, 256, 0, 0},   {"barrier", 1 << 20, 4, 4, 1, 1, 1, 0, 0},
};

static void shapes_are_those_of_nccl_tests(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, shape_cases)
    {
        struct kl_coll_shape s =
            kl_coll_shape(kl_coll_id(kl_coll_find(c->name)), c->bytes, c->element_bytes, c->nranks, 0);

        expect_case(c->name, s.count == c->count && s.send == c->send && s.recv == c->recv);
        expect_case(c->name, s.send_at == c->send_at && s.recv_at == c->recv_at);
    }
    assert_ptr_equal(kl_coll_find("allreduce"), &kl_colls[KL_ALL_REDUCE]);
    assert_ptr_equal(kl_coll_find("AllToAll"), &kl_colls[KL_ALLTOALL]);
    assert_ptr_equal(kl_coll_find("reduce-scatter"), &kl_colls[KL_REDUCE_SCATTER]);
    assert_ptr_equal(kl_coll_find("ncclBroadcast"), &kl_colls[KL_BROADCAST]);
    assert_null(kl_coll_find("all"));
    assert_null(kl_coll_find("nccl"));
    for (int i = 0; i < KL_NCOLLS; i++) assert_int_equal(kl_coll_id(kl_coll_find(kl_colls[i].name)), i);
}

/* ---- parts, against the definition of each collective ---- */

enum { COUNT = 96 };

/* The origin of element i of rank's receive buffer: {source, index}, source -2 for none. */
struct origin {
    int source;
    size_t index;
};

static struct origin origin_of(const struct kl_coll_shape *s, int rank, size_t i)
{
    size_t piece = s->count ? s->count : 1;
    int n = s->nranks, sender = (int)(i / piece);

    switch (s->id) {
    case KL_ALL_REDUCE:
        return (struct origin){-1, i};
    case KL_REDUCE:
        return rank == s->root ? (struct origin){-1, i} : (struct origin){-2, 0};
    case KL_REDUCE_SCATTER:
        return (struct origin){-1, (size_t)rank * piece + i};
    case KL_BROADCAST:
        return (struct origin){s->root, i};
    case KL_ALL_GATHER:
    case KL_HYPERCUBE:
        return (struct origin){sender, i % piece};
    case KL_GATHER:
        return rank == s->root ? (struct origin){sender, i % piece} : (struct origin){-2, 0};
    case KL_SCATTER:
        return (struct origin){s->root, (size_t)rank * piece + i};
    case KL_ALLTOALL:
        return (struct origin){sender, (size_t)rank * piece + i % piece};
    case KL_SENDRECV:
        return (struct origin){rank ? rank - 1 : n - 1, i};
    default:
        return (struct origin){-2, 0};
    }
}

static void check_parts(const struct kl_coll_shape *s, int rank)
{
    struct origin got[8 * COUNT];
    struct kl_coll_part part;

    for (size_t i = 0; i < s->recv; i++) got[i] = (struct origin){-2, 0};
    for (int i = 0; kl_coll_part(s, rank, i, &part); i++)
        for (size_t k = 0; k < part.count; k++) {
            assert_true(part.first + k < s->recv);
            got[part.first + k] = (struct origin){part.source, part.source_first + k};
        }
    for (size_t i = 0; i < s->recv; i++) {
        struct origin want = origin_of(s, rank, i);
        if (got[i].source != want.source || got[i].index != want.index)
            fail_msg("%s, %d ranks, rank %d, element %zu", kl_colls[s->id].name, s->nranks, rank, i);
    }
}

static void every_element_has_its_origin(void **state)
{
    (void)state;
    for (int id = 0; id < KL_NCOLLS; id++)
        for (int n = 1; n <= 8; n++)
            for (int root = 0; root < n; root++) {
                struct kl_coll_shape s = kl_coll_shape((enum kl_coll_id)id, COUNT, 1, n, root);

                if (id == KL_ALLTOALLV) continue; /* below */
                for (int rank = 0; rank < n; rank++) check_parts(&s, rank);
            }
}

/* Pieces follow each other without gap or overlap on both sides, and stay inside the buffers. */
static void uneven_pieces_fit(void **state)
{
    (void)state;
    for (int n = 1; n <= 9; n++)
        for (size_t bytes = 0; bytes < 4096; bytes += 16) {
            struct kl_coll_shape s = kl_coll_shape(KL_ALLTOALLV, bytes, 4, n, -1);
            size_t total = 0;

            for (int a = 0; a < n; a++) {
                size_t sent = 0, received = 0;

                for (int b = 0; b < n; b++) {
                    assert_int_equal(kl_coll_piece(&s, a, b).send_first, sent);
                    assert_int_equal(kl_coll_piece(&s, b, a).recv_first, received);
                    sent += kl_coll_piece(&s, a, b).count;
                    received += kl_coll_piece(&s, b, a).count;
                }
                assert_true(sent <= s.send && received <= s.recv);
                total += sent;
            }
            if (n > 1 && s.count >= 64) { /* uneven, but nearly all that was asked for */
                assert_true(kl_coll_piece(&s, 0, 0).count < kl_coll_piece(&s, 0, n - 1).count);
                assert_true(total + (size_t)n * (size_t)n >= s.send * (size_t)n);
            }
        }
}

static void steps_double(void **state)
{
    (void)state;
    assert_int_equal(kl_coll_steps(KL_ALL_REDUCE, 8), 1);
    assert_int_equal(kl_coll_steps(KL_HYPERCUBE, 1), 1); /* only the copy of the own piece */
    assert_int_equal(kl_coll_steps(KL_HYPERCUBE, 2), 2);
    assert_int_equal(kl_coll_steps(KL_HYPERCUBE, 8), 4);
}

static const struct bandwidth_case {
    const char *name;
    int nranks;
    double algorithm, bus; /* for 1 GB in 1 s */
} bandwidth_cases[] = {
    {"all_reduce", 4, 1, 1.5}, {"all_reduce", 1, 1, 0}, {"all_gather", 4, 1, 0.75}, {"reduce_scatter", 4, 1, 0.75},
    {"broadcast", 4, 1, 1},    {"reduce", 4, 1, 1},     {"alltoall", 4, 1, 0.75},   {"alltoallv", 4, 1, 0.75},
    {"gather", 4, 1, 0.75},    {"scatter", 4, 1, 0.75}, {"sendrecv", 4, 1, 1},      {"hypercube", 4, 0.75, 0.75},
    {"barrier", 4, 0, 0},
};

static void bandwidths_are_those_of_nccl_tests(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, bandwidth_cases)
    {
        enum kl_coll_id id = kl_coll_id(kl_coll_find(c->name));
        struct kl_coll_shape s = kl_coll_shape(id, 1000000000 / 64 * 64, 4, c->nranks, 0);
        struct kl_coll_bandwidth b = kl_coll_bandwidth(&s, 4, 1);

        expect_case(c->name, fabs(b.algorithm - c->algorithm) < 1e-6);
        expect_case(c->name, fabs(b.bus - c->bus) < 1e-6);
    }
    struct kl_coll_shape s = kl_coll_shape(KL_ALL_REDUCE, 8, 4, 2, -1);
    assert_true(isfinite(kl_coll_bandwidth(&s, 4, 0).bus));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_those_of_nccl_tests),
        cmocka_unit_test(every_element_has_its_origin),
        cmocka_unit_test(uneven_pieces_fit),
        cmocka_unit_test(steps_double),
        cmocka_unit_test(bandwidths_are_those_of_nccl_tests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
