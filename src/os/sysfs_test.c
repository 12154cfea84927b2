/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sysfs.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* DIR/secret is outside of the root, DIR/root. */
static char dir[] = "/tmp/kolo_sysfs_XXXXXX";
static struct kl_sysfs fs = KL_SYSFS_NONE;

static const char *const dirs[] = {"root",       "root/devices",   "root/devices/pci0", "root/devices/pci0/nic",
                                   "root/class", "root/class/net", "root/empty"};

static const struct {
    const char *path, *content;
} files[] = {
    {"secret", "secret\n"},
    {"root/devices/pci0/class", "0x020000\n"},
    {"root/devices/pci0/numa_node", "-1\n"},
    {"root/devices/pci0/nic/speed", "100000\n"},
    {"root/devices/blanks", "  two words \t\n\n"},
    {"root/devices/nothing", ""},
    {"root/devices/cpulist", "0-3,8\n"},
    {"root/devices/cpumap", "f,0000000f\n"},
};

static const struct {
    const char *path, *target;
} links[] = {
    {"root/class/net/eth0", "../../devices/pci0/nic"},
    {"root/devices/pci0/nic/device", "../../pci0"},
    {"root/absolute", "/devices/pci0/class"},
    {"root/class/absolute", "/devices/pci0/class"},
    {"root/chain", "class/net/eth0/device/class"},
    {"root/out", "../secret"},
    {"root/far_out", "../../../../../../../../etc/passwd"},
    {"root/etc", "/etc/passwd"},
    {"root/loop", "loop"},
    {"root/ping", "pong"},
    {"root/pong", "ping"},
    {"root/dangling", "devices/none"},
    {"root/self", "."},
};

static const char *at(const char *path)
{
    static char full[256];

    snprintf(full, sizeof full, "%s/%s", dir, path);
    return full;
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    FOR_EACH_CASE(d, dirs) if (mkdir(at(*d), 0700)) return -1;
    FOR_EACH_CASE(c, files)
    {
        FILE *f = fopen(at(c->path), "w");
        if (!f || fputs(c->content, f) < 0 || fclose(f)) return -1;
    }
    FOR_EACH_CASE(c, links) if (symlink(c->target, at(c->path))) return -1;
    return kl_sysfs_open(&fs, at("root"));
}

static int tear_down(void **state)
{
    int bad = 0;

    (void)state;
    kl_sysfs_close(&fs);
    FOR_EACH_CASE(c, links) bad |= unlink(at(c->path));
    FOR_EACH_CASE(c, files) bad |= unlink(at(c->path));
    for (size_t i = sizeof dirs / sizeof dirs[0]; i--;) bad |= rmdir(at(dirs[i]));
    return bad | rmdir(dir);
}

static const struct {
    const char *path, *real; /* NULL: there is no such thing */
} paths[] = {
    {"devices/pci0/class", "devices/pci0/class"},
    {"/devices//pci0/./class", "devices/pci0/class"},
    {"", ""},
    {"/", ""},
    {".", ""},
    {"class/net/eth0", "devices/pci0/nic"},
    {"class/net/eth0/", "devices/pci0/nic"},
    {"class/net/eth0/speed", "devices/pci0/nic/speed"},
    {"class/net/eth0/..", "devices/pci0"},
    {"class/net/eth0/device/numa_node", "devices/pci0/numa_node"},
    {"absolute", "devices/pci0/class"},
    {"class/absolute", "devices/pci0/class"},
    {"chain", "devices/pci0/class"},
    {"self/self/devices", "devices"},
    {"..", ""},
    {"../../devices/../..", ""},
    {"devices/pci0/../../../devices", "devices"},
    {"out", NULL}, /* there is no "secret" in the root */
    {"far_out", NULL},
    {"etc", NULL},
    {"../secret", NULL},
    {"loop", NULL},
    {"ping", NULL},
    {"dangling", NULL},
    {"none", NULL},
    {"devices/pci0/class/x", NULL},
};

static void links_are_followed_within_the_root(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, paths)
    {
        char real[KL_SYSFS_PATH] = "untouched";

        expect_case(c->path, kl_sysfs_realpath(&fs, c->path, real) == (c->real != NULL));
        expect_case(c->path, !strcmp(real, c->real ? c->real : "untouched"));
    }
}

static void long_paths_are_refused(void **state)
{
    char path[3 * KL_SYSFS_PATH], real[KL_SYSFS_PATH];

    (void)state;
    memset(path, 'x', sizeof path);
    path[KL_SYSFS_PATH - 1] = 0;
    assert_false(kl_sysfs_realpath(&fs, path, real));
    path[KL_SYSFS_PATH - 1] = 'x';
    path[sizeof path - 1] = 0;
    assert_false(kl_sysfs_realpath(&fs, path, real));
}

static void chains_of_links_are_bounded(void **state)
{
    char path[KL_SYSFS_PATH] = "", real[KL_SYSFS_PATH];

    (void)state;
    for (int i = 0; i < 40; i++) strcat(path, "self/");
    assert_true(kl_sysfs_realpath(&fs, path, real));
    strcat(path, "self");
    assert_false(kl_sysfs_realpath(&fs, path, real));
}

