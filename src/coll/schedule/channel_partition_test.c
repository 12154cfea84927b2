/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/schedule/partition.h"

#include "coll/schedule/func.h"
#include "tests/kolo_test.h"

#include <stdio.h>

enum { LEAST_TRAFFIC = 16384 };

/* Number of times that a byte of the buffer, or of a part, is sent: the specification's factor. */
static size_t factor_of(const struct kl_partition_request *q)
{
    static const size_t factors[KL_FUNCS] = {[KL_FUNC_ALL_REDUCE] = 2, [KL_FUNC_BROADCAST] = 1, [KL_FUNC_REDUCE] = 1};
    size_t factor = factors[q->func] ? factors[q->func] : (size_t)q->nranks;

    return q->ll ? 4 * factor : factor;
}

/* ---- invariants of every partition ---- */

static const char *label_of(const struct kl_partition_request *q)
{
    static char label[128];

    snprintf(label, sizeof label, "%s of %zu x %zu bytes, %d ranks, %d channels%s", kl_func_info[q->func].name,
             q->count, q->elem_bytes, q->nranks, q->nchannels, q->ll ? ", LL" : "");
    return label;
}

/* Ranges follow one another, cover each element once, and none is empty. */
static void expect_all_covered_once(const struct kl_partition_request *q, const struct kl_partition *partition)
{
    size_t next = 0;

    expect_case(label_of(q), partition->nchannels >= 1 && partition->nchannels <= q->nchannels);
    for (int c = 0; c < partition->nchannels; c++) {
        size_t first, end;
        kl_partition_range(partition, c, &first, &end);
        expect_case(label_of(q), first == next);
        expect_case(label_of(q), end > first || !q->count);
        next = end;
    }
    expect_case(label_of(q), next == q->count);
}

/* Every channel has the minimal traffic, but for the last one, which has the rest. */
static void expect_enough_each(const struct kl_partition_request *q, const struct kl_partition *partition)
{
    for (int c = 0; c + 1 < partition->nchannels; c++) {
        size_t first, end;
        kl_partition_range(partition, c, &first, &end);
        expect_case(label_of(q), (end - first) * q->elem_bytes * factor_of(q) >= LEAST_TRAFFIC);
    }
}

/* Vectors of 16 bytes stay whole where channels meet. */
static void expect_aligned(const struct kl_partition_request *q, const struct kl_partition *partition)
{
    for (int c = 0; c < partition->nchannels; c++) {
        size_t first, end;
        kl_partition_range(partition, c, &first, &end);
        expect_case(label_of(q), first * q->elem_bytes % 16 == 0);
    }
}

static unsigned long partitions;

static void check(const struct kl_partition_request *q)
{
    struct kl_partition partition = kl_partition_channels(q);

    expect_all_covered_once(q, &partition);
    expect_enough_each(q, &partition);
    expect_aligned(q, &partition);
    partitions++;
}

static void check_all_functions(size_t count, size_t elem_bytes, int nranks, int nchannels)
{
    for (int func = 0; func < KL_FUNCS; func++)
        for (int ll = 0; ll < 2; ll++) {
            struct kl_partition_request q = {.func = func,
                                             .nranks = nranks,
                                             .count = count,
                                             .elem_bytes = elem_bytes,
                                             .nchannels = nchannels,
                                             .ll = ll};
            check(&q);
        }
}

static void every_element_belongs_to_one_channel(void **state)
{
    static const size_t counts[] = {1,     2,     3,      15,     16,     17,      255,      256,
                                    257,   1023,  1024,   2047,   2049,   4095,    4096,     4097,
                                    8191,  8192,  8193,   16383,  16384,  16385,   65535,    65536,
                                    65537, 99999, 262144, 262145, 999983, 1048576, 16777216, 16777259};
    static const size_t sizes[] = {1, 2, 4, 8};
    static const int ranks[] = {2, 3, 4, 5, 7, 8, 13, 16, 64, 1000};
    static const int channels[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 63, 64};

    (void)state;
    FOR_EACH_CASE(count, counts)
    FOR_EACH_CASE(size, sizes)
    FOR_EACH_CASE(n, ranks)
    FOR_EACH_CASE(c, channels)
    check_all_functions(*count, *size, *n, *c);
    for (size_t count = 1; count < 3000; count++)
        check_all_functions(count, 4, 2 + (int)count % 15, 1 + (int)count % 64);
    print_message("%lu cuts\n", partitions);
}

