/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_errors_test.c - two ranks on GPUs whose calls are wrong, or late, or stopped: one clear sentence each, and no wait that does
 * not end. And the order of operations in a group.
 */
#include "device/cuda/context.h"
#include "device/device.h"
#include "include/kolo.h"
#include "include/nccl_device.h"
#include "tests/gpu_graphs.h"
#include "tests/hang.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 2, BYTES = 4 << 20 };

static const struct kl_cuda_driver *cu;

struct pair {
    ncclComm_t comm[RANKS];
    const struct kl_cuda_context *context[RANKS];
    uint64_t memory[RANKS];
};

static void *at(const struct pair *p, int rank, size_t bytes)
{
    return (void *)(uintptr_t)(p->memory[rank] + bytes);
}

static void start(struct pair *p, int gpus)
{
    ncclUniqueId id;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(kl_cuda_context_of(r % gpus, NULL, 0, &p->context[r]), ncclSuccess);
        assert_int_equal(kl_cuda_enter(p->context[r]), ncclSuccess);
        assert_int_equal(cu->cuMemAlloc(&p->memory[r], BYTES), 0);
        assert_int_equal(ncclCommInitRank(&p->comm[r], RANKS, id, r), ncclSuccess);
        kl_cuda_leave(p->context[r]);
    }
    if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
    assert_int_equal(kl_cuda_enter(p->context[0]), ncclSuccess);
}

static void end(struct pair *p, bool failed)
{
    for (int r = 0; r < RANKS; r++) {
        if (p->comm[r]) assert_int_equal(failed ? ncclCommAbort(p->comm[r]) : ncclCommDestroy(p->comm[r]), ncclSuccess);
        assert_int_equal(cu->cuMemFree(p->memory[r]), 0);
    }
    kl_cuda_leave(p->context[0]);
}

static void expect_text(ncclComm_t comm, const char *text)
{
    if (!strstr(ncclGetLastError(comm), text)) fail_msg("no \"%s\" in: %s", text, ncclGetLastError(comm));
}

static ncclResult_t both_reduce(struct pair *p, size_t count0, size_t count1)
{
    ncclGroupStart();
    ncclAllReduce(at(p, 0, 0), at(p, 0, BYTES / 2), count0, ncclFloat, ncclSum, p->comm[0], NULL);
    ncclAllReduce(at(p, 1, 0), at(p, 1, BYTES / 2), count1, ncclFloat, ncclSum, p->comm[1], NULL);
    return ncclGroupEnd();
}

/* The communicator goes on: nothing was begun. */
static void bad_buffers_are_refused(void **state)
{
    struct pair p;
    char pageable[64];

    (void)state;
    start(&p, 1);
    assert_int_equal(ncclAllReduce(pageable, pageable, 4, ncclFloat, ncclSum, p.comm[0], NULL), ncclInvalidArgument);
    expect_text(p.comm[0], "the send buffer");
    expect_text(p.comm[0], "no memory of CUDA");
    assert_int_equal(ncclAllReduce(at(&p, 0, 0), at(&p, 0, BYTES - 8), 4, ncclFloat, ncclSum, p.comm[0], NULL),
                     ncclInvalidArgument);
    expect_text(p.comm[0], "the allocation ends 8 bytes before");
    assert_int_equal(both_reduce(&p, 8, 8), ncclSuccess);
    end(&p, false);
}

static void different_calls_are_named(void **state)
{
    struct pair p;

    (void)state;
    start(&p, 1);
    assert_int_equal(both_reduce(&p, 8, 9), ncclInvalidUsage);
    expect_text(p.comm[0], "rank 1 called AllReduce(9 elements) as #1");
    assert_int_equal(both_reduce(&p, 8, 8), ncclInvalidUsage);
    end(&p, true);
}

