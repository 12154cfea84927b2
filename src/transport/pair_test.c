/* SPDX-License-Identifier: Apache-2.0 */
/* What a topology tells the transports: refusals that hold, and none of those that only a network makes. */
#include "base/error.h"
#include "tests/kolo_test.h"
#include "transport/pair.h"

#include <string.h>

static const struct pair_case {
    const char *label;
    bool p2p_disable, shm_disable, network;
    const char *p2p, *shm; /* the transport's refusal */
} pair_cases[] = {
    {"plain", false, false, false, "allowed", "allowed"},
    {"plain, beside a network", false, false, true, "allowed", "allowed"},
    {"without P2P", true, false, false, "disabled", "allowed"},
    {"without P2P, beside a faster network", true, false, true, "disabled", "network_faster"},
    {"without shared memory", false, true, false, "allowed", "disabled"},
    {"without either", true, true, true, "disabled", "disabled"},
};

static struct kl_topo *machine(const struct kl_topo_options *options)
{
    struct kl_xml *xml;
    struct kl_topo *t;

    assert_int_equal(kl_xml_load("tests/data/examples/nvswitch.xml", kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, options, &t), ncclSuccess);
    kl_xml_free(xml);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

static bool refuses(const struct kl_transport *t, const struct kl_pair_facts *facts, const char *name)
{
    return !strcmp(kl_refusal_name(t->refuses(facts), &facts->why), name);
}

static void refusals_are_those_of_the_topology(void **state)
{
    const struct kl_peer a = {.rank = 0}, b = {.rank = 3};

    (void)state;
    FOR_EACH_CASE(c, pair_cases)
    {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_pair_facts facts = {.a = &a, .b = &b, .mappable = true};

        options.p2p_disable = c->p2p_disable;
        options.shm_disable = c->shm_disable;
        struct kl_topo *t = machine(&options);
        assert_int_equal(kl_pair_ask_topo(t, c->network, &facts), ncclSuccess);
        expect_case(c->label, refuses(&kl_transport_p2p, &facts, c->p2p));
        expect_case(c->label, refuses(&kl_transport_shm, &facts, c->shm));
        kl_topo_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_those_of_the_topology),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
