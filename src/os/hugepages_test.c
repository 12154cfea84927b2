/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks are collapsed and when, on a simulated system whose clock advances when blocks are collapsed. Then on
 * this machine. */
#include "os/hugepages.h"

#include "tests/sysfs_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BLOCK = 2 << 20, MOST = 1024 };

#define MS ((uint64_t)1000000)

/* ---- a simulated system ---- */

static uint64_t now;
static struct {
    uintptr_t at;
    size_t bytes;
} collapsed[MOST];
static int ncollapsed;
static uint64_t cost; /* of a block */
static bool refuses;

static uint64_t tell_now(void)
{
    return now;
}

static bool collapse(void *at, size_t bytes)
{
    assert_in_range(ncollapsed, 0, MOST - 1);
    collapsed[ncollapsed].at = (uintptr_t)at;
    collapsed[ncollapsed++].bytes = bytes;
    now += cost;
    return !refuses;
}

static struct kl_hugepages *begin(void)
{
    static const struct kl_hugepages_system system = {
        .block_bytes = BLOCK, .collapse = collapse, .now_ns = tell_now, .cpu_ns = tell_now};
    struct kl_hugepages *pages;

    ncollapsed = 0;
    cost = MS;
    refuses = false;
    assert_int_equal(kl_hugepages_create(&system, &pages), ncclSuccess);
    assert_non_null(pages);
    return pages;
}

static const char *address(size_t at)
{
    return (const char *)(uintptr_t)at;
}

/* An operation on `bytes` of memory that takes `ns`, collapsing aside. Returns how many blocks were collapsed. */
static int operate_for(struct kl_hugepages *pages, size_t at, size_t bytes, uint64_t ns)
{
    const int before = ncollapsed;

    kl_hugepages_begin(pages);
    kl_hugepages_use(pages, address(at), bytes);
    now += ns;
    kl_hugepages_end(pages);
    return ncollapsed - before;
}

/* One that takes long enough for two blocks, or as long as is credited at most. */
static int operate(struct kl_hugepages *pages, size_t at, size_t bytes)
{
    return operate_for(pages, at, bytes, 2 * KL_HUGEPAGES_SHARE * MS);
}

/* ---- which blocks ---- */

static void only_whole_blocks_are_collapsed(void **state)
{
    static const struct {
        size_t at, bytes;
        int blocks;
        size_t first;
    } cases[] = {
        {4 * BLOCK, BLOCK, 1, 4 * BLOCK},
        {4 * BLOCK, 3 * BLOCK + 5, 3, 4 * BLOCK},
        {4 * BLOCK + 1, 2 * BLOCK - 1, 1, 5 * BLOCK},
        {4 * BLOCK - 1, 2 * BLOCK + 1, 2, 4 * BLOCK},
        {4 * BLOCK + 1, 2 * BLOCK - 2, 0, 0},
        {4 * BLOCK, BLOCK - 1, 0, 0},
        {4 * BLOCK, 0, 0, 0},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_hugepages *pages = begin();
        for (int i = 0; i < 40; i++) operate(pages, c->at, c->bytes);
        assert_int_equal(ncollapsed, c->blocks);
        for (int b = 0; b < c->blocks; b++) {
            assert_int_equal(collapsed[b].at, c->first + (size_t)b * BLOCK);
            assert_int_equal(collapsed[b].bytes, BLOCK);
        }
        kl_hugepages_free(pages);
    }
}

/* ---- when ---- */

static void memory_that_is_used_once_stays(void **state)
{
    struct kl_hugepages *pages = begin();

    (void)state;
    for (size_t i = 1; i < 200; i++) assert_int_equal(operate(pages, i * BLOCK, BLOCK), 0);
    for (int i = 0; i < 10; i++) operate(pages, 7 * BLOCK, BLOCK);
    assert_int_equal(ncollapsed, 1);
    assert_int_equal(collapsed[0].at, 7 * BLOCK);
    kl_hugepages_free(pages);
}

/* Many operations on many blocks, and pauses in between. No operation takes more than a tenth longer, except for the
 * remainder of one block; nor do all of them together. */
static void collapsing_takes_a_tenth_at_most(void **state)
{
    enum { BLOCKS = 64, OPERATIONS = 250 };

    (void)state;
    for (uint64_t ms = 1; ms <= 40; ms *= 2) { /* of a block */
        struct kl_hugepages *pages = begin();
        uint64_t own = 0, blocks = 0;
        cost = ms * MS;
        for (int i = 0; i < OPERATIONS; i++) {
            const uint64_t ns = 5 * MS;
            const uint64_t spent = (uint64_t)operate_for(pages, 0, (size_t)BLOCKS * BLOCK, ns) * cost;
            own += ns;
            blocks += spent;
            assert_true(spent <= ns / KL_HUGEPAGES_SHARE + cost);
            assert_true(blocks <= own / KL_HUGEPAGES_SHARE + cost);
            now += 1000 * MS;
        }
        assert_true(ncollapsed > 0);
        if (ms == 1) assert_int_equal(ncollapsed, BLOCKS);
        kl_hugepages_free(pages);
    }
}

