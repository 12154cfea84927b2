/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles: plain data of all protocols are read, everything else is refused with its opcode and offset. */
#include "base/error.h"
#include "logs/record/pickle.h"

#include "tests/kolo_test.h"

#include <string.h>

#define BYTES(text) (text), sizeof(text) - 1

/* ---- plain data ---- */

static const struct {
    const char *bytes;
    size_t n;
    const char *json; /* compact, keys sorted */
} plain[] = {
    {BYTES("N."), "null"},
    {BYTES("I01\n."), "true"},
    {BYTES("I-7\n."), "-7"},
    {BYTES("L123456789012L\n."), "123456789012"},
    {BYTES("F1.5\n."), "1.5"},
    {BYTES("VKolo\n."), "\"Kolo\""},
    {BYTES("(lp0\nI1\naI2\na."), "[1,2]"},
    {BYTES("(dp0\nVa\np1\nI1\ns."), "{\"a\":1}"},
    {BYTES("(VA\nI1\nVB\nI2\nd."), "{\"A\":1,\"B\":2}"},
    {BYTES("\x80\x02]q\x00(K\x01M\x00\x01J\xff\xff\xff\xff"
           "e."),
     "[1,256,-1]"},
    {BYTES("\x80\x02\x8a\x01\xfe."), "-2"},
    {BYTES("\x80\x02\x8a\x00."), "0"},
    {BYTES("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00."), "9223372036854775807"},
    {BYTES("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."), "1.5"},
    {BYTES("\x80\x02G\x7f\xf0\x00\x00\x00\x00\x00\x00."), "null"}, /* infinity */
    {BYTES("\x80\x02X\x02\x00\x00\x00hi."), "\"hi\""},
    {BYTES("\x80\x02K\x01K\x02\x86."), "[1,2]"},
    {BYTES("\x80\x02(K\x01K\x02K\x03t."), "[1,2,3]"},
    {BYTES("\x80\x02)."), "[]"},
    {BYTES("\x80\x02}K\x07\x88s."), "{\"7\":true}"}, /* a number as key */
    {BYTES("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94\x8c\x01x\x94"
           "a."),
     "[\"x\"]"},
    {BYTES("\x80\x02]q\x00(]q\x01K\x05"
           "ah\x01"
           "e."),
     "[[5],[5]]"}, /* one list, twice */
    {BYTES("\x80\x02K\x01K\x02"
           "0."),
     "1"},
    {BYTES("\x80\x02K\x03(K\x01K\x02"
           "1."),
     "3"},
    {BYTES("\x80\x02]K\x03"
           "2\x86"
           "a."),
     "[[3,3]]"},
};

static void plain_data_are_read(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, plain)
    {
        json_t *value;

        if (kl_pickle_read("p", c->bytes, c->n, &value)) fail_msg("%s: %s", c->json, kl_error_text());
        char *json = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

        assert_string_equal(json, c->json);
        free(json);
        json_decref(value);
    }
}

/* ---- everything else ---- */

static const struct {
    const char *bytes;
    size_t n;
    const char *says;
} others[] = {
    {BYTES(""), "offset 0: it ends without STOP"},
    {BYTES("\x80\x02"), "offset 2: it ends without STOP"},
    {BYTES("\x80\x06N."), "offset 0: a protocol beyond 5"},
    {BYTES("cos\nsystem\n(Vls\ntR."), "offset 0: opcode GLOBAL (0x63) is refused"},
    {BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), "offset 14: opcode STACK_GLOBAL (0x93) is refused"},
    {BYTES("\x80\x02NNR."), "offset 4: opcode REDUCE (0x52) is refused"},
    {BYTES("\x80\x02}b."), "offset 3: opcode BUILD (0x62) is refused"},
    {BYTES("\x80\x02N)\x81."), "offset 4: opcode NEWOBJ (0x81) is refused"},
    {BYTES("\x80\x02\x82\x01."), "offset 2: opcode EXT1 (0x82) is refused"},
    {BYTES("Pid\n."), "offset 0: opcode PERSID (0x50) is refused"},
    {BYTES("\x80\x03"
           "C\x01x."),
     "offset 2: opcode SHORT_BINBYTES (0x43) is refused"},
    {BYTES("\x80\x02\xff."), "offset 2: opcode unknown (0xff) is refused"},
    {BYTES("\x80\x02"
           "a."),
     "offset 2: an opcode without its operands"},
    {BYTES("\x80\x02K\x01K\x02"
           "a."),
     "offset 6: an opcode that needs a list"},
    {BYTES("\x80\x02)K\x01"
           "a."),
     NULL},
    {BYTES("\x80\x02"
           "e."),
     "offset 2: an opcode without its mark"},
    {BYTES("\x80\x02}(K\x01u."), "offset 6: a key without a value"},
    {BYTES("\x80\x02}NNs."), "offset 5: a key that is neither a text nor a number"},
    {BYTES("\x80\x02h\x00."), "offset 2: a memo entry that was never set"},
    {BYTES("\x80\x02Nr\xff\xff\xff\x7f."), "offset 3: a memo with a gap"},
    {BYTES("\x80\x02]q\x00h\x00"
           "a."),
     "offset 7: a container that contains itself"},
    {BYTES("\x80\x02]q\x00]q\x01"
           "ah\x01h\x00"
           "a."),
     "a container that changes after it became part of another one"},
    {BYTES("\x80\x02\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x01."), "offset 2: a number beyond 64 bits"},
    {BYTES("\x80\x02X\xff\x00\x00\x00hi."), "offset 2: it ends within an opcode"},
    {BYTES("\x80\x02X\x01\x00\x00\x00\xff."), "offset 2: a text that is not UTF-8"},
    {BYTES("I99999999999999999999\n."), "offset 0: a number beyond 64 bits"},
    {BYTES("(."), "offset 1: an opcode without its operands"},
};