static void a_late_rank_is_named(void **state)
{
    struct pair p;

    (void)state;
    setenv("KOLO_TIMEOUT", "1", 1);
    start(&p, 1);
    unsetenv("KOLO_TIMEOUT");
    assert_int_equal(ncclAllReduce(at(&p, 0, 0), at(&p, 0, 64), 4, ncclFloat, ncclSum, p.comm[0], NULL),
                     ncclSystemError);
    expect_text(p.comm[0], "the call of rank 1");
    expect_text(p.comm[0], "ncclGroupStart");
    end(&p, true);
}

/* Two calls of one thread without a group, where no other thread calls. */
static void a_thread_that_waits_for_itself_is_told(void **state)
{
    struct pair p;

    (void)state;
    setenv("KOLO_BOOTSTRAP_TIMEOUT", "2", 1);
    start(&p, 1);
    unsetenv("KOLO_BOOTSTRAP_TIMEOUT");
    assert_int_equal(ncclAllReduce(at(&p, 0, 0), at(&p, 0, 64), 4, ncclFloat, ncclSum, p.comm[0], NULL),
                     ncclInvalidUsage);
    expect_text(p.comm[0], "rank 1, which is this thread's as well");
    end(&p, true);
}

struct waiting {
    struct pair *pair;
    ncclResult_t rc;
};

static void *reduce_alone(void *arg)
{
    struct waiting *w = arg;

    w->rc = ncclAllReduce(at(w->pair, 0, 0), at(w->pair, 0, 64), 4, ncclFloat, ncclSum, w->pair->comm[0], NULL);
    return NULL;
}

/* Its own abort, or the other rank's. */
static void an_abort_ends_the_wait(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < RANKS; aborts++) {
        struct pair p;
        struct waiting w = {.pair = &p};
        pthread_t thread;
        start(&p, 1);
        assert_int_equal(pthread_create(&thread, NULL, reduce_alone, &w), 0);
        assert_int_equal(ncclCommAbort(p.comm[aborts]), ncclSuccess);
        pthread_join(thread, NULL);
        assert_int_not_equal(w.rc, ncclSuccess);
        p.comm[aborts] = NULL;
        end(&p, true);
    }
}

static void windows_are_refused(void **state)
{
    ncclCommProperties_t properties = NCCL_COMM_PROPERTIES_INITIALIZER;
    struct pair p;
    ncclWindow_t window;

    (void)state;
    start(&p, 1);
    assert_int_equal(ncclCommQueryProperties(p.comm[0], &properties), ncclSuccess);
    assert_false(properties.hostRmaSupport);
    assert_int_equal(ncclCommWindowRegister(p.comm[0], at(&p, 0, 0), 4096, &window, 0), ncclInvalidUsage);
    expect_text(p.comm[0], "windows");
    end(&p, false);
}

static void set(struct pair *p, int rank, float value, size_t count)
{
    float *data = malloc(count * sizeof *data);

    for (size_t i = 0; i < count; i++) data[i] = value;
    assert_int_equal(cu->cuMemcpyAsync(p->memory[rank], (uint64_t)(uintptr_t)data, count * sizeof *data, NULL), 0);
    assert_int_equal(cu->cuStreamSynchronize(NULL), 0);
    free(data);
}

static void check(struct pair *p, int rank, size_t from, float value, size_t count)
{
    float *data = malloc(count * sizeof *data);

    assert_int_equal(cu->cuMemcpyAsync((uint64_t)(uintptr_t)data, p->memory[rank] + from, count * sizeof *data, NULL),
                     0);
    assert_int_equal(cu->cuStreamSynchronize(NULL), 0);
    for (size_t i = 0; i < count; i++)
        if (data[i] != value) fail_msg("rank %d element %zu is %g, not %g", rank, i, (double)data[i], (double)value);
    free(data);
}

/* ---- graphs ---- */

enum { REPLAYS = 4 };

static ncclResult_t reduce_on(struct pair *p, size_t count, kl_cu_stream stream0, kl_cu_stream stream1)
{
    ncclGroupStart();
    ncclAllReduce(at(p, 0, 0), at(p, 0, BYTES / 2), count, ncclFloat, ncclSum, p->comm[0], stream0);
    ncclAllReduce(at(p, 1, 0), at(p, 1, BYTES / 2), count, ncclFloat, ncclSum, p->comm[1], stream1);
    return ncclGroupEnd();
}

