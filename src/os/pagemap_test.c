/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pagemap.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 4 };

static struct kl_pagemap map;
static size_t page;

static int set_up(void **state)
{
    (void)state;
    assert_true(kl_pagemap_init(&map));
    page = (size_t)1 << map.bits;
    return 0;
}

static char *map_pages(int flags)
{
    char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static void private_memory_that_was_written_is_its_own(void **state)
{
    char *p = map_pages(MAP_PRIVATE);

    (void)state;
    assert_false(kl_pagemap_is_own(&map, p, 8)); /* not present yet */
    p[0] = 1;
    assert_true(kl_pagemap_is_own(&map, p, 8));
    assert_true(kl_pagemap_is_own(&map, p + page - 8, 8));
    assert_false(kl_pagemap_is_own(&map, p + page - 8, 9)); /* reaches into the next page, which is not present */
    p[page] = 1;
    assert_true(kl_pagemap_is_own(&map, p + page - 8, 9));
    munmap(p, PAGES * page);
}

static void shared_memory_is_not(void **state)
{
    char *p = map_pages(MAP_SHARED);

    (void)state;
    memset(p, 1, PAGES * page);
    assert_false(kl_pagemap_is_own(&map, p, page));
    munmap(p, PAGES * page);
}

static void nor_is_that_of_a_file(void **state)
{
    int fd = memfd_create("pagemap_test", 0);

    (void)state;
    assert_int_equal(ftruncate(fd, page), 0);
    char *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    p[0] = 1;
    assert_false(kl_pagemap_is_own(&map, p, page));
    munmap(p, page);
    close(fd);
}

/* The cache is cleared now and then. */
static void other_memory_in_its_place_is_noticed(void **state)
{
    char *p = map_pages(MAP_PRIVATE);
    int questions = 1;

    (void)state;
    p[0] = 1;
    assert_true(kl_pagemap_is_own(&map, p, 8));
    void *q = mmap(p, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(q, p);
    p[0] = 1;
    while (kl_pagemap_is_own(&map, p, 8) && questions < 1 << 20) questions++;
    assert_in_range(questions, 1, 1 << 12);
    munmap(p, PAGES * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(private_memory_that_was_written_is_its_own, set_up),
        cmocka_unit_test_setup(shared_memory_is_not, set_up),
        cmocka_unit_test_setup(nor_is_that_of_a_file, set_up),
        cmocka_unit_test_setup(other_memory_in_its_place_is_noticed, set_up),
    };

    if (access("/proc/self/pagemap", R_OK)) {
        puts("skipped: this kernel has no /proc/self/pagemap");
        return KOLO_TEST_SKIP;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
