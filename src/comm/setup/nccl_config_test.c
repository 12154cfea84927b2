/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/nccl_config.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stddef.h>

/* As 2.32.3 has it, field by field; a program of an older version passes a prefix of it. */
struct newest {
    size_t size;
    unsigned magic, version;
    int blocking, cga, min_ctas, max_ctas;
    const char *net;
    int split_share, traffic_class;
    const char *name;
    int collnet, policy, shrink_share, nvls, per_net_peer, centric, graph_usage, rma, p2p_peers, ordering;
    int launch_order, signals, eager, cft, nvls_mode;
};

static struct newest filled(size_t size, unsigned version)
{
    return (struct newest){size, 0xcafebeef, version, 0, 2, 3, 5, "Socket", 1, 7, "mine", 1, 2,
                           1,    9,          4,       1, 1, 6, 8, 0,        1, 5, 1,      3, 1};
}

/* The bytes behind its size, and the fields that its version lacks, are garbage that no rule would allow. */
static struct newest spoilt(size_t size, unsigned version, size_t known)
{
    struct newest c = filled(size, version);

    memset((char *)&c + known, 0x5a, sizeof c - known);
    return c;
}

static ncclResult_t read(const struct newest *c, struct kl_nccl_config *nccl_config)
{
    return kl_nccl_config_read((const ncclConfig_t *)(const void *)c, "test", nccl_config);
}

#define U NCCL_CONFIG_UNDEF_INT

static const struct version_case {
    const char *label;
    size_t size;
    unsigned version;
    size_t known; /* bytes that this version filled */
    int blocking, cga, traffic, policy, centric, rma, peers, ordering;
    const char *net, *name;
    int signals, nvls_mode; /* 0: undefined */
} version_cases[] = {
    {"2.13, 24 bytes", 24, 21300, 16, U, U, U, U, U, U, U, U, "", "", 0, 0},
    {"2.14, 24 bytes", 24, 21400, 20, 0, U, U, U, U, U, U, U, "", "", 0, 0},
    {"2.17, 40 bytes", 40, 21701, 40, 0, 2, U, U, U, U, U, U, "Socket", "", 0, 0},
    {"2.18, 48 bytes", 48, 21805, 44, 0, 2, U, U, U, U, U, U, "Socket", "", 0, 0},
    {"2.26, 48 bytes", 48, 22602, 48, 0, 2, 7, U, U, U, U, U, "Socket", "", 0, 0},
    {"2.27, 72 bytes", 72, 22705, 72, 0, 2, 7, 2, U, U, U, U, "Socket", "mine", 0, 0},
    {"2.28, 80 bytes", 80, 22809, 80, 0, 2, 7, 2, 1, U, U, U, "Socket", "mine", 0, 0},
    {"2.29, 88 bytes", 88, 22907, 88, 0, 2, 7, 2, 1, 6, U, U, "Socket", "mine", 0, 0},
    {"2.30.3, 96 bytes", 96, 23003, 92, 0, 2, 7, 2, 1, 6, 8, U, "Socket", "mine", 0, 0},
    {"2.30.7, 96 bytes", 96, 23007, 96, 0, 2, 7, 2, 1, 6, 8, 0, "Socket", "mine", 0, 0},
    {"2.31, 112 bytes", 112, 23100, 108, 0, 2, 7, 2, 1, 6, 8, 0, "Socket", "mine", 5, 0},
    {"2.32, 120 bytes", 120, 23203, 116, 0, 2, 7, 2, 1, 6, 8, 0, "Socket", "mine", 5, 1},
    {"2.40, 160 bytes", 160, 24000, 116, 0, 2, 7, 2, 1, 6, 8, 0, "Socket", "mine", 5, 1},
    {"a large size of an old version", 96, 21400, 20, 0, U, U, U, U, U, U, U, "", "", 0, 0},
    {"a small size of a new version", 40, 23007, 40, 0, 2, U, U, U, U, U, U, "Socket", "", 0, 0},
};

static void every_version_is_read_as_far_as_it_goes(void **state)
{
    (void)state;
    FOR_EACH_CASE(v, version_cases)
    {
        struct newest c = spoilt(v->size, v->version, v->known);
        struct kl_nccl_config w;

        expect_case(v->label, read(&c, &w) == ncclSuccess);
        expect_case(v->label, w.blocking == v->blocking && w.cga_cluster == v->cga && w.traffic_class == v->traffic);
        expect_case(v->label, w.cta_policy == v->policy && w.nvlink_centric == v->centric);
        expect_case(v->label, w.rma_contexts == v->rma && w.p2p_peers == v->peers && w.graph_ordering == v->ordering);
        expect_case(v->label, kl_nccl_config_or(w.rma_signals, 0) == v->signals &&
                                  kl_nccl_config_or(w.nvls_mode, 0) == v->nvls_mode);
        expect_case(v->label, kl_nccl_config_forbids_nvls(&w) == (v->nvls_mode == 1));
        expect_case(v->label, !strcmp(w.net, v->net) && !strcmp(w.name, v->name));
    }
}

static void undefined_fields_stay_undefined(void **state)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct kl_nccl_config w;

    (void)state;
    assert_int_equal(kl_nccl_config_read(&config, "test", &w), ncclSuccess);
    assert_memory_equal(&w, &kl_nccl_config_unset, sizeof w);
    memset(&w, 1, sizeof w);
    assert_int_equal(kl_nccl_config_read(NULL, "test", &w), ncclSuccess);
    assert_memory_equal(&w, &kl_nccl_config_unset, sizeof w);
}

