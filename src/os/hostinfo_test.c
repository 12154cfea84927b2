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

static uint64_t process_hash(void)
{
    uint64_t hash = 0;

    assert_int_equal(kl_hostinfo_process_hash(&hash), ncclSuccess);
    return hash;
}

static void the_host_is_what_the_kernel_says(void **state)
{
    char name[KL_HOSTNAME], boot_id[KL_BOOT_ID], link[64], want[64];
    struct utsname u;

    (void)state;
    uname(&u);
    kl_hostinfo_name(name);
    assert_string_equal(name, u.nodename);

    kl_hostinfo_boot_id(boot_id);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        assert_non_null(fgets(want, sizeof want, f));
        want[strcspn(want, "\n")] = 0;
        fclose(f);
        assert_int_equal(strlen(want), 36);
        assert_string_equal(boot_id, want);
    }
    ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (n > 0) {
        link[n] = 0;
        snprintf(want, sizeof want, "pid:[%llu]", (unsigned long long)kl_hostinfo_pid_namespace());
        assert_string_equal(link, want);
    }
}

static void hosts_are_told_apart(void **state)
{
    (void)state;
    assert_true(host_hash("") == host_hash(""));
    assert_true(host_hash("a") == host_hash("a"));
    assert_false(host_hash("a") == host_hash("b"));
    assert_false(host_hash("a") == host_hash(""));
    assert_false(host_hash("") == process_hash());
}

/* Ranks on different machines, perhaps of different byte order, must agree: BLAKE2b-128("hostid\0a\0\0"), first 8 bytes. */
static void a_named_host_has_the_same_hash_everywhere(void **state)
{
    (void)state;
    assert_int_equal(host_hash("a"), UINT64_C(0xccd8ef82a5a8797c));
}

/* Run `say` in a forked child; returns what it wrote, as a number. */
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

static void processes_share_a_host_but_not_an_identity(void **state)
{
    (void)state;
    assert_true(in_child(this_host) == this_host());
    assert_false(in_child(process_hash) == process_hash());
    assert_true(process_hash() == process_hash());

    uint64_t renamed = in_child(host_of_renamed_machine);
    if (renamed) /* namespaces may be forbidden here */
        assert_false(renamed == this_host());
    else
        printf("not tried: a host of another name, since no UTS namespace can be made here\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_is_what_the_kernel_says),
        cmocka_unit_test(hosts_are_told_apart),
        cmocka_unit_test(a_named_host_has_the_same_hash_everywhere),
        cmocka_unit_test(processes_share_a_host_but_not_an_identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