static void others_are_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, others)
    {
        json_t *value = NULL;
        const ncclResult_t rc = kl_pickle_read("p", c->bytes, c->n, &value);

        if (!c->says) { /* the empty tuple is a container as any */
            json_decref(value);
            continue;
        }
        assert_int_equal(rc, ncclInvalidUsage);
        assert_null(value);
        if (!strstr(kl_error_text(), c->says)) fail_msg("\"%s\" instead of \"%s\"", kl_error_text(), c->says);
        assert_ptr_equal(strstr(kl_error_text(), "p: "), kl_error_text());
    }
}

/* Lists in lists, as deep as is allowed, and one more. */
static void depth_is_bounded(void **state)
{
    char bytes[2 * KL_PICKLE_DEPTH + 16];
    json_t *value;

    (void)state;
    for (int depth = KL_PICKLE_DEPTH; depth <= KL_PICKLE_DEPTH + 1; depth++) {
        memset(bytes, ']', (size_t)depth);
        memset(bytes + depth, 'a', (size_t)depth - 1);
        bytes[2 * depth - 1] = '.';
        const ncclResult_t rc = kl_pickle_read("p", bytes, (size_t)(2 * depth), &value);

        assert_int_equal(rc, depth > KL_PICKLE_DEPTH ? ncclInvalidUsage : ncclSuccess);
        json_decref(value);
    }
}

/* Dictionaries one after the other, each dropped, as many as are allowed, and one more. */
static void containers_are_bounded(void **state)
{
    const size_t most = KL_PICKLE_CONTAINERS;
    char *bytes = malloc(2 * most + 2);
    json_t *value;

    (void)state;
    for (size_t i = 0; i < most; i++) memcpy(bytes + 2 * i, "}0", 2);
    bytes[2 * most - 1] = '.';
    assert_int_equal(kl_pickle_read("p", bytes, 2 * most, &value), ncclSuccess);
    json_decref(value);
    memcpy(bytes + 2 * most - 1, "0}.", 3);
    assert_int_equal(kl_pickle_read("p", bytes, 2 * most + 2, &value), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "more lists and dictionaries than 2^20"));
    free(bytes);
}

/* Every beginning of a pickle is refused, not read beyond. */
static void beginnings_are_refused(void **state)
{
    static const char whole[] = "\x80\x02}q\x00(X\x01\x00\x00\x00"
                                "aq\x01]q\x02(K\x01J\x00\x00\x01\x00\x8a\x01\x05"
                                "eX\x01\x00\x00\x00"
                                "bh\x02u.";
    json_t *value;

    (void)state;
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        char *copy = malloc(n + 1);

        memcpy(copy, whole, n);
        assert_int_equal(kl_pickle_read("p", copy, n, &value), ncclInvalidUsage);
        free(copy);
    }
    assert_int_equal(kl_pickle_read("p", whole, sizeof whole - 1, &value), ncclSuccess);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_data_are_read),    cmocka_unit_test(others_are_refused),
        cmocka_unit_test(depth_is_bounded),       cmocka_unit_test(containers_are_bounded),
        cmocka_unit_test(beginnings_are_refused),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
