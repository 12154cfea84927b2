/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_flags_test.c - GPUs whose kernels wait for each other (KOLO_CUDA_SPIN): which operations do, sizes around those of
 * blocks and limits, groups of all kinds of operations, and aborts while a kernel waits. All ranks are this thread's.
 */
#include "device/cuda/context.h"
#include "device/device.h"
#include "include/kolo.h"
#include "include/nccl.h"
#include "tests/hang.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, BYTES = 1 << 20, LIMIT = 4096 };

static const struct kl_cuda_driver *cu;
static char log_path[64];

/* A word for which a stream waits, and which the CPU sets. */
enum { PAGE = 4096 };
static _Alignas(PAGE) struct {
    _Atomic uint32_t word;
    char rest[PAGE - 4];
} gate;
static uint64_t gate_at;

struct rank {
    const struct kl_cuda_context *context;
    ncclComm_t comm;
    kl_cu_stream stream;
    uint64_t memory;
};
static struct rank rank[RANKS];

static void *at(int r, size_t bytes)
{
    return (void *)(uintptr_t)(rank[r].memory + bytes);
}

static void enter(int r)
{
    assert_int_equal(kl_cuda_enter(rank[r].context), ncclSuccess);
}

static void leave(int r)
{
    kl_cuda_leave(rank[r].context);
}

static int start(void **state)
{
    ncclUniqueId id;

    (void)state;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(kl_cuda_context_of(r, NULL, 0, &rank[r].context), ncclSuccess);
        enter(r);
        assert_int_equal(cu->cuMemAlloc(&rank[r].memory, BYTES), 0);
        assert_int_equal(cu->cuStreamCreateWithPriority(&rank[r].stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
        assert_int_equal(ncclCommInitRank(&rank[r].comm, RANKS, id, r), ncclSuccess);
        leave(r);
    }
    return ncclGroupEnd();
}

static int end(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++) {
        enter(r);
        if (rank[r].comm) assert_int_equal(ncclCommDestroy(rank[r].comm), ncclSuccess);
        assert_int_equal(cu->cuStreamDestroy(rank[r].stream), 0);
        assert_int_equal(cu->cuMemFree(rank[r].memory), 0);
        leave(r);
    }
    return 0;
}

static void wait_for(int r)
{
    enter(r);
    assert_int_equal(cu->cuStreamSynchronize(rank[r].stream), 0);
    leave(r);
}

static void write_to(int r, size_t to, const void *data, size_t bytes)
{
    enter(r);
    assert_int_equal(cu->cuMemcpyAsync(rank[r].memory + to, (uint64_t)(uintptr_t)data, bytes, rank[r].stream), 0);
    assert_int_equal(cu->cuStreamSynchronize(rank[r].stream), 0);
    leave(r);
}

static void read_back(int r, size_t from, void *data, size_t bytes)
{
    enter(r);
    assert_int_equal(cu->cuMemcpyAsync((uint64_t)(uintptr_t)data, rank[r].memory + from, bytes, rank[r].stream), 0);
    assert_int_equal(cu->cuStreamSynchronize(rank[r].stream), 0);
    leave(r);
}

/* ---- which way ---- */

static unsigned lines_with(const char *text)
{
    FILE *f = fopen(log_path, "r");
    char line[1024];
    unsigned n = 0;

    while (f && fgets(line, sizeof line, f)) n += strstr(line, text) != NULL;
    if (f) fclose(f);
    return n;
}

