/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/signature.h"

#include "tests/kolo_test.h"

static struct kl_call allreduce(size_t count, uint64_t number)
{
    return kl_call_of(KL_FUNC_ALL_REDUCE, ncclFloat32, ncclSum, 0, count, number);
}

static struct kl_call broadcast(int root, size_t count, uint64_t number)
{
    return kl_call_of(KL_FUNC_BROADCAST, ncclFloat32, ncclSum, root, count, number);
}

/* ---- signatures ---- */

static void every_field_makes_another_signature(void **state)
{
    const struct kl_call calls[] = {
        allreduce(1000, 17),
        allreduce(999, 17),
        allreduce(0, 17),
        allreduce((size_t)1 << 63, 17),
        allreduce(1000, 18),
        kl_call_of(KL_FUNC_ALL_REDUCE, ncclInt32, ncclSum, 0, 1000, 17),
        kl_call_of(KL_FUNC_ALL_REDUCE, ncclFloat8e5m2, ncclSum, 0, 1000, 17),
        kl_call_of(KL_FUNC_ALL_REDUCE, ncclFloat32, ncclAvg, 0, 1000, 17),
        kl_call_of(KL_FUNC_ALL_REDUCE, ncclFloat32, KL_CALL_USER_OP, 0, 1000, 17),
        kl_call_of(KL_FUNC_REDUCE, ncclFloat32, ncclSum, 0, 1000, 17),
        kl_call_of(KL_FUNC_REDUCE, ncclFloat32, ncclSum, 1, 1000, 17),
        kl_call_of(KL_FUNC_REDUCE, ncclFloat32, ncclSum, (1 << 24) - 1, 1000, 17),
        broadcast(0, 1000, 17),
    };

    (void)state;
    FOR_EACH_CASE(a, calls)
    FOR_EACH_CASE(b, calls)
    {
        if (a != b) assert_int_not_equal(kl_call_signature(a), kl_call_signature(b));
        if (a != b) assert_int_not_equal(kl_call_short(kl_call_signature(a)), kl_call_short(kl_call_signature(b)));
    }
}

static void messages_say_type_and_count(void **state)
{
    char text[KL_CALL_TEXT];

    (void)state;
    assert_int_not_equal(kl_message_signature(ncclInt8, 1), kl_message_signature(ncclUint8, 1));
    assert_int_not_equal(kl_message_signature(ncclInt8, 1), kl_message_signature(ncclInt8, 2));
    assert_string_equal(kl_message_differs(kl_message_signature(ncclFloat32, 500), 1,
                                           kl_message_signature(ncclFloat8e5m2, (size_t)1 << 40), text),
                        "rank 1 sends 500 float where 1099511627776 f8e5m2 are received");
    assert_string_equal(
        kl_message_differs(~(uint64_t)0, 1, kl_message_signature(ncclInt8, 1), text), /* not a valid count */
        "rank 1 sends 72057594037927935 an unknown type where 1 int8 are received");
}

static void calls_are_named(void **state)
{
    const struct {
        struct kl_call call;
        const char *text;
    } cases[] = {
        {allreduce(1000, 17), "AllReduce #17 of 1000 float (sum)"},
        {broadcast(3, 8, 1), "Broadcast #1 of 8 float with root 3"},
        {kl_call_of(KL_FUNC_REDUCE, ncclInt64, ncclMax, 2, 0, 5), "Reduce #5 of 0 int64 (max) with root 2"},
        {kl_call_of(KL_FUNC_ALL_GATHER, ncclBfloat16, 0, 0, 7, 2), "AllGather #2 of 7 bfloat16"},
        {kl_call_of(KL_FUNC_ALL_REDUCE, ncclInt8, KL_CALL_USER_OP, 0, 7, 2),
         "AllReduce #2 of 7 int8 (an operator of its own)"},
        {kl_call_of(KL_FUNC_ALL_REDUCE, ncclInt8, KL_CALL_BITS_OP + 5, 0, 7, 2),
         "AllReduce #2 of 7 int8 (logical xor)"},
        {kl_call_of(KL_FUNC_SEND, ncclInt8, 0, 3, 7, 0), "Send of 7 int8 to rank 3"},
        {kl_call_of(KL_FUNC_RECV, ncclInt8, 0, 4, 7, 0), "Recv of 7 int8 from rank 4"},
        {{~(uint64_t)0, ~(uint64_t)0},
         "an unknown function of 18446744073709551615 an unknown type with configuration 1ff"},
    };
    char text[KL_CALL_TEXT];

    (void)state;
    FOR_EACH_CASE(c, cases) assert_string_equal(kl_call_text(c->call, 5, text), c->text);
}