struct captured {
    kl_cu_stream stream[RANKS];
    kl_cu_event event[RANKS];
};

/* The second stream takes part in the capture of the first, and ends before it. */
static void order(const struct captured *c, int first)
{
    assert_int_equal(cu->cuEventRecord(c->event[first], c->stream[first]), 0);
    assert_int_equal(cu->cuStreamWaitEvent(c->stream[1 - first], c->event[first], 0), 0);
}

static void create_streams(const struct pair *p, struct captured *c)
{
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(kl_cuda_enter(p->context[r]), ncclSuccess);
        assert_int_equal(cu->cuStreamCreateWithPriority(&c->stream[r], KL_CU_STREAM_NON_BLOCKING, 0), 0);
        assert_int_equal(cu->cuEventCreate(&c->event[r], KL_CU_EVENT_DISABLE_TIMING), 0);
        kl_cuda_leave(p->context[r]);
    }
}

static void destroy_streams(const struct captured *c)
{
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(cu->cuStreamDestroy(c->stream[r]) | cu->cuEventDestroy(c->event[r]), 0);
}

/* Two operations, of which the second uses the result of the first, and messages. */
static void *capture(struct pair *p, const struct gpu_graphs *graphs, const struct captured *c, size_t count)
{
    const size_t bytes = count * sizeof(float);

    assert_int_equal(graphs->begin(c->stream[0], 0), 0);
    order(c, 0);
    if (reduce_on(p, count, c->stream[0], c->stream[1])) fail_msg("%s", ncclGetLastError(NULL));
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) {
        ncclAllReduce(at(p, r, BYTES / 2), at(p, r, bytes), count, ncclFloat, ncclSum, p->comm[r], c->stream[r]);
        ncclSend(at(p, r, bytes), count, ncclFloat, 1 - r, p->comm[r], c->stream[r]);
        ncclRecv(at(p, r, 2 * bytes), count, ncclFloat, 1 - r, p->comm[r], c->stream[r]);
    }
    if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
    order(c, 1);
    return gpu_graphs_finish(graphs, c->stream[0]);
}

static void set_on(struct pair *p, int rank, float value, size_t count)
{
    assert_int_equal(kl_cuda_enter(p->context[rank]), ncclSuccess);
    set(p, rank, value, count);
    kl_cuda_leave(p->context[rank]);
}

/* Other operations come in between. */
static void captured_operations_are_replayed(void **state)
{
    const size_t count = BYTES / 32, bytes = count * sizeof(float);
    struct gpu_graphs graphs;
    struct captured c;
    struct pair p;

    (void)state;
    gpu_graphs_find(&graphs);
    for (int gpus = 1; gpus <= 2 && gpus <= cu->devices; gpus++) {
        start(&p, gpus);
        create_streams(&p, &c);
        if (reduce_on(&p, 8, c.stream[0], c.stream[1])) fail_msg("%s", ncclGetLastError(NULL));
        void *executable = capture(&p, &graphs, &c, count);
        assert_non_null(executable);
        for (int i = 0; i < REPLAYS; i++) {
            for (int r = 0; r < RANKS; r++) set_on(&p, r, (float)(i + r), count);
            assert_int_equal(graphs.launch(executable, c.stream[0]), 0);
            assert_int_equal(cu->cuStreamSynchronize(c.stream[0]), 0);
            for (int r = 0; r < RANKS; r++) check(&p, r, 2 * bytes, (float)(2 * (2 * i + 1)), count);
            if (reduce_on(&p, 8, c.stream[0], c.stream[1])) fail_msg("%s", ncclGetLastError(NULL));
        }
        for (int r = 0; r < RANKS; r++) assert_int_equal(cu->cuStreamSynchronize(c.stream[r]), 0);
        assert_int_equal(graphs.destroy(executable), 0);
        destroy_streams(&c);
        end(&p, false);
    }
}

