/* SPDX-License-Identifier: Apache-2.0 */
/* The topology's rules on transports: refusals hold, except the ones that only concern a network. */
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

/* Ranks of one host, even of one process, that are left to the network: neither finds the other in its topology any more. */
static void who_was_trimmed_is_reached_over_the_network(void **state)
{
    const struct kl_peer a = {.rank = 0, .process = 1}, b = {.rank = 3, .process = 1};
    struct kl_pair_facts facts = {.a = &a, .b = &b, .network = true};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    const struct kl_transport *chosen;
    uint32_t index;

    (void)state;
    options.p2p_disable = options.shm_disable = options.communicator = true;
    struct kl_topo *t = machine(&options);
    assert_int_equal(kl_topo_trim(&t, 0, t->count[KL_NODE_GPU]), ncclSuccess);
    assert_int_equal(kl_topo_gpu_of_rank(t, 3), -1);
    assert_int_equal(kl_pair_ask_topo(t, false, &facts), ncclSuccess);
    assert_int_equal(kl_transport_choose(&facts, &chosen, &index), ncclSuccess);
    assert_ptr_equal(chosen, &kl_transport_net);
    kl_topo_free(t);
}

static const struct hosts_case {
    const char *label;
    uint64_t fabric, memory; /* of the other host */
    bool p2p_disable;
    const char *p2p;
} hosts_cases[] = {
    {"one domain", 1, 1, false, "allowed"},
    {"two domains", 2, 1, false, "other_host"},
    {"one domain without P2P", 1, 1, true, "disabled"},
    {"one domain, in network namespaces", 1, 2, false, "other_namespace"},
};

/* Between hosts there is never shared memory, but P2P within an NVLink domain. */
static void nvlink_joins_hosts(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, hosts_cases)
    {
        const struct kl_peer a = {.rank = 0, .host = 1, .fabric = 1, .memory = 1};
        const struct kl_peer b = {.rank = 3, .host = 2, .fabric = c->fabric, .memory = c->memory};
        struct kl_pair_facts facts = {.a = &a, .b = &b, .network = true};
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        const struct kl_transport *chosen;
        uint32_t index;

        options.p2p_disable = c->p2p_disable;
        struct kl_topo *t = machine(&options);
        assert_int_equal(kl_pair_ask_topo(t, false, &facts), ncclSuccess);
        expect_case(c->label, refuses(&kl_transport_p2p, &facts, c->p2p));
        expect_case(c->label, refuses(&kl_transport_shm, &facts, "other_host"));
        assert_int_equal(kl_transport_choose(&facts, &chosen, &index), ncclSuccess);
        expect_case(c->label, chosen == (strcmp(c->p2p, "allowed") != 0 ? &kl_transport_net : &kl_transport_p2p_hosts));
        kl_topo_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_those_of_the_topology),
        cmocka_unit_test(who_was_trimmed_is_reached_over_the_network),
        cmocka_unit_test(nvlink_joins_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
