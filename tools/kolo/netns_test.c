/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hang.h"
#include "tests/kolo_test.h"
#include "tools/kolo/netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct address_case {
    int host;
    const char *text;
} address_cases[] = {
    {0, "10.77.0.1"}, {1, "10.77.0.2"}, {249, "10.77.0.250"}, {250, "10.77.1.1"}, {999, "10.77.3.250"},
};

static void hosts_have_addresses(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, address_cases)
    {
        char text[32];

        kl_netns_address(c->host, text, sizeof text);
        assert_string_equal(text, c->text);
    }
}

static int socket_in(int ns, struct sockaddr_in *at, int host)
{
    char text[32];
    int on = 1;

    assert_int_equal(setns(ns, CLONE_NEWNET), 0);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s >= 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    kl_netns_address(host, text, sizeof text);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(4000)};
    assert_int_equal(inet_pton(AF_INET, text, &at->sin_addr), 1);
    return s;
}

/* Host `to` listens, host `from` connects and sends one byte. Sockets stay in the namespace they were made in. */
static void expect_reachable(const struct kl_netns *ns, int from, int to)
{
    struct sockaddr_in at, own;
    char byte = 0;
    int server = socket_in(ns->fd[to], &at, to);

    assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(server, 1), 0);
    int client = socket_in(ns->fd[from], &own, from);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    struct pollfd p = {.fd = server, .events = POLLIN};
    assert_int_equal(poll(&p, 1, (int)kolo_test_hang_ms()), 1);
    int peer = accept(server, NULL, NULL);
    assert_int_equal(write(client, "k", 1), 1);
    assert_int_equal(read(peer, &byte, 1), 1);
    assert_int_equal(byte, 'k');
    close(peer), close(client), close(server);
}

/* Lines of /proc/net/arp: address, type, flags (2: complete, 4: permanent), hardware address, mask, interface. */
static int count_neighbours(int ns)
{
    char line[256];
    int n = 0;
    unsigned flags;

    assert_int_equal(setns(ns, CLONE_NEWNET), 0);
    FILE *table = fopen("/proc/thread-self/net/arp", "re");
    assert_non_null(table);
    while (fgets(line, sizeof line, table))
        if (sscanf(line, "%*s 0x%*x 0x%x", &flags) == 1) n += flags == 6;
    fclose(table);
    return n;
}

static void hosts_reach_each_other(void **state)
{
    struct kl_netns ns;
    char why[256] = "";
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    (void)state;
    if (kl_netns_open(&ns, 3, 0, why, sizeof why)) {
        if (!strstr(why, "not permitted") && !strstr(why, "not supported")) fail_msg("%s", why);
        print_message("no network namespaces here: %s\n", why);
        close(home);
        skip();
    }
    assert_int_not_equal(if_nametoindex("kolo-sw"),
                         0); /* we are in the switch's namespace, which has to outlive the test */
    int hub = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    assert_int_equal(if_nametoindex("h3"), 0);
    for (int h = 0; h < 3; h++) assert_int_equal(count_neighbours(ns.fd[h]), 3); /* two hosts and the switch */
    expect_reachable(&ns, 0, 1);
    expect_reachable(&ns, 2, 0);
    expect_reachable(&ns, 1, 1);
    kl_netns_close(&ns);
    kl_netns_close(&ns);
    close(hub);
    assert_int_equal(setns(home, CLONE_NEWNET), 0);
    assert_int_equal(if_nametoindex("kolo-sw"), 0);
    close(home);
}

static void without_rights_there_is_one_reason(void **state)
{
    struct kl_netns ns;
    char why[256] = "";

    (void)state;
    if (geteuid()) {
        print_message("giving up rights needs root\n");
        skip();
    }
    assert_int_equal(seteuid(65534), 0);
    assert_int_equal(kl_netns_open(&ns, 2, 0, why, sizeof why), -1);
    assert_int_equal(seteuid(0), 0);
    assert_non_null(strstr(why, "Operation not permitted"));
    assert_non_null(strstr(why, "needs root"));
    assert_null(ns.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_addresses),
        cmocka_unit_test(hosts_reach_each_other),
        cmocka_unit_test(without_rights_there_is_one_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
