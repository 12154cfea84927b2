/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/perf_expected.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 20, RANKS = 37 };

static void users_of_one_reduction_share_it(void **state)
{
    const struct kl_data_table *sum = kl_expected_get(ncclFloat, ncclSum, RANKS);
    const struct kl_data_table *again = kl_expected_get(ncclFloat, ncclSum, RANKS);
    const struct kl_data_table *max = kl_expected_get(ncclFloat, ncclMax, RANKS);
    const struct kl_data_table *fewer = kl_expected_get(ncclFloat, ncclSum, RANKS - 1);
    const struct kl_data_table *doubles = kl_expected_get(ncclDouble, ncclSum, RANKS);
    struct kl_data_table alone;

    (void)state;
    assert_ptr_equal(sum, again);
    assert_ptr_not_equal(sum, max);
    assert_ptr_not_equal(sum, fewer);
    assert_ptr_not_equal(sum, doubles);
    kl_expected_put(sum);
    assert_int_equal(kl_data_reduced(&alone, ncclFloat, ncclSum, RANKS), 0);
    assert_memory_equal(again->element, alone.element, KL_DATA_TABLE * sizeof(float)); /* still held */
    kl_data_free(&alone);
    kl_expected_put(again);
    kl_expected_put(max);
    kl_expected_put(fewer);
    kl_expected_put(doubles);
    kl_expected_put(NULL);
}

static char thread_failed[] = "out of memory";

static void *use(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        const struct kl_data_table *t = kl_expected_get(ncclInt32, i & 1 ? ncclMin : ncclMax, RANKS);
        if (!t) return thread_failed;
        kl_expected_put(t);
    }
    return NULL;
}

static void threads_come_and_go(void **state)
{
    pthread_t thread[THREADS];
    void *failed;

    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, use, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_of_one_reduction_share_it),
        cmocka_unit_test(threads_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