static void captures_that_differ_are_named(void **state)
{
    struct gpu_graphs graphs;
    kl_cu_stream stream;
    struct pair p;
    void *graph;

    (void)state;
    gpu_graphs_find(&graphs);
    start(&p, 1);
    assert_int_equal(cu->cuStreamCreateWithPriority(&stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
    assert_int_equal(graphs.begin(stream, 0), 0);
    assert_int_equal(reduce_on(&p, 8, stream, KL_CU_PER_THREAD_STREAM), ncclInvalidUsage);
    expect_text(p.comm[0], "of ranks 0 and 1, one captures the operation into a graph, and one does not");
    (void)graphs.end(stream, &graph);
    assert_int_equal(cu->cuStreamDestroy(stream), 0);
    end(&p, true);
}

/* On two GPUs, each of which reduces a half; then one uses the result, in the same group and on another stream. */
static void operations_of_a_group_are_in_order(void **state)
{
    const size_t count = BYTES / 16, bytes = count * sizeof(float);
    struct pair p;

    (void)state;
    if (cu->devices < 2) skip();
    start(&p, 2);
    for (int round = 0; round < 20; round++) {
        for (int r = 0; r < RANKS; r++) set(&p, r, (float)(round + r), count);
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(kl_cuda_enter(p.context[r]), ncclSuccess);
            ncclAllReduce(at(&p, r, 0), at(&p, r, bytes), count, ncclFloat, ncclSum, p.comm[r], NULL);
            ncclAllReduce(at(&p, r, bytes), at(&p, r, 2 * bytes), count, ncclFloat, ncclSum, p.comm[r], NULL);
            ncclSend(at(&p, r, 2 * bytes), count, ncclFloat, 1 - r, p.comm[r], KL_CU_PER_THREAD_STREAM);
            ncclRecv(at(&p, r, 3 * bytes), count, ncclFloat, 1 - r, p.comm[r], NULL);
            kl_cuda_leave(p.context[r]);
        }
        if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(kl_cuda_enter(p.context[r]), ncclSuccess);
            check(&p, r, 3 * bytes, (float)(2 * (2 * round + 1)), count);
            kl_cuda_leave(p.context[r]);
        }
    }
    end(&p, false);
}

static void memory_has_a_device(void **state)
{
    struct kl_memory memory;
    void *ptr;
    int here;

    (void)state;
    assert_int_equal(ncclMemAlloc(&ptr, 1000), ncclSuccess);
    kl_cuda_devices.lookup((char *)ptr + 999, &memory);
    assert_int_equal(memory.device, 0);
    assert_ptr_equal(memory.base, ptr);
    assert_true(memory.bytes >= 1000);
    assert_int_equal(ncclMemFree(ptr), ncclSuccess);
    kl_cuda_devices.lookup(&here, &memory);
    assert_int_equal(memory.kind, KL_MEMORY_FOREIGN);
    assert_int_equal(memory.device, -1);
    assert_int_equal(ncclMemFree(&here), ncclInvalidArgument);
}

static int setup(void)
{
    const struct kl_device_kind *kind;

    setenv("KOLO_DEVICES", "cuda", 1);
    if (!kl_cuda_driver(&cu) && !kl_devices(&kind)) return kind == &kl_cuda_devices ? 0 : 1;
    printf("skipped: %s\n", kl_error_text());
    return 77;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_has_a_device),
        cmocka_unit_test(bad_buffers_are_refused),
        cmocka_unit_test(different_calls_are_named),
        cmocka_unit_test(a_late_rank_is_named),
        cmocka_unit_test(a_thread_that_waits_for_itself_is_told),
        cmocka_unit_test(an_abort_ends_the_wait),
        cmocka_unit_test(windows_are_refused),
        cmocka_unit_test(captured_operations_are_replayed),
        cmocka_unit_test(captures_that_differ_are_named),
        cmocka_unit_test(operations_of_a_group_are_in_order),
    };

    alarm(kolo_test_hang_s());
    const int rc = setup();
    return rc ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