static const struct {
    const char *path, *text; /* NULL: cannot be read */
} texts[] = {
    {"class/net/eth0/device/class", "0x020000"},
    {"devices/blanks", "  two words"},
    {"devices/nothing", ""},
    {"none", NULL},
    {"devices", NULL},
    {"out", NULL},
};

static void files_are_read_without_their_ends(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, texts)
    {
        char text[64] = "untouched";

        expect_case(c->path, kl_sysfs_read(&fs, c->path, text, sizeof text) == (c->text != NULL));
        expect_case(c->path, !strcmp(text, c->text ? c->text : "untouched"));
    }
}

static void what_does_not_fit_is_not_read(void **state)
{
    char text[16] = "untouched";

    (void)state;
    assert_false(kl_sysfs_read(&fs, "devices/pci0/class", text, 9)); /* "0x020000\n" has nine bytes itself */
    assert_string_equal(text, "untouched");
    assert_true(kl_sysfs_read(&fs, "devices/pci0/class", text, 10));
    assert_string_equal(text, "0x020000");
}

static void numbers_and_cpus_are_read(void **state)
{
    struct kl_cpuset cpus = {0};
    int64_t value = 77;

    (void)state;
    assert_true(kl_sysfs_read_int(&fs, "devices/pci0/class", &value));
    assert_int_equal(value, 0x020000);
    assert_true(kl_sysfs_read_int(&fs, "devices/pci0/numa_node", &value));
    assert_int_equal(value, -1);
    assert_false(kl_sysfs_read_int(&fs, "devices/cpulist", &value));
    assert_false(kl_sysfs_read_int(&fs, "devices/nothing", &value));
    assert_int_equal(value, -1);

    assert_true(kl_sysfs_read_cpus(&fs, "devices/cpulist", &cpus));
    assert_int_equal(kl_cpuset_count(&cpus), 5);
    assert_true(kl_cpuset_has(&cpus, 8));
    assert_true(kl_sysfs_read_cpus(&fs, "devices/cpumap", &cpus));
    assert_int_equal(kl_cpuset_count(&cpus), 8);
    assert_true(kl_cpuset_has(&cpus, 35));
    assert_false(kl_sysfs_read_cpus(&fs, "devices/pci0/class", &cpus));
    assert_int_equal(kl_cpuset_count(&cpus), 8);
}

static void directories_are_listed_in_order(void **state)
{
    struct kl_sysfs_names names = {0};

    (void)state;
    assert_true(kl_sysfs_list(&fs, "class/net/eth0/..", &names));
    assert_int_equal(names.n, 3);
    assert_string_equal(names.name[0], "class");
    assert_string_equal(names.name[1], "nic");
    assert_string_equal(names.name[2], "numa_node");
    kl_sysfs_names_free(&names);
    assert_true(kl_sysfs_list(&fs, "/", &names));
    assert_int_equal(names.n, 13); /* 3 directories and 10 links */
    kl_sysfs_names_free(&names);
    assert_true(kl_sysfs_list(&fs, "empty", &names));
    assert_int_equal(names.n, 0);
    kl_sysfs_names_free(&names);

    assert_false(kl_sysfs_list(&fs, "none", &names));
    assert_false(kl_sysfs_list(&fs, "devices/pci0/class", &names));
    assert_int_equal(names.n, 0);
}

static void a_large_directory_is_listed(void **state)
{
    struct kl_sysfs_names names = {0};
    char path[64];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "root/empty/%03d", (i * 37) % 100);
        fclose(fopen(at(path), "w"));
    }
    assert_true(kl_sysfs_list(&fs, "empty", &names));
    assert_int_equal(names.n, 100);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(atoi(names.name[i]), i);
        snprintf(path, sizeof path, "root/empty/%03d", i);
        assert_int_equal(unlink(at(path)), 0);
    }
    kl_sysfs_names_free(&names);
}

static void a_root_must_be_a_directory(void **state)
{
    struct kl_sysfs none = KL_SYSFS_NONE;

    (void)state;
    assert_int_equal(kl_sysfs_open(&none, "/nonexistent"), ncclSystemError);
    assert_int_equal(kl_sysfs_open(&none, at("secret")), ncclSystemError);
    assert_int_equal(none.root, -1);
    kl_sysfs_close(&none);
}

static void this_machine_can_be_read(void **state)
{
    struct kl_sysfs live = KL_SYSFS_NONE;
    struct kl_cpuset cpus;
    char real[KL_SYSFS_PATH];

    (void)state;
    assert_int_equal(kl_sysfs_open(&live, "/"), ncclSuccess);
    if (kl_sysfs_realpath(&live, "sys/devices/system/cpu/online", real)) {
        assert_true(kl_sysfs_read_cpus(&live, "sys/devices/system/cpu/online", &cpus));
        assert_true(kl_cpuset_count(&cpus) > 0);
    }
    kl_sysfs_close(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_followed_within_the_root), cmocka_unit_test(long_paths_are_refused),
        cmocka_unit_test(chains_of_links_are_bounded),        cmocka_unit_test(files_are_read_without_their_ends),
        cmocka_unit_test(what_does_not_fit_is_not_read),      cmocka_unit_test(numbers_and_cpus_are_read),
        cmocka_unit_test(directories_are_listed_in_order),    cmocka_unit_test(a_large_directory_is_listed),
        cmocka_unit_test(a_root_must_be_a_directory),         cmocka_unit_test(this_machine_can_be_read),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
