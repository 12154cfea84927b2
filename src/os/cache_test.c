/* SPDX-License-Identifier: Apache-2.0 */
/* The size of the last-level cache, from directories like those of sysfs. */
#include "os/cache.h"

#include "tests/sysfs_tree.h"

static void write_text(const char *dir, int index, const char *name, const char *text)
{
    char path[200];

    snprintf(path, sizeof path, "%s/index%d/%s", dir, index, name);
    sysfs_tree_file(path, text);
}

static void write_index(const char *dir, int index, const char *level, const char *size)
{
    char path[200];

    snprintf(path, sizeof path, "%s/index%d/level", dir, index);
    sysfs_tree_mkdirs(path);
    write_text(dir, index, "level", level);
    write_text(dir, index, "size", size);
}

static void the_highest_level_counts(void **state)
{
    static const struct {
        const char *level[3], *size[3];
        size_t bytes;
    } cases[] = {
        {{"1", "2", "3"}, {"32K", "1024K", "32768K"}, 32 << 20},
        {{"3", "1", "2"}, {"16M", "32K", "2M"}, 16 << 20},
        {{"1", "1", "2"}, {"48K", "32K", "2048K"}, 2 << 20},
        {{"1", "2", "3"}, {"32K", "512K", "unknown"}, 512 << 10},
        {{"1", "2", "3"}, {"32K", "512K", "-1K"}, 512 << 10},
        {{"1", "2", "3"}, {"32K", "512K", "9Kx"}, 512 << 10},
        {{"1", "2", "none"}, {"32K", "4096", "64K"}, 4096},
        {{"", "", ""}, {"", "", ""}, 0},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        char dir[] = "/tmp/kolo-cache-XXXXXX";
        assert_non_null(mkdtemp(dir));
        for (int i = 0; i < 3; i++) write_index(dir, i, c->level[i], c->size[i]);
        assert_int_equal(kl_cache_of(dir, KL_CACHE_LAST).bytes, c->bytes);
        sysfs_tree_remove(dir);
    }
}

static void a_level_is_found_with_those_who_share_it(void **state)
{
    char dir[] = "/tmp/kolo-cache-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_index(dir, 0, "1", "32K");
    write_index(dir, 1, "2", "1M");
    write_index(dir, 2, "3", "32M");
    write_text(dir, 1, "shared_cpu_list", "0,8");
    write_text(dir, 2, "shared_cpu_list", "0-7,16-23");
    assert_int_equal(kl_cache_of(dir, 1).cpus, 1); /* unknown */
    assert_int_equal(kl_cache_of(dir, 2).bytes, 1 << 20);
    assert_int_equal(kl_cache_of(dir, 2).cpus, 2);
    assert_int_equal(kl_cache_of(dir, KL_CACHE_LAST).cpus, 16);
    assert_int_equal(kl_cache_of(dir, 4).bytes, 0);
    sysfs_tree_remove(dir);
}

static void what_is_not_there_says_nothing(void **state)
{
    (void)state;
    assert_int_equal(kl_cache_of("/nonexistent", KL_CACHE_LAST).bytes, 0);
    assert_int_equal(kl_cache_of("/nonexistent", 2).bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_level_counts),
        cmocka_unit_test(a_level_is_found_with_those_who_share_it),
        cmocka_unit_test(what_is_not_there_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
