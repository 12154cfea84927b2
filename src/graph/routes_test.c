/* SPDX-License-Identifier: Apache-2.0 */
/* Which NICs are one rail. */
#include "graph/routes.h"

#include "graph/test_machine.h"

/* A host of one NVLink domain: a GPU and two NICs, at the same places on each host. */
#define NIC(bus, dev, guid, more)                                                                                      \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x0207\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic>"          \
    "<net dev=\"" dev "\" speed=\"400000\" port=\"1\" gdr=\"1\" guid=\"" guid "\" " more "/></nic></pci>"
#define HOST(hash, rank, nics)                                                                                         \
    "<cpu host_hash=\"" hash "\" numaid=\"0\" arch=\"arm64\">"                                                         \
    "<pci busid=\"0000:01:00.0\" class=\"0x0302\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"                    \
    "<gpu dev=\"0\" sm=\"100\" rank=\"" rank "\" gdr=\"1\">"                                                           \
    "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>" nics "</cpu>"

static const char two_hosts[] = "<system version=\"1\">" HOST(
    "0xa", "0", NIC("02", "0", "0x10", "rail=\"0\"") NIC("03", "1", "0x11", "rail=\"1\" plane=\"0\""))
    HOST("0xb", "1", NIC("02", "0", "0x20", "rail=\"1\"") NIC("03", "1", "0x21", "plane=\"1\"")) "</system>";

static struct kl_routes *routes_of(struct kl_topo **t, const char *nccl, bool per_host)
{
    struct kl_routes *r;

    *t = machine_of(two_hosts, 2);
    (*t)->options.nccl = kl_nccl_parse(nccl);
    (*t)->options.rail_per_host = per_host;
    assert_int_equal(kl_routes_create(*t, &r), ncclSuccess);
    assert_int_equal(r->all_nets, 4);
    return r;
}

/* NICs 0 and 1 are one host's, 2 and 3 the other's. */
static void rails_follow_the_release(void **state)
{
    static const struct {
        const char *nccl;
        bool per_host, same_place, other_place, same_name;
    } cases[] = {
        {"2.28.3", true, false, false, false}, {"2.28.7", false, false, false, false},
        {"2.28.7", true, true, false, false},  {"2.30.7", false, false, false, true},
        {"2.30.7", true, true, false, true},
    };

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_topo *t;
        struct kl_routes *r = routes_of(&t, k->nccl, k->per_host);

        assert_true(kl_routes_same_rail(r, 0, 0));
        assert_false(kl_routes_same_rail(r, 0, 1));
        assert_int_equal(kl_routes_same_rail(r, 1, 3), k->same_place); /* one of them has no rail: the place decides */
        assert_int_equal(kl_routes_same_rail(r, 0, 3), k->other_place);
        assert_int_equal(kl_routes_same_rail(r, 1, 2), k->same_name);
        kl_routes_free(r);
        kl_topo_free(t);
    }
}

static void planes_are_kept_apart(void **state)
{
    struct kl_topo *t;
    struct kl_routes *r = routes_of(&t, "2.30.7", false);

    (void)state;
    assert_false(kl_routes_same_plane(r, 1, 3));
    assert_true(kl_routes_same_plane(r, 0, 3)); /* undefined: any */
    kl_routes_free(r);
    kl_topo_free(t);
    r = routes_of(&t, "2.30.4", false);
    assert_true(kl_routes_same_plane(r, 1, 3));
    kl_routes_free(r);
    kl_topo_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_follow_the_release),
        cmocka_unit_test(planes_are_kept_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
