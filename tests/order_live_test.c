/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's sums of floats have the bits that the order of summation predicts (plan/order.h), element by element: rings and trees of 4
 * and 8 ranks, low-latency and simple. It follows the release whose cutting the library uses.
 */
#include "base/error.h"
#include "device/host/redop.h"
#include "plan/order.h"
#include "tests/api_check.h"
#include "tests/hang.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 8 };

/* Of very different sizes, so that the order of additions shows. */
static float contribution(int rank, size_t i)
{
    uint64_t x = ((uint64_t)rank << 32 | i) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return (float)ldexp((double)(int64_t)x, (int)(x & 15) - 62);
}

static float evaluate(const struct kl_order_sums *s, int sum, size_t i)
{
    const struct kl_order_term *t = &s->term[sum];

    return t->leaf == KL_LEAF_RANK ? contribution(t->left, i) : evaluate(s, t->left, i) + evaluate(s, t->right, i);
}

/* ---- the prediction ---- */

static void predict(int nranks, size_t count, float *result, struct kl_order *order, struct kl_order_sums *sums)
{
    struct kl_cluster_request request = {.ranks = nranks, .constants = &kl_tuning_host, .gpus = NULL};
    const struct kl_order_request asked = {.func = KL_FUNC_ALL_REDUCE,
                                           .type = ncclFloat,
                                           .op = ncclSum,
                                           .bytes = (int64_t)(count * sizeof(float)),
                                           .first = 1,
                                           .last = 1 << 20};
    struct kl_cluster cluster;
    struct kl_planned planned;

    ok(kl_cluster_open(&request, &cluster));
    ok(kl_planned_init(&cluster, &planned));
    ok(kl_order_find(&asked, &cluster, &planned, sums, order));
    for (int i = 0; i < order->ranges.n; i++) {
        const struct kl_order_range *r = &order->ranges.range[i];

        for (int64_t k = r->first; k < r->first + r->count; k++) result[k] = evaluate(sums, r->sum, (size_t)k);
    }
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
}

/* ---- the job ---- */

static void run(int nranks, size_t count, float *result)
{
    ncclComm_t comm[MOST_RANKS];
    float *buffer[MOST_RANKS];

    ok(ncclCommInitAll(comm, nranks, NULL));
    for (int r = 0; r < nranks; r++) {
        buffer[r] = malloc(count * sizeof *buffer[r]);
        assert_non_null(buffer[r]);
        for (size_t i = 0; i < count; i++) buffer[r][i] = contribution(r, i);
    }
    ok(ncclGroupStart());
    for (int r = 0; r < nranks; r++) ok(ncclAllReduce(buffer[r], buffer[r], count, ncclFloat, ncclSum, comm[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < nranks; r++) {
        ok(koloSetDevice(r));
        ok(koloStreamSynchronize(NULL));
    }
    memcpy(result, buffer[0], count * sizeof *result);
    for (int r = 0; r < nranks; r++) {
        assert_memory_equal(buffer[r], result, count * sizeof *result);
        free(buffer[r]);
    }
    for (int r = 0; r < nranks; r++) ok(ncclCommDestroy(comm[r]));
}

/* How many elements have other bits than the sum in the order of ranks: the data do tell orders apart. */
static size_t unlike_loop(int nranks, size_t count, const float *result)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        float sum = contribution(0, i);

        for (int r = 1; r < nranks; r++) sum += contribution(r, i);
        n += sum != result[i];
    }
    return n;
}

static void expect_predicted(const char *algo, const char *proto, int nranks, size_t count)
{
    float *predicted = calloc(count, sizeof *predicted), *result = calloc(count, sizeof *result);
    struct kl_order_sums sums = {.nterms = 0};
    struct kl_order order;
    size_t wrong = 0;

    assert_true(predicted && result);
    setenv("NCCL_ALGO", algo, 1);
    setenv("NCCL_PROTO", proto, 1);
    predict(nranks, count, predicted, &order, &sums);
    run(nranks, count, result);
    for (size_t i = 0; i < count; i++) wrong += memcmp(&predicted[i], &result[i], sizeof *result) != 0;
    if (wrong)
        fail_msg("%s %s, %d ranks, %zu elements on %d channels: %zu have other bits than predicted", algo, proto,
                 nranks, count, order.op->last_channel + 1, wrong);
    assert_in_range(unlike_loop(nranks, count, result), count / 20, count);
    kl_order_fini(&order);
    kl_order_sums_fini(&sums);
    free(predicted);
    free(result);
}

static void jobs_add_as_predicted(void **state)
{
    static const char *const protos[] = {"LL", "Simple"};
    static const size_t counts[] = {1000, 1001, 4096, 10007};

    (void)state;
    FOR_EACH_CASE(proto, protos)
    FOR_EACH_CASE(count, counts)
    for (int nranks = 4; nranks <= MOST_RANKS; nranks *= 2) {
        expect_predicted("Ring", *proto, nranks, *count);
        expect_predicted("Tree", *proto, nranks, *count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_add_as_predicted)};

    setenv("KOLO_NCCL_VERSION", "2.26.3", 1);
    alarm(kolo_test_hang_s());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
