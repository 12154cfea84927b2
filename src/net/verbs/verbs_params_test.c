/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a GID, and the records between two ends. */
#include "net/verbs/gid.h"
#include "net/verbs/mtu.h"
#include "net/verbs/record.h"
#include "os/netif.h"

#include "tests/kolo_test.h"

#include <arpa/inet.h>
#include <string.h>

/* ---- GIDs ---- */

static struct kl_verbs_gid gid_of(int index, const char *text, int version)
{
    struct kl_verbs_gid g = {.index = index, .version = version};

    assert_int_equal(inet_pton(AF_INET6, text, g.gid.raw), 1);
    return g;
}

static union kl_address address_of(const char *text)
{
    union kl_address a;

    memset(&a, 0, sizeof a);
    if (text) assert_int_equal(kl_address_parse(text, &a), ncclSuccess);
    return a;
}

static void the_best_gid_is_chosen(void **state)
{
    static const struct {
        const char *near, *far;
        int version, family, best;
    } rows[] = {
        {"10.1.0.5:1", "10.2.0.5:1", 2, KL_VERBS_IPV4, 3},    /* the address of the connection */
        {"192.168.0.1:1", "10.9.8.7:1", 2, KL_VERBS_IPV4, 5}, /* the peer's subnet */
        {"192.168.0.1:1", "10.3.8.7:1", 2, KL_VERBS_IPV4, 3}, /* the first that can be routed */
        {NULL, NULL, 2, KL_VERBS_IPV6, 6},                    /* of the other family */
        {NULL, NULL, 1, KL_VERBS_IPV4, 2},                    /* of the other version */
        {"[2001:db8::77]:1", NULL, 2, KL_VERBS_IPV4, 6},
    };
    const struct kl_verbs_gid gids[] = {
        gid_of(0, "fe80::1", 1),         gid_of(1, "fe80::1", 2),         gid_of(2, "::ffff:10.1.0.5", 1),
        gid_of(3, "::ffff:10.1.0.5", 2), gid_of(4, "::ffff:10.9.8.1", 1), gid_of(5, "::ffff:10.9.8.1", 2),
        gid_of(6, "2001:db8::77", 2),
    };

    (void)state;
    FOR_EACH_CASE(row, rows)
    {
        const struct kl_verbs_gid_constraints constraints = {
            .version = row->version, .family = row->family, .near = address_of(row->near), .far = address_of(row->far)};
        assert_int_equal(kl_verbs_gid_choose(gids, 7, &constraints)->index, row->best);
    }
    const struct kl_verbs_gid_constraints constraints = {.version = 2};
    assert_int_equal(kl_verbs_gid_choose(gids, 2, &constraints)->index, 1); /* link-local ones only */
    assert_null(kl_verbs_gid_choose(gids, 0, &constraints));
}

static void gids_have_texts(void **state)
{
    const struct kl_verbs_gid a = gid_of(3, "::ffff:10.1.0.5", 2), b = gid_of(0, "fe80::1", 0);
    char text[KL_VERBS_GID_TEXT];

    (void)state;
    assert_string_equal(kl_verbs_gid_format(&a, text), "[3] ::ffff:10.1.0.5 (RoCE v2)");
    assert_string_equal(kl_verbs_gid_format(&b, text), "[0] fe80::1");
}

/* ---- records ---- */

static struct kl_verbs_record params(void)
{
    struct kl_verbs_record r = {.type = KL_VERBS_PARAMS};

    r.params = (struct kl_verbs_conn_params){.link_layer = KL_IBV_LINK_ETHERNET,
                                             .mtu = 5,
                                             .port = 1,
                                             .qps = 2,
                                             .both_ways = true,
                                             .lid = 7,
                                             .gid_index = 3,
                                             .gid_version = 2,
                                             .qpn = {17, 0xffffff},
                                             .psn = {1, 2},
                                             .memory = 0x123456789abcdef0,
                                             .rkey = 99,
                                             .max_message = 1 << 30,
                                             .device = "mlx5_0"};
    r.params.gid.raw[15] = 1;
    return r;
}

