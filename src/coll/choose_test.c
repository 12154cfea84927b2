/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/choose.h"

#include "tests/kolo_test.h"

static void filters_leave_what_is_implemented_or_fail(void **state)
{
    static const struct {
        const char *algo, *proto;
        ncclResult_t rc;
    } cases[] = {
        {"", "", ncclSuccess},
        {"Ring", "", ncclSuccess},
        {"tree,RING", "simple", ncclSuccess},
        {"tree", "", ncclInvalidUsage},
        {"^tree", "^LL", ncclSuccess},
        {"^ring", "", ncclInvalidUsage},
        {"", "LL,LL128", ncclInvalidUsage},
        {"", "LL,Simple", ncclSuccess},
        {"allreduce:tree,ring;broadcast:ring", "", ncclSuccess},
        {"allreduce:tree;broadcast:ring", "", ncclInvalidUsage},
        {"rings", "", ncclInvalidUsage},
    };

    (void)state;
    FOR_EACH_CASE(c, cases) expect_case(*c->algo ? c->algo : c->proto, kl_choose_check(c->algo, c->proto) == c->rc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(filters_leave_what_is_implemented_or_fail)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
