/* SPDX-License-Identifier: Apache-2.0 */
/* The example net plugin in all versions of the ABI: it is found or refused by NCCL's rules, and its connections work as in any net. */
#include "net/test_conformance.h"

#include "base/param.h"

#ifndef PLUGINS
#error "PLUGINS is the folder of the example plugins"
#endif

#define T(f) cmocka_unit_test_setup_teardown(f, note_fds, expect_no_more_fds)

enum { OLDEST = 6, NEWEST = 12, NO_NET = 78 };

static int conformance(void)
{
    const struct CMUnitTest tests[] = {CONFORMANCE_TESTS};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* In a process of its own, as a process uses one plugin: with these settings, the net that is called `wanted`. */
static int in_child(const char *plugins, const char *wanted, int (*tests)(void))
{
    int status = -1;

    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        printf("---- %s, \"%s\"\n", plugins, wanted);
        setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
        setenv("NCCL_SOCKET_RETRY_CNT", "2", 1);
        setenv("NCCL_NET_PLUGIN", plugins, 1);
        kl_error_quiet(1);
        if (kl_net_ref(wanted, &net)) exit(NO_NET);
        int failed = tests();
        kl_net_unref(net);
        exit(failed);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return 1;
    return WEXITSTATUS(status);
}

static int is_plugin(void)
{
    return net != &kl_net_plugin || strcmp(net->name, "ExampleTCP") != 0;
}

static int is_socket(void)
{
    return net != &kl_net_socket;
}

static int describes_its_device(void)
{
    struct kl_net_properties p;

    if (is_plugin() || net->devices() != 1 || net->properties(0, &p)) return 1;
    return strcmp(p.name, "tcp0") != 0 || p.guid != 1 || p.memory != KL_NET_HOST || p.speed_mbps != 10000 ||
           p.port != 1 || p.max_comms != 65536 || p.max_recvs != 8 || p.max_bytes != 1u << 30 ||
           net->properties(1, &p) == ncclSuccess;
}

static int is_held_again(void)
{
    const struct kl_net *first = net;

    for (int i = 0; i < 3; i++) {
        kl_net_unref(net);
        if (kl_net_ref("", &net) || net != first) return 1;
        pid_t pid = getpid();
        struct pair p;
        pair_open(&p);
        pair_close(&p);
        if (pid != getpid()) return 1;
    }
    return 0;
}

static void every_version_conforms(void **state)
{
    char file[512];

    (void)state;
    for (int v = OLDEST; v <= NEWEST; v++) {
        snprintf(file, sizeof file, PLUGINS "/libnccl-net-example%d.so", v);
        assert_int_equal(in_child(file, "", describes_its_device), 0);
        assert_int_equal(in_child(file, "", is_held_again), 0);
        assert_int_equal(in_child(file, "", conformance), 0);
    }
}

static void rules_of_selection(void **state)
{
    (void)state;
    assert_int_equal(in_child(PLUGINS "/libnccl-net-example12.so", "EXAMPLEtcp", is_plugin), 0);
    assert_int_equal(in_child(PLUGINS "/libnccl-net-example12.so", "socket", is_socket), 0);
    assert_int_equal(in_child(PLUGINS "/libnccl-net-example12.so", "Other", is_socket), NO_NET);
    assert_int_equal(in_child("none", "", is_socket), 0);
    assert_int_equal(in_child("none", "ExampleTCP", is_socket), NO_NET);
    assert_int_equal(in_child("/nowhere/libnccl-net.so", "", is_socket), 0);
    assert_int_equal(in_child("/nowhere/x.so," PLUGINS "/libnccl-net-example9.so", "", is_plugin), 0);
    setenv("LD_LIBRARY_PATH", "", 1);
    assert_int_equal(in_child("STATIC_PLUGIN", "", is_socket), 0); /* this program exports none */
    setenv("KOLO_NET_CRYPT", "1", 1);
    assert_int_equal(in_child(PLUGINS "/libnccl-net-example12.so", "", is_socket), 0);
    unsetenv("KOLO_NET_CRYPT");
}

static void faulty_tables_are_refused(void **state)
{
    static const char *const faulty[] = {"name", "isend", "device", "overrun", "devices", "init", "limit", "memory"};
    char file[512];

    (void)state;
    for (size_t i = 0; i < sizeof faulty / sizeof faulty[0]; i++) {
        snprintf(file, sizeof file, PLUGINS "/libnccl-net-faulty.so," PLUGINS "/libnccl-net-example11.so");
        setenv("FAULTY_NET", faulty[i], 1);
        assert_int_equal(in_child(file, "", is_plugin), 0); /* and the next one is taken */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_selection),
        cmocka_unit_test(faulty_tables_are_refused),
        cmocka_unit_test(every_version_conforms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