static void records_arrive_as_sent(void **state)
{
    struct kl_key key = {.bytes = {1}};
    struct kl_verbs_record r = params(), got;
    unsigned char wire[KL_VERBS_RECORD];

    (void)state;
    kl_verbs_record_encode(&r, &key, KL_CALLER, 0, wire);
    assert_true(kl_verbs_record_decode(wire, &key, KL_CALLER, 0, &got));
    assert_memory_equal(&got.params, &r.params, sizeof r.params);
    r = (struct kl_verbs_record){.type = KL_VERBS_REFUSED, .sent = 300, .posted = 100, .tag = 4};
    kl_verbs_record_encode(&r, &key, KL_HOST, 5, wire);
    assert_true(kl_verbs_record_decode(wire, &key, KL_HOST, 5, &got));
    assert_true(got.type == KL_VERBS_REFUSED && got.sent == 300 && got.posted == 100 && got.tag == 4);
}

static void forged_records_are_refused(void **state)
{
    struct kl_key key = {.bytes = {1}}, other = {.bytes = {2}};
    struct kl_verbs_record r = params(), got;
    unsigned char wire[KL_VERBS_RECORD];

    (void)state;
    kl_verbs_record_encode(&r, &key, KL_CALLER, 1, wire);
    assert_true(kl_verbs_record_parse(wire, &got));                         /* the proof is ignored */
    assert_false(kl_verbs_record_decode(wire, &other, KL_CALLER, 1, &got)); /* another key */
    assert_false(kl_verbs_record_decode(wire, &key, KL_HOST, 1, &got));     /* reflected */
    assert_false(kl_verbs_record_decode(wire, &key, KL_CALLER, 2, &got));   /* replayed */
    for (size_t i = 0; i < sizeof wire; i++) {
        wire[i] ^= 1;
        assert_false(kl_verbs_record_decode(wire, &key, KL_CALLER, 1, &got));
        wire[i] ^= 1;
    }
}

static void nonsense_is_refused(void **state)
{
    struct kl_key key = {.bytes = {1}};
    struct kl_verbs_record got;
    unsigned char wire[KL_VERBS_RECORD];

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct kl_verbs_record r = params();
        if (i == 0) r.params.qps = 0;
        if (i == 1) r.params.qps = KL_VERBS_QPS_MAX + 1;
        if (i == 2) r.params.mtu = 6;
        if (i == 3) r.params.qpn[1] = 1 << 24;
        if (i == 4) r.params.link_layer = 3;
        if (i == 5) r.params.max_message = 0;
        kl_verbs_record_encode(&r, &key, KL_CALLER, 0, wire);
        assert_false(kl_verbs_record_decode(wire, &key, KL_CALLER, 0, &got));
    }
}

/* ---- MTU ---- */

static void packets_fit_into_the_interfaces(void **state)
{
    static const struct {
        int interface, fits;
    } rows[] = {{0, 0}, {333, 0}, {334, 256}, {1500, 1024}, {4173, 2048}, {4174, 4096}, {4200, 4096}, {9000, 4096}};

    (void)state;
    FOR_EACH_CASE(r, rows) assert_int_equal(kl_netif_roce_mtu(r->interface), r->fits);
    for (int mtu = 1, bytes = 256; mtu <= 5; mtu++, bytes *= 2) assert_int_equal(kl_verbs_mtu_bytes(mtu), bytes);
    assert_int_equal(kl_verbs_mtu_bytes(0), 0);
    assert_int_equal(kl_verbs_mtu_bytes(6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_gid_is_chosen), cmocka_unit_test(gids_have_texts),
        cmocka_unit_test(records_arrive_as_sent), cmocka_unit_test(forged_records_are_refused),
        cmocka_unit_test(nonsense_is_refused),    cmocka_unit_test(packets_fit_into_the_interfaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
