/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of large operations get huge pages when they are used repeatedly, unless KOLO_HUGE_PAGES=0, and results are
 * the same meanwhile. Two ranks in one thread, for each function that has large buffers.
 *
 * Requests are counted here, and granted at once whatever the kernel does and however long it takes, so that neither
 * time nor fragmented memory decides.
 */
#include "include/kolo.h"

#include "base/atomic.h"
#include "tests/kolo_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    RANKS = 2,
    BYTES = 8 << 20,
    COUNT = BYTES / sizeof(int32_t),
    HALF = COUNT / 2,
    TIMES = 3,
    MOST_TIMES = 200,
    HUGE_PAGE = 2 << 20
};

static ncclComm_t comm[RANKS];
static int32_t *send[RANKS], *recv[RANKS];
static bool shareable; /* their memory comes from ncclMemAlloc */
static bool given;     /* does this system give huge pages on request, and only then? */

/* ---- before the C library's ---- */

enum { COLLAPSE = 25 /* MADV_COLLAPSE */ };

static _Atomic(long) asked_kib, got_kib; /* since the ranks began; any thread may run an operation */

/* No thread spends time of a CPU. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_THREAD_CPUTIME_ID) return (int)syscall(SYS_clock_gettime, clock, t);
    *t = (struct timespec){0};
    return 0;
}

int madvise(void *at, size_t bytes, int advice)
{
    const int rc = (int)syscall(SYS_madvise, at, bytes, advice);

    if (advice != COLLAPSE) return rc;
    kl_fetch_add_relaxed(&asked_kib, (long)(bytes >> 10));
    if (!rc) kl_fetch_add_relaxed(&got_kib, (long)(bytes >> 10));
    return 0;
}

static void must(ncclResult_t rc)
{
    if (rc) fail_msg("%s: %s", ncclGetErrorString(rc), ncclGetLastError(NULL));
}

/* ---- memory ---- */

static void *allocate_own(void)
{
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static int32_t *allocate(void)
{
    void *p;

    if (shareable)
        must(ncclMemAlloc(&p, BYTES));
    else
        p = allocate_own();
    for (int i = 0; i < COUNT; i++) ((int32_t *)p)[i] = i;
    return p;
}

static void release(int32_t *p)
{
    if (shareable)
        must(ncclMemFree(p));
    else
        munmap(p, BYTES);
}

/* KiB of huge pages that this process has. */
static long huge_kib(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[200];
    long sum = 0, kib;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "AnonHugePages: %ld", &kib) == 1 || sscanf(line, "ShmemPmdMapped: %ld", &kib) == 1) sum += kib;
    if (f) fclose(f);
    return sum;
}

/* KiB of huge pages that a buffer can have. */
static long whole_kib(const int32_t *p)
{
    const uintptr_t first = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE, end = ((uintptr_t)p + BYTES) / HUGE_PAGE;

    return (long)(end - first) * (HUGE_PAGE >> 10);
}

static bool gives(void)
{
    int32_t *p = allocate();
    char *block = (char *)(((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    const long before = huge_kib();
    const bool gives = !before && !syscall(SYS_madvise, block, HUGE_PAGE, COLLAPSE) && huge_kib() == HUGE_PAGE >> 10;

    release(p);
    return gives;
}

/* ---- ranks ---- */

static void begin(const char *setting)
{
    ncclUniqueId id;

    kl_store_relaxed(&asked_kib, 0);
    kl_store_relaxed(&got_kib, 0);
    setenv("KOLO_HUGE_PAGES", setting, 1);
    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        must(koloSetDevice(r));
        must(ncclCommInitRank(&comm[r], RANKS, id, r));
    }
    must(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) send[r] = allocate(), recv[r] = allocate();
}

static void end(void)
{
    for (int r = 0; r < RANKS; r++) must(ncclCommDestroy(comm[r]));
    for (int r = 0; r < RANKS; r++) release(send[r]), release(recv[r]);
}

enum { ALL_REDUCE, BROADCAST, MESSAGES, ALL_GATHER, FUNCTIONS }; /* the last one in place, of two halves */

static void issue(int function, int r)
{
    switch (function) {
    case ALL_REDUCE:
        must(ncclAllReduce(send[r], recv[r], COUNT, ncclInt32, ncclSum, comm[r], NULL));
        break;
    case ALL_GATHER:
        memcpy(recv[r] + r * HALF, send[r] + r * HALF, BYTES / 2);
        must(ncclAllGather(recv[r] + r * HALF, recv[r], HALF, ncclInt32, comm[r], NULL));
        break;
    case BROADCAST:
        must(ncclBroadcast(send[r], recv[r], COUNT, ncclInt32, 0, comm[r], NULL));
        break;
    default:
        must(ncclSend(send[r], 1, ncclInt32, !r, comm[r], NULL)); /* a small one before it */
        must(ncclRecv(recv[r], 1, ncclInt32, !r, comm[r], NULL));
        must(ncclSend(send[r], COUNT, ncclInt32, !r, comm[r], NULL));
        must(ncclRecv(recv[r], COUNT, ncclInt32, !r, comm[r], NULL));
    }
}

static void operate(int function)
{
    for (int r = 0; r < RANKS; r++) memset(recv[r], 0, BYTES);
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) issue(function, r);
    must(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        must(koloSetDevice(r));
        must(koloStreamSynchronize(NULL));
    }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            if (recv[r][i] != (function == ALL_REDUCE ? RANKS * i : i)) fail_msg("rank %d: element %d is wrong", r, i);
}

/* KiB of huge pages that the buffers which a function uses can have. */
static long used_kib(int function)
{
    long kib = 0;

    for (int r = 0; r < RANKS; r++) {
        const bool sends = function != ALL_GATHER && (function != BROADCAST || r == 0);
        kib += whole_kib(recv[r]) + (sends ? whole_kib(send[r]) : 0);
    }
    return kib;
}

/* Run as many operations as earn enough time, which takes a few. Then huge pages were requested, once, for all used
 * buffers. */
static void operate_until_given(int function)
{
    begin("1");
    for (int n = 0; n < MOST_TIMES && kl_load_relaxed(&asked_kib) < used_kib(function); n++) operate(function);
    assert_int_equal(kl_load_relaxed(&asked_kib), used_kib(function));
    if (given) assert_int_equal(huge_kib(), kl_load_relaxed(&got_kib));
    end();
}

/* Run so many operations, for which none are requested. */
static void operate_without(int function, const char *setting, int times)
{
    begin(setting);
    for (int n = 0; n < times; n++) operate(function);
    assert_int_equal(kl_load_relaxed(&asked_kib), 0);
    end();
}

static void expect_huge_pages(void)
{
    if (!given) skip();
    for (int f = 0; f < FUNCTIONS; f++) operate_until_given(f);
}

static void buffers_get_huge_pages(void **state)
{
    (void)state;
    expect_huge_pages();
}

static void so_does_memory_that_others_map(void **state)
{
    (void)state;
    shareable = true;
    expect_huge_pages();
    shareable = false;
}

static void what_is_used_once_stays(void **state)
{
    (void)state;
    if (!given) skip();
    for (int f = 0; f < FUNCTIONS; f++) operate_without(f, "1", 1);
}

static void none_if_none_are_wanted(void **state)
{
    (void)state;
    for (int f = 0; f < FUNCTIONS; f++) operate_without(f, "0", TIMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_get_huge_pages),
        cmocka_unit_test(so_does_memory_that_others_map),
        cmocka_unit_test(what_is_used_once_stays),
        cmocka_unit_test(none_if_none_are_wanted),
    };

    given = gives();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