/* No buffer is that large, yet the numbers must not overflow. */
static void huge_counts_are_cut_too(void **state)
{
    static const size_t bytes[] = {(size_t)1 << 40, (size_t)1 << 55, (size_t)PTRDIFF_MAX};
    static const int ranks[] = {2, 8, 1000};

    (void)state;
    FOR_EACH_CASE(b, bytes)
    FOR_EACH_CASE(n, ranks)
    for (int func = 0; func < KL_FUNCS; func++) {
        bool parts = kl_func_info[func].send_parts || kl_func_info[func].recv_parts;
        struct kl_partition_request q = {.func = func,
                                         .nranks = *n,
                                         .count = *b / (parts ? (size_t)*n : 1) / 8,
                                         .elem_bytes = 8,
                                         .nchannels = 32,
                                         .ll = true};
        struct kl_partition partition = kl_partition_channels(&q);
        expect_all_covered_once(&q, &partition);
        expect_case(label_of(&q), partition.nchannels == 32); /* so much uses all channels */
        expect_case(label_of(&q), partition.lo <= 2 * (q.count / 32) && partition.mid <= 2 * (q.count / 32));
    }
}

/* ---- by hand, from the steps of the specification ---- */

static void cuts_are_the_specifications(void **state)
{
    static const struct {
        struct kl_partition_request q;
        struct kl_partition want;
    } cases[] = {
        /* An all-reduce: cells of 8 KiB. One cell goes to one channel, two go to two channels. */
        {{KL_FUNC_ALL_REDUCE, 4, 1, 4, 8, false}, {1, 1, 0, 0}},
        {{KL_FUNC_ALL_REDUCE, 4, 2048, 4, 8, false}, {1, 2048, 0, 0}},
        {{KL_FUNC_ALL_REDUCE, 4, 2049, 4, 8, false}, {2, 2048, 0, 1}},
        {{KL_FUNC_ALL_REDUCE, 4, 16384, 4, 8, false}, {8, 2048, 2048, 2048}},
        /* 9 cells, 8 channels: 2 for each but the last, which has 1, so 5 channels are enough */
        {{KL_FUNC_ALL_REDUCE, 4, 9 * 2048, 4, 8, false}, {5, 4096, 4096, 2048}},
        /* 1 MiB: 128 cells, 64 for each of two */
        {{KL_FUNC_ALL_REDUCE, 4, 262144, 4, 2, false}, {2, 131072, 0, 131072}},
        {{KL_FUNC_ALL_REDUCE, 4, 262144, 4, 3, false}, {3, 43 * 2048, 43 * 2048, 42 * 2048}},
        {{KL_FUNC_ALL_REDUCE, 4, 262144, 4, 1, false}, {1, 262144, 0, 0}},
        /* LL moves four times the bytes: cells of 2 KiB */
        {{KL_FUNC_ALL_REDUCE, 4, 512, 4, 8, true}, {1, 512, 0, 0}},
        {{KL_FUNC_ALL_REDUCE, 4, 513, 4, 8, true}, {2, 512, 0, 1}},
        /* a broadcast: 16 KiB */
        {{KL_FUNC_BROADCAST, 4, 16384, 1, 8, false}, {1, 16384, 0, 0}},
        {{KL_FUNC_REDUCE, 4, 16385, 1, 8, false}, {2, 16384, 0, 1}},
        /* parts travel to every rank: 16 KiB / 3, rounded up to 16 bytes, is 5,472 */
        {{KL_FUNC_ALL_GATHER, 3, 5472, 1, 4, false}, {1, 5472, 0, 0}},
        {{KL_FUNC_ALL_GATHER, 3, 5473, 1, 4, false}, {2, 5472, 0, 1}},
        {{KL_FUNC_REDUCE_SCATTER, 3, 5473, 1, 4, false}, {2, 5472, 0, 1}},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_partition partition = kl_partition_channels(&c->q);
        if (partition.nchannels != c->want.nchannels || partition.lo != c->want.lo || partition.mid != c->want.mid ||
            partition.hi != c->want.hi)
            fail_msg("%s: %d channels, %zu, %zu, %zu instead of %d, %zu, %zu, %zu", label_of(&c->q),
                     partition.nchannels, partition.lo, partition.mid, partition.hi, c->want.nchannels, c->want.lo,
                     c->want.mid, c->want.hi);
    }
}