/* A call holds 24 bits of it. */
static void numbers_are_told_whole(void **state)
{
    const uint64_t range = (uint64_t)1 << KL_CALL_NUMBER_BITS;
    const struct {
        uint64_t number, near;
    } cases[] = {
        {range + 15, range + 15},
        {range + 15, range + 10},
        {range - 2, range + 3},
        {range + 3, range - 2},
        {5 * range - 1, 5 * range + 99},
        {((uint64_t)1 << 40) + 7, (uint64_t)1 << 40},
        {range - 1, 1},
        {1, range / 2 - 1},
    };
    char text[KL_CALL_TEXT], want[64];

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        snprintf(want, sizeof want, "Broadcast #%llu of 8 float with root 1", (unsigned long long)c->number);
        assert_string_equal(kl_call_text(broadcast(1, 8, c->number), c->near, text), want);
    }
    const struct kl_called differ[] = {{allreduce(8, range + 15), true}, {broadcast(1, 8, range + 15), true}};
    int culprit;
    assert_true(kl_call_verdict(differ, 2, range + 15, text, sizeof text, &culprit));
    assert_non_null(strstr(text, " as #16777231 where "));
}

/* ---- verdicts ---- */

static void verdicts_name_the_odd_one_and_what_differs(void **state)
{
    const struct kl_call a = allreduce(1000, 17), b = broadcast(1, 1000, 17);
    const struct {
        struct kl_call call[4]; /* `what` 0: not known */
        int n, culprit;
        const char *text; /* NULL: they are the same */
    } cases[] = {
        {{a, a, a, a}, 4, 0, NULL},
        {{a, {0, 0}, a, {0, 0}}, 4, 0, NULL},
        {{{0, 0}}, 4, 0, NULL},
        {{a, a, a, b}, 4, 3, "rank 3 called Broadcast(root 1) as #17 where the others called AllReduce"},
        {{a, b, {0, 0}, a}, 4, 1, "rank 1 called Broadcast(root 1) as #17 where ranks 0 and 3 called AllReduce"},
        {{a, b}, 2, 1, "rank 1 called Broadcast(root 1) as #17 where rank 0 called AllReduce"},
        {{b, a, a}, 3, 0, "rank 0 called Broadcast(root 1) as #17 where the others called AllReduce"},
        {{a, allreduce(999, 17), a},
         3,
         1,
         "rank 1 called AllReduce(999 elements) as #17 where the others called AllReduce(1000 elements)"},
        {{a, allreduce(1, 17), a},
         3,
         1,
         "rank 1 called AllReduce(1 element) as #17 where the others called AllReduce(1000 elements)"},
        {{a, a, kl_call_of(KL_FUNC_ALL_REDUCE, ncclInt32, ncclSum, 0, 1000, 17)},
         3,
         2,
         "rank 2 called AllReduce(int32) as #17 where the others called AllReduce(float)"},
        {{a, a, kl_call_of(KL_FUNC_ALL_REDUCE, ncclInt32, ncclMax, 0, 5, 17)},
         3,
         2,
         "rank 2 called AllReduce(max, int32, 5 elements) as #17 where the others called AllReduce(sum, float, 1000 "
         "elements)"},
        {{broadcast(0, 8, 17), b, broadcast(0, 8, 17)},
         3,
         1,
         "rank 1 called Broadcast(root 1, 1000 elements) as #17 where the others called Broadcast(root 0, 8 elements)"},
        {{a, allreduce(5, 17), a, b},
         4,
         1,
         "rank 1 called AllReduce(5 elements); rank 3 called Broadcast(root 1) as #17 where the others called "
         "AllReduce(1000 elements)"},
    };
    char text[512];

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_called by_rank[4];
        int culprit = -1;
        for (int r = 0; r < c->n; r++) by_rank[r] = (struct kl_called){c->call[r], c->call[r].what != 0};
        bool differ = kl_call_verdict(by_rank, c->n, 17, text, sizeof text, &culprit);
        assert_int_equal(differ, c->text != NULL);
        if (!differ) continue;
        assert_string_equal(text, c->text);
        assert_int_equal(culprit, c->culprit);
    }
}

/* Many are counted, not listed, and a text that is too short is cut. */
static void verdicts_of_many_ranks_stay_short(void **state)
{
    struct kl_called by_rank[1000];
    char text[512], little[24];
    int culprit;

    (void)state;
    for (int r = 0; r < 1000; r++) by_rank[r] = (struct kl_called){allreduce(r % 2 ? 8 : 9, 3), r != 999};
    by_rank[500].call = allreduce(8, 3);
    assert_true(kl_call_verdict(by_rank, 1000, 3, text, sizeof text, &culprit));
    assert_string_equal(text,
                        "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 491 more called AllReduce(9 elements) as #3 where ranks "
                        "1, 3, 5, 7, 9, 11, 13, 15 and 492 more called AllReduce(8 elements)");
    for (int r = 0; r < 1000; r++) by_rank[r].call = allreduce((size_t)r, 3);
    assert_true(kl_call_verdict(by_rank, 1000, 3, text, sizeof text, &culprit));
    assert_true(kl_call_verdict(by_rank, 1000, 3, little, sizeof little, &culprit));
    assert_int_equal(strlen(little), sizeof little - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_makes_another_signature),
        cmocka_unit_test(messages_say_type_and_count),
        cmocka_unit_test(calls_are_named),
        cmocka_unit_test(numbers_are_told_whole),
        cmocka_unit_test(verdicts_name_the_odd_one_and_what_differs),
        cmocka_unit_test(verdicts_of_many_ranks_stay_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
