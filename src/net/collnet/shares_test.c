/* SPDX-License-Identifier: Apache-2.0 */
#include "net/collnet/shares.h"

#include "tests/kolo_test.h"

static const size_t counts[] = {0, 1, 2, 63, 64, 4095, 4096, 4097, 8191, 8192, 12289, 65536, 100003, 1 << 20};

/* Every element is assigned to one member, and no share is larger than announced. */
static void all_is_shared_out_once(void **state)
{
    (void)state;
    FOR_EACH_CASE(count, counts)
    for (size_t elem = 1; elem <= 8; elem *= 2)
        for (int n = 1; n <= 9; n++)
            for (uint64_t turn = 0; turn < 10; turn++) {
                struct kl_shares s = kl_shares_of(*count, elem, n, turn);
                size_t all = 0;

                for (int i = 0; i < n; i++) {
                    struct kl_share_range r = kl_share_of(&s, (int)(turn % (uint64_t)n + (uint64_t)i) % n);

                    assert_true(r.count <= s.each && r.first + r.count <= *count);
                    if (r.count) assert_int_equal(r.first, all);
                    all += r.count;
                }
                assert_int_equal(all, *count);
                assert_int_equal(s.each * elem % KL_SHARE_GRAIN, 0);
            }
}

/* Small data: one member for all of it, a different one each time. Large data: equal shares, except for a few lines. */
static void little_has_one_owner_and_much_has_all(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++)
        for (int turn = 0; turn < 2 * n; turn++) {
            struct kl_shares little = kl_shares_of(1000, 4, n, (uint64_t)turn), much = kl_shares_of(1 << 20, 4, n, 3);

            for (int m = 0; m < n; m++) {
                size_t fair = (1 << 20) / (size_t)n, own = kl_share_of(&much, m).count;

                assert_int_equal(kl_share_of(&little, m).count, m == turn % n ? 1000 : 0);
                assert_true(own >= fair - (size_t)n * 16 && own <= fair + 16);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_shared_out_once),
        cmocka_unit_test(little_has_one_owner_and_much_has_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
