/* SPDX-License-Identifier: Apache-2.0 */
#include "os/hostinfo.h"

#include "tests/kolo_test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t host_hash(const char *hostid)
{
    uint64_t hash = 0;

    assert_int_equal(kl_hostinfo_host_hash(hostid, &hash), ncclSuccess);
    return hash;
}

static void the_host_is_what_the_kernel_says(void **state)
{
    char name[KL_HOSTNAME];
    struct utsname u;

    (void)state;
    uname(&u);
    kl_hostinfo_name(name);
    assert_string_equal(name, u.nodename);
}

static void hosts_are_told_apart(void **state)
{
    (void)state;
    assert_true(host_hash("") == host_hash(""));
    assert_true(host_hash("a") == host_hash("a"));
    assert_false(host_hash("a") == host_hash("b"));
    assert_false(host_hash("a") == host_hash(""));
}

/* Ranks on different machines, perhaps of different byte order, must agree: BLAKE2b-128("hostid\0a\0\0"), first 8 bytes. */
static void a_named_host_has_the_same_hash_everywhere(void **state)
{
    (void)state;
    assert_int_equal(host_hash("a"), UINT64_C(0xccd8ef82a5a8797c));
}

/* Run `say` in a forked child; returns the number that it wrote. */
static uint64_t in_child(uint64_t (*say)(void))
{
    int ends[2], status;
    uint64_t said = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        said = say();
        _exit(write(ends[1], &said, sizeof said) != sizeof said);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &said, sizeof said), sizeof said);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return said;
}

static uint64_t host_of_renamed_machine(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) && unshare(CLONE_NEWUTS)) return 0;
    if (sethostname("kolo-renamed", 12)) return 0;
    return host_hash("");
}

static uint64_t this_host(void)
{
    return host_hash("");
}

static void processes_share_a_host(void **state)
{
    (void)state;
    assert_true(in_child(this_host) == this_host());

    uint64_t renamed = in_child(host_of_renamed_machine);
    if (renamed) /* namespaces may be forbidden here */
        assert_false(renamed == this_host());
    else
        printf("not tried: a host of another name, since no UTS namespace can be made here\n");
}

static uint64_t netns_hash(void)
{
    uint64_t hash = 0;

    assert_int_equal(kl_hostinfo_netns_hash(&hash), ncclSuccess);
    return hash;
}

static uint64_t memory_hash(void)
{
    uint64_t hash = 0;

    assert_int_equal(kl_hostinfo_memory_hash(&hash), ncclSuccess);
    return hash;
}

static uint64_t netns_of_other_network(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET) ? 0 : netns_hash();
}

static uint64_t memory_of_other_network(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) && unshare(CLONE_NEWNET) ? 0 : memory_hash();
}

static uint64_t netns_of_other_users(void)
{
    return unshare(CLONE_NEWUSER) ? 0 : netns_hash();
}

static uint64_t memory_of_other_users(void)
{
    return unshare(CLONE_NEWUSER) ? 0 : memory_hash();
}

/* Independent of the host's name. */
static void namespaces_tell_what_is_shared(void **state)
{
    (void)state;
    assert_true(netns_hash() && in_child(netns_hash) == netns_hash());
    assert_true(memory_hash() && in_child(memory_hash) == memory_hash());

    uint64_t netns = in_child(netns_of_other_network), memory = in_child(memory_of_other_network);
    if (netns)
        assert_true(netns != netns_hash() && memory != memory_hash());
    else
        printf("not tried: another network, since no network namespace can be made here\n");
    netns = in_child(netns_of_other_users), memory = in_child(memory_of_other_users);
    if (netns)
        assert_true(netns == netns_hash() && memory != memory_hash());
    else
        printf("not tried: other users, since no user namespace can be made here\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_is_what_the_kernel_says),
        cmocka_unit_test(hosts_are_told_apart),
        cmocka_unit_test(a_named_host_has_the_same_hash_everywhere),
        cmocka_unit_test(processes_share_a_host),
        cmocka_unit_test(namespaces_tell_what_is_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
