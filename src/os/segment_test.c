/* SPDX-License-Identifier: Apache-2.0 */
#include "os/segment.h"

#include "tests/kolo_test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Number of this process's pages. */
static long mapped_pages(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    return pages;
}

static void two_mappings_are_the_same_memory(void **state)
{
    struct kl_segment mine = KL_SEGMENT_NONE, peers = KL_SEGMENT_NONE;

    (void)state;
    assert_int_equal(kl_segment_create(&mine, "kolo-test", 100), ncclSuccess);
    assert_int_equal(mine.bytes, page());
    assert_int_equal(kl_segment_attach(&peers, dup(mine.fd), 100), ncclSuccess);
    assert_int_equal(peers.fd, -1);
    assert_int_equal(peers.bytes, page());
    assert_ptr_not_equal(mine.base, peers.base);
    for (size_t i = 0; i < peers.bytes; i++) assert_int_equal(((char *)peers.base)[i], 0);

    ((char *)mine.base)[99] = 7;
    assert_int_equal(((char *)peers.base)[99], 7);
    kl_segment_close(&mine); /* the other mapping keeps the memory alive */
    assert_int_equal(((char *)peers.base)[99], 7);
    kl_segment_close(&peers);
}

/* All of a large segment can have huge pages, in either mapping; no address space is leaked. */
static void large_ones_begin_where_huge_pages_may(void **state)
{
    enum { HUGE = 2 << 20, BYTES = HUGE + 12345, TIMES = 100 };
    struct kl_segment mine = KL_SEGMENT_NONE, peers = KL_SEGMENT_NONE;
    const long before = mapped_pages();
    int wrong = 0;

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(kl_segment_create(&mine, "kolo-test", BYTES), ncclSuccess);
        assert_int_equal(kl_segment_attach(&peers, dup(mine.fd), BYTES), ncclSuccess);
        wrong += (uintptr_t)mine.base % HUGE || (uintptr_t)peers.base % HUGE;
        ((char *)mine.base)[BYTES - 1] = 7;
        assert_int_equal(((char *)peers.base)[BYTES - 1], 7);
        kl_segment_close(&mine);
        kl_segment_close(&peers);
    }
    assert_int_equal(wrong, 0);
    assert_in_range(mapped_pages(), before - TIMES, before + TIMES);
}