static const struct value_case {
    const char *words; /* "": it is allowed */
    size_t at;
    int value;
} value_cases[] = {
#define AT(field) offsetof(struct newest, field)
    {"blocking is 2", AT(blocking), 2},
    {"blocking is -1", AT(blocking), -1},
    {"", AT(cga), 0},
    {"", AT(cga), 9},
    {"cgaClusterSize is -1", AT(cga), -1},
    {"minCTAs is 0", AT(min_ctas), 0},
    {"minCTAs 6 of the configuration exceeds maxCTAs 5", AT(min_ctas), 6},
    {"", AT(min_ctas), U},
    {"", AT(max_ctas), U}, /* only minCTAs is set */
    {"maxCTAs is -3", AT(max_ctas), -3},
    {"splitShare is 2", AT(split_share), 2},
    {"", AT(traffic_class), -1},
    {"collnetEnable is 2", AT(collnet), 2},
    {"CTAPolicy is 4", AT(policy), 4},
    {"shrinkShare is -1", AT(shrink_share), -1},
    {"nvlsCTAs is 0", AT(nvls), 0},
    {"nChannelsPerNetPeer is 65", AT(per_net_peer), 65},
    {"nvlinkCentricSched is 3", AT(centric), 3},
    {"graphUsageMode is 3", AT(graph_usage), 3},
    {"numRmaCtx is 0", AT(rma), 0},
    {"maxP2pPeers is 0", AT(p2p_peers), 0},
    {"graphStreamOrdering is 2", AT(ordering), 2},
    {"launchOrderImplicit is 2", AT(launch_order), 2},
    {"numRmaSig is 0", AT(signals), 0},
    {"numRmaSig is 1025", AT(signals), 1025},
    {"rmaEagerInit is 2", AT(eager), 2},
    {"hostCftMode is 4", AT(cft), 4},
    {"", AT(cft), ncclHostCftDisable},
    {"nvlsHostMode is 4", AT(nvls_mode), 4},
    {"nvlsHostMode is -1", AT(nvls_mode), -1},
    {"", AT(nvls_mode), ncclNvlsHostModeDisable},
#undef AT
};

static void wrong_values_are_refused_by_name(void **state)
{
    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(v, value_cases)
    {
        struct newest c = filled(sizeof c, 23203);
        struct kl_nccl_config w;

        memcpy((char *)&c + v->at, &v->value, sizeof v->value);
        ncclResult_t rc = read(&c, &w);
        expect_case(v->words, rc == (*v->words ? ncclInvalidArgument : ncclSuccess));
        expect_case(v->words, !*v->words || strstr(kl_error_text(), v->words));
    }
    kl_error_quiet(0);
}

static void invalid_configurations_are_refused(void **state)
{
    struct newest c = filled(sizeof c, 23203);
    char longest[100];
    struct kl_nccl_config w;

    (void)state;
    kl_error_quiet(1);
    c.magic = 0xdeadbeef;
    assert_int_equal(read(&c, &w), ncclInvalidArgument);
    assert_non_null(strstr(kl_error_text(), "NCCL_CONFIG_INITIALIZER"));
    c = filled(8, 23203);
    assert_int_equal(read(&c, &w), ncclInvalidArgument);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    c = filled(sizeof c, 23203);
    c.name = longest;
    assert_int_equal(read(&c, &w), ncclInvalidArgument);
    assert_non_null(strstr(kl_error_text(), "commName"));
    kl_error_quiet(0);
}

static void counted_fabric_writes_are_refused_with_the_remedy(void **state)
{
    struct newest c = filled(sizeof c, 23203);
    struct kl_nccl_config w;

    (void)state;
    kl_error_quiet(1);
    c.cft = ncclHostCftEnable;
    assert_int_equal(read(&c, &w), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "ncclHostCftFallback"));
    kl_error_quiet(0);
}

static void count_alike(void *ctx, const char *name, const char *value)
{
    static const char *const expected[][2] = {{"minCTAs of the configuration", "3"},
                                              {"maxCTAs of the configuration", "5"},
                                              {"collnetEnable of the configuration", "1"},
                                              {"nvlsCTAs of the configuration", "9"},
                                              {"nChannelsPerNetPeer of the configuration", ""},
                                              {"numRmaSig of the configuration", "5"},
                                              {"hostCftMode of the configuration", "3"},
                                              {"nvlsHostMode of the configuration", "1"}};
    int *n = ctx;

    assert_true(*n < 8);
    assert_string_equal(name, expected[*n][0]);
    assert_string_equal(value, expected[*n][1]);
    ++*n;
}

static void channel_fields_have_to_be_alike(void **state)
{
    struct newest c = filled(sizeof c, 23203);
    struct kl_nccl_config w;
    int n = 0;

    (void)state;
    c.per_net_peer = U;
    assert_int_equal(read(&c, &w), ncclSuccess);
    kl_nccl_config_visit_alike(&w, count_alike, &n);
    assert_int_equal(n, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_is_read_as_far_as_it_goes),
        cmocka_unit_test(undefined_fields_stay_undefined),
        cmocka_unit_test(wrong_values_are_refused_by_name),
        cmocka_unit_test(invalid_configurations_are_refused),
        cmocka_unit_test(counted_fabric_writes_are_refused_with_the_remedy),
        cmocka_unit_test(channel_fields_have_to_be_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
