/* SPDX-License-Identifier: Apache-2.0 */
/* The double of NCCL's RAS service: its bytes, and the faults of a script. */
#include "answer/ras_nccl.h"
#include "base/error.h"

#include "tests/kolo_test.h"

#include <string.h>

static const char report[] =
    "{\"nccl_version\":\"2.32.3\",\"cuda_runtime_version\":13040,\"cuda_driver_version\":13000,\"communicators\":["
    "{\"hash\":\"0xabc\",\"secondary_hash\":\"0x1:0x2\",\"size\":2,\"ranks\":["
    "{\"rank\":0,\"host\":\"h0\",\"pid\":11,\"cuda_dev\":0,\"nvml_dev\":0,\"status\":{\"init_state\":0,\"async_error\":"
    "0,"
    "\"finalize_called\":false,\"destroy_flag\":false,\"abort_flag\":false},\"collective_counts\":{\"AllReduce\":7}},"
    "{\"rank\":1,\"host\":\"h1\",\"pid\":12,\"cuda_dev\":1,\"nvml_dev\":1,\"status\":{},\"collective_counts\":"
    "{\"AllReduce\":7,\"AllGather\":2}}],\"missing_ranks\":[]}],\"ras\":{\"collection_time_sec\":0.0015,\"timeouts_"
    "count\":0}}";

static char *printed(const struct kl_ras_fault *fault, int n)
{
    json_t *o = json_loads(report, 0, NULL);
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    assert_non_null(o);
    assert_int_equal(kl_ras_nccl_print(o, fault, n, 0, to), ncclSuccess);
    fclose(to);
    json_decref(o);
    return text;
}

static void bytes_are_those_of_nccl(void **state)
{
    static const char head[] = "{\n  \"nccl_version\": \"2.32.3\",\n  \"cuda_runtime_version\": 13040,\n"
                               "  \"cuda_driver_version\": 13000,\n  \"timestamp\": \"";
    static const char rest[] =
        "\",\n  \"communicators_count\": 1,\n  \"communicators\": [\n    {\n      \"hash\": \"0xabc\",\n"
        "      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": 2,\n      \"ranks_count\": 1,\n"
        "      \"missing_ranks_count\": 1,\n      \"ranks\": [\n        {\n          \"rank\": 0,\n          \"host\": "
        "\"h0\",\n"
        "          \"pid\": 11,\n          \"cuda_dev\": 0,\n          \"nvml_dev\": 0,\n          \"status\": {\n"
        "            \"init_state\": 0,\n            \"async_error\": 0,\n            \"finalize_called\": false,\n"
        "            \"destroy_flag\": false,\n            \"abort_flag\": false\n          },\n"
        "          \"collective_counts\": {\n            \"Broadcast\": 0,\n            \"Reduce\": 0,\n"
        "            \"AllGather\": 0,\n            \"ReduceScatter\": 0,\n            \"AllReduce\": 7\n          }\n"
        "        }\n      ],\n      \"missing_ranks\": [\n        {\n          \"rank\": 1,\n          \"host\": "
        "\"h1\",\n"
        "          \"pid\": 12,\n          \"cuda_dev\": 1,\n          \"nvml_dev\": 1,\n          \"status\": {\n"
        "            \"unresponsive\": false,\n            \"considered_dead\": true\n          }\n        }\n      "
        "]\n    }\n"
        "  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.002,\n    \"timeouts_count\": 0\n  }\n}\n";
    const struct kl_ras_fault dead = {1, KL_RAS_DEAD, 0};
    char *text = printed(&dead, 1);
    const char *after = strstr(text, "\",\n  \"communicators_count\"");

    (void)state;
    assert_memory_equal(text, head, sizeof head - 1);
    assert_non_null(after);
    assert_string_equal(after, rest);
    free(text);
}

static void faults_show(void **state)
{
    static const struct {
        const char *fault, *shows;
    } cases[] = {
        {"0=dead", "\"considered_dead\": true"}, {"0=unresponsive", "\"unresponsive\": true"},
        {"0=behind:3", "\"AllReduce\": 4"},      {"0=behind", "\"AllReduce\": 6"},
        {"0=behind:99", "\"AllReduce\": 0"},     {"0=init", "\"init_state\": 7"},
        {"0=error", "\"async_error\": 6"},       {"0=error:2", "\"async_error\": 2"},
        {"0=abort", "\"abort_flag\": true"},     {"0=finalize", "\"finalize_called\": true"},
        {"1=destroy", "\"destroy_flag\": true"},
    };

    (void)state;
    char *sound = printed(NULL, 0);

    FOR_EACH_CASE(c, cases)
    {
        struct kl_ras_fault fault;

        assert_int_equal(kl_ras_fault_read(c->fault, &fault), ncclSuccess);
        char *text = printed(&fault, 1);

        if (!strstr(text, c->shows) || strstr(sound, c->shows)) fail_msg("%s does not show %s", c->fault, c->shows);
        free(text);
    }
    free(sound);
}

static void wrong_faults_are_refused(void **state)
{
    static const char *const cases[] = {"",   "dead",   "=dead",    "x=dead",    "-1=dead",
                                        "0=", "0=deaf", "0=dead:1", "0=error:x", "0=behind:"};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_ras_fault fault;

        assert_int_equal(kl_ras_fault_read(*c, &fault), ncclInvalidArgument);
    }
}

static void faults_are_of_ranks_that_exist(void **state)
{
    const struct kl_ras_fault fault[] = {{1, KL_RAS_DEAD, 0}, {2, KL_RAS_DEAD, 0}};
    json_t *o = json_loads(report, 0, NULL);

    (void)state;
    assert_int_equal(kl_ras_faults_check(o, fault, 1), ncclSuccess);
    assert_int_equal(kl_ras_faults_check(o, fault, 2), ncclInvalidArgument);
    assert_non_null(strstr(kl_error_text(), "rank 2"));
    json_decref(o);
}

static void another_document_is_refused(void **state)
{
    json_t *o = json_object();

    (void)state;
    assert_int_equal(kl_ras_nccl_print(o, NULL, 0, 0, stdout), ncclInvalidUsage);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_nccl),     cmocka_unit_test(faults_show),
        cmocka_unit_test(wrong_faults_are_refused),    cmocka_unit_test(faults_are_of_ranks_that_exist),
        cmocka_unit_test(another_document_is_refused),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