/* An operation that has waited for other ranks earns no more credit than its memory allows. */
static void waiting_is_not_credited(void **state)
{
    struct kl_hugepages *pages = begin();
    const size_t bytes = (size_t)64 * BLOCK;

    (void)state;
    operate_for(pages, 0, bytes, 1000000 * MS);
    const uint64_t spent = (uint64_t)operate_for(pages, 0, bytes, MS) * cost;
    assert_in_range(spent, cost, bytes / KL_HUGEPAGES_SHARE + cost);
    kl_hugepages_free(pages);
}

static void memory_is_looked_at_again_in_time(void **state)
{
    struct kl_hugepages *pages = begin();

    (void)state;
    for (int i = 0; i < 200; i++) operate(pages, BLOCK, BLOCK);
    assert_int_equal(ncollapsed, 1);
    for (int i = 0; i < 100; i++) operate(pages, BLOCK, BLOCK);
    assert_int_equal(ncollapsed, 2);
    kl_hugepages_free(pages);
}

/* Blocks that take long count as failures as well. */
static void where_none_are_given_no_more_are_asked_for(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct kl_hugepages *pages = begin();
        refuses = !slow;
        cost = slow ? KL_HUGEPAGES_SLOW_MS * MS : 0;
        for (size_t i = 0; i < 10000; i++) operate_for(pages, 0, (size_t)200 * BLOCK, 1000 * MS);
        assert_int_equal(ncollapsed, KL_HUGEPAGES_FAILURES);
        kl_hugepages_free(pages);
    }
}

static void a_few_failures_do_not_matter(void **state)
{
    struct kl_hugepages *pages = begin();

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        refuses = i % KL_HUGEPAGES_FAILURES;
        for (int use = 0, had = ncollapsed; use < 40 && ncollapsed == had; use++) operate(pages, i * BLOCK, BLOCK);
    }
    assert_int_equal(ncollapsed, 100);
    kl_hugepages_free(pages);
}

/* ---- detection of systems ---- */

static void the_system_says_whether_it_has_them(void **state)
{
    static const struct {
        const char *enabled, *size;
        size_t bytes;
    } cases[] = {
        {"always [madvise] never", "2097152", 2097152},
        {"[always] madvise never", "536870912", 536870912},
        {"always madvise [never]", "2097152", 0},
        {"always [madvise] never", NULL, 0},
        {"always [madvise] never", "much", 0},
        {"always [madvise] never", "3000000", 0},
        {NULL, "2097152", 0},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        char dir[] = "/tmp/kolo-pages-XXXXXX", path[64];
        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/enabled", dir);
        if (c->enabled) sysfs_tree_file(path, c->enabled);
        snprintf(path, sizeof path, "%s/hpage_pmd_size", dir);
        if (c->size) sysfs_tree_file(path, c->size);
        const struct kl_hugepages_system system = kl_hugepages_system_of(dir);
        struct kl_hugepages *pages;
        assert_int_equal(system.block_bytes, c->bytes);
        assert_int_equal(kl_hugepages_create(&system, &pages), ncclSuccess);
        assert_int_equal(pages != NULL, c->bytes != 0);
        kl_hugepages_free(pages);
        sysfs_tree_remove(dir);
    }
}

/* On this machine: contents stay, and addresses without memory do no harm. */
static void what_is_collapsed_keeps_its_contents(void **state)
{
    const struct kl_hugepages_system system = kl_hugepages_system_of("/sys/kernel/mm/transparent_hugepage");
    const size_t bytes = 4 * system.block_bytes, words = bytes / sizeof(uint32_t);
    struct kl_hugepages *pages;

    (void)state;
    if (!bytes || bytes > 64 << 20) skip();
    uint32_t *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    for (uint32_t i = 0; i < words; i++) data[i] = i;
    assert_int_equal(kl_hugepages_create(&system, &pages), ncclSuccess);
    for (int n = 0; n < 4; n++) {
        kl_hugepages_begin(pages);
        kl_hugepages_use(pages, data, bytes);
        kl_hugepages_use(pages, address(bytes), bytes); /* unmapped */
        for (uint32_t i = 0; i < words; i++) assert_int_equal(data[i], i);
    }
    kl_hugepages_free(pages);
    munmap(data, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_blocks_are_collapsed),
        cmocka_unit_test(memory_that_is_used_once_stays),
        cmocka_unit_test(collapsing_takes_a_tenth_at_most),
        cmocka_unit_test(waiting_is_not_credited),
        cmocka_unit_test(memory_is_looked_at_again_in_time),
        cmocka_unit_test(where_none_are_given_no_more_are_asked_for),
        cmocka_unit_test(a_few_failures_do_not_matter),
        cmocka_unit_test(the_system_says_whether_it_has_them),
        cmocka_unit_test(what_is_collapsed_keeps_its_contents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