/* ---- the specification's steps, implemented a second time ---- */

static size_t ceil_div(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Steps 1 to 7 with the cursor on the first channel and nothing used: an operation by itself. */
static struct kl_partition expected_by_rules(const struct kl_partition_request *q)
{
    size_t tpb = factor_of(q), bytes = q->count * q->elem_bytes, limit = (size_t)q->nchannels;
    size_t cell = ceil_div(ceil_div(LEAST_TRAFFIC, tpb), 16) * 16, per_cell = cell / q->elem_bytes;
    size_t cells = ceil_div(bytes, cell), traffic_cell = cell * tpb;
    size_t traffic = bytes * tpb > LEAST_TRAFFIC ? bytes * tpb : LEAST_TRAFFIC;
    size_t per_channel = traffic / limit > LEAST_TRAFFIC ? traffic / limit : LEAST_TRAFFIC;
    size_t per = ceil_div(per_channel, traffic_cell) < cells ? ceil_div(per_channel, traffic_cell) : cells;
    size_t lo = limit == 1 ? cells : per, mid = (cells - lo) / per, hi = (cells - lo) % per;

    if ((lo != 0) + mid + (hi != 0) > limit) {
        mid = limit - 2;
        per = (cells - lo) / (mid + 1);
        hi = per + (cells - lo) % (mid + 1);
    }
    if (!hi && mid) hi = per, mid--;
    struct kl_partition partition = {.lo = lo * per_cell, .mid = mid ? per * per_cell : 0, .hi = hi * per_cell};
    *(hi ? &partition.hi : &partition.lo) -= cells * per_cell - q->count;
    partition.nchannels = (int)((partition.lo != 0) + mid + (partition.hi != 0));
    return partition;
}

static void cuts_follow_the_steps_of_the_specification(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct kl_partition_request q = {.func = (int)((seed >> 33) % KL_FUNCS),
                                         .nranks = 2 + (int)((seed >> 40) % 100),
                                         .count = 1 + (seed >> 20) % ((size_t)1 << (seed >> 59)),
                                         .elem_bytes = (size_t)1 << (seed >> 30) % 4,
                                         .nchannels = 1 + (int)((seed >> 50) % 64),
                                         .ll = seed >> 32 & 1};
        struct kl_partition got = kl_partition_channels(&q), want = expected_by_rules(&q);
        if (got.nchannels != want.nchannels || got.lo != want.lo || got.mid != want.mid || got.hi != want.hi)
            fail_msg("%s: %d channels, %zu, %zu, %zu instead of %d, %zu, %zu, %zu", label_of(&q), got.nchannels, got.lo,
                     got.mid, got.hi, want.nchannels, want.lo, want.mid, want.hi);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_belongs_to_one_channel),
        cmocka_unit_test(huge_counts_are_cut_too),
        cmocka_unit_test(cuts_are_the_specifications),
        cmocka_unit_test(cuts_follow_the_steps_of_the_specification),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