static void survives_its_creator(void **state)
{
    struct kl_segment seg = KL_SEGMENT_NONE;
    int status;

    (void)state;
    assert_int_equal(kl_segment_create(&seg, "kolo-test", 3 * page()), ncclSuccess);
    pid_t child = fork();
    if (!child) {
        ((char *)seg.base)[2 * page()] = 42;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(((char *)seg.base)[2 * page()], 42);
    kl_segment_close(&seg);
}

static void shows_its_label(void **state)
{
    struct kl_segment seg = KL_SEGMENT_NONE;
    char path[64], target[128] = "", longest[400];

    (void)state;
    assert_int_equal(kl_segment_create(&seg, "kolo-label", 1), ncclSuccess);
    snprintf(path, sizeof path, "/proc/self/fd/%d", seg.fd);
    assert_true(readlink(path, target, sizeof target - 1) > 0);
    assert_non_null(strstr(target, "memfd:kolo-label"));
    kl_segment_close(&seg);

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(kl_segment_create(&seg, longest, 1), ncclSuccess);
    kl_segment_close(&seg);
}

static void size_is_sealed(void **state)
{
    struct kl_segment seg = KL_SEGMENT_NONE;

    (void)state;
    assert_int_equal(kl_segment_create(&seg, "kolo-test", page()), ncclSuccess);
    assert_int_equal(ftruncate(seg.fd, 0), -1);
    assert_int_equal(ftruncate(seg.fd, (off_t)(2 * page())), -1);
    assert_int_equal(fcntl(seg.fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    assert_int_equal(fcntl(seg.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    kl_segment_close(&seg);
}

static void untouched_pages_cost_nothing(void **state)
{
    struct kl_segment seg = KL_SEGMENT_NONE;
    unsigned char resident[4];

    (void)state;
    assert_int_equal(kl_segment_create(&seg, "kolo-test", 4 * page()), ncclSuccess);
    ((char *)seg.base)[page()] = 1;
    assert_int_equal(mincore(seg.base, seg.bytes, resident), 0);
    assert_int_equal(resident[0] & 1, 0);
    assert_int_equal(resident[1] & 1, 1);
    assert_int_equal(resident[3] & 1, 0);
    kl_segment_close(&seg);
}

static bool strict;

bool __wrap_kl_overcommit_is_strict(void);
bool __wrap_kl_overcommit_is_strict(void)
{
    return strict;
}

static void pages_are_reserved_where_none_are_promised_twice(void **state)
{
    struct kl_segment seg = KL_SEGMENT_NONE;
    const size_t bytes = 64 * page();
    struct stat st;

    (void)state;
    for (int i = 0; i < 2; i++) {
        strict = i;
        assert_int_equal(kl_segment_create(&seg, "kolo-test", bytes), ncclSuccess);
        assert_false(fstat(seg.fd, &st));
        assert_int_equal(st.st_blocks * 512, strict ? bytes : 0);
        kl_segment_close(&seg);
    }
    strict = false;
}

static void bad_sizes_are_refused(void **state)
{
    static const size_t sizes[] = {0, SIZE_MAX, SIZE_MAX / 2 + 1};
    int before = open_fds();

    (void)state;
    FOR_EACH_CASE(bytes, sizes)
    {
        struct kl_segment seg = KL_SEGMENT_NONE;

        assert_int_equal(kl_segment_create(&seg, "kolo-test", *bytes), ncclInvalidArgument);
        assert_int_equal(kl_segment_attach(&seg, dup(STDIN_FILENO), *bytes), ncclInvalidArgument);
        assert_null(seg.base);
        assert_int_equal(seg.fd, -1);
        assert_int_equal(open_fds(), before);
    }
}

/* Descriptors that a peer might send instead of a segment. */
static const struct {
    const char *label;
    int seals;
    size_t bytes;
} strangers[] = {
    {"no seals", 0, 8192},
    {"may shrink", F_SEAL_GROW, 8192},
    {"may grow", F_SEAL_SHRINK, 8192},
    {"too small", F_SEAL_SHRINK | F_SEAL_GROW, 4095},
    {"empty", F_SEAL_SHRINK | F_SEAL_GROW, 0},
    {"read only", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 8192},
    {"read only soon", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE, 8192},
};

static void strangers_are_refused(void **state)
{
    int before = open_fds();

    (void)state;
    FOR_EACH_CASE(c, strangers)
    {
        struct kl_segment seg = KL_SEGMENT_NONE;
        int fd = memfd_create(c->label, MFD_ALLOW_SEALING);

        assert_int_equal(ftruncate(fd, (off_t)c->bytes), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, c->seals), 0);
        expect_case(c->label, kl_segment_attach(&seg, fd, 4096) == ncclRemoteError);
        expect_case(c->label, !seg.base && seg.fd == -1);
        expect_case(c->label, open_fds() == before); /* the descriptor is taken over, also on failure */
    }
    struct kl_segment seg = KL_SEGMENT_NONE;
    assert_int_equal(kl_segment_attach(&seg, open("/dev/null", O_RDWR), 4096), ncclRemoteError);
    assert_int_equal(kl_segment_attach(&seg, -1, 4096), ncclRemoteError);
    assert_int_equal(open_fds(), before);
}

static void close_works_on_nothing(void **state)
{
    struct kl_segment seg = KL_SEGMENT_NONE;

    (void)state;
    kl_segment_close(&seg);
    kl_segment_close(&seg);
    assert_int_equal(seg.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_mappings_are_the_same_memory),
        cmocka_unit_test(large_ones_begin_where_huge_pages_may),
        cmocka_unit_test(survives_its_creator),
        cmocka_unit_test(shows_its_label),
        cmocka_unit_test(size_is_sealed),
        cmocka_unit_test(untouched_pages_cost_nothing),
        cmocka_unit_test(pages_are_reserved_where_none_are_promised_twice),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(close_works_on_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