static void reduce(size_t count)
{
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(
            ncclAllReduce(at(r, 0), at(r, BYTES / 2), count, ncclFloat, ncclSum, rank[r].comm, rank[r].stream),
            ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    for (int r = 0; r < RANKS; r++) wait_for(r);
}

static void sizes_choose_the_way(void **state)
{
    static const size_t counts[] = {1, LIMIT / 4, LIMIT / 4 + 1};
    static const char *const ways[] = {"by lines, in lines", "by lines, in lines",
                                       "by direct, between meetings at flags"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        const unsigned before = lines_with(ways[i]);
        reduce(counts[i]);
        if (lines_with(ways[i]) != before + 1) fail_msg("%zu floats: no \"%s\" in the log", counts[i], ways[i]);
    }
}

/* ---- sizes ---- */

static unsigned char byte_of(int r, size_t i, unsigned round)
{
    return (unsigned char)(i * 37 + (size_t)r * 101 + round * 11 + i / 256);
}

/* Bytes of units, blocks and the limit, one more and one less, in changing order: blocks take part in some of the operations. */
static void sizes_of_units_blocks_and_limits(void **state)
{
    static const size_t sizes[] = {1, 4096, 7, 8, 9, 511, 512, 513, 4095, 4097, 64, 1025, 2048, 3, 5000, 1536};
    static unsigned char data[8192], got[8192];

    (void)state;
    for (unsigned round = 0; round < 3 * sizeof sizes / sizeof sizes[0]; round++) {
        const size_t n = sizes[round * 5 % 16], shift = round % 4;
        for (int r = 0; r < RANKS; r++) {
            for (size_t i = 0; i < n; i++) data[i] = byte_of(r, i, round);
            write_to(r, shift, data, n);
        }
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(ncclAllReduce(at(r, shift), at(r, BYTES / 2 + shift / 2), n, ncclUint8, ncclSum,
                                           rank[r].comm, rank[r].stream),
                             ncclSuccess);
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
        for (int r = 0; r < RANKS; r++) {
            read_back(r, BYTES / 2 + shift / 2, got, n);
            for (size_t i = 0; i < n; i++) {
                const unsigned char want =
                    (unsigned char)(byte_of(0, i, round) + byte_of(1, i, round) + byte_of(2, i, round));
                if (got[i] != want) fail_msg("%zu bytes: rank %d byte %zu is %u, not %u", n, r, i, got[i], want);
            }
        }
    }
}

/* ---- groups ---- */

enum { SMALL = 100, LARGE = 20000 };

/* Each operation uses the results of the one before, in one group: lines, kernels between meetings, messages. */
static void issue_chain(int r)
{
    const struct rank *k = &rank[r];
    const size_t step = LARGE * sizeof(float);

    ncclAllReduce(at(r, 0), at(r, step), SMALL, ncclFloat, ncclSum, k->comm, k->stream);
    ncclBroadcast(at(r, step), at(r, 2 * step), LARGE, ncclFloat, 1, k->comm, k->stream);
    ncclReduce(at(r, 2 * step), at(r, 3 * step), SMALL, ncclFloat, ncclMax, 2, k->comm, k->stream);
    ncclAllReduce(at(r, 2 * step), at(r, 2 * step), LARGE, ncclFloat, ncclSum, k->comm, k->stream);
    ncclBroadcast(at(r, 3 * step), at(r, 3 * step), SMALL, ncclFloat, 2, k->comm, k->stream);
    ncclSend(at(r, 2 * step), LARGE, ncclFloat, (r + 1) % RANKS, k->comm, k->stream);
    ncclRecv(at(r, 4 * step), LARGE, ncclFloat, (r + RANKS - 1) % RANKS, k->comm, k->stream);
}

static void groups_of_all_kinds_are_in_order(void **state)
{
    static float data[LARGE], got[LARGE];
    const size_t step = LARGE * sizeof(float);

    (void)state;
    for (int round = 0; round < 20; round++) {
        for (int r = 0; r < RANKS; r++) {
            for (int i = 0; i < LARGE; i++) data[i] = (float)(r + round);
            write_to(r, 0, data, step);
            write_to(r, step, data, step);
        }
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++) issue_chain(r);
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
        for (int r = 0; r < RANKS; r++) {
            const float sum = (float)(3 * round + 3);
            read_back(r, 4 * step, got, step);
            assert_true(got[0] == 3 * sum && got[SMALL - 1] == 3 * sum && got[SMALL] == 3 * (float)(round + 1) &&
                        got[LARGE - 1] == 3 * (float)(round + 1));
            read_back(r, 3 * step, got, SMALL * sizeof(float));
            assert_true(got[0] == sum && got[SMALL - 1] == sum);
        }
    }
}

/* ---- aborts ---- */

/* The last rank's stream does not come to the operation: kernels of the others wait, until one of them aborts. */
static void abort_while_kernels_wait(size_t count)
{
    const int late = RANKS - 1;

    gate.word = 0;
    enter(late);
    assert_int_equal(cu->cuStreamWaitValue32(rank[late].stream, gate_at, 1, KL_CU_WAIT_EQUAL), 0);
    leave(late);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(
            ncclAllReduce(at(r, 0), at(r, BYTES / 2), count, ncclFloat, ncclSum, rank[r].comm, rank[r].stream),
            ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    enter(0);
    assert_int_equal(cu->cuStreamQuery(rank[0].stream), KL_CU_NOT_READY);
    leave(0);
    assert_int_equal(ncclCommAbort(rank[0].comm), ncclSuccess);
    for (int r = 0; r < late; r++) wait_for(r);
    enter(late);
    assert_int_equal(cu->cuStreamQuery(rank[late].stream), KL_CU_NOT_READY);
    leave(late);
    gate.word = 1;
    wait_for(late);
    for (int r = 1; r < RANKS; r++) assert_int_equal(ncclCommAbort(rank[r].comm), ncclSuccess);
    for (int r = 0; r < RANKS; r++) rank[r].comm = NULL;
}

static void an_abort_ends_kernels_in_lines(void **state)
{
    (void)state;
    abort_while_kernels_wait(SMALL);
}

static void an_abort_ends_meetings(void **state)
{
    (void)state;
    abort_while_kernels_wait(LARGE);
}

static int start_gate(void)
{
    const struct kl_cuda_context *c;

    if (kl_cuda_context_of(0, NULL, 0, &c) || kl_cuda_enter(c)) return 1;
    const int rc = cu->cuMemHostRegister(&gate, sizeof gate, KL_CU_HOST_PORTABLE_MAPPED) ||
                   cu->cuMemHostGetDevicePointer(&gate_at, &gate, 0);
    kl_cuda_leave(c);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_choose_the_way, start, end),
        cmocka_unit_test_setup_teardown(sizes_of_units_blocks_and_limits, start, end),
        cmocka_unit_test_setup_teardown(groups_of_all_kinds_are_in_order, start, end),
        cmocka_unit_test_setup_teardown(an_abort_ends_kernels_in_lines, start, end),
        cmocka_unit_test_setup_teardown(an_abort_ends_meetings, start, end),
    };
    const struct kl_device_kind *kind;

    alarm(kolo_test_hang_s());
    snprintf(log_path, sizeof log_path, "/tmp/kolo-gpu-flags-%d", (int)getpid());
    setenv("KOLO_DEVICES", "cuda", 1);
    setenv("KOLO_CUDA_SPIN", "1", 1);
    setenv("KOLO_CUDA_LINES", "4K", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
    if (kl_cuda_driver(&cu) || kl_devices(&kind)) {
        printf("skipped: %s\n", kl_error_text());
        return 77;
    }
    if (cu->devices < RANKS) {
        printf("skipped: %d GPUs of %d\n", cu->devices, RANKS);
        return 77;
    }
    if (start_gate()) return 1;
    const int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    return rc;
}
